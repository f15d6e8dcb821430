"""How the reviewer of the demo understands Python source: scopes, names and the patterns it looks for."""
