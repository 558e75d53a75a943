"""Arrays on their way to and from the native half."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


def floats(name: str, values: npt.ArrayLike) -> Floats:
    """The values as contiguous ``float64``, however they are given."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiu":
            raise TypeError
        return np.asarray(array, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise TypeError(f"{name}: want numbers, or an array of them") from None


def row(name: str, values: npt.ArrayLike) -> Floats:
    """The same, of one dimension."""
    array = floats(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name}: has {array.ndim} dimensions; want 1")
    return array


def of_buffer(buffer: bytearray) -> Floats:
    """The numbers of a buffer, without a copy."""
    return np.frombuffer(buffer, dtype=np.float64)


def table(rows: list[Any], fields: tuple[str, ...]) -> npt.NDArray[np.void]:
    """A structured array of ``float64`` fields from dicts or tuples; NaN where a dict has none."""
    array = np.empty(len(rows), dtype=[(field, np.float64) for field in fields])
    for place, field in enumerate(fields):
        if rows and isinstance(rows[0], dict):
            array[field] = [row.get(field, np.nan) for row in rows]
        else:
            array[field] = [row[place] for row in rows]
    return array
