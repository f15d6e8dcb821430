"""Objects of other libraries inside graphs of ours."""
