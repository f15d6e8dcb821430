"""The pages: README.md and docs/*.md, where the wheel or the source tree has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pregel.errors import InvalidInputError

BUNDLED = Path(__file__).parent / "bundled"  # made by the build of a wheel (pyproject.toml)


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the `name` that it is asked for by, its headline, and its file."""

    name: str
    title: str
    file: Path

    def read(self) -> str:
        """Its text, Markdown."""
        return self.file.read_text(encoding="utf-8")


def path() -> Path:
    """The directory of the pages; README.md lies beside it."""
    top = BUNDLED if BUNDLED.is_dir() else Path(__file__).parents[2]
    return top / "docs"


def pages() -> list[Page]:
    """All pages, README first."""
    files = [path().parent / "README.md", *sorted(path().glob("*.md"))]
    return [Page(file.stem.lower(), _title(file), file) for file in files if file.is_file()]


def page(name: str) -> str:
    """The text of a page, by its name in any case, with or without ``.md``; InvalidInputError when there is none."""
    found = {one.name: one for one in pages()}
    wanted = name.strip().lower().removesuffix(".md").rpartition("/")[2]
    if wanted not in found:
        raise InvalidInputError(f"There is no page {name!r}.", fix=f"The pages are {', '.join(found)}.")
    return found[wanted].read()


def listing() -> str:
    """The pages, a line each: name and title."""
    found = pages()
    width = max(len(one.name) for one in found)
    return "\n".join(f"{one.name:<{width}}  {one.title}" for one in found)


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line[2:].strip() for line in lines if line.startswith("# ")), file.stem)
