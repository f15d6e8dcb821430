"""What an instance holds beside its class: its slots and its `__dict__`, taken and put back without its class's code.

1. Slots of every base count, also mangled ones and those that are no field. An empty slot stays empty.
2. Left out is what the class works out again by itself: cached properties, `__orig_class__`, attrs' cached hash.
3. Nothing goes through `__init__`, `__setattr__`, a property or a descriptor of the user's.
"""

from __future__ import annotations

from functools import cached_property
from types import MemberDescriptorType
from typing import Any

HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made by a `class` statement (and by some C code)
CACHED_HASH = "_attrs_cached_hash"  # differs from process to process; None has attrs work it out anew


class Attributes:
    """How the attributes of one class's instances are taken and put back."""

    __slots__ = ("_hashes", "has_dict", "left_out", "members")

    def __init__(self, cls: type) -> None:
        self.has_dict = cls.__dictoffset__ != 0
        self.members = _members(cls)
        self.left_out = {"__orig_class__"} | {
            name for base in cls.__mro__ for name, part in vars(base).items() if isinstance(part, cached_property)
        }
        self._hashes = hasattr(cls, "__attrs_attrs__")

    def of(self, value: Any) -> dict[str, Any]:
        """All attributes of an instance, by name."""
        held: dict[str, Any] = value.__dict__.copy() if self.has_dict else {}
        for name in self.left_out:
            held.pop(name, None)
        for name, member in self.members.items():
            try:
                held[name] = member.__get__(value)
            except AttributeError:
                continue
        if self._hashes and CACHED_HASH in held:
            held[CACHED_HASH] = None
        return held

    def set(self, value: Any, held: dict[str, Any]) -> None:
        """Give an instance these attributes. Those that its class has no room for are left out."""
        if self.members:
            for name in self.members.keys() & held.keys():
                self.members[name].__set__(value, held[name])
            held = {name: part for name, part in held.items() if name not in self.members}
        if self.has_dict:
            value.__dict__.update(held)


def _members(cls: type) -> dict[str, MemberDescriptorType]:
    """The slots of a class and its bases, by the name they have in the class."""
    found: dict[str, MemberDescriptorType] = {}
    for base in reversed(cls.__mro__):
        fields = vars(base).get("__attrs_attrs__")
        kept = None if fields is None else {field.name for field in fields} | {CACHED_HASH}  # others: cached properties
        for name, part in vars(base).items():
            if isinstance(part, MemberDescriptorType) and base.__flags__ & HEAP and (kept is None or name in kept):
                found[name] = part
    return found


def is_plain_object(cls: type) -> bool:
    """Whether instances hold nothing but attributes: no base is written in C, so `object.__new__` makes one."""
    return all(base is object or base.__flags__ & HEAP for base in cls.__mro__)


def builtin_base(cls: type) -> type:
    """The class written in C that the instances are laid out as: `object` for most."""
    return next(base for base in cls.__mro__ if not base.__flags__ & HEAP)
