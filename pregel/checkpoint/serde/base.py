"""What a serialiser is to a saver."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pregel.errors import SerializationError


@runtime_checkable
class UntypedSerializerProtocol(Protocol):
    """Values to bytes and back, without a type name."""

    def dumps(self, obj: Any) -> bytes: ...

    def loads(self, data: bytes) -> Any: ...


@runtime_checkable
class SerializerProtocol(Protocol):
    """Values to (type name, bytes) and back."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]: ...

    def loads_typed(self, data: tuple[str, bytes]) -> Any: ...


class SerializerCompat(SerializerProtocol):
    """An untyped serialiser in the typed shape; its type name is its class name."""

    def __init__(self, serde: UntypedSerializerProtocol) -> None:
        self.serde = serde

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return type(obj).__name__, self.serde.dumps(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self.serde.loads(data[1])


class CipherProtocol(Protocol):
    """Encrypts and decrypts bytes; the cipher's name is stored beside them."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]: ...

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes: ...


def maybe_add_typed_methods(serde: SerializerProtocol | UntypedSerializerProtocol) -> SerializerProtocol:
    """The serialiser itself, or an untyped one in the typed shape."""
    return serde if isinstance(serde, SerializerProtocol) else SerializerCompat(serde)


def in_clear(serde: Any) -> Any:
    """The serialiser behind a cipher: it writes equal values in the same bytes, a cipher gives other ones each time."""
    while hasattr(serde, "cipher"):
        serde = serde.serde
    return serde


class CannotStore(SerializationError):
    """A value cannot be stored so that it comes back equal. `path` leads to it, `reason` says why."""

    def __init__(
        self, reason: str, *, path: str = "", fix: str | None = None, root: str = "value", **place: Any
    ) -> None:
        super().__init__(f"cannot store {root}{path}: {reason}", fix=fix, **place)
        self.reason, self.path = reason, path

    def inside(self, root: str, **place: Any) -> CannotStore:
        """The same error, told from the place that holds the value."""
        return CannotStore(self.reason, path=self.path, fix=self.fix or None, root=root, **place)
