"""Which file stores the types of an optional library; it is loaded when a value or stored bytes need it."""

from __future__ import annotations

from types import ModuleType

from pregel.checkpoint.serde.codecs import (
    FIXED_ZONE,
    NDARRAY,
    NUMPY_DTYPE,
    NUMPY_SCALAR,
    PANDAS,
    SECRET,
    URL,
    Codec,
)
from pregel.errors import SerializationError

LIBRARIES: dict[int, str] = {
    NDARRAY: "numpy",
    NUMPY_SCALAR: "numpy",
    NUMPY_DTYPE: "numpy",
    PANDAS: "pandas",
    URL: "pydantic",
    FIXED_ZONE: "pydantic",
    SECRET: "pydantic",
}


def library_codec(cls: type) -> Codec | None:
    """How values of a library's class are stored; None when no adapter knows the class."""
    library = cls.__module__.partition(".")[0].removesuffix("_core")
    if library not in LIBRARIES.values():
        return None
    codec: Codec | None = _adapter(library).codec_of(cls)
    return codec


def library_codec_of(code: int) -> Codec | None:
    """The codec of an ext code that belongs to a library; SerializationError when the library is not installed."""
    library = LIBRARIES.get(code)
    if library is None:
        return None
    try:
        codec: Codec = _adapter(library).BY_CODE[code]
    except ImportError as error:
        raise SerializationError(
            f"A stored value needs {library}, which cannot be imported: {error}", fix=f"Install {library}."
        ) from error
    return codec


def _adapter(library: str) -> ModuleType:
    if library == "numpy":
        from pregel.checkpoint.serde import numpy_arrays

        return numpy_arrays
    if library == "pandas":
        from pregel.checkpoint.serde import pandas_frames

        return pandas_frames
    from pregel.checkpoint.serde import pydantic_models

    return pydantic_models
