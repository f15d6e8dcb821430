"""The statements of stores in databases, by name; see `pregel.checkpoint.sql` for how they are read."""
