"""Columns from Python values: fast for what is expected, lossless or null for what is not.

Invariant: no value that an agent or a provider can send makes a column fail; whatever has the wrong
type becomes null or the name of its type, and counts out of range are clamped. Knows no table.

Arrays are made from buffers: `pyarrow.array` imports pandas wherever that is installed, which would
cost every worker a second and 60 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cogeval.store.text import store_text

MAX_COUNT = 1 << 40  # tokens of one reply; sums of them stay exact in a float64

_MISFITS = (TypeError, ValueError, OverflowError, AttributeError)  # pyarrow's own errors are among them


class _Codes(dict[Any, int]):
    """Numbers values in the order of their first appearance; None is -1."""

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self) - 1
        return code


def encoded(values: Sequence[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Numbers the distinct values of a column.

    Args:
        values: hashable, None allowed.

    Returns:
        int32 [len(values)] codes, -1 for None; and the value of each code.
    """
    if values and values.count(values[0]) == len(values):  # most columns of most batches
        code = -1 if values[0] is None else 0
        return np.full(len(values), code, np.int32), [] if code else [values[0]]
    codes = _Codes({None: -1})
    numbers = np.fromiter(map(codes.__getitem__, values), np.int32, len(values))
    return numbers, list(codes)[1:]


def name_column(values: Sequence[Any]) -> Any:
    """A dictionary-encoded text column; None is null.

    Args:
        values: str or None.
    """
    try:
        numbers, names = encoded(values)
    except TypeError:  # something unhashable
        numbers, names = encoded([None if v is None else store_text(v) for v in values])
    return coded_column(numbers, names)


def coded_column(codes: NDArray[np.int32], names: Sequence[Any]) -> Any:
    """A dictionary-encoded text column of numbered values.

    Args:
        codes: int32 [n], -1 for null.
        names: the text of each code.
    """
    # Null cells get an index, and one that exists: unifying dictionaries looks every index up, in null
    # cells too, and would read outside of its map.
    indices = number_column(np.maximum(codes, 0), pa.int32(), codes < 0)
    return pa.DictionaryArray.from_arrays(indices, text_column(names or [""]))


def text_column(values: Sequence[Any]) -> Any:
    """A text column; None is null.

    Args:
        values: str or None.
    """
    if values.count(None) == len(values):
        return _from_chunks([b""] * len(values), pa.string(), np.ones(len(values), np.bool_))
    chunks = [b"" if v is None else store_text(v).encode() for v in values]
    missing = np.fromiter((v is None for v in values), np.bool_, len(values))
    return _from_chunks(chunks, pa.string(), missing)


def bytes_column(values: Sequence[bytes]) -> Any:
    """A column of byte strings of one width, at least one."""
    kind = pa.binary(len(values[0]))
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(b"".join(values))])


def bool_column(values: NDArray[np.bool_]) -> Any:
    """A column of truth values: bool [n]."""
    return pa.Array.from_buffers(pa.bool_(), values.size, [None, _bits(values)])


def number_column(values: NDArray[Any], kind: Any, missing: NDArray[np.bool_] | None = None) -> Any:
    """A column of numbers.

    Args:
        values: [n]; must fit the type.
        kind: numeric or timestamp type of the column.
        missing: bool [n], which are null; None: none.
    """
    validity = _bits(~missing) if missing is not None and missing.any() else None
    letter = "f" if pa.types.is_floating(kind) else "i"
    data = pa.py_buffer(np.ascontiguousarray(values, f"{letter}{kind.bit_width // 8}"))
    return pa.Array.from_buffers(kind, values.size, [validity, data])


def map_column(sizes: Sequence[int], keys: Sequence[str], values: Sequence[float], kind: Any) -> Any:
    """A column of small mappings of text to number.

    Args:
        sizes: entries per row.
        keys: of all rows, one after the other.
        values: likewise.
        kind: the map type of the column.
    """
    offsets = number_column(np.cumsum([0, *sizes]), pa.int32())
    items = number_column(floats(values), pa.float64())
    return pa.MapArray.from_arrays(offsets, name_column(keys).dictionary_decode(), items, kind)


