"""Pandas' frames, series, indexes and scalars as stored values: columns as NumPy arrays, and what tells them apart.

1. Every dtype is given back explicitly; nothing is inferred, so a column of objects stays one.
2. Supported are NumPy's dtypes, times with a zone, categories, nullable numbers, strings, periods and intervals.
   Others (sparse, Arrow) are refused.
3. What is read is as large as the bytes that were stored: a range, which costs nothing however long it is, is never
   taken for an array.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from pregel.checkpoint.serde.codecs import PANDAS, Codec, Refused, checked, checked_zone
from pregel.checkpoint.serde.numpy_arrays import checked_array

Parts = list[Any]
LONGEST = 100_000  # of a range that has to be written out


def codec_of(cls: type) -> Codec | None:
    """How instances of one of pandas' own classes are stored; None for any other class."""
    dump = _writers().get(cls)
    return None if dump is None else Codec(PANDAS, dump, load)


def load(parts: Parts) -> Any:
    """The value that a writer took apart."""
    kind, *rest = parts
    return READERS[kind](*rest)


def _writers() -> dict[type, Callable[[Any], Parts]]:
    import pandas as pd

    return {
        pd.DataFrame: dump_frame,
        pd.Series: dump_series,
        pd.RangeIndex: dump_range_index,
        pd.MultiIndex: dump_multi_index,
        pd.DatetimeIndex: dump_index,
        pd.TimedeltaIndex: dump_index,
        pd.PeriodIndex: dump_index,
        pd.IntervalIndex: dump_index,
        pd.CategoricalIndex: dump_index,
        pd.Index: dump_index,
        pd.Timestamp: dump_timestamp,
        pd.Timedelta: lambda value: ["timedelta", value.asm8.view("i8").item(), value.unit],
        pd.Period: lambda value: ["period", value.ordinal, value.freqstr],
        pd.Interval: lambda value: ["interval", value.left, value.right, value.closed],
        type(pd.NaT): lambda value: ["NaT"],
        type(pd.NA): lambda value: ["NA"],
    }


# -- frames, series, indexes -------------------------------------------------------------------------------------------


def dump_frame(frame: Any) -> Parts:
    columns = [array_parts(frame.iloc[:, at].array) for at in range(frame.shape[1])]
    return ["frame", frame.columns, frame.index, columns, frame.attrs]


def load_frame(columns: Any, index: Any, arrays: list[Parts], attrs: dict[Any, Any]) -> Any:
    import pandas as pd

    parts = {at: _series(array_of(part), index) for at, part in enumerate(checked(arrays, list))}
    frame = pd.DataFrame(parts, index=index, copy=False)
    frame.columns = columns
    frame.attrs = checked(attrs, dict)
    return frame


def dump_series(series: Any) -> Parts:
    return ["series", series.name, series.index, array_parts(series.array), series.attrs]


def load_series(name: Any, index: Any, parts: Parts, attrs: dict[Any, Any]) -> Any:
    series = _series(array_of(parts), index)
    series.name = name
    series.attrs = checked(attrs, dict)
    return series


def _series(array: Any, index: Any) -> Any:
    import pandas as pd

    if len(array) != len(index):
        raise ValueError("a column of another length than its index")
    return pd.Series(array, index=index, dtype=array.dtype, copy=False)


def dump_range_index(index: Any) -> Parts:
    return ["range", index.start, index.stop, index.step, index.name]


def load_range_index(start: int, stop: int, step: int, name: Any) -> Any:
    import pandas as pd

    return pd.RangeIndex(checked(start, int), checked(stop, int), checked(step, int), name=name)


def dump_multi_index(index: Any) -> Parts:
    return [
        "multi",
        [solid(level) for level in index.levels],
        [codes.tolist() for codes in index.codes],
        list(index.names),
    ]


def load_multi_index(levels: list[Any], codes: list[list[int]], names: list[Any]) -> Any:
    import pandas as pd

    return pd.MultiIndex(
        levels=[solid(level) for level in checked(levels, list)],
        codes=[checked(one, list) for one in checked(codes, list)],
        names=checked(names, list),
    )


def solid(index: Any) -> Any:
    """An index whose values fit into memory."""
    import pandas as pd

    if not isinstance(index, pd.Index) or (isinstance(index, pd.RangeIndex) and len(index) > LONGEST):
        raise Refused("a range of that length cannot be a set of categories or bounds", "Use an Index of the values.")
    return index


def dump_index(index: Any) -> Parts:
    import pandas as pd

    freq = getattr(index, "freq", None)
    if freq is None or isinstance(index, pd.PeriodIndex):
        return ["index", array_parts(index.array), index.name]
    if pd.tseries.frequencies.to_offset(freq.freqstr) != freq:
        raise Refused(f"the frequency {freq!r} does not come back from its name", "Set index.freq = None.")
    return ["index", array_parts(index.array), index.name, freq.freqstr]


def load_index(parts: Parts, name: Any, freq: str | None = None) -> Any:
    import pandas as pd

    array = array_of(parts)
    index = pd.Index(array, dtype=array.dtype, name=name, copy=False)
    if freq is not None:
        index.freq = checked(freq, str)
    return index


# -- arrays ------------------------------------------------------------------------------------------------------------


