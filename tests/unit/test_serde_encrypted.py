"""Encryption: values come back with any of the keys, and bytes that were touched are an error, never a value."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretBytes, SecretStr

pytest.importorskip("cryptography")

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.serde.base import CannotStore, SerializerProtocol
from pregel.checkpoint.serde.encrypted import AesGcm, DecryptionError, EncryptedSerializer
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import InvalidInputError, SerializationError
from tests.unit.test_serde import VALUES

OLD, NEW = bytes(range(32)), bytes(range(1, 33))


class Login(BaseModel):
    user: str
    password: SecretStr
    token: SecretBytes = SecretBytes(b"t")


class Backwards:
    """A cipher of the user's."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "backwards", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != "backwards":
            raise KeyError(ciphername)
        return ciphertext[::-1]


serde = EncryptedSerializer.from_keys({"2026": NEW})


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    kind, data = serde.dumps_typed(value)

    back = serde.loads_typed((kind, data))

    assert (value, type(value)) == (back, type(back))
    assert kind.endswith("+aesgcm")


def test_nothing_of_a_value_is_stored_in_clear() -> None:
    _, data = serde.dumps_typed({"card": "4111 1111 1111 1111", "who": ["Ada"] * 50})

    assert not any(text in data for text in (b"card", b"4111", b"Ada"))


def test_the_same_value_is_stored_as_other_bytes_each_time() -> None:
    assert serde.dumps_typed("x") != serde.dumps_typed("x")


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [16, 24, 32])
def test_a_key_has_16_24_or_32_bytes(size: int) -> None:
    own = EncryptedSerializer.from_keys(os.urandom(size))

    assert [1] == own.loads_typed(own.dumps_typed([1]))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (b"short", "An AES key of 5 bytes"),
        ([], "There is no key"),
        ({}, "There is no key"),
        ({"a": b"short"}, "An AES key of 5 bytes"),
        ("text of thirty-two characters !!", "A key is a str"),
        ({"n" * 256: OLD}, "more than 255 bytes"),
    ],
)
def test_what_is_no_key_is_refused(keys: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        AesGcm(keys)


@pytest.mark.parametrize(
    ("before", "after"),
    [({"old": OLD}, {"new": NEW, "old": OLD}), ([OLD], [NEW, OLD])],
    ids=["named", "unnamed"],
)
def test_after_a_rotation_the_first_key_encrypts_and_all_decrypt(before: Any, after: Any) -> None:
    stored = EncryptedSerializer.from_keys(before).dumps_typed("x")
    rotated = EncryptedSerializer.from_keys(after)
    first = EncryptedSerializer.from_keys({"new": NEW} if isinstance(after, dict) else NEW)

    assert "x" == rotated.loads_typed(stored)
    assert "y" == first.loads_typed(rotated.dumps_typed("y"))


def test_a_missing_key_is_named() -> None:
    stored = EncryptedSerializer.from_keys({"2025": OLD}).dumps_typed("x")

    with pytest.raises(DecryptionError, match="with the key '2025', which is not given here"):
        serde.loads_typed(stored)


def test_another_key_under_the_same_name_is_a_named_error() -> None:
    stored = EncryptedSerializer.from_keys({"2026": OLD}).dumps_typed("x")

    with pytest.raises(DecryptionError, match="not with this key '2026'"):
        serde.loads_typed(stored)


# -- what was touched --------------------------------------------------------------------------------------------------


@given(st.data())
def test_a_changed_byte_is_found(data: st.DataObject) -> None:
    kind, stored = serde.dumps_typed({"a": [1, "text"]})
    at = data.draw(st.integers(0, len(stored) - 1))
    flipped = bytes([stored[at] ^ data.draw(st.integers(1, 255))])

    with pytest.raises(DecryptionError):
        serde.loads_typed((kind, stored[:at] + flipped + stored[at + 1 :]))


@given(st.integers(0, 60))
def test_cut_off_bytes_are_found(length: int) -> None:
    kind, stored = serde.dumps_typed("a text of some length, so that there is something to cut off")

    with pytest.raises(DecryptionError):
        serde.loads_typed((kind, stored[:length]))


@pytest.mark.parametrize("kind", ["bytes+aesgcm", "null+aesgcm", "msgpack+other", "msgpack+aesgcm+aesgcm", "+aesgcm"])
def test_another_type_name_is_found(kind: str) -> None:
    _, stored = serde.dumps_typed([1])

    with pytest.raises(DecryptionError):
        serde.loads_typed((kind, stored))


def test_random_bytes_are_found() -> None:
    with pytest.raises(DecryptionError, match="not in the form"):
        serde.loads_typed(("msgpack+aesgcm", b"\x99" * 80))


# -- moving over -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, [1], b"x"])
def test_what_was_stored_in_clear_is_still_read(value: Any) -> None:
    assert value == serde.loads_typed(JsonPlusSerializer().dumps_typed(value))


@pytest.mark.parametrize("value", [None, [1], b"x"])
def test_it_is_not_when_encryption_is_required(value: Any) -> None:
    strict = EncryptedSerializer.from_keys({"2026": NEW}, require_encrypted=True)

    with pytest.raises(DecryptionError, match="stored in clear"):
        strict.loads_typed(JsonPlusSerializer().dumps_typed(value))


def test_a_compressed_value_is_encrypted_after_it() -> None:
    own = EncryptedSerializer.from_keys(NEW, JsonPlusSerializer(compress_above=100))

    kind, stored = own.dumps_typed(["text"] * 1000)

    assert "zlib+aesgcm" == kind
    assert len(stored) < 200
    assert ["text"] * 1000 == own.loads_typed((kind, stored))


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_a_secret_is_stored_only_encrypted() -> None:
    login = Login(user="ada", password=SecretStr("pw"))
    inner = JsonPlusSerializer(allow=[Login])
    own = EncryptedSerializer.from_keys(NEW, inner)

    back = own.loads_typed(own.dumps_typed(login))

    assert (login, "pw") == (back, back.password.get_secret_value())
    with pytest.raises(CannotStore, match=r"value.password: a SecretStr is stored only encrypted"):
        inner.dumps_typed(login)


# -- the reference's names ---------------------------------------------------------------------------------------------


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "sixteen bytes ok")
    own = EncryptedSerializer.from_pycryptodome_aes()

    stored = own.dumps_typed([1])

    assert [1] == EncryptedSerializer.from_pycryptodome_aes(key=b"sixteen bytes ok").loads_typed(stored)


