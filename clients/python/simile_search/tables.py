"""Tables of files and data frames: which type each column has, without changing a value."""

import csv
import dataclasses
import datetime
import decimal
import json
import math
import os
import pathlib
import re
import shlex
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SHORTEST_VECTOR = 2
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_LONG_LIST = 32  # of floats, which are kept as an array
_DIGITS_KEPT = 15  # of an integer, as a double holds them all
_INT64 = range(-(1 << 63), 1 << 63)
_MOSTLY = 0.9  # share of numbers from which a column gets a hint about --number
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_NO_NUMBER = ", which is no number"  # also tells words from numbers that would change
# What stands for no value beside numbers, booleans and lists. Among texts these are texts: NA is Namibia.
_NO_VALUES = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class ImportFailed(ValueError):
    """The tables cannot become a folder: what is wrong, where, and what would be right."""


@dataclasses.dataclass
class Column:
    """A column of a table.

    values  [rows]; None where missing. Vectors: an array of numbers [rows, dim]
    kind    "vector", "integer", "number", "boolean", "text", "list" or "object"
    lists   of vectors: the values as they were given, before they became float32
    """
    name: str
    values: Any
    kind: str
    why: str = ""
    lists: Any = None

    def first_missing(self) -> Optional[int]:
        """The first row without a value."""
        if self.kind == "vector":
            return None
        return next((row for row, value in enumerate(self.values) if value is None), None)


@dataclasses.dataclass
class Table:
    file: str
    rows: int
    columns: list[Column]

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise ImportFailed(f"{self.file} has no column {name}; it has {', '.join(column.name for column in self.columns)}")

    def has(self, name: Optional[str]) -> bool:
        return any(column.name == name for column in self.columns)


def read(source: Any, name: str, left_out: Sequence[str] = ()) -> Table:
    """A file, a data frame, a dict of columns or a list of objects.

    name      of what is no file
    left_out  columns that are not read
    """
    if isinstance(source, (str, os.PathLike)):
        path = pathlib.Path(source)
        try:
            return _read_file(path, left_out)
        except UnicodeError as error:
            raise ImportFailed(f"{path}: {error}; save it as UTF-8") from None
        except csv.Error as error:
            raise ImportFailed(f"{path}: {error}") from None
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):  # a data frame
        index = getattr(source, "index", None)
        if getattr(index, "name", None) is not None:
            source = source.reset_index()
        names = [str(column) for column in source.columns]
        _refuse_repeated(name, names)
        return table_of(name, {text: _listed(source[column]) for text, column in zip(names, source.columns) if text not in left_out})
    if isinstance(source, Mapping):
        _refuse_repeated(name, [str(column) for column in source])
        return table_of(name, {str(column): list(values) for column, values in source.items() if str(column) not in left_out})
    return table_of(name, _columns_of_objects(source, name, left_out))


def _refuse_repeated(file: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ImportFailed(f"{file}: two columns are named {next(name for name in names if names.count(name) > 1)!r}; rename one")


def _read_file(path: pathlib.Path, left_out: Sequence[str]) -> Table:
    if not path.is_file():
        raise ImportFailed(f"{path} is no file")
    kind = path.suffix.lower()
    if kind == ".npy":
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise ImportFailed(f"{path}: {error}") from None
        if array.ndim != 2 or array.dtype.kind not in "fiu":
            raise ImportFailed(f"{path}: an array of {array.dtype} and shape {array.shape}; vectors are numbers of [rows, dim]")
        return Table(path.name, len(array), [Column("vector", array, "vector", "the array of the file")])
    if kind == ".parquet":
        return _read_parquet(path, left_out)
    if kind in (".csv", ".tsv", ".txt"):
        return _read_csv(path, left_out)
    with path.open(encoding="utf-8-sig") as file:
        if kind in (".jsonl", ".ndjson"):
            objects = (_parsed(path, line, number) for number, line in enumerate(file, 1) if line.strip())
            return table_of(path.name, _columns_of_objects(objects, path.name, left_out))
        if kind == ".json":
            whole = _parsed(path, file.read())
            if isinstance(whole, dict) and whole and all(isinstance(value, dict) for value in whole.values()):
                name = "key" if not any("key" in value for value in whole.values()) else "object_key"
                whole = [{name: key, **value} for key, value in whole.items()]
            if not isinstance(whole, list):
                raise ImportFailed(f"{path} holds a {type(whole).__name__}; give a list of objects, or objects by key")
            return table_of(path.name, _columns_of_objects(whole, path.name, left_out))
    raise ImportFailed(f"{path}: files are .parquet, .csv, .tsv, .jsonl, .json or .npy")


def _parsed(path: pathlib.Path, text: str, line: int = 1) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_members)
    except json.JSONDecodeError as error:
        raise ImportFailed(f"{path}: line {line + error.lineno - 1}, column {error.colno}: {error.msg}"
                           + ("; objects on lines of their own are .jsonl" if error.msg == "Extra data" else "")) from None
    except _Repeated as error:
        raise ImportFailed(f"{path}: line {line}: an object has two members named {error.args[0]!r}") from None


