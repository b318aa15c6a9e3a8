"""Tables as the folder of a collection: vectors, payload, users and interactions.

No id and no value of the payload is computed with: what a text might mean is decided for a whole column, and a column whose
numbers would change as numbers stays text. Every choice is a line of the Report, with the row that decided.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np

from . import errors, queries
from .tables import NUMBER, SHORTEST_VECTOR, Array, Column, ImportFailed, Table, as_numbers, column_of, matrix_in, read, table_of
from .vectors import matrix_of

__all__ = ["Choice", "ImportFailed", "Report", "import_tables", "write_folder"]

Path = Union[str, os.PathLike[str]]

DIM_MAX = 4_096  # limits.dim_max
ID_BYTES_MAX = 512  # of an id in metadata.jsonl
LINE_BYTES_MAX = 65_536  # of a row in metadata.jsonl
_LIST_IN_PAYLOAD_MAX = 32  # longer lists of numbers that are not chosen as vectors are left out
_DIMENSIONS_IN_PAYLOAD_MAX = 64  # more columns that are dimensions are left out of the payload
# Names of columns that identify a row, the likeliest first. Other names count if their last word is "id". A name that only ends with
# "id" counts if its column holds integers or texts: movieid, but not malic_acid.
_ID_NAMES = ("id", "media_id", "item_id", "uuid", "guid", "key", "sku", "asin", "isbn", "isbn13", "slug", "code", "iso", "iso3")
_ID_WORD = re.compile("(?:^|[^A-Za-z])[Ii][Dd]$|[a-z0-9]I[Dd]$")  # item_id, itemId
_USER_NAMES = ("user_id", "userid", "user", "customer_id", "customerid", "reviewer_id", "reviewerid", "account_id")
_VECTOR_NAMES = re.compile(r"vector|embedding|emb\b|_emb|\bvec\b|_vec|feature", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)[._-]?([0-9]+)\Z")


@dataclasses.dataclass(frozen=True)
class Choice:
    """What was chosen for a column, and why."""
    file: str
    column: str
    chosen: str
    why: str


@dataclasses.dataclass
class Report:
    """What write_folder and import_tables have written.

    folder        of the collection
    rows, dim     of the items' vectors
    users         with a vector
    interactions  lines of interactions.jsonl
    choices       in the order of the columns
    """
    folder: str
    rows: int = 0
    dim: int = 0
    users: int = 0
    interactions: int = 0
    choices: list[Choice] = dataclasses.field(default_factory=list)


def import_tables(sources: Sequence[Any], folder: Path, *, id: Optional[str] = None, vector: Union[str, Sequence[str], None] = None,
                  user: Optional[str] = None, metric: Optional[str] = None, leave_out: Sequence[str] = (), numbers: Sequence[str] = (),
                  progress: Callable[[str], None] = lambda _: None) -> Report:
    """Writes tables as the folder of a collection, which must not exist or be empty.

    sources    files .parquet, .csv, .tsv, .jsonl, .json and .npy, or data frames. A table with the column `user` has the users'
               vectors, or without vectors the interactions; the others together have the items: tables and .npy of equal length
    id         the column of the items' ids, or "-" for row numbers; default: chosen by name among those whose values all differ
    vector     the column of the vectors, or columns of numbers that are its dimensions; default: lists of numbers, or numbered columns
    user       the column of users' ids; default: a column with such a name where a further table has it
    metric     "cosine" or "dot"
    leave_out  columns that are not read
    numbers    columns of numbers, whose other values are left out; default: a column with another value is text
    progress   is told what is being done
    Raises ImportFailed; nothing is left behind then. Reads each table whole into memory.
    """
    tables = []
    if isinstance(sources, (str, os.PathLike)) or hasattr(sources, "columns"):
        sources = [sources]
    for number, source in enumerate(sources):
        progress(f"reading {source}" if isinstance(source, (str, os.PathLike)) else f"reading table {number + 1}")
        tables.append(read(source, f"table {number + 1}", leave_out))
    _read_numbers(tables, numbers)
    wanted = vector.split(",") if isinstance(vector, str) else list(vector or ())
    items, users, interactions = _parts(tables, user, wanted)
    report = Report(os.fspath(folder))
    written = _Items(items, id, wanted, report)
    with _new_folder(folder) as place:
        progress(f"writing {written.vectors.shape[0]:,} rows")
        written.write(place, metric, report)
        for table, vectors in users:
            _write_users(place, table.file, _user_column(table, user), vectors.chosen, metric, report)
        for table in interactions:
            _write_interactions(place, table, _user_column(table, user), written, report)
    return report


def _read_numbers(tables: list[Table], names: Sequence[str]) -> None:
    for name in names if tables else ():
        table = next((table for table in tables if table.has(name)), tables[0])
        converted = as_numbers(table, name)  # raises where no table has the column
        table.columns = [converted if column.name == name else column for column in table.columns]


def write_folder(folder: Path, vectors: Any, payload: Any = None, *, ids: Any = None, id: Optional[str] = None,
                 users: Optional[Mapping[Any, Any]] = None, interactions: Any = None, metric: Optional[str] = None,
                 numbers: Sequence[str] = ()) -> Report:
    """Writes arrays and a table as the folder of a collection, which must not exist or be empty.

    vectors       [rows, dim]
    payload       a data frame, a list of dicts, or a dict of columns, in row order
    ids           [rows], where the payload has none
    id, numbers   of the payload, as for import_tables
    users         a vector [dim] by user id
    interactions  pairs (user id, item id), or a table with the column user_id and that of the items' ids
    metric        "cosine" or "dot"
    Raises ImportFailed; nothing is left behind then.
    """
    matrix = _matrix_given("vectors", vectors)
    columns = [] if payload is None else read(payload, "payload").columns
    if ids is not None:
        if id is not None:
            raise ImportFailed("ids= are the ids, and id= names a column of them; give one")
        if any(column.name == "id" for column in columns):
            raise ImportFailed("the payload has a column id; leave ids= out, or rename the column")
        columns = [column_of("id", list(ids), "given"), *columns]
    for column in columns:
        if len(column.values) != len(matrix):
            raise ImportFailed(f"{len(matrix):,} vectors and {len(column.values):,} values of {column.name}; each row needs both")
    table = Table("payload", len(matrix), columns)
    _read_numbers([table], numbers)
    chosen = Column("vectors", matrix, "vector", "given")
    report = Report(os.fspath(folder))
    written = _Items([table], "id" if ids is not None else id, [], report, chosen)
    with _new_folder(folder) as place:
        written.write(place, metric, report)
        if users:
            of_users = Column("vector", _matrix_given("users", list(users.values())), "vector", "given")
            _write_users(place, "users", column_of("user_id", list(users), "given"), of_users, metric, report)
        if interactions is not None:
            pairs = _interactions_of(interactions, written.id_name or "id")
            _write_interactions(place, pairs, pairs.column("user_id"), written, report)
    return report


def _matrix_given(name: str, vectors: Any) -> Array:
    try:
        return matrix_of(vectors)
    except errors.InvalidVectors as error:
        raise ImportFailed(f"{name}: {error.message}") from None


def _interactions_of(given: Any, item: str) -> Table:
    if hasattr(given, "columns") or isinstance(given, Mapping):
        return read(given, "interactions")
    entries = list(given)
    if entries and isinstance(entries[0], Mapping):
        return read(entries, "interactions")
    return table_of("interactions", {"user_id": [user for user, _ in entries], item: [what for _, what in entries]})


# Choosing.


@dataclasses.dataclass
class _Vectors:
    """The vectors that were chosen, and the columns that they are made of."""
    chosen: Column
    used: list[Column]


def _parts(tables: list[Table], user: Optional[str],
           wanted: Sequence[str]) -> tuple[list[Table], list[tuple[Table, _Vectors]], list[Table]]:
    """The tables of items, of users with their vectors, and of interactions."""
    if not tables:
        raise ImportFailed("no table: name a file")
    items: list[Table] = []
    users: list[tuple[Table, _Vectors]] = []
    interactions: list[Table] = []
    for table in tables:
        of_users = table.has(user) if user else bool(items) and any(column.name.lower() in _USER_NAMES for column in table.columns)
        if not of_users:
            items.append(table)
        elif (vectors := _vectors_in(table, wanted)) is not None:
            users.append((table, vectors))
        else:
            interactions.append(table)
    if user and not users and not interactions:
        has = "; ".join(f"{table.file} has {', '.join(column.name for column in table.columns)}" for table in tables)
        raise ImportFailed(f"no table has the column {user!r}: {has}")
    if not items:
        raise ImportFailed(f"every table has the column {user!r}: no table is left for the items")
    if len(users) > 1 or len(interactions) > 1:
        raise ImportFailed("two tables of users, or of interactions: give one of each")
    for table in items[1:]:
        if table.rows != items[0].rows:
            raise ImportFailed(f"{items[0].file} has {items[0].rows:,} rows and {table.file} {table.rows:,}; rows of both belong together. "
                               "If one has users, or who has seen what, name its column of users: --user COLUMN")
    return items, users, interactions


def _user_column(table: Table, user: Optional[str]) -> Column:
    if user:
        return table.column(user)
    return next(column for column in table.columns if column.name.lower() in _USER_NAMES)


def _vectors_in(table: Table, wanted: Sequence[str]) -> Optional[_Vectors]:
    """The vectors of a table: those asked for, lists, or numbered columns; None where it has none of these."""
    if wanted and all(table.has(name) for name in wanted):
        return _asked_for(table, wanted)
    found = [column for column in table.columns if column.kind == "vector"]
    if found:
        best = max(found, key=lambda column: (bool(_VECTOR_NAMES.search(column.name)), column.values.shape[1]))
        others = [column.name for column in found if column is not best]
        why = best.why + (f"; also vectors: {', '.join(others)} (--vector)" if others else "")
        return _Vectors(Column(best.name, best.values, "vector", why), [best])
    numbers = _numbers_in(table)
    runs: dict[str, list[Column]] = {}
    for column in numbers:
        if _NUMBERED.match(column.name):
            runs.setdefault(_stem_of(column.name), []).append(column)
    run = max(runs.values(), key=len, default=[])
    if len(run) < SHORTEST_VECTOR or len(run) < len(numbers) // 2:
        return None
    run.sort(key=lambda column: int(column.name[len(_stem_of(column.name)):].lstrip("._-")))
    return _Vectors(_joined(run, f"{len(run)} numbered columns of numbers"), run)


def _numbers_in(table: Table) -> list[Column]:
    return [column for column in table.columns if column.kind in ("integer", "number") and column.first_missing() is None]


def _asked_for(table: Table, names: Sequence[str]) -> _Vectors:
    columns = [table.column(name) for name in names]
    if len(columns) > 1:
        return _Vectors(_joined(columns, "asked for"), columns)
    column = columns[0]
    matrix = column.values if column.kind == "vector" else matrix_in(column.values, whole_numbers=True)
    if matrix is None:
        raise ImportFailed(f"{table.file}: {column.name} holds no vectors but {column.kind} ({column.why})")
    return _Vectors(Column(column.name, matrix, "vector", "asked for"), columns)


def _vectors_of(tables: list[Table], wanted: Sequence[str]) -> tuple[_Vectors, Table]:
    """The items' vectors and their table."""
    if wanted and not any(all(table.has(name) for name in wanted) for table in tables):
        for name in wanted:
            tables[0].column(name)  # says which columns there are
    for table in sorted(tables, key=lambda table: not all(table.has(name) for name in wanted)):
        if (found := _vectors_in(table, wanted)) is not None:
            return found, table
    for table in tables:
        for column in table.columns:
            if problem := _why_no_vectors(column):
                raise ImportFailed(f"{table.file}: {column.name} holds no vectors: {problem}")
    measured = [column.name for table in tables for column in _numbers_in(table) if not _is_named_as_id(column)]
    raise ImportFailed(f"{tables[0].file} has no vectors: no column holds lists of numbers of one length. Name a file of vectors (.npy) too"
                       + (f", or columns of numbers: --vector {shlex.quote(','.join(measured))}" if len(measured) >= SHORTEST_VECTOR else ""))