def test_no_key_at_all_is_a_value_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)

    with pytest.raises(ValueError, match="LANGGRAPH_AES_KEY is not set"):
        EncryptedSerializer.from_pycryptodome_aes()


def test_another_mode_cannot_be_set() -> None:
    with pytest.raises(InvalidInputError, match="always in GCM mode here: mode"):
        EncryptedSerializer.from_pycryptodome_aes(key=NEW, mode=9)


def test_a_cipher_of_the_users_is_used() -> None:
    own = EncryptedSerializer(Backwards(), JsonPlusSerializer())

    assert ("msgpack+backwards", b"\x02\x01\x92") == own.dumps_typed([1, 2])
    assert [1, 2] == own.loads_typed(("msgpack+backwards", b"\x02\x01\x92"))
    assert own.loads_typed(("null", b"")) is None


def test_an_error_of_such_a_cipher_is_told_as_ours() -> None:
    with pytest.raises(DecryptionError, match="KeyError"):
        EncryptedSerializer(Backwards()).loads_typed(("msgpack+other", b""))


def test_it_is_a_serialiser_for_savers() -> None:
    saver: InMemorySaver = InMemorySaver(serde=serde)

    assert isinstance(serde, SerializerProtocol)
    assert saver.serde is serde


def test_an_allow_list_widens_what_it_wraps() -> None:
    class Thing(BaseModel):
        a: int = 1

    own = serde.with_allowlist([Thing])

    assert Thing() == own.loads_typed(own.dumps_typed(Thing()))
    assert own is own.with_allowlist([Thing])
    with pytest.raises(SerializationError):
        serde.dumps_typed(Thing())
