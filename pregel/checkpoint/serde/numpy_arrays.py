"""NumPy's arrays, scalars and dtypes as stored values: dtype, shape, memory order and the bytes.

1. Subclasses, dtypes with metadata and dtypes that a description cannot bring back (bfloat16) are refused.
2. An array of objects is stored as a list of them. No other array holds pointers, so no bytes are ever read as one.
3. What is read is as large as the bytes that were stored: shapes are checked first.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pregel.checkpoint.serde.codecs import NDARRAY, NUMPY_DTYPE, NUMPY_SCALAR, Codec, Refused, checked

Parts = list[Any]
OBJECT = "O"
PLAIN = re.compile(r"[<>|=]?[a-zA-Z]\d{0,9}(\[\d{0,9}[a-zA-Zμ]{1,9}\])?")


def codec_of(cls: type) -> Codec | None:
    """How instances of one of NumPy's own classes are stored; None for any other class."""
    import numpy as np

    if cls is np.ndarray:
        return BY_CODE[NDARRAY]
    if issubclass(cls, np.dtype):
        return BY_CODE[NUMPY_DTYPE]
    if issubclass(cls, np.generic) and cls is not np.record:
        return BY_CODE[NUMPY_SCALAR]
    return None


# -- dtypes ------------------------------------------------------------------------------------------------------------


def dump_dtype(dtype: Any) -> Parts:
    return [described(dtype)]


def load_dtype(parts: Parts) -> Any:
    return dtype_of(parts[0])


def described(dtype: Any) -> Any:
    """A dtype as text, or as (name, description, shape) of its fields."""
    import numpy as np

    if dtype == np.dtype(object):
        return OBJECT
    refused = Refused(f"arrays of dtype {dtype} cannot be stored", "Convert it with astype(), or store a list.")
    if dtype.hasobject or dtype.metadata:
        raise refused
    description = np.lib.format.dtype_to_descr(dtype)
    if np.lib.format.descr_to_dtype(description) != dtype:
        raise refused
    return description


def dtype_of(description: Any) -> Any:
    """The dtype of a description; only `OBJECT` gives one that holds objects."""
    import numpy as np

    if type(description) is str and description == OBJECT:
        return np.dtype(object)
    if not _is_description(description):
        raise ValueError("no dtype")
    dtype = np.lib.format.descr_to_dtype(description)
    if dtype.hasobject:
        raise ValueError("a dtype with objects in it is not read")
    return dtype


def _is_description(description: Any) -> bool:
    """Whether this is what `described` gives. NumPy takes, and evaluates, more than that."""
    if type(description) is str:
        return PLAIN.fullmatch(description) is not None
    if type(description) is not list:
        return False
    return all(type(field) is tuple and len(field) in (2, 3) and _is_description(field[1]) for field in description)


# -- arrays and scalars ------------------------------------------------------------------------------------------------


def dump_array(array: Any) -> Parts:
    description, shape = described(array.dtype), list(array.shape)
    if description == OBJECT:
        return [description, shape, "C", array.ravel().tolist()]
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return [description, shape, order, array.tobytes(order)]


def load_array(parts: Parts) -> Any:
    import numpy as np

    description, shape, order, content = parts
    dtype = dtype_of(description)
    checked(shape, list)
    checked(order, str)
    if dtype.hasobject:
        if math.prod(shape) != len(checked(content, list)):
            raise ValueError("an array of another size than its shape")
        array = np.empty(len(content), object)
        array[:] = content if not content else [None] * len(content)
        for at, part in enumerate(content):  # one by one: NumPy would look into lists
            array[at] = part
        return array.reshape(shape)
    return _from_bytes(dtype, shape, order, content)


def _from_bytes(dtype: Any, shape: list[int], order: Any, content: bytes) -> Any:
    import numpy as np

    if (
        type(content) is not bytes
        or any(type(size) is not int or size < 0 for size in shape)
        or math.prod(shape) * dtype.itemsize != len(content)
    ):
        raise ValueError("an array of another size than its shape")
    return np.ndarray(shape, dtype, bytearray(content), order=order)


def dump_scalar(value: Any) -> Parts:
    import numpy as np

    if isinstance(value, np.str_):
        return ["str", str.__str__(value)]  # str() would drop NULs at the end
    if isinstance(value, np.bytes_):
        return ["bytes", bytes(value)]
    if value.dtype.type is not type(value):
        raise Refused(f"a {type(value).__name__} cannot be stored", "Convert it with item().")
    return [described(value.dtype), value.tobytes()]


def load_scalar(parts: Parts) -> Any:
    import numpy as np

    kind, content = parts
    if type(kind) is str and kind == "str":
        return np.str_(checked(content, str))
    if type(kind) is str and kind == "bytes":
        return np.bytes_(checked(content, bytes))
    dtype = dtype_of(kind)
    if dtype.hasobject:
        raise ValueError("a scalar holds no object")
    return _from_bytes(dtype, [], "C", content)[()]


def checked_array(value: Any) -> Any:
    """The value, which must be an array."""
    import numpy as np

    if type(value) is not np.ndarray:
        raise ValueError("an array is missing")
    return value


BY_CODE: dict[int, Codec] = {
    NDARRAY: Codec(NDARRAY, dump_array, load_array),
    NUMPY_SCALAR: Codec(NUMPY_SCALAR, dump_scalar, load_scalar),
    NUMPY_DTYPE: Codec(NUMPY_DTYPE, dump_dtype, load_dtype),
}