def _why_no_vectors(column: Column) -> str:
    """What keeps a column, most of whose values are lists of numbers or look like them, from being vectors; empty for another."""
    rows = [(row, value) for row, value in enumerate(column.values) if isinstance(value, list) and len(value) >= SHORTEST_VECTOR
            and all(isinstance(number, (int, float)) or number is None for number in value)]
    if column.kind == "text" and len(column.values) and all(value and value.startswith("[") for value in column.values[:10]):
        return f"row 0 has {column.values[0][:40]!r}, which is no list of JSON, such as [0.1, 0.2]"
    if column.kind == "vector" or not rows or 2 * len(rows) < len(column.values):
        return ""
    length = len(rows[0][1])
    for row, value in enumerate(column.values):
        if not isinstance(value, list):
            return f"row {row} has {'no value' if value is None else repr(value)[:40]}"
        if len(value) != length:
            return f"row {row} has {len(value)} numbers, and row {rows[0][0]} has {length}"
        if None in value:
            return f"row {row} has no number at place {value.index(None)}"
    return ""


def _stem_of(name: str) -> str:
    """The name of a numbered column without the number; the whole name of another."""
    match = _NUMBERED.match(name)
    return match[1] if match else name


def _joined(columns: list[Column], why: str) -> Column:
    dimensions = []
    for column in columns:
        row = column.first_missing()
        if row is not None:
            raise ImportFailed(f"{column.name} has no value in row {row}; a dimension needs one in every row")
        # Texts of more digits than a number keeps: as float32 all keep fewer.
        if column.kind not in ("integer", "number") and not (column.kind == "text" and all(map(NUMBER.match, column.values))):
            raise ImportFailed(f"{column.name} is no column of numbers but of {column.kind} ({column.why})")
        dimensions.append(np.asarray([float(value) for value in column.values], "f4"))
    names = [column.name for column in columns]
    name = ", ".join(names if len(names) < 6 else [*names[:2], "...", names[-1]])
    return Column(name, np.stack(dimensions, axis=1), "vector", why)


