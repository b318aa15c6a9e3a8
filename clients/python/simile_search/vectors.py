"""Vectors of a caller as the bytes of a request."""

import collections.abc
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidVectors

_FORMATS = {np.dtype("<f4"): 1, np.dtype("<f2"): 2}  # PackedVector.Format


def matrix_of(vectors: Any) -> npt.NDArray[Any]:
    """The vectors as float32, or as float16 where they are that already.

    vectors  one vector or several: an array of any dtype, byte order and stride, a torch tensor, lists, a column of a data
             frame, or an iterator of rows
    Returns [queries, dim], C-contiguous and little-endian.
    Raises InvalidVectors for another shape, for rows of different lengths, and for numbers that are not finite.
    """
    array = _array_of(vectors)
    if array.dtype == object:
        raise InvalidVectors(f"vectors of {_object_text(array)} are no numbers of one length each")
    if array.dtype.kind not in "fiub":
        raise InvalidVectors(f"vectors of dtype {array.dtype} are no real numbers")
    if array.ndim == 1:
        array = array[np.newaxis, :] if array.size else array.reshape(0, 0)
    if array.ndim != 2:
        raise InvalidVectors(f"vectors of shape {array.shape}; give [queries, dim], or [dim] for one")
    if array.shape[0] and not array.shape[1]:
        raise InvalidVectors(f"vectors of shape {array.shape} have no dimensions")
    wanted = "<f2" if array.dtype.kind == "f" and array.dtype.itemsize == 2 else "<f4"
    with np.errstate(over="ignore"):  # an overflow is infinity, which is refused below
        converted = np.ascontiguousarray(array, dtype=wanted)
    finite = np.isfinite(converted).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        column = int(np.argmin(np.isfinite(converted[row])))
        raise InvalidVectors(f"row {row} holds {array[row, column]} at column {column}, which is not finite as {converted.dtype.name}")
    return converted


def _array_of(vectors: Any) -> npt.NDArray[Any]:
    if hasattr(vectors, "detach"):  # a torch tensor, perhaps on a device and with a gradient
        vectors = vectors.detach().cpu()
        if str(vectors.dtype) == "torch.bfloat16":
            vectors = vectors.float()
        return np.asarray(vectors.numpy())
    if hasattr(vectors, "to_numpy"):  # a column or a table of pandas or polars
        vectors = vectors.to_numpy()
    elif isinstance(vectors, collections.abc.Iterator):
        vectors = list(vectors)
    if isinstance(vectors, (np.ndarray, np.generic)) and vectors.dtype != object:
        return np.asarray(vectors)
    if not isinstance(vectors, (collections.abc.Sequence, np.ndarray)):
        raise InvalidVectors(f"vectors of type {type(vectors).__name__}; give an array, a list, or an iterator of rows")
    try:
        return np.asarray([np.asarray(row) for row in vectors] if _holds_rows(vectors) else vectors)
    except ValueError:  # NumPy's words for rows of different lengths
        lengths = sorted({len(row) for row in vectors})
        raise InvalidVectors(f"rows of {lengths[0]} to {lengths[-1]} numbers; all vectors must have one length") from None


def _holds_rows(vectors: Any) -> bool:
    return len(vectors) > 0 and hasattr(vectors[0], "__len__") and not isinstance(vectors[0], (str, bytes))


def _object_text(array: npt.NDArray[Any]) -> str:
    kinds = sorted({type(value).__name__ for value in array.ravel()[:1000]})
    return f"shape {array.shape} with {', '.join(kinds)}"


def queries_of(matrix: npt.NDArray[Any]) -> bytes:
    """The field SearchRequest.queries with a packed vector for each row, without a loop over the rows.

    All rows have one length, so the bytes in front of each are the same.
    """
    count, dim = matrix.shape
    if not count:
        return b""
    data_bytes = dim * matrix.dtype.itemsize
    vector = b"\x08" + _varint(_FORMATS[matrix.dtype]) + b"\x12" + _varint(data_bytes)  # format, and the head of data
    query = b"\x12" + _varint(len(vector) + data_bytes) + vector  # Query.packed_vector
    head = b"\x12" + _varint(len(query) + data_bytes) + query  # SearchRequest.queries
    rows = np.empty((count, len(head) + data_bytes), np.uint8)
    rows[:, :len(head)] = np.frombuffer(head, np.uint8)
    rows[:, len(head):] = matrix.view(np.uint8).reshape(count, data_bytes)
    return rows.tobytes()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
