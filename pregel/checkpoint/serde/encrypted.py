"""EncryptedSerializer: what another serialiser gives, encrypted; and AES-GCM with keys that can be replaced.

1. Stored under ``<type>+<cipher>``. What was stored in clear before is still read, unless `require_encrypted`.
2. AES-GCM binds the type and the key's name to the text: bytes that were changed, cut off, relabelled, or written with
   another key are a DecryptionError, never another value.
3. Encrypted are the values: channels, writes, questions and answers, caches. In clear stay names (threads, nodes,
   channels), metadata, times, sizes, and which channels hold None.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

from pregel.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.registry import Allowed
from pregel.errors import InvalidInputError, SerializationError
from pregel.extras import extra

ENVIRONMENT = "LANGGRAPH_AES_KEY"
NONCE, TAG, FORMAT = 12, 16, 1  # bytes, bytes, the first byte of what is stored
SIZES = (16, 24, 32)  # bytes of a key

Keys = bytes | Iterable[bytes] | Mapping[str, bytes]
"""One key, several, or several by name. The first encrypts, all decrypt."""


class DecryptionError(SerializationError):
    """A stored value cannot be decrypted."""


class BindingCipher(CipherProtocol, Protocol):
    """A cipher that also authenticates a text that is not encrypted: `context` must be the same both times."""

    binds: ClassVar[bool]

    def encrypt(self, plaintext: bytes, context: bytes = b"") -> tuple[str, bytes]: ...

    def decrypt(self, ciphername: str, ciphertext: bytes, context: bytes = b"") -> bytes: ...


class AesGcm:
    """AES-GCM under a random 96-bit nonce, by the `cryptography` package (extra ``encryption``).

    A key has 16, 24 or 32 bytes; what is stored names the key it was written with. One without a name is named by a
    hash of it. Replace a key before it has written 2**32 values: put the new one first and keep the old one for as
    long as something is stored with it.
    """

    name = "aesgcm"
    binds: ClassVar[bool] = True

    __slots__ = ("_ciphers", "_first")

    def __init__(self, keys: Keys) -> None:
        named = _named(keys)
        if not named:
            raise InvalidInputError("There is no key to encrypt with.", fix="Give at least one key.")
        aes = _aes()
        self._ciphers: dict[bytes, Any] = {key_id: aes(key) for key_id, key in named.items()}
        self._first = next(iter(named))

    def encrypt(self, plaintext: bytes, context: bytes = b"") -> tuple[str, bytes]:
        """(name of the cipher, bytes): format, length and name of the key, nonce, text and tag."""
        head = bytes((FORMAT, len(self._first))) + self._first
        nonce = os.urandom(NONCE)
        return self.name, head + nonce + self._ciphers[self._first].encrypt(nonce, plaintext, head + context)

    def decrypt(self, ciphername: str, ciphertext: bytes, context: bytes = b"") -> bytes:
        """The text again; DecryptionError says what is wrong with the bytes or which key is missing."""
        if ciphername != self.name:
            raise DecryptionError(
                f"A stored value was encrypted by {ciphername[:80]!r}, not by {self.name!r}.",
                fix="Give the EncryptedSerializer the cipher that wrote it.",
            )
        if len(ciphertext) < 2 or ciphertext[0] != FORMAT:
            raise DecryptionError("A stored value is not in the form that AesGcm writes.")
        start = 2 + ciphertext[1]
        head, nonce = ciphertext[:start], ciphertext[start : start + NONCE]
        if len(ciphertext) < start + NONCE + TAG:
            raise DecryptionError("An encrypted value is cut off.")
        cipher = self._ciphers.get(head[2:])
        if cipher is None:
            raise DecryptionError(
                f"A stored value was encrypted with the key {_shown(head[2:])}, which is not given here.",
                fix="Give AesGcm that key, after the one that encrypts.",
            )
        try:
            text: bytes = cipher.decrypt(nonce, ciphertext[start + NONCE :], head + context)
        except Exception as error:  # InvalidTag, which says nothing on purpose
            raise DecryptionError(
                f"A stored value was changed since it was encrypted, or not with this key {_shown(head[2:])}.",
                fix="Check the key; if it is right, the stored bytes are damaged or forged.",
            ) from error
        return text


class EncryptedSerializer(SerializerProtocol):
    """A serialiser that encrypts what `serde` gives. `require_encrypted` refuses to read what was stored in clear."""

    def __init__(
        self,
        cipher: CipherProtocol,
        serde: SerializerProtocol | None = None,
        *,
        require_encrypted: bool = False,
    ) -> None:
        inner = JsonPlusSerializer() if serde is None else serde
        self.cipher = cipher
        self.serde: SerializerProtocol = inner.with_secrets() if isinstance(inner, JsonPlusSerializer) else inner
        self.require_encrypted = require_encrypted
        self._binds: Any = cipher if getattr(cipher, "binds", False) else None

    @classmethod
    def from_keys(
        cls, keys: Keys, serde: SerializerProtocol | None = None, *, require_encrypted: bool = False
    ) -> EncryptedSerializer:
        """A serialiser that encrypts with AES-GCM under the first of these keys, and decrypts with any of them."""
        return cls(AesGcm(keys), serde, require_encrypted=require_encrypted)

    @classmethod
    def from_pycryptodome_aes(cls, serde: SerializerProtocol | None = None, **kwargs: Any) -> EncryptedSerializer:
        """The same under the reference's name: `key=`, or the environment variable LANGGRAPH_AES_KEY.

        What is stored differs from the reference's (GCM instead of EAX); `cryptography` is used, not pycryptodome.
        """
        key = kwargs.pop("key", None)
        if kwargs:
            raise InvalidInputError(
                f"AES is always in GCM mode here: {', '.join(sorted(kwargs))} cannot be set.", fix="Leave it out."
            )
        if key is None:
            key = os.environ.get(ENVIRONMENT, "").encode()
            if not key:
                raise InvalidInputError(f"There is no key: {ENVIRONMENT} is not set.", fix="Set it, or give key=.")
        return cls.from_keys(key, serde)

    def with_allowlist(self, extra: Iterable[Allowed]) -> EncryptedSerializer:
        """A serialiser that also stores these classes; itself when it already does, or what it wraps cannot tell."""
        widen = getattr(self.serde, "with_allowlist", None)
        serde = self.serde if widen is None else widen(extra)
        if serde is self.serde:
            return self
        return type(self)(self.cipher, serde, require_encrypted=self.require_encrypted)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The value as (type+cipher, bytes)."""
        kind, plain = self.serde.dumps_typed(obj)
        if self._binds is not None:
            name, data = self._binds.encrypt(plain, kind.encode())
        else:
            name, data = self.cipher.encrypt(plain)
        return f"{kind}+{name}", data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value again; DecryptionError when the bytes are not what was stored."""
        kind, raw = data
        inner, plus, name = kind.rpartition("+")
        if not plus:
            if self.require_encrypted:
                raise DecryptionError(
                    "A value was stored in clear, and this serialiser reads encrypted ones only.",
                    fix="Read it once with require_encrypted=False, if it is yours, and store it anew.",
                )
            return self.serde.loads_typed(data)
        if self._binds is not None:
            return self.serde.loads_typed((inner, self._binds.decrypt(name, raw, inner.encode(errors="surrogatepass"))))
        return self.serde.loads_typed((inner, self._opened(name, raw)))

    def _opened(self, name: str, raw: bytes) -> bytes:
        """What a cipher of the user's makes of the bytes; its errors are told as ours."""
        try:
            return self.cipher.decrypt(name, raw)
        except Exception as error:
            raise DecryptionError(f"A stored value cannot be decrypted: {type(error).__name__}: {error}") from error


