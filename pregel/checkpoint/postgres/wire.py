"""What is said to a PostgreSQL server, written once for both kinds of savers: flows of `Ask` and `Anew`.

1. Nothing depends on the session: a pooler may give each transaction another server. Only a statement that is a
   transaction of its own may be prepared.
2. What is `settled` is done again on another connection after an unclear answer (a cut, a cancelled or failed-over
   statement), so it must do no harm twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import psycopg
from psycopg import errors

from pregel.checkpoint.flows import Atomic, Many, Row, Sql
from pregel.checkpoint.postgres.columns import NotStorable
from pregel.checkpoint.postgres.words import Words, words
from pregel.errors import InternalError, InvalidInputError, PregelError, StoreError
from pregel.flow import Flow

T = TypeVar("T")
Known = Mapping[str, tuple[Row, list[Row]]]  # statement -> arguments and rows
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
TRANSACTION = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

UNPREPARED = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)  # a pooler gave us another server
UNCLEAR = (
    psycopg.OperationalError,  # the connection is gone, the server shuts down, a deadlock, a serialization failure
    *UNPREPARED,
)
UNDONE = (errors.DeadlockDetected,)  # nothing of the transaction happened, so it may be done again whatever it reads
TOO_LARGE = (errors.ProgramLimitExceeded, errors.StatementTooComplex)
CLEAR = (  # OperationalErrors that stay
    errors.DiskFull,
    errors.OutOfMemory,
    errors.ConfigurationLimitExceeded,
    *TOO_LARGE,
)


@dataclass(slots=True)
class Ask:
    """One round trip; the reply is the rows."""

    text: str
    args: Sequence[object] = ()
    alone: bool = False  # it is a transaction of its own


@dataclass(slots=True)
class Anew:
    """Go on with another connection, after a pause that grows; raises StoreError once patience is at its end."""

    error: BaseException


def settled(work: Callable[[], Flow[T]], unclear: tuple[type[psycopg.Error], ...] = UNCLEAR) -> Flow[T]:
    """Do this until the answer is clear. `unclear`: after which errors it may be done again."""
    while True:
        try:
            return (yield from work())
        except unclear as error:
            if isinstance(error, CLEAR):
                raise
            yield Anew(error)


def transaction(begin: str, body: Flow[T]) -> Flow[T]:
    """Run a flow inside a transaction."""
    yield from settled(lambda: _begun(begin))  # a connection may have died while it lay idle
    try:
        result = yield from body
    except GeneratorExit:  # nobody listens any more; the connection is closed with whatever it was in
        raise
    except BaseException:
        with suppress(psycopg.Error):  # then the connection is gone, and the transaction with it
            yield Ask("ROLLBACK")
        raise
    yield Ask("COMMIT")
    return result


def _begun(begin: str) -> Flow[None]:
    yield Ask(begin)


def said(
    flow: Flow[T],
    how: Callable[[Sql | Many | Atomic], Sequence[Words]] = words,
    *,
    alone: bool = False,
    known: Known | None = None,
) -> Flow[T]:
    """A saver's flow with its requests as statements; what is `known` is not asked again."""
    try:
        request = next(flow)
        while True:
            try:
                found = known.get(request.name) if known and request.__class__ is Sql else None
                if found is not None and found[0] == request.args:
                    rows = found[1]
                else:
                    for text, args in how(request):
                        rows = yield Ask(text, args, alone)
            except BaseException as error:
                request = flow.throw(error)
            else:
                request = flow.send(rows)
    except StopIteration as stop:
        value: T = stop.value
        return value


@contextmanager
def explained(thread: str | None = None) -> Iterator[None]:
    """Errors of the driver as errors of ours."""
    try:
        yield
    except PregelError:
        raise
    except (UnicodeEncodeError, NotStorable, psycopg.DataError) as error:
        if isinstance(error, psycopg.DataError) and (error.sqlstate or "NUL" not in str(error)):
            raise StoreError(f"PostgreSQL: {error}", thread=thread) from error
        raise InvalidInputError(
            f"PostgreSQL keeps no text with a NUL character or half a surrogate pair; nothing was written ({error}).",
            fix="Keep such characters out of thread ids, names, namespaces and run ids; values may hold them.",
            thread=thread,
        ) from error
    except TOO_LARGE as error:
        raise InvalidInputError(
            f"PostgreSQL takes no name or value this large; nothing was written ({error}).",
            fix="Keep keys, namespaces, ids and names below 2,000 bytes.",
            thread=thread,
        ) from error
    except psycopg.IntegrityError as error:
        raise InternalError(f"A record is stored already: {error}", thread=thread) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL: {error}", thread=thread) from error
