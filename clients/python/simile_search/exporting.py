"""Writes the neighbours of every item, or recommendations for every user, to a file. Resumes an interrupted run.

    exporting.write_export(films, "neighbours.parquet", k=20)

.jsonl has a line for each source, {"source": ID, "hits": [{"id": ID, "score": NUMBER, "payload": {...}}, ...]}; .parquet (needs
pyarrow) has a line for each hit: source, rank, id, score, and `payload.NAME` for each field.
"""

import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any, Callable, Optional, Union

import numpy as np

from . import calls, client, errors

_HITS_PER_FILE = 100_000  # of a .parquet under way

Progress = Callable[[int, int], None]


class ExportFailed(Exception):
    """The file cannot be written, or PATH.resume belongs to an export with other arguments."""


@dataclasses.dataclass(frozen=True)
class Report:
    """What the file has: sources and hits. resumed: the sources that an earlier run had written."""
    path: str
    sources: int
    hits: int
    resumed: int
    snapshot_id: str


def write_export(collection: client.Collection, path: Union[str, os.PathLike[str]], k: int = 10, *, sources: str = "items",
                 source_filter: str = "", restart: bool = False, progress: Optional[Progress] = None, **options: Any) -> Report:
    """Writes Collection.export to a file. Until the file is complete, its content is in PATH.part and its progress in PATH.resume.

    restart   discard an unfinished export to this file and start again
    progress  called with the number of sources that are answered, and of all
    options   those of Collection.export
    A call with the same arguments resumes an interrupted run. Raises ExportFailed; SimileError, NotReady among them when the server
    has other content.
    """
    target = pathlib.Path(path)
    kinds: dict[str, Callable[[pathlib.Path], _Part]] = {".jsonl": _Lines, ".parquet": _Parquet}
    if target.suffix not in kinds:
        raise ExportFailed(f"{target} ends in {target.suffix or 'nothing'}; name a .jsonl or a .parquet file")
    if target.exists():
        raise ExportFailed(f"{target} exists; name another file, or remove it")
    resume = _Resume(target.with_name(target.name + ".resume"))
    if restart:
        resume.remove()
    asked = {"collection": collection.name, "k": k, "sources": sources, "source_filter": source_filter,
             "options": {name: repr(value) for name, value in sorted(options.items())}}
    state = resume.read(asked)
    part = kinds[target.suffix](target.with_name(target.name + ".part"))
    part.open(state.get("part"))
    resumed = done = int(state.get("exported", 0))
    hits, snapshot_id = int(state.get("hits", 0)), str(state.get("snapshot_id", ""))
    try:
        for found in collection.export(k, sources=sources, source_filter=source_filter, cursor=state.get("cursor", ""), **options):
            part.add(found)
            done, hits, snapshot_id = found.exported, hits + len(found.answer.hit_scores), found.answer.receipt.snapshot_id
            if found.cursor and part.is_due():
                resume.write({"asked": asked, "cursor": found.cursor, "exported": done, "hits": hits, "snapshot_id": snapshot_id,
                              "part": part.keep()})
            if progress is not None:
                progress(done, found.total)
        part.finish(target, resume.remove)
    except BaseException as error:
        part.close()
        if not resume.exists():
            part.remove()  # nothing to resume
        elif isinstance(error, errors.NotReady):
            error.message += f". {part.path} has answers from earlier content; start again with restart (--restart)"
        raise
    return Report(str(target), done, hits, resumed, snapshot_id)