def array_parts(array: Any) -> Parts:
    """The arrays and settings that an array of pandas is made of, under the name of their kind."""
    import pandas as pd

    dtype = array.dtype
    if type(array) is pd.arrays.NumpyExtensionArray or (dtype.kind in "mM" and not hasattr(dtype, "tz")):
        return ["numpy", array.to_numpy()]
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ["zoned", array.asi8, dtype.unit, checked_zone(dtype.tz)]
    if isinstance(dtype, pd.CategoricalDtype):
        return ["categories", array.codes, solid(dtype.categories), dtype.ordered]
    if isinstance(dtype, pd.StringDtype):
        missing = array.isna()
        texts = [None if gone else str(text) for text, gone in zip(array, missing, strict=True)]
        return ["strings", texts, dtype.storage, dtype.na_value is pd.NA]
    if isinstance(dtype, pd.PeriodDtype):
        return ["periods", array.asi8, array.freqstr]
    if isinstance(dtype, pd.IntervalDtype):
        return ["intervals", solid(pd.Index(array.left)), solid(pd.Index(array.right)), dtype.closed]
    if hasattr(dtype, "numpy_dtype") and hasattr(pd, f"{type(dtype).__name__}"):
        return ["nullable", array.to_numpy(dtype.numpy_dtype, na_value=0), array.isna()]
    raise Refused(f"a column of dtype {dtype} cannot be stored", "Convert it with astype().")


def array_of(parts: Parts) -> Any:
    """The array again."""
    kind, *rest = checked(parts, list)
    return ARRAYS[kind](*rest)


def _zoned(stamps: Any, unit: str, zone: Any) -> Any:
    import pandas as pd

    return (
        pd.DatetimeIndex(checked_array(stamps).view(f"M8[{checked(unit, str)}]"))
        .tz_localize("UTC")
        .tz_convert(_zone(zone))
        .array
    )


def _categories(codes: Any, categories: Any, ordered: bool) -> Any:
    import pandas as pd

    return pd.Categorical.from_codes(checked_array(codes), dtype=pd.CategoricalDtype(solid(categories), ordered))


def _strings(texts: list[str | None], storage: str, with_na: bool) -> Any:
    import pandas as pd

    checked(storage, str)
    dtype = pd.StringDtype(storage) if with_na else pd.StringDtype(storage, na_value=float("nan"))
    return pd.array(checked(texts, list), dtype=dtype)


def _periods(ordinals: Any, freq: str) -> Any:
    import pandas as pd

    return pd.PeriodIndex.from_ordinals(checked_array(ordinals), freq=checked(freq, str)).array


def _intervals(left: Any, right: Any, closed: str) -> Any:
    import pandas as pd

    return pd.arrays.IntervalArray.from_arrays(solid(left), solid(right), checked(closed, str))


def _nullable(values: Any, missing: Any) -> Any:
    import pandas as pd

    arrays = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    array = arrays.get(checked_array(values).dtype.kind, pd.arrays.IntegerArray)
    return array(values, checked_array(missing))


ARRAYS: dict[str, Callable[..., Any]] = {
    "numpy": checked_array,
    "zoned": _zoned,
    "categories": _categories,
    "strings": _strings,
    "periods": _periods,
    "intervals": _intervals,
    "nullable": _nullable,
}


# -- scalars -----------------------------------------------------------------------------------------------------------


def dump_timestamp(stamp: Any) -> Parts:
    return ["timestamp", stamp.asm8.view("i8").item(), stamp.unit, checked_zone(stamp.tz)]


def _zone(zone: Any) -> tzinfo | None:
    if zone is not None and not isinstance(zone, tzinfo):
        raise ValueError("a time zone is missing")
    return zone


def load_timestamp(value: int, unit: str, zone: Any) -> Any:
    import pandas as pd

    stamp = pd.Timestamp(checked(value, int), unit=checked(unit, str)).as_unit(unit)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(_zone(zone))


def load_timedelta(value: int, unit: str) -> Any:
    import pandas as pd

    return pd.Timedelta(checked(value, int), unit=checked(unit, str)).as_unit(unit)


def load_period(ordinal: int, freq: str) -> Any:
    import pandas as pd

    return pd.PeriodIndex.from_ordinals([checked(ordinal, int)], freq=checked(freq, str))[0]


def load_interval(left: Any, right: Any, closed: str) -> Any:
    import pandas as pd

    if hasattr(left, "__len__") or hasattr(right, "__len__"):
        raise ValueError("a bound of an interval is one value")
    return pd.Interval(left, right, checked(closed, str))


def _constant(name: str) -> Callable[[], Any]:
    def load_constant() -> Any:
        import pandas as pd

        return getattr(pd, name)

    return load_constant


READERS: dict[str, Callable[..., Any]] = {
    "frame": load_frame,
    "series": load_series,
    "range": load_range_index,
    "multi": load_multi_index,
    "index": load_index,
    "timestamp": load_timestamp,
    "timedelta": load_timedelta,
    "period": load_period,
    "interval": load_interval,
    "NaT": _constant("NaT"),
    "NA": _constant("NA"),
}

BY_CODE: dict[int, Codec] = {PANDAS: Codec(PANDAS, list, load)}