def _is_named_as_id(column: Column) -> bool:
    lowered = column.name.lower()
    if lowered in _ID_NAMES or _ID_WORD.search(column.name):
        return True
    return lowered.endswith("id") and column.kind in ("integer", "text")


def _id_of(tables: list[Table], wanted: Optional[str], left_out: Sequence[Column]) -> tuple[Optional[Column], str, str]:
    """The column of ids, its file, and why; None where row numbers are the ids."""
    if wanted == "-":
        return None, tables[0].file, "asked for"
    if wanted is not None:
        table = next((table for table in tables if table.has(wanted)), tables[0])
        column = table.column(wanted)
        if problem := _why_no_id(column):
            raise ImportFailed(f"{table.file}: {wanted} cannot hold the ids: {problem}")
        return column, table.file, "asked for"
    candidates = [(table, column) for table in tables for column in table.columns
                  if _is_named_as_id(column) and not any(column is other for other in left_out)]
    order = {name: rank for rank, name in enumerate(_ID_NAMES)}
    candidates.sort(key=lambda each: order.get(each[1].name.lower(), len(order)))
    problems = []
    for table, column in candidates:
        problem = _why_no_id(column)
        if not problem:
            return column, table.file, f"its name, and all {len(column.values):,} values differ"
        problems.append(f"{column.name}: {problem}")
    if problems:
        raise ImportFailed(f"{tables[0].file}: no column can hold the ids. {'; '.join(problems)}. Name another: --id COLUMN, or --id - for "
                           "row numbers")
    return None, tables[0].file, "no column has the name of an id (--id)"


