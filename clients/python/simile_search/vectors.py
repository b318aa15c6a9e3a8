"""Vectors of a caller as the bytes of a request."""

import collections.abc
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidVectors

_FORMATS = {np.dtype("<f4"): 1, np.dtype("<f2"): 2}  # PackedVector.Format
_TEXTS = (str, bytes, bytearray, memoryview)


def matrix_of(vectors: Any) -> npt.NDArray[Any]:
    """The vectors as float32, or as float16 where they are that already.

    vectors  one vector or several: an array of any real dtype, byte order and stride, a torch tensor, lists, a column of a data
             frame, anything with __array__, or an iterator of rows
    Returns [queries, dim], C-contiguous and little-endian.
    Raises InvalidVectors for another shape, rows of different lengths, masked values, and numbers that are not finite.
    """
    array = _array_of(vectors)
    if array.dtype.kind not in "fiub":
        raise InvalidVectors(f"vectors of dtype {array.dtype} are no real numbers")
    if array.ndim == 1:
        array = array[np.newaxis, :] if array.size else array.reshape(0, 0)
    if array.ndim != 2:
        raise InvalidVectors(f"vectors of shape {array.shape}; give [queries, dim], or [dim] for one")
    if array.shape[0] and not array.shape[1]:
        raise InvalidVectors(f"vectors of shape {array.shape} have no dimensions")
    wanted = "<f2" if array.dtype.kind == "f" and array.dtype.itemsize == 2 else "<f4"
    if array.dtype == wanted:
        converted = np.ascontiguousarray(array)
    else:
        with np.errstate(over="ignore"):  # an overflow is infinity, which is refused below
            converted = np.ascontiguousarray(array, dtype=wanted)
    finite = np.isfinite(converted).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        column = int(np.argmin(np.isfinite(converted[row])))
        raise InvalidVectors(f"row {row} holds {array[row, column]} at column {column}, which is not finite as {converted.dtype.name}")
    return converted


def _array_of(vectors: Any) -> npt.NDArray[Any]:
    if isinstance(vectors, _TEXTS):
        raise InvalidVectors(f"vectors of type {type(vectors).__name__}; give numbers")
    if hasattr(vectors, "to_numpy") and not hasattr(vectors, "detach"):  # a column or a table of pandas or polars
        vectors = vectors.to_numpy()
    elif isinstance(vectors, collections.abc.Iterator):
        vectors = list(vectors)
    if hasattr(vectors, "detach") or (hasattr(vectors, "__array__") and np.asarray(vectors).dtype != object):
        return _plain(vectors, "the vectors")
    if isinstance(vectors, np.ndarray) and vectors.ndim > 1:  # numbers as objects, such as nullable ones
        rows: list[Any] = [list(row) for row in vectors]
    elif isinstance(vectors, (collections.abc.Sequence, np.ndarray)):
        rows = list(vectors)
    else:
        raise InvalidVectors(f"vectors of type {type(vectors).__name__}; give an array, a list, or an iterator of rows")
    if not rows:
        return np.zeros((0, 0), "f4")
    if all(isinstance(value, numbers.Real) for value in rows):
        return np.asarray(rows)
    return _stacked(rows)


def _stacked(rows: list[Any]) -> npt.NDArray[Any]:
    arrays = []
    for number, row in enumerate(rows):
        if not hasattr(row, "__len__") or isinstance(row, _TEXTS):
            raise InvalidVectors(f"row {number} is {row!r}, and no vector")
        array = _plain(row, f"row {number}")
        if array.dtype == object:
            if not all(isinstance(value, numbers.Real) for value in array.ravel()):
                raise InvalidVectors(f"row {number} holds values that are no numbers")
            array = array.astype("f8")
        arrays.append(array)
    lengths = sorted({array.shape for array in arrays})
    if len(lengths) > 1:
        raise InvalidVectors(f"rows of shapes {lengths[0]} to {lengths[-1]}; all vectors must have one length")
    return np.asarray(arrays)


def _plain(vectors: Any, name: str) -> npt.NDArray[Any]:
    """As an array. A torch tensor may be on a device and have a gradient."""
    if hasattr(vectors, "detach"):
        vectors = vectors.detach().cpu()
        vectors = (vectors.float() if str(vectors.dtype) == "torch.bfloat16" else vectors).numpy()
    if np.ma.is_masked(vectors):
        raise InvalidVectors(f"{name} hold masked values; fill them, or leave their vectors out")
    try:
        return np.asarray(vectors)
    except ValueError:  # NumPy's words for lists of different lengths
        raise InvalidVectors(f"{name}: its parts have different lengths") from None


def queries_of(matrix: npt.NDArray[Any], as_stored: bool = False) -> bytes:
    """The field SearchRequest.queries with a packed vector for each row, without a loop over the rows.

    All rows have one length, so the bytes in front of each are the same.
    """
    count, dim = matrix.shape
    if not count:
        return b""
    data_bytes = dim * matrix.dtype.itemsize
    vector = b"\x08" + _varint(_FORMATS[matrix.dtype]) + b"\x12" + _varint(data_bytes)  # format, and the head of data
    tail = b"\x18\x01" if as_stored else b""
    query = b"\x12" + _varint(len(vector) + data_bytes + len(tail)) + vector  # Query.packed_vector
    head = b"\x12" + _varint(len(query) + data_bytes + len(tail)) + query  # SearchRequest.queries
    if count == 1:
        return head + matrix.tobytes() + tail
    rows = np.empty((count, len(head) + data_bytes + len(tail)), np.uint8)
    rows[:, :len(head)] = np.frombuffer(head, np.uint8)
    rows[:, len(head):len(head) + data_bytes] = matrix.view(np.uint8).reshape(count, data_bytes)
    rows[:, len(head) + data_bytes:] = np.frombuffer(tail, np.uint8)
    return rows.tobytes()


def set_vector(message: Any, matrix: npt.NDArray[Any], as_stored: bool) -> None:
    """Of a PackedVector.

    matrix  [1, dim] of matrix_of
    """
    message.format, message.data, message.as_stored = _FORMATS[matrix.dtype], matrix.tobytes(), as_stored


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