def flags(values: Sequence[bool]) -> NDArray[np.bool_]:
    """Truth values as bool [n]."""
    return np.frombuffer(bytes(values), np.bool_)


def floats(values: Sequence[Any]) -> NDArray[np.float64]:
    """Numbers as float64, NaN for None and for what is no number."""
    try:
        return np.fromiter(values, np.float64, len(values))
    except _MISFITS:
        return np.array([_float(v) for v in values], np.float64)


def counts(values: Sequence[Any]) -> NDArray[np.int64]:
    """Counts as int64, clamped to 0 .. 2^40, -1 for None and for what is no number."""
    try:
        numbers = np.fromiter(values, np.int64, len(values))
        if not numbers.size or (numbers.min() >= 0 and numbers.max() <= MAX_COUNT):
            return numbers
    except _MISFITS:
        pass
    return np.array([_count(v) for v in values], np.int64)


def nullable_floats(numbers: NDArray[np.float64], kind: Any) -> Any:
    """A column of floats in which NaN is null.

    Args:
        numbers: float64 [n].
        kind: float type of the column.
    """
    with np.errstate(over="ignore"):  # a time that no float32 holds is infinite
        return number_column(numbers, kind, np.isnan(numbers))


def nullable_counts(numbers: NDArray[np.int64]) -> Any:
    """A column of counts in which -1 is null.

    Args:
        numbers: int64 [n].
    """
    return number_column(numbers, pa.int64(), numbers < 0)


def to_numpy(column: Any) -> NDArray[Any]:
    """A column of numbers or truth values as numpy; undefined where it is null.

    Args:
        column: a pyarrow array or chunked array.
    """
    array = _one_array(column)
    data, start, stop = array.buffers()[1], array.offset, array.offset + len(array)
    if pa.types.is_boolean(array.type):
        return _from_bits(data, start, stop)
    letter = "f" if pa.types.is_floating(array.type) else "i"
    return np.frombuffer(b"" if data is None else data, f"{letter}{array.type.bit_width // 8}")[start:stop]


def missing(column: Any) -> NDArray[np.bool_]:
    """Where a column is null: bool [n].

    Args:
        column: a pyarrow array or chunked array.
    """
    array = _one_array(column)
    if array.null_count == 0:
        return np.zeros(len(array), np.bool_)
    return ~_from_bits(array.buffers()[0], array.offset, array.offset + len(array))


def to_codes(column: Any) -> tuple[NDArray[np.int32], list[str]]:
    """A dictionary-encoded text column as numbers.

    Args:
        column: a pyarrow array or chunked array.

    Returns:
        int32 [n] codes, -1 where it is null; and the stored text of each code.
    """
    if not len(column):
        return np.empty(0, np.int32), []
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries()
    array = _one_array(column)
    codes = np.where(missing(array), -1, to_numpy(array.indices)).astype(np.int32, copy=False)
    return codes, array.dictionary.to_pylist()


def _one_array(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _from_bits(data: Any, start: int, stop: int) -> NDArray[np.bool_]:
    octets = np.frombuffer(b"" if data is None else data, np.uint8)
    return np.unpackbits(octets, count=stop, bitorder="little")[start:].view(np.bool_)


def _bits(values: NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _from_chunks(chunks: Sequence[bytes], kind: Any, missing: NDArray[np.bool_]) -> Any:
    offsets = np.cumsum([0, *map(len, chunks)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise OverflowError("expected at most 2 GB of text in one flush; flush more often")
    buffers = [
        _bits(~missing) if missing.any() else None,
        pa.py_buffer(offsets.astype(np.int32)),
        pa.py_buffer(b"".join(chunks)),
    ]
    return pa.Array.from_buffers(kind, len(chunks), buffers)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _count(value: Any) -> int:
    number = _float(value)
    return -1 if number != number else int(min(max(number, 0.0), float(MAX_COUNT)))