def _why_no_id(column: Column) -> str:
    if column.kind not in ("integer", "text"):
        return f"it holds {column.kind} ({column.why})"
    rows: dict[str, int] = {}
    for row, value in enumerate(column.values):
        if value is None or value == "":
            return f"row {row} has no value"
        text = str(value)
        if len(text.encode("utf-8", "surrogatepass")) > ID_BYTES_MAX or not text.isprintable():
            return f"row {row} has {text[:40]!r}; an id has at most {ID_BYTES_MAX} bytes and no control characters"
        first = rows.setdefault(text, row)
        if first != row:
            return f"rows {first} and {row} both have {text[:40]!r}"
    return ""


# Writing.


class _Items:
    """What is written of the items."""

    def __init__(self, tables: list[Table], id: Optional[str], wanted: Sequence[str], report: Report, given: Optional[Column] = None):
        if given is None:
            found, table = _vectors_of(tables, wanted)
        else:
            found, table = _Vectors(given, []), tables[0]
        self.vectors = _checked(table.file, found.chosen)
        if not self.vectors.any():
            raise ImportFailed(f"{table.file}: every vector is zero")
        report.choices.append(Choice(table.file, found.chosen.name, f"vectors of {self.vectors.shape[1]} dimensions", found.chosen.why))
        self.id, file, why = _id_of(tables, id, found.used)
        self.id_name = self.id.name if self.id is not None else None
        report.choices.append(Choice(file, self.id_name or "-", "ids" if self.id is not None else "ids are row numbers", why))
        self.payload: list[Column] = []
        left_out = found.used
        if len(left_out) > 1 and len({_stem_of(column.name) for column in left_out}) > 1 and len(left_out) <= _DIMENSIONS_IN_PAYLOAD_MAX:
            left_out = []  # columns with names of their own are payload, too
        for each in tables:
            for column in each.columns:
                if not any(column is other for other in left_out):
                    self._add_payload(each.file, column, report)

    def _add_payload(self, file: str, column: Column, report: Report) -> None:
        if column.kind == "vector":
            if column.values.shape[1] > _LIST_IN_PAYLOAD_MAX:
                report.choices.append(Choice(file, column.name, "left out", "vectors, of which a collection has one column"))
                return
            lists = column.values.tolist() if column.lists is None else column.lists
            column = Column(column.name, [each.tolist() if isinstance(each, np.ndarray) else each for each in lists], "list", column.why)
        if any(column.name == other.name for other in self.payload):
            raise ImportFailed(f"two tables have the column {column.name!r}; rename one")
        self.payload.append(column)
        if column is not self.id:
            report.choices.append(Choice(file, column.name, column.kind, column.why))

    def write(self, place: pathlib.Path, metric: Optional[str], report: Report) -> None:
        report.rows, report.dim = self.vectors.shape
        np.save(place / "content_vectors.npy", np.ascontiguousarray(self.vectors))
        settings: dict[str, Any] = {}
        if metric is not None:
            if metric not in ("cosine", "dot"):
                raise ImportFailed(f"metric is {metric!r}; give \"cosine\" or \"dot\"")
            settings["metric"] = metric
        zeros = np.flatnonzero(~self.vectors.any(axis=1))
        if metric != "dot" and len(zeros):
            settings["on_zero_row"] = "skip"
            report.choices.append(Choice("collection.json", "on_zero_row", "skip", f"{len(zeros):,} rows hold zeros alone, row "
                                         f"{zeros[0]} the first: they have no direction and are never found"))
        # The first of these that the payload has would be taken for the ids.
        usual = [name for name in ("id", "media_id", "item_id") if any(column.name == name for column in self.payload)]
        if self.id is None and usual:
            problem = _why_no_id(next(column for column in self.payload if column.name == usual[0]))
            raise ImportFailed(f"{usual[0]} would be taken for the ids, and cannot be: {problem}. Rename the column, or choose another by --id")
        if self.id is not None and usual[:1] != [self.id.name]:
            settings["id_field"] = self.id.name
        if self.payload:
            self._write_payload(place)
        if settings:
            (place / "collection.json").write_text(json.dumps(settings, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def _write_payload(self, place: pathlib.Path) -> None:
        names = [column.name for column in self.payload]
        with (place / "metadata.jsonl").open("wb") as file:
            for row, values in enumerate(zip(*(column.values for column in self.payload))):
                members = {name: value for name, value in zip(names, values) if value is not None}
                try:
                    line = json.dumps(members, ensure_ascii=False, allow_nan=False).encode()
                except UnicodeEncodeError:
                    raise ImportFailed(f"row {row} holds half of a surrogate pair, which is no text") from None
                if len(line) > LINE_BYTES_MAX:
                    longest = max(members, key=lambda name: len(str(members[name])))
                    raise ImportFailed(f"row {row} takes {len(line):,} bytes, and a row may have {LINE_BYTES_MAX:,}; most of it is "
                                       f"{longest!r}: --leave-out {longest}")
                file.write(line + b"\n")


def _checked(file: str, column: Column) -> Array:
    """The vectors as the server reads them: float16, 32 or 64. Raises ImportFailed for those that it would refuse."""
    vectors: Array = column.values
    if not vectors.shape[0]:
        raise ImportFailed(f"{file} has no rows")
    if vectors.shape[1] > DIM_MAX:
        raise ImportFailed(f"{file}: vectors of {vectors.shape[1]:,} dimensions; a collection may have {DIM_MAX:,}")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise ImportFailed(f"{file}: row {int(np.argmin(finite))} of {column.name} is not finite")
    if vectors.dtype.kind != "f":
        return vectors.astype("f4")
    return vectors.astype("f8") if vectors.dtype.itemsize > 8 else vectors.astype(vectors.dtype.newbyteorder("<"), copy=False)


def _write_users(place: pathlib.Path, file: str, user: Column, chosen: Column, metric: Optional[str], report: Report) -> None:
    if problem := _why_no_id(user):
        raise ImportFailed(f"{file}: {user.name} cannot hold the users' ids: {problem}")
    vectors = _checked(file, chosen)
    if vectors.shape[1] != report.dim:
        raise ImportFailed(f"{file}: vectors of {vectors.shape[1]} dimensions, and the items' have {report.dim}")
    zeros = np.flatnonzero(~vectors.any(axis=1))
    if metric != "dot" and len(zeros):
        raise ImportFailed(f"{file}: the vector in row {zeros[0]} is zero and has no direction; leave such users out")
    np.save(place / "preference_vectors.npy", np.ascontiguousarray(vectors))
    (place / "user_ids.json").write_text(json.dumps([str(value) for value in user.values], ensure_ascii=False), encoding="utf-8")
    report.users = len(user.values)
    report.choices += [Choice(file, user.name, "users' ids", "asked for, or its name"),
                       Choice(file, chosen.name, "users' vectors", chosen.why)]


def _write_interactions(place: pathlib.Path, table: Table, user: Column, items: _Items, report: Report) -> None:
    names = [items.id_name] if items.id_name else []
    item = next((name for name in [*names, "media_id", "item_id"] if table.has(name)), None)
    if item is None:
        raise ImportFailed(f"{table.file} has no column of the items' ids; name it {' or '.join([*names, 'item_id'])}")
    known = set(map(str, items.id.values)) if items.id is not None else {str(row) for row in range(report.rows)}
    unknown: list[str] = []
    with (place / "interactions.jsonl").open("w", encoding="utf-8") as file:
        for row, (who, what) in enumerate(zip(user.values, table.column(item).values)):
            if what is None:
                continue
            try:
                line = {} if who is None else {"user_id": queries.id_of(who)}
                line["media_id"] = queries.id_of(what)
            except errors.InvalidRequest as error:
                raise ImportFailed(f"{table.file}: row {row}: {error.message}") from None
            if line["media_id"] not in known:
                unknown.append(line["media_id"])
                continue
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            report.interactions += 1
    if table.rows and not report.interactions:
        raise ImportFailed(f"{table.file}: none of its {table.rows:,} rows names an item; {item} has {(unknown or ['no value'])[0]!r}, "
                           f"and the items' ids are like {min(known)!r}")
    missing = table.rows - report.interactions - len(unknown)
    report.choices.append(Choice(table.file, f"{user.name}, {item}", "interactions",
                                 "user and item" + (f"; {missing:,} rows without an item are left out" if missing else "")
                                 + (f"; {len(unknown):,} rows of unknown items are left out, the first {unknown[0]!r}" if unknown else "")))


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[pathlib.Path]:
    """A place for the files, which appear in the folder together when the block ends without an error."""
    target = pathlib.Path(folder).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ImportFailed(f"{folder} exists and is not empty; name another folder, or remove it")
    target.parent.mkdir(parents=True, exist_ok=True)
    place = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield place
        target.mkdir(exist_ok=True)
        for file in sorted(place.iterdir()):
            file.rename(target / file.name)
    finally:
        shutil.rmtree(place)
