"""What connects this library with others, in processes that use both."""
