"""An answer as it streams, without the personal data that is looked for.

1. What shows of a text adds up to the cleaned text: a piece is held back while a match may still begin or grow in it,
   and only so long. A detector that does not say how far its matches reach is given the whole text, so all is held.
2. The texts of a message are told apart as its content is: by the index of their block. Nothing else of a message is
   held or changed.
3. Where a match is refused ("block"), or its detector fails, nothing shows from there on. A sink raises nothing: the
   answer is refused when it is whole, as it is when nobody listens.
4. A message that is cut off shows no more of what was held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from pregel.agents.middleware.redaction import Redaction
from pregel.tokens import Sink


class CleanText:
    """One text that comes in pieces."""

    __slots__ = ("_before", "_held", "_redaction")

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._before = ""
        self._held: list[str] = []

    def take(self, piece: str) -> str:
        """What may show now that a piece has come."""
        extent = self._redaction.extent
        if extent is None or not piece:
            self._held.append(piece)
            return ""
        cut = 0
        for found in extent.breaks.finditer(piece):
            cut = found.end()
        known = self._let("".join([*self._held, piece[:cut]])) if cut else ""
        rest = "".join([*([] if cut else self._held), piece[cut:]])
        if extent.opens is not None:
            start = len(self._before)
            opened = extent.opens.search(self._before + rest, start)
            at = len(rest) if opened is None else opened.start() - start
            if at:
                known, rest, self._before = known + rest[:at], rest[at:], rest[at - 1]
        self._held = [rest]
        return known

    def end(self) -> str:
        """What was held, when there is no more of the text."""
        held, self._held = "".join(self._held), []
        return self._let(held)

    def _let(self, text: str) -> str:
        clean = self._redaction(text, self._before)
        self._before = text[-1:] or self._before
        return clean


class CleanSink:
    """Stands before a sink for the pieces of one model call (`pregel.tokens`), and lets clean ones through."""

    def __init__(self, redaction: Redaction, sink: Sink) -> None:
        self.redaction, self.sink = redaction, sink
        self.texts: dict[Any, CleanText] = {}
        self.last: Any = None  # the piece that came last, while there may be more
        self.refused = False

    def __call__(self, message: Any) -> None:
        """Show what may be shown of a piece, or of a message that comes whole."""
        whole = not type(message).__name__.endswith("Chunk")
        self._show(self._whole if whole else self._pieces, message)

    def end(self, ids: Collection[str | None]) -> None:
        """Show what is held, if the message is one of these and its last piece did not say that it was the last."""
        if self.last is not None and self.last.id in ids:
            self._show(self._rest, self.last)

    def _show(self, clean: Callable[[Any], Iterable[Any]], message: Any) -> None:
        if self.refused:
            return
        try:
            shown = [*clean(message)]
        except Exception:  # the hook around the call meets the same when the answer is whole, and raises it
            self.refused = True
            return
        for one in shown:
            self.sink(one)

    def _whole(self, message: Any) -> Iterator[Any]:
        yield with_content(message, clean_content(self.redaction, message.content))

    def _pieces(self, chunk: Any) -> Iterator[Any]:
        self.last = chunk
        content = self._shown(chunk.content)
        if getattr(chunk, "chunk_position", None) == "last":
            if isinstance(content, str) and None in self.texts:
                content += self.texts.pop(None).end()
            yield from self._rest(chunk)
            self.last = None
        if content or not chunk.content or _says_more(chunk):
            yield with_content(chunk, content)

    def _shown(self, content: Any) -> Any:
        """What may show of a content by now."""
        if isinstance(content, str):
            return self._text(None).take(content) if content else content
        shown: list[Any] = []
        for block in content:
            if isinstance(block, str):
                shown.append(self._text(None).take(block))
                continue
            if None in self.texts:  # a block ends the text before it
                shown.append(self.texts.pop(None).end())
            shown += self._block(block)
        return [one for one in shown if one != ""]

    def _block(self, block: Any) -> list[Any]:
        text, index = block.get("text"), block.get("index")
        if not isinstance(text, str):
            return [block]
        words = self._text(index).take(text) if index is not None else self.redaction(text)
        return [{**block, "text": words}] if words or not text else []

    def _text(self, key: Any) -> CleanText:
        if key not in self.texts:
            self.texts[key] = CleanText(self.redaction)
        return self.texts[key]

    def _rest(self, chunk: Any) -> Iterator[Any]:
        """What is held, in a piece of its own for each text."""
        while self.texts:
            index, text = self.texts.popitem()
            if words := text.end():
                block = {"type": "text", "text": words, "index": index}
                yield type(chunk)(content=words if index is None else [block], id=chunk.id)


class CleanOutput:
    """Stands before what a tool puts out on the way: texts are one text; anything else passes as it is."""

    def __init__(self, redaction: Redaction, emit: Callable[[Any], None]) -> None:
        self.emit, self.text, self.failed = emit, CleanText(redaction), False

    def __call__(self, delta: Any) -> None:
        """Show what may be shown by now."""
        self._show(lambda: self.text.take(delta) if isinstance(delta, str) else delta)

    def end(self) -> None:
        """Show what is held."""
        self._show(self.text.end)

    def _show(self, clean: Callable[[], Any]) -> None:
        if self.failed:
            return
        try:
            shown = clean()
        except Exception:  # the tool goes on; its result is looked through as well, and meets the same
            self.failed = True
            return
        if shown != "":
            self.emit(shown)


def _says_more(chunk: Any) -> bool:
    """Whether a piece says something beside its words."""
    fields = ("tool_call_chunks", "usage_metadata", "response_metadata", "additional_kwargs", "chunk_position")
    return any(getattr(chunk, field, None) for field in fields)


def clean_content(redaction: Redaction, content: Any) -> Any:
    """A whole content without what is looked for."""
    if isinstance(content, str):
        return redaction(content)
    return [_clean_block(redaction, block) for block in content]


def _clean_block(redaction: Redaction, block: Any) -> Any:
    if isinstance(block, str):
        return redaction(block)
    return {**block, "text": redaction(block["text"])} if isinstance(block.get("text"), str) else block


def with_content(message: Any, content: Any) -> Any:
    """The message with another content; itself where it is the same."""
    return message if content == message.content else message.model_copy(update={"content": content})
