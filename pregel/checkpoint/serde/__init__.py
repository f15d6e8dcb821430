"""How values become bytes and come back equal: a closed table of types, no pickle, no import at load.

- ``SAFE_MSGPACK_TYPES``: (module, name) of the classes that are stored without being registered.
- ``SAFE_MSGPACK_METHODS``: methods that stored bytes may name: none.
- ``STRICT_MSGPACK_ENABLED``: True; there is no other mode.
"""

from typing import Any

SAFE_MSGPACK_METHODS: frozenset[tuple[str, str, str]] = frozenset()
STRICT_MSGPACK_ENABLED = True


def __getattr__(name: str) -> Any:
    """The table is loaded when it is first asked for: the builder registers types here and needs none of it."""
    if name != "SAFE_MSGPACK_TYPES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pregel.checkpoint.serde.codecs import TABLE

    return frozenset((cls.__module__, cls.__name__) for cls in TABLE)