class _Repeated(Exception):
    """The name of a member that an object has twice."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Repeated(next(name for name in names if names.count(name) > 1))
    return members


def _columns_of_objects(objects: Iterable[Any], name: str, left_out: Sequence[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    count = 0
    for entry in objects:
        if not isinstance(entry, Mapping):
            raise ImportFailed(f"{name}: row {count} is a {type(entry).__name__}, and no object")
        for key, value in entry.items():
            if key in left_out:
                continue
            if isinstance(value, list) and len(value) > _LONG_LIST and all(type(number) is float for number in value):
                value = np.asarray(value)  # a list of Python's floats takes four times as much
            values = columns.setdefault(str(key), [])
            values.extend([None] * (count - len(values)))
            values.append(value)
        count += 1
    for values in columns.values():
        values.extend([None] * (count - len(values)))
    return columns


def _read_parquet(path: pathlib.Path, left_out: Sequence[str]) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportFailed(f"{path}: pip install pyarrow, which reads Parquet") from None
    try:
        whole = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise ImportFailed(f"{path}: {error}") from None
    _refuse_repeated(path.name, whole.column_names)
    columns = []
    for name in (name for name in whole.column_names if name not in left_out):
        column = whole.column(name)
        matrix = _matrix_of_lists(column) if whole.num_rows else None
        if matrix is not None:
            columns.append(Column(name, matrix, "vector", f"lists of {matrix.shape[1]} numbers in every row"))
        else:
            columns.append(column_of(name, column.to_pylist(), f"Parquet's {column.type}"))
    return Table(path.name, whole.num_rows, columns)


def _matrix_of_lists(column: Any) -> Optional[Array]:
    """A column of Arrow as [rows, dim]; None unless each row is a list of so many floats."""
    import pyarrow
    kind = column.type
    is_fixed = pyarrow.types.is_fixed_size_list(kind)
    if not (is_fixed or pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)):
        return None
    if column.null_count or not pyarrow.types.is_floating(kind.value_type):
        return None
    parts = []
    for chunk in column.chunks:
        flat = chunk.flatten()
        dim = len(flat) // len(chunk) if len(chunk) else 0
        if len(chunk) and (flat.null_count or dim < SHORTEST_VECTOR or len(flat) != dim * len(chunk)):
            return None
        if len(chunk) and not is_fixed and (np.diff(chunk.offsets.to_numpy()) != dim).any():
            return None
        if len(chunk):
            parts.append(flat.to_numpy(zero_copy_only=False).reshape(len(chunk), dim))
    return np.concatenate(parts) if len({part.shape[1] for part in parts}) == 1 else None


def _read_csv(path: pathlib.Path, left_out: Sequence[str]) -> Table:
    csv.field_size_limit(1 << 30)  # a vector may be one field
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = file.readline()
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=head.count)
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        names = [name.strip() or f"column_{number + 1}" for number, name in enumerate(next(reader, []))]
        _refuse_repeated(str(path), names)
        texts: list[list[str]] = [[] for _ in names]
        try:
            for fields in reader:
                if not fields:
                    continue
                if len(fields) != len(names):
                    raise ImportFailed(f"{path}: line {reader.line_num} has {len(fields)} fields, and the header {len(names)}")
                for values, text in zip(texts, fields):
                    values.append(text)
        except csv.Error as error:
            raise ImportFailed(f"{path}: line {reader.line_num}: {error}") from None
    count = len(texts[0]) if texts else 0
    return Table(path.name, count, [_column_of_texts(name, values) for name, values in zip(names, texts) if name not in left_out])


def _column_of_texts(name: str, texts: list[str]) -> Column:
    """The type that every value of a column of texts has; else text."""
    given = [(row, text) for row, text in enumerate(texts) if text and text not in _NO_VALUES]
    words = [text for text in texts if text in _NO_VALUES]

    def typed(kind: str, why: str, convert: Callable[[str], Any]) -> Column:
        why += f"; {len(words):,} times {words[0]!r}, no value" if words else ""
        why += _missing(sum(not text for text in texts))
        return Column(name, [convert(text) if text and text not in _NO_VALUES else None for text in texts], kind, why)

    if not given:
        return Column(name, [text or None for text in texts], "text", "no row has a number, and none another value")
    if all(text in _BOOLEANS for _, text in given):
        return typed("boolean", f"true or false in {len(given):,} rows", lambda text: _BOOLEANS[text])
    if all(text.lstrip().startswith("[") for _, text in given) and (lists := _lists_of(texts)) is not None:
        return column_of(name, lists, f"lists in {len(given):,} rows")
    for row, text in given:
        if reason := _why_text(text):
            kept = f"; {len(words):,} times {words[0]!r}, a text as others" if words else ""
            kept += _hint_of_numbers(name, given)
            return Column(name, [text or None for text in texts], "text", f"row {row} has {text[:40]!r}{reason}{kept}")
    fraction = next(((row, text) for row, text in given if not _INTEGER.match(text)), None)
    if fraction is None:
        return typed("integer", f"integers in {len(given):,} rows", int)
    return typed("number", f"row {fraction[0]} has {fraction[1]!r}", float)


def _missing(count: int) -> str:
    return f"; {count:,} rows have no value" if count else ""


def _hint_of_numbers(name: str, given: list[tuple[int, str]]) -> str:
    """How to read a column as numbers whose few other values are words; empty for other columns, such as numbers that would change."""
    reasons = [_why_text(text) for _, text in given]
    return _number_hint(name, reasons.count(""), len(given)) if all(reason in ("", _NO_NUMBER) for reason in reasons) else ""


def _number_hint(name: str, numbers: int, given: int) -> str:
    if numbers < _MOSTLY * given:
        return ""
    return f"; {numbers:,} of {given:,} values are numbers: --number {shlex.quote(name)} leaves the others out"


def as_numbers(table: Table, name: str) -> Column:
    """The column as numbers. Other values become missing, and are counted. Texts are read as numbers, with the rounding of a number."""
    column = table.column(name)
    if column.kind == "vector":
        raise ImportFailed(f"{table.file}: {name} holds vectors, and no numbers")
    numbers = [_rounded_number(value) for value in column.values]
    others = [(row, value) for row, value in enumerate(column.values) if value is not None and numbers[row] is None]
    if all(number is None for number in numbers):
        raise ImportFailed(f"{table.file}: no value of {name} is a number" + (f"; row {others[0][0]} has {others[0][1]!r}" if others else ""))
    why = "asked for"
    if others:
        why += f"; {len(others):,} values are no numbers and left out, the first in row {others[0][0]}: {str(others[0][1])[:40]!r}"
    why += _missing(sum(value is None for value in column.values))
    return Column(name, numbers, "number" if any(isinstance(number, float) for number in numbers) else "integer", why)


def _rounded_number(value: Any) -> Optional[float]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    # Without a plus sign and leading zeros.
    text = re.sub(r"\A(?:\+|(-))?0*(?=[0-9])", r"\1", value.strip()) if isinstance(value, str) else ""
    if _INTEGER.match(text) and int(text) in _INT64:
        return int(text)
    number = float(text) if NUMBER.match(text) else math.inf
    return number if math.isfinite(number) else None


def _why_text(text: str) -> str:
    """Why a text is no number, or would change as one; empty where it is one and would not."""
    if _INTEGER.match(text):
        return f": more than {_DIGITS_KEPT} digits" if len(text.lstrip("-")) > _DIGITS_KEPT else ""
    if NUMBER.match(text):
        number = float(text)
        if math.isfinite(number) and decimal.Decimal(repr(number)) == decimal.Decimal(text):
            return ""
        return ": more digits than a number keeps" if math.isfinite(number) else ": too large for a number"
    if re.match(r"[-+]?0[0-9]", text):
        return ": a leading zero"
    return ": a plus sign" if text.startswith("+") else _NO_NUMBER


def _lists_of(texts: list[str]) -> Optional[list[Any]]:
    lists: list[Optional[list[Any]]] = []
    for text in texts:
        if not text or text in _NO_VALUES:
            lists.append(None)
            continue
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            return None
        if not isinstance(value, list):
            return None
        lists.append(value)
    return lists


def _listed(series: Any) -> list[Any]:
    """The values of a data frame's column."""
    values: list[Any] = series.to_list() if hasattr(series, "to_list") else list(series)
    return values


