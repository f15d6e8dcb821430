"""The words of texts, and what a word of a query weighs: search by words, the same in every store.

1. A word is a run of letters and digits. Case, accents and width do not count.
2. An item has a word or it has not; how often says nothing.
3. A word of a query weighs more the fewer of the items under the searched prefix have it: by the idf of BM25 (Robertson
   and Zaragoza 2009). So nothing outside of the prefix, and no filter, changes a score.
4. The share of an item is the weight of the query's words that it has, out of the weight of all: 0 to 1.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

LENGTH = 64  # characters of a word that count
BYTES = 500_000  # of an item's distinct words, in UTF-8; databases keep no more than twice as much
_WORD = re.compile(r"[^\W_]+")


def words(texts: Iterable[str]) -> list[str]:
    """The distinct words of texts, in the order in which they come, the first 500,000 bytes of them."""
    found: dict[str, None] = {}
    size = 0
    for text in texts:
        for word in _WORD.findall(_plain(text)):
            word = word[:LENGTH]
            if word not in found:
                size += len(word.encode())
                if size > BYTES:
                    return list(found)
                found[word] = None
    return list(found)


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", "".join(char for char in apart if unicodedata.category(char) != "Mn"))


def weights(asked: Sequence[str], total: int, counts: Mapping[str, int]) -> dict[str, float]:
    """What each word weighs, 1 together. `total` items are searched, of which `counts` have the word."""
    rare = {
        word: math.log1p((max(total - counts.get(word, 0), 0) + 0.5) / (counts.get(word, 0) + 0.5)) for word in asked
    }
    whole = sum(rare.values())
    return {word: weight / whole for word, weight in rare.items()}


def scope(ns: str) -> str:
    """A word that items under a namespace (as joined text) have, and no text has."""
    return "_" + blake2b(ns.encode(), digest_size=8).hexdigest()


def scopes(ns: str) -> list[str]:
    """The words of all prefixes of a namespace but the empty one, which all items are under."""
    ends = [place + 1 for place, char in enumerate(ns) if char == "."]
    return [scope(ns[:end]) for end in ends[1:]]