def _named(keys: Keys) -> dict[bytes, bytes]:
    """Keys by the name that is stored with what they encrypt."""
    if isinstance(keys, Mapping):
        named = {name.encode(): key for name, key in keys.items()}
    else:
        listed = [keys] if isinstance(keys, (bytes, bytearray)) else list(keys)
        named = {
            hashlib.blake2b(_checked(key), digest_size=6, person=b"pregel-key-name").digest(): key for key in listed
        }
    for name, key in named.items():
        _checked(key)
        if len(name) > 255:
            raise InvalidInputError("The name of a key has more than 255 bytes.", fix="Shorten it.")
    return named


def _checked(key: object) -> bytes:
    if not isinstance(key, (bytes, bytearray)):
        raise InvalidInputError(f"A key is a {type(key).__name__}.", fix="Give bytes, for example os.urandom(32).")
    if len(key) not in SIZES:
        raise InvalidInputError(f"An AES key of {len(key)} bytes.", fix="It must be 16, 24, or 32 bytes long.")
    return bytes(key)


def _shown(key_id: bytes) -> str:
    try:
        text = key_id.decode()
    except UnicodeDecodeError:
        return key_id.hex()
    return repr(text) if text.isprintable() else key_id.hex()


def _aes() -> Any:
    with extra("encryption", "Encryption"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    return AESGCM