class _Resume:
    """The file that says how far an export is."""

    def __init__(self, path: pathlib.Path):
        self._path = path

    def read(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Empty for a new export."""
        if not self._path.exists():
            return {}
        state: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
        differing = [name for name in asked if state["asked"].get(name) != asked[name]]
        if differing:
            name = differing[0]
            raise ExportFailed(f"{self._path}: the unfinished export has {name} {state['asked'].get(name)!r}, this one {asked[name]!r}; "
                               "name another file, or start again with restart (--restart)")
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        new = self._path.with_name(self._path.name + ".new")
        with open(new, "w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)

    def exists(self) -> bool:
        return self._path.exists()

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class _Part:
    """The content of a file that is not complete."""

    def __init__(self, path: pathlib.Path):
        self.path = path

    def open(self, kept: Any) -> None:
        """Continues after what was kept; None to start."""
        raise NotImplementedError

    def add(self, found: calls.ExportPart) -> None:
        raise NotImplementedError

    def is_due(self) -> bool:
        """Whether what was added should be kept now."""
        return True

    def keep(self) -> Any:
        """Writes to the disk what was added. Returns what `open` needs to continue."""
        raise NotImplementedError

    def close(self) -> None:
        pass

    def remove(self) -> None:
        raise NotImplementedError

    def finish(self, target: pathlib.Path, end: Callable[[], None]) -> None:
        """Turns the part into the complete file, with all that was added.

        end  called as soon as the file is there: an interrupted run then has nothing to resume
        """
        raise NotImplementedError


class _Lines(_Part):
    def open(self, kept: Any) -> None:
        if kept is not None and not (self.path.exists() and self.path.stat().st_size >= kept):
            raise ExportFailed(f"{self.path} is gone or shorter than it was; start again with restart (--restart)")
        self._file = open(self.path, "r+b" if kept is not None else "wb")
        self._file.truncate(kept or 0)
        self._file.seek(kept or 0)

    def add(self, found: calls.ExportPart) -> None:
        for number, source in enumerate(found.source_ids):
            hits = [{"id": hit.id, "score": _shortest(hit.score), **({"payload": hit.payload} if hit.payload else {})}
                    for hit in found.answer.hits(number)]
            groups = [{"group": value, "hits": len(of_group)} for value, of_group in found.answer.groups(number)]
            line = {"source": source, "hits": hits, **({"groups": groups} if groups else {})}
            self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def keep(self) -> Any:
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def finish(self, target: pathlib.Path, end: Callable[[], None]) -> None:
        self.keep()
        self.close()
        os.replace(self.path, target)
        end()


class _Parquet(_Part):
    """A folder of .parquet files until all are joined."""

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        try:
            import pyarrow.parquet
        except ImportError:
            raise ExportFailed("a .parquet file needs pyarrow: pip install pyarrow; or name a .jsonl file") from None
        self._parquet, self._arrow = pyarrow.parquet, pyarrow
        self._tables: list[Any] = []
        self._files: list[pathlib.Path] = []
        self._schema: Any = pyarrow.schema([])  # of all files and tables

    def open(self, kept: Any) -> None:
        if kept is None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir()
        self._files = [self._file(number) for number in range(kept or 0)]
        if not all(file.exists() for file in self._files):
            raise ExportFailed(f"files of {self.path} are gone; start again with restart (--restart)")
        for file in self._files:
            self._extend_schema(self._parquet.read_schema(file))

    def _file(self, number: int) -> pathlib.Path:
        return self.path / f"{number:06}.parquet"

    def _extend_schema(self, other: Any) -> None:
        try:
            self._schema = self._arrow.unify_schemas([self._schema, other], promote_options="permissive")
        except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError) as error:
            raise ExportFailed(f"a field has values of several types, which no column of .parquet can hold: {error}; "
                               "leave it out of payload, or name a .jsonl file") from None

    def add(self, found: calls.ExportPart) -> None:
        try:
            table = found.answer.to_arrow()
        except ValueError as error:
            raise ExportFailed(f"{error}, or name a .jsonl file") from None
        sources = self._arrow.array(found.source_ids, self._arrow.string()).take(table["query"])
        columns = [name for name in table.column_names if name not in ("query", "user")]
        self._tables.append(table.select(columns).add_column(0, "source", sources))
        self._extend_schema(self._tables[-1].schema)

    def is_due(self) -> bool:
        return sum(len(table) for table in self._tables) >= _HITS_PER_FILE

    def keep(self) -> Any:
        if self._tables:
            file = self._file(len(self._files))
            self._parquet.write_table(self._joined(self._tables), file)
            with open(file, "rb") as written:
                os.fsync(written.fileno())
            self._files.append(file)
            self._tables = []
        return len(self._files)

    def _joined(self, tables: list[Any]) -> Any:
        """One table of all columns: nulls where a table has none of a name."""
        return self._arrow.concat_tables([self._schema.empty_table(), *tables], promote_options="permissive").cast(self._schema)

    def remove(self) -> None:
        shutil.rmtree(self.path)

    def finish(self, target: pathlib.Path, end: Callable[[], None]) -> None:
        self.keep()
        whole = self.path / "whole"
        with self._parquet.ParquetWriter(whole, self._schema) as writer:
            for file in self._files:
                writer.write_table(self._joined([self._parquet.read_table(file)]))
        os.replace(whole, target)
        end()
        self.remove()


def _shortest(score: float) -> float:
    """The number of the fewest digits that reads back as the same float32."""
    return float(str(np.float32(score)))