def table_of(file: str, columns: dict[str, list[Any]]) -> Table:
    rows = len(next(iter(columns.values()), []))
    for name, values in columns.items():
        if len(values) != rows:
            raise ImportFailed(f"{file}: {rows:,} values of {next(iter(columns))} and {len(values):,} of {name}")
    return Table(file, rows, [column_of(name, values, "") for name, values in columns.items()])


def column_of(name: str, values: list[Any], why: str) -> Column:
    """The column of values of Python. One that holds no JSON, such as bytes, is ImportFailed."""
    changed = next(((row, value) for row, value in enumerate(values)
                    if isinstance(value, decimal.Decimal) and value.is_finite() and _exact_number(value) is None), None)
    if changed is not None:  # the whole column stays text
        values = [str(value) if isinstance(value, decimal.Decimal) and not value.is_nan() else value for value in values]
        why = f"row {changed[0]} has {changed[1]}" + (": more digits than a number keeps" if math.isfinite(float(changed[1]))
                                                      else ": too large for a number")
    plain = [_plain(name, row, value) for row, value in enumerate(values)]
    given = [(row, value) for row, value in enumerate(plain) if value is not None]
    if not given:
        return Column(name, plain, "text", why or "no row has a value")
    if len(given) == len(plain) and (matrix := matrix_in(plain)) is not None:
        return Column(name, matrix, "vector", why or f"lists of {matrix.shape[1]} numbers in every row", plain)
    plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in plain]
    missing = _missing(len(plain) - len(given))
    kinds: dict[str, tuple[int, Any]] = {}
    for row, value in given:
        kinds.setdefault(_kind_of(value), (row, value))
    if set(kinds) == {"integer"}:
        beyond = next(((row, value) for row, value in given if value not in _INT64), None)
        if beyond is not None:
            texts = [None if value is None else str(value) for value in plain]
            return Column(name, texts, "text", f"row {beyond[0]} has {beyond[1]}, beyond 64 bits" + missing)
    if len(kinds) == 1:
        return Column(name, plain, next(iter(kinds)), (why or f"of one type in {len(given):,} rows") + missing)
    if set(kinds) == {"integer", "number"}:
        row, value = kinds["number"]
        return Column(name, plain, "number", (why or f"row {row} has {value!r}") + missing)
    mixed = "; ".join(f"row {row} has {repr(value)[:30]}" for row, value in list(kinds.values())[:2])
    numbers = sum(_kind_of(value) in ("integer", "number") for _, value in given)
    return Column(name, plain, "object", f"several types: {mixed}" + _number_hint(name, numbers, len(given)))


