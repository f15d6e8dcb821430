"""Checkpoints: what a thread's journal holds, and the savers that keep it."""
