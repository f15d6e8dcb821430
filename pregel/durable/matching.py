"""Which work a worker takes, and with which code: two questions, asked apart.

1. A filter says what is offered: exact names, exact versions. It is generated from the codes, or advertises less.
2. The codes say what can be done. What was accepted and has no code goes back to the queue, or fails (`on_mismatch`).
3. Strict takes the code of the very version. Current or older takes, where there is none, that of the next newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from pregel.durable.elsewhere import FIRST
from pregel.engine.versions import is_older, rank
from pregel.errors import InvalidInputError, UnregisteredWorkError

Code = Callable[..., Any]
Codes = Mapping[str | tuple[str, str], Code]
Match = Literal["strict", "current_or_older"]
Mismatch = Literal["reject", "fail"]


class _Registered:
    def __repr__(self) -> str:
        return "REGISTERED"


REGISTERED: Final = _Registered()
"""The filter that is generated from what a worker has code for."""

Filter = _Registered | Mapping[str, Iterable[str]] | None


class Matching:
    """The codes of a worker, and what it accepts."""

    def __init__(self, codes: Codes, filter: Filter, match: Match) -> None:
        if not codes:
            raise InvalidInputError("A worker has code for some work.", fix='Give it {"ShipOrder": ship}.')
        if match not in ("strict", "current_or_older"):
            raise InvalidInputError(f"match is {match!r}.", fix='"strict" or "current_or_older".')
        self.codes = {(key, FIRST) if isinstance(key, str) else key: code for key, code in codes.items()}
        if len(self.codes) < len(codes):
            raise InvalidInputError(f"A name alone means version {FIRST!r}, which is given twice.")
        self.match = match
        self._filter = filter if filter is None or isinstance(filter, _Registered) else self._checked(filter)

    def accepts(self, name: str, version: str) -> bool:
        """Whether work of this name and version is offered."""
        if self._filter is None:
            return True
        if isinstance(self._filter, _Registered):
            return self.code(name, version) is not None
        return version in self._filter.get(name, ())

    @property
    def kinds(self) -> list[tuple[str, str]] | None:
        """All that is offered, by name and version; None when that depends on what there is."""
        if self._filter is None:
            return None
        if isinstance(self._filter, _Registered):
            return list(self.codes) if self.match == "strict" else None
        return [(name, version) for name, versions in self._filter.items() for version in sorted(versions)]

    def code(self, name: str, version: str) -> Code | None:
        """The code that does it; None when there is none."""
        exact = self.codes.get((name, version))
        if exact is not None or self.match == "strict":
            return exact
        newer = [known for of, known in self.codes if of == name and not is_older(known, version)]
        return self.codes[name, min(newer, key=rank)] if newer else None

    def _checked(self, filter: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
        if not filter:
            raise InvalidInputError(
                "An empty filter accepts nothing, or everything?",
                fix="Leave it out for what is registered, or give None.",
            )
        known = {name for name, _ in self.codes}
        if unknown := sorted(filter.keys() - known):
            raise UnregisteredWorkError(
                f"The filter names {', '.join(unknown)}, for which this worker has no code.",
                fix="Register it, or leave it out: names are exact, with no patterns.",
            )
        for name, versions in filter.items():
            if isinstance(versions, str) or not versions:
                raise InvalidInputError(f"The versions of {name!r} are {versions!r}.", fix='Give a list: ["1", "2"].')
        return {name: frozenset(versions) for name, versions in filter.items()}
