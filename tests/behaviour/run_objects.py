"""Reads several projections of one run at once: in threads of a blocking run, in tasks of an awaited one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread as Worker
from typing import Any

from .conftest import Awaiting, Runner

ENDS = ("output", "interrupted", "interrupts")


def read(run: Runner, app: Any, names: str, *args: Any, **kwargs: Any) -> Any:
    """What each of the projections shows, a list or the error after it, by name; of one name, that alone.

    "events" are the run's own; "output", "interrupted" and "interrupts" are read as well. A graph inside of the run
    comes as (its node, its values, its output or error, its status), a message as (text, pieces of its text).
    """
    wanted = names.split()
    if isinstance(run, Awaiting):
        found = asyncio.run(_aread(app, wanted, args, kwargs))
    else:
        found = _read(app, wanted, args, kwargs)
    return found[names] if len(wanted) == 1 else found


def _read(app: Any, names: list[str], args: Any, kwargs: Any) -> dict[str, Any]:
    stream = app.stream_events(*args, version="v3", **kwargs)
    found: dict[str, Any] = {}
    takers = [Worker(target=_take, args=(found, name, _source(stream, name))) for name in names]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join(60)
    return {name: found[name] for name in names}


def _source(stream: Any, name: str) -> Callable[[list[Any]], Any]:
    """What reads a projection into a list; it is subscribed to here, before anything moves."""
    if name in ENDS:
        return lambda taken: getattr(stream, name)
    items = iter(stream if name == "events" else stream.extensions[name])

    def take(taken: list[Any]) -> None:
        for item in items:
            taken.append(_shown(item))

    return take


def _take(found: dict[str, Any], name: str, take: Callable[[list[Any]], Any]) -> None:
    taken: list[Any] = []
    try:
        end = take(taken)
        found[name] = end if name in ENDS else taken
    except BaseException as error:
        found[name] = error if name in ENDS else (taken, error)


def _shown(item: Any) -> Any:
    if hasattr(item, "graph_name"):
        values = list(_until_error(item.values))
        return (item.graph_name, values, _value_of(lambda: item.output), item.status)
    if hasattr(item, "reasoning"):
        pieces = list(item.text)
        assert str(item.text) == "".join(pieces) == item.output.text
        return (item.output.text, pieces)
    return item


def _until_error(items: Any) -> Any:
    try:
        yield from items
    except Exception as error:
        yield error


def _value_of(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except Exception as error:
        return error


async def _aread(app: Any, names: list[str], args: Any, kwargs: Any) -> dict[str, Any]:
    stream = await app.astream_events(*args, version="v3", **kwargs)
    found: dict[str, Any] = {}
    await asyncio.gather(*[_atake(found, stream, name) for name in names])
    return found


async def _atake(found: dict[str, Any], stream: Any, name: str) -> None:
    taken: list[Any] = []
    try:
        if name in ENDS:
            found[name] = await getattr(stream, name)()
            return
        async for item in stream if name == "events" else stream.extensions[name]:
            taken.append(await _ashown(item))
        found[name] = taken
    except BaseException as error:
        found[name] = error if name in ENDS else (taken, error)


async def _ashown(item: Any) -> Any:
    if hasattr(item, "graph_name"):
        values: list[Any] = []
        try:
            async for value in item.values:
                values.append(value)
            output = await item.output()
        except Exception as error:
            values.append(error)
            output = error
        return (item.graph_name, values, output, item.status)
    if hasattr(item, "reasoning"):
        pieces = [piece async for piece in item.text]
        assert await item.text == "".join(pieces) == (await item.output).text
        return ((await item.output).text, pieces)
    return item