def matrix_in(values: Sequence[Any], whole_numbers: bool = False) -> Optional[Array]:
    """The values as float32 [rows, dim]; None unless each is a list of so many numbers.

    whole_numbers  also where no number has a fraction
    """
    first = values[0] if len(values) else None
    if not isinstance(first, (list, np.ndarray)) or len(first) < SHORTEST_VECTOR:
        return None
    if any(not isinstance(value, (list, np.ndarray)) or len(value) != len(first) for value in values):
        return None
    if any(type(number) not in (int, float) for value in values if isinstance(value, list) for number in value):
        return None
    with np.errstate(over="ignore"):  # an overflow is infinity, which _checked refuses
        matrix = np.asarray(values, "f2" if isinstance(first, np.ndarray) and first.dtype == np.float16 else "f4")
    return matrix if matrix.ndim == 2 and (whole_numbers or (matrix != np.rint(matrix)).any()) else None


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return {int: "integer", float: "number", str: "text", list: "list", np.ndarray: "list"}.get(type(value), "object")


def _plain(name: str, row: int, value: Any) -> Any:
    """A value as JSON has it, unchanged in meaning; None where it is missing."""
    if value is None or isinstance(value, bool) or type(value).__name__ in ("NAType", "NaTType"):
        return value if isinstance(value, bool) else None
    if isinstance(value, str):
        return str.__str__(value)  # np.str_ is one, too
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind == "f" and value.ndim == 1 and np.isfinite(value).all() else _plain(name, row, list(value))
    if isinstance(value, np.datetime64):
        return _time_of(value)
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        value = value.item()
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, (float, decimal.Decimal)):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise ImportFailed(f"{name}: row {row} holds {value}, which no JSON holds; leave the field out where there is no number")
        if isinstance(value, float):
            return value
        number = _exact_number(value)
        return str(value) if number is None else number
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z") if value.tzinfo else value.isoformat() + "Z"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_plain(name, row, element) for element in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(name, row, member) for key, member in value.items()}
    raise ImportFailed(f"{name}: row {row} holds a {type(value).__name__}, which no JSON holds; make it text, or leave the column out")


def _exact_number(value: decimal.Decimal) -> Optional[float]:
    """A finite decimal as an integer where it has no decimal places, else as a float; None where it would change."""
    if value.as_tuple().exponent == 0:
        return int(value)
    number = float(value)
    return number if math.isfinite(number) and decimal.Decimal(repr(number)) == value else None


def _time_of(value: "np.datetime64") -> Optional[str]:
    """A time of NumPy, which is UTC, as RFC 3339 writes it; a date where it is one."""
    if np.isnat(value):
        return None
    text = str(np.datetime_as_string(value))
    if "T" not in text:
        return text
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "Z"
