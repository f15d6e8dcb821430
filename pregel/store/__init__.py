"""Long-term memory: JSON-like documents by namespace and key, found by filter and by meaning, apart from any thread."""
