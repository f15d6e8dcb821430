"""How values become bytes and come back equal: a closed table of types, no pickle, no import at load."""

from pregel.checkpoint.serde.codecs import TABLE

SAFE_MSGPACK_TYPES = frozenset((cls.__module__, cls.__name__) for cls in TABLE)
"""(module, name) of the classes that are stored without being registered."""

SAFE_MSGPACK_METHODS: frozenset[tuple[str, str, str]] = frozenset()
"""Methods that stored bytes may name: none."""

STRICT_MSGPACK_ENABLED = True
"""There is no other mode."""
