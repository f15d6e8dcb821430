"""Typed state graphs whose runs survive anything that happens to their process."""
