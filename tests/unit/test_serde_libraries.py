"""Values of NumPy, pandas and pydantic: equal, of the same dtype and layout, or refused; and nothing on bytes' word."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from pydantic import AnyUrl, BaseModel, ByteSize, HttpUrl, PostgresDsn
from pydantic_core import MultiHostUrl, Url

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.codecs import NDARRAY, NUMPY_SCALAR, PANDAS, SECRET, URL
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import SerializationError
from pregel.messages import ToolMessage

serde = JsonPlusSerializer()


def round_trip(value: Any) -> Any:
    return serde.loads_typed(serde.dumps_typed(value))


def ext(code: int, *parts: Any) -> bytes:
    packed: bytes = msgpack.packb(msgpack.ExtType(code, msgpack.packb(parts)))
    return packed


# -- NumPy -------------------------------------------------------------------------------------------------------------


def of_lists() -> Any:
    array = np.empty(2, dtype=object)
    array[0], array[1] = [1], (2,)
    return array


ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array(5),
    np.array([]),
    np.zeros((0, 3)),
    np.zeros((2, 0), dtype="U0"),
    np.array(["a", "bcd"]),
    np.array([b"x", b"yy"]),
    np.array([1, 2], dtype=">i4"),
    np.array(["2026-01-01", "NaT"], dtype="M8[D]"),
    np.array([1, 2], dtype="m8[s]"),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    np.array([True]),
    np.array([1 + 2j]),
    np.array([1.5], dtype=np.float16),
    np.array([None, "a", (1,), 2**70], dtype=object),
    np.array([[1, 2.5], ["a", None]], dtype=object),
    of_lists(),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_an_array_comes_back(array: Any) -> None:
    back = round_trip({"deep": [array]})["deep"][0]

    assert (array.dtype, array.shape, array.flags.f_contiguous) == (back.dtype, back.shape, back.flags.f_contiguous)
    assert array.tolist() == back.tolist()
    assert list(map(type, array.ravel().tolist())) == list(map(type, back.ravel().tolist()))
    assert back.flags.writeable


def test_every_other_element_comes_back() -> None:
    assert [0, 2, 4] == round_trip(np.arange(6)[::2]).tolist()


def test_nan_and_signed_zero_come_back_bit_by_bit() -> None:
    array = np.array([np.nan, -0.0, np.inf])

    assert array.tobytes() == round_trip(array).tobytes()


SCALARS = [
    np.float64(1.5),
    np.int8(3),
    np.bool_(True),
    np.str_("é\0"),
    np.bytes_(b"x\0"),
    np.datetime64("2026-01-01"),
    np.timedelta64(5, "s"),
    np.complex64(1),
    np.longdouble(1),
    np.dtype("i4"),
    np.dtype([("a", ">i4")]),
]


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: type(value).__name__)
def test_a_scalar_or_dtype_comes_back(value: Any) -> None:
    back = round_trip([value])[0]

    assert (value, type(value)) == (back, type(back))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ma.array([1]), "a numpy.ma.MaskedArray would come back as a plain ndarray"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), r"arrays of dtype StringDType\(\) cannot be stored"),
        (np.array([(1, None)], dtype=[("a", "i4"), ("b", "O")]), "arrays of dtype .* cannot be stored"),
        (np.zeros(1, dtype=np.dtype("i4", metadata={"unit": "m"})), "arrays of dtype int32 cannot be stored"),
        (np.array([object()], dtype=object), r"value\[0\]: objects of type object cannot be stored"),
    ],
)
def test_an_array_that_could_not_come_back_is_refused(array: Any, message: str) -> None:
    with pytest.raises(CannotStore, match=message):
        serde.dumps_typed(array)


@pytest.mark.parametrize(
    "parts",
    [
        ("<i8", [10**9], "C", b"\0" * 8),
        ("<i8", [-1], "C", b""),
        ("<i8", [2**62, 2**62], "C", b""),
        ("V0", [10**12], "C", b"x"),
        ("O", [10**9], "C", [None]),
        ("|O", [1], "C", b"\0" * 8),
        ([["a", "|O"]], [1], "C", b"\0" * 8),
        ("no dtype", [1], "C", b""),
        ("<i8", [1], "K!", b"\0" * 8),
        ("<i8",),
        (),
    ],
)
def test_an_array_that_is_not_as_large_as_its_bytes_is_an_error(parts: Any) -> None:
    with pytest.raises(SerializationError):
        serde.loads(ext(NDARRAY, *parts))


def test_a_scalar_is_never_a_pointer() -> None:
    with pytest.raises(SerializationError):
        serde.loads(ext(NUMPY_SCALAR, "O", b"\0" * 8))


# -- pandas ------------------------------------------------------------------------------------------------------------

BERLIN = "Europe/Berlin"
SERIES = [
    pd.Series([1, 2], name="n"),
    pd.Series(["a", None]),
    pd.Series(["a", None], dtype="string"),
    pd.Series(["a", 1, None], dtype=object),
    pd.Series([1, None], dtype="Int64"),
    pd.Series([1.5, None], dtype="Float32"),
    pd.Series([True, None], dtype="boolean"),
    pd.Series(["b", "a", None], dtype="category"),
    pd.Series(pd.Categorical([3, 1], categories=[3, 2, 1], ordered=True)),
    pd.Series(pd.date_range("2026-10-25", periods=30, freq="h", tz=BERLIN)),
    pd.Series(pd.date_range("2026", periods=3)),
    pd.Series(pd.to_timedelta([1, None], unit="s")),
    pd.Series(pd.period_range("2026", periods=2, freq="M")),
    pd.Series(pd.interval_range(0, 3)),
    pd.Series([1], index=pd.MultiIndex.from_tuples([("a", 1)], names=["x", None]), name=("n", 1)),
    pd.Series([1, 2], index=pd.date_range("2026", periods=2, freq="D")),
    pd.Series([], dtype=float),
    pd.Series([pd.NA, pd.NaT, pd.Timestamp("2026", tz="UTC")], dtype=object),
]


@pytest.mark.parametrize("series", SERIES, ids=lambda series: str(series.dtype))
def test_a_series_comes_back(series: Any) -> None:
    series.attrs = {"unit": ("m",)}

    back = round_trip(series)

    pd.testing.assert_series_equal(series, back, check_freq=True, check_index_type="exact", check_categorical=True)
    assert series.attrs == back.attrs
    assert list(map(type, series)) == list(map(type, back))


FRAMES = [
    pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, 2], "d": pd.array([1, None], dtype="Int8")}),
    pd.DataFrame(),
    pd.DataFrame(index=[1, 2]),
    pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]),
    pd.DataFrame({("a", 1): [1]}),
    pd.DataFrame(np.arange(6).reshape(2, 3)),
    pd.DataFrame({"o": [[1], {"a": (2,)}]}),
]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: str(frame.shape))
def test_a_frame_comes_back(frame: Any) -> None:
    back = round_trip([frame])[0]

    pd.testing.assert_frame_equal(frame, back, check_index_type="exact", check_column_type="exact")
    assert (type(frame.index), type(frame.columns)) == (type(back.index), type(back.columns))


VALUES = [
    pd.Timestamp("2026-01-01 12:00:00.123456789"),
    pd.Timestamp("2026-10-25 00:30", tz="UTC").tz_convert(BERLIN),
    pd.Timestamp("2026-10-25 01:30", tz="UTC").tz_convert(BERLIN),
    pd.Timedelta("1s"),
    pd.Period("2026-01", "M"),
    pd.Interval(0, 1.5, closed="left"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_scalar_of_pandas_comes_back(value: Any) -> None:
    back = round_trip(value)

    assert (value, repr(value), getattr(value, "unit", None)) == (back, repr(back), getattr(back, "unit", None))


def test_what_is_missing_is_the_same_object() -> None:
    back = round_trip([pd.NA, pd.NaT])

    assert back[0] is pd.NA
    assert back[1] is pd.NaT


INDEXES = [
    pd.RangeIndex(0, 10, 2, name="r"),
    pd.Index(["a", "b"]),
    pd.Index([1, "a"], dtype=object),
    pd.CategoricalIndex(["a"]),
    pd.timedelta_range("1s", periods=3, freq="s"),
]


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: type(index).__name__)
def test_an_index_comes_back(index: Any) -> None:
    pd.testing.assert_index_equal(index, round_trip(index), exact=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pd.Series([1], dtype=pd.SparseDtype("int")), r"a column of dtype Sparse.* cannot be stored"),
        (pd.DataFrame({"a": [object()]}), "objects of type object cannot be stored"),
        (pd.DatetimeIndex(["2026-01-05"], freq=pd.offsets.CDay(holidays=["2026-01-01"])), "does not come back"),
    ],
)
def test_what_pandas_could_not_give_back_is_refused(value: Any, message: str) -> None:
    with pytest.raises(CannotStore, match=message):
        serde.dumps_typed(value)


LONG = msgpack.ExtType(PANDAS, msgpack.packb(["range", 0, 10**12, 1, None]))


@pytest.mark.parametrize(
    "parts",
    [
        ("series", None, LONG, ["numpy", 1], {}),
        ("series", None, LONG, ["numpy", LONG], {}),
        ("series", None, LONG, ["numpy", msgpack.ExtType(NUMPY_SCALAR, msgpack.packb(["<i8", b"\0" * 8]))], {}),
        ("index", ["categories", LONG, LONG, False], None),
        ("index", ["intervals", LONG, LONG, "left"], None),
        ("index", ["zoned", LONG, "ns", None], None),
        ("multi", [LONG, LONG], [[1], [1]], [None, None]),
        ("frame", LONG, LONG, [["numpy", LONG]], {}),
        ("no such kind",),
        (),
    ],
)
def test_a_range_is_never_written_out_on_bytes_word(parts: Any) -> None:
    with pytest.raises(SerializationError):
        serde.loads(ext(PANDAS, *parts))


# -- pydantic ----------------------------------------------------------------------------------------------------------


class Parsed(BaseModel):
    at: datetime
    daily: time
    url: HttpUrl
    dsn: PostgresDsn
    size: ByteSize


def test_what_pydantic_parsed_comes_back() -> None:
    text = (
        '{"at": "2026-01-01T00:00:00+05:30", "daily": "10:00:00Z", "url": "http://é.b/c?x=1", '
        '"dsn": "postgres://u:p@h1,h2/db", "size": "1KB"}'
    )
    parsed = Parsed.model_validate_json(text)
    own = JsonPlusSerializer(allow=[Parsed, ByteSize])

    back = own.loads_typed(own.dumps_typed(parsed))

    assert parsed == back
    assert [type(value) for value in vars(parsed).values()] == [type(value) for value in vars(back).values()]
    assert type(parsed.at.tzinfo) is type(back.at.tzinfo)


@pytest.mark.parametrize(
    "value",
    [HttpUrl("http://a.b/c"), AnyUrl("x://y"), Url("http://a.b"), MultiHostUrl("postgres://a,b/c")],
    ids=lambda value: type(value).__name__,
)
def test_a_url_comes_back(value: Any) -> None:
    back = round_trip([value])[0]

    assert (value, type(value)) == (back, type(back))


@pytest.mark.parametrize("name", ["BaseModel", "tools", "import_email_validator", "__builtins__", "re", 5, None])
def test_only_classes_of_urls_and_secrets_are_reached(name: Any) -> None:
    for code in (URL, SECRET):
        with pytest.raises(SerializationError):
            serde.loads(ext(code, name, "http://a.b"))


@pytest.mark.parametrize("artifact", [np.arange(3), pd.DataFrame({"a": [1]}), pd.NA], ids=["array", "frame", "NA"])
def test_a_message_may_carry_what_is_neither_true_nor_false(artifact: Any) -> None:
    serde = JsonPlusSerializer()

    message = serde.loads_typed(serde.dumps_typed(ToolMessage("3 rows", tool_call_id="c", artifact=artifact)))

    assert serde.dumps_typed(artifact) == serde.dumps_typed(message.artifact)
