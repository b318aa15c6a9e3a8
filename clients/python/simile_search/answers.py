"""Answers as arrays."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from . import messages
from .errors import SimileError, of_status

Array = npt.NDArray[Any]

_STATE_IN_VALUES, _STATE_IN_OTHERS = 1, 3  # PayloadColumn.states
_DTYPES = {"integers": "<i8", "numbers": "<f8", "booleans": "?"}


class Hit(NamedTuple):
    """A row of an answer; `payload` has the fields that were asked for."""
    id: Any
    score: float
    payload: dict[str, Any]


class Answer:
    """The hits of several queries. Query i has the hits offsets[i] to offsets[i + 1], best first.

    offsets     int64 [queries + 1]
    counts      int64 [queries], hits of each query
    hit_ids     [hits] int64 where all ids of the collection are integers, else str
    hit_scores  float32 [hits]
    ids, scores, rows  the same as [queries, width], width = k or the longest list's length where that is greater; shorter lists are
                filled up with None or -1, NaN and -1
    errors      of a partial call: a SimileError or None for each query
    notes       what of the options had no effect
    query_notes what of each query had no effect, and what of its answer was cut
    results     the messages simile.v1.SearchResult, whose hits are in the arrays
    receipts    what served the answer, why, and what it cost: one for each call that it took
    """

    def __init__(self, responses: Sequence[Any], k: int):
        self._responses, self._k = responses, k
        self.next_page_token: str = responses[-1].next_page_token if responses else ""

    @functools.cached_property
    def results(self) -> list[Any]:
        return [result for response in self._responses for result in response.results]

    @functools.cached_property
    def _columns(self) -> list[Any]:
        return [response.columns for response in self._responses]

    @functools.cached_property
    def receipts(self) -> list[Any]:
        return [response.receipt for response in self._responses]

    @functools.cached_property
    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for response in self._responses for note in response.notes))

    @functools.cached_property
    def query_notes(self) -> list[list[str]]:
        return [list(result.notes) for result in self.results]

    @functools.cached_property
    def hit_scores(self) -> Array:
        return self._joined("scores", "<f4")

    @functools.cached_property
    def counts(self) -> Array:
        hit_counts = [np.diff(np.frombuffer(columns.offsets, "<u4").astype(np.int64)) for columns in self._columns]
        return np.concatenate([np.zeros(0, np.int64), *hit_counts])

    @functools.cached_property
    def offsets(self) -> Array:
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def receipt(self) -> Any:
        """Of the last call."""
        return self.receipts[-1]

    def __len__(self) -> int:
        return sum(len(response.results) for response in self._responses)

    def __getitem__(self, query: int) -> list[Hit]:
        return self.hits(query)

    def __repr__(self) -> str:
        text = f"{len(self):,} queries, {len(self.hit_scores):,} hits"
        first, *others = dict.fromkeys([*self.notes, *(note for notes in self.query_notes for note in notes)]) or [""]
        if first:
            text += f"; note: {first}" + (f" (and {len(others):,} more)" if others else "")
        return f"<Answer: {text}>"

    def __reduce__(self) -> Any:
        kinds = [type(response).DESCRIPTOR.name for response in self._responses]
        return _restored, (kinds, [response.SerializeToString() for response in self._responses], self._k)

    @functools.cached_property
    def errors(self) -> list[Optional[SimileError]]:
        found: list[Optional[SimileError]] = []
        for response in self._responses:
            first = len(found)
            found.extend(of_status(result.error, first) if result.HasField("error") else None for result in response.results)
        return found

    @functools.cached_property
    def _item_ids(self) -> list[Array]:
        """The ids of the items of each call."""
        return [np.frombuffer(columns.ids.integers, "<i8") if columns.ids.WhichOneof("ids") == "integers"
                else _texts_of(columns.ids.texts) for columns in self._columns]

    @functools.cached_property
    def _items(self) -> Array:
        """The place of each hit's item among the items of all calls."""
        sizes = [len(ids) for ids in self._item_ids]
        begins = np.cumsum([0, *sizes])
        return np.concatenate([np.zeros(0, np.int64), *(np.frombuffer(columns.items, "<u4") + begin
                                                        for columns, begin in zip(self._columns, begins))])

    @functools.cached_property
    def hit_ids(self) -> Array:
        return np.concatenate(self._item_ids)[self._items] if self._item_ids else np.empty(0, object)

    @functools.cached_property
    def ids(self) -> Array:
        return self._table(self.hit_ids, None if self.hit_ids.dtype == object else -1)

    @functools.cached_property
    def scores(self) -> Array:
        return self._table(self.hit_scores, np.float32(np.nan))

    @functools.cached_property
    def rows(self) -> Array:
        """Positions in the loaded files, int64. REQUIRES: with_rows."""
        rows = self._joined("rows", "<u4").astype(np.int64)
        if not len(rows) and len(self._items):
            raise ValueError("the answer has no rows: ask with with_rows=True, as a caller without a required filter")
        return self._table(rows[self._items], -1)

    @functools.cached_property
    def vectors(self) -> Array:
        """The stored vectors of the hits, float32 [hits, dim]. REQUIRES: with_vectors."""
        vectors = self._joined("vectors", "<f4")
        if not len(vectors) and len(self._items):
            raise ValueError("the answer has no vectors: ask with with_vectors=True")
        count = sum(len(ids) for ids in self._item_ids)
        return vectors.reshape(count, -1)[self._items] if count else vectors.reshape(0, 0)

    @functools.cached_property
    def payload(self) -> dict[str, list[Any]]:
        """The values of each payload field over the hits of all queries, [hits]; None where the item lacks the field."""
        of_items: dict[str, list[Any]] = {}
        begin = 0
        for columns, ids in zip(self._columns, self._item_ids):
            for column in columns.payload:
                values = of_items.setdefault(column.field, [])
                values.extend([None] * (begin - len(values)))
                values.extend(_values_of(column, len(ids)))
            begin += len(ids)
        for values in of_items.values():
            values.extend([None] * (begin - len(values)))
        items = self._items.tolist()
        return {field: [values[item] for item in items] for field, values in of_items.items()}

    def hits(self, query: int) -> list[Hit]:
        """The hits of a query, best first; answer[query] is the same."""
        query = range(len(self))[query]
        begin, end = int(self.offsets[query]), int(self.offsets[query + 1])
        ids, scores = self.hit_ids[begin:end].tolist(), self.hit_scores[begin:end].tolist()
        payload: list[dict[str, Any]] = [{} for _ in ids]
        for field, values in self.payload.items():
            for hit, value in zip(payload, values[begin:end]):
                if value is not None:
                    hit[field] = value
        return [Hit(*hit) for hit in zip(ids, scores, payload)]

    def groups(self, query: int) -> list[tuple[str, list[Hit]]]:
        """With group_by: the value and the hits of each group of a query, the best group first."""
        query = range(len(self))[query]
        hits = self.hits(query)
        found, begin = [], 0
        for value, size in self._groups[query]:
            found.append((value, hits[begin:begin + size]))
            begin += size
        return found

    @functools.cached_property
    def _groups(self) -> list[list[tuple[str, int]]]:
        """The value and the number of hits of each group, by query."""
        found: list[list[tuple[str, int]]] = []
        for response, columns in zip(self._responses, self._columns):
            values = _texts_of(columns.groups.keywords).tolist()
            all_groups = list(zip(values, np.frombuffer(columns.groups.sizes, "<u4").tolist()))
            ends = np.frombuffer(columns.groups.offsets, "<u4").tolist() or [0] * (len(response.results) + 1)
            found.extend(all_groups[begin:end] for begin, end in zip(ends, ends[1:]))
        return found

    def _lines(self) -> dict[str, Any]:
        """The columns of a table with a line for each hit. With group_by, `group` is the value and ranks are within groups."""
        queries = np.repeat(np.arange(len(self.counts)), self.counts)
        groups = [group for of_query in self._groups for group in of_query]
        if groups:
            sizes = np.asarray([size for _, size in groups])
            ranks = np.arange(len(queries)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
            lines = {"query": queries, "group": np.repeat(np.asarray([value for value, _ in groups], object), sizes), "rank": ranks}
        else:
            ranks = np.arange(len(queries)) - np.repeat(self.offsets[:-1], self.counts)
            lines = {"query": queries, "rank": ranks + np.repeat(self._joined("first_ranks", "<u4").astype(np.int64), self.counts)}
        users = [result.user_id for result in self.results]
        if any(users):
            lines["user"] = np.repeat(np.asarray(users, object), self.counts)
        return {**lines, "id": self.hit_ids, "score": self.hit_scores,
                **{f"payload.{field}": values for field, values in self.payload.items()}}

    def to_pandas(self) -> Any:
        """A data frame with a line for each hit: query, rank, id, score, and `payload.NAME` for each field. Needs pandas.

        Of recommend also `user`, and with group_by also `group`.
        """
        import pandas
        return pandas.DataFrame({name: pandas.Series(values, dtype=object).infer_objects() if isinstance(values, list) else values
                                 for name, values in self._lines().items()})

    def to_arrow(self) -> Any:
        """The table of to_pandas as a pyarrow.Table. Needs pyarrow. Raises ValueError for a field with values of several types."""
        import pyarrow
        arrays = {}
        for name, values in self._lines().items():
            try:
                arrays[name] = pyarrow.array(values)
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                raise ValueError(f"{name} is no column of Arrow: {error}; leave it out by naming the others in payload=") from None
        return pyarrow.table(arrays)

    def _joined(self, name: str, dtype: str) -> Array:
        """An array of all calls."""
        return np.concatenate([np.zeros(0, dtype), *(np.frombuffer(getattr(columns, name), dtype) for columns in self._columns)])

    def _table(self, values: Array, missing: Any) -> Array:
        counts = self.counts
        width = max(self._k, int(counts.max(initial=0)))  # groups and queries with a k of their own may have more
        if len(counts) and (counts == width).all():
            return values.reshape(len(counts), width)
        table = np.full((len(counts), width), missing, values.dtype)
        table[np.arange(width) < counts[:, np.newaxis]] = values
        return table


def _restored(kinds: list[str], responses: list[bytes], k: int) -> Answer:
    return Answer([getattr(messages, kind).FromString(response) for kind, response in zip(kinds, responses)], k)


def _texts_of(column: Any) -> Array:
    offsets, utf8 = np.frombuffer(column.offsets, "<u4").astype(np.int64), column.utf8
    if len(offsets) > 1 and b"\0" not in utf8:  # one split of all texts takes less than half the time of a slice each
        texts = _separated(np.frombuffer(utf8, np.uint8), offsets).tobytes().decode().split("\0")
    else:
        texts = [utf8[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]
    array = np.empty(len(texts), object)
    array[:] = texts
    return array[np.frombuffer(column.places, "<u4")] if column.places else array


def _separated(utf8: Array, offsets: Array) -> Array:
    """The bytes of all texts, with a zero byte between two texts."""
    length = offsets[1]
    if (np.diff(offsets) != length).any():
        return np.insert(utf8, offsets[1:-1], 0)
    padded = np.zeros((len(offsets) - 1, length + 1), np.uint8)  # texts of one length: a fifth of the time
    padded[:, :length] = utf8.reshape(len(padded), length)
    return padded.reshape(-1)[:-1]


def _values_of(column: Any, count: int) -> list[Any]:
    """The values of all items; None for an item without one."""
    kind = column.WhichOneof("values")
    values: list[Any] = []
    if kind == "texts":
        values = _texts_of(column.texts).tolist()
    elif kind is not None:
        values = np.frombuffer(getattr(column, kind), _DTYPES[kind]).tolist()
    if column.list_offsets:
        ends = np.frombuffer(column.list_offsets, "<u4").tolist()
        values = [values[begin:end] for begin, end in zip(ends, ends[1:])]
    states = np.frombuffer(column.states, "u1").tolist() or [_STATE_IN_VALUES] * count
    others = iter(column.others)
    found: list[Any] = []
    for item, state in enumerate(states):
        if state == _STATE_IN_VALUES:
            found.append(values[item])
        else:
            found.append(value_of(next(others)) if state == _STATE_IN_OTHERS else None)
    return found


def value_of(value: Any) -> Any:
    """A PayloadValue as JSON has it: None, bool, int, float, str, list or dict."""
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        return [value_of(element) for element in value.list_value.values]
    if kind == "object_value":
        return {name: value_of(member) for name, member in value.object_value.fields.items()}
    return None if kind in (None, "null_value") else getattr(value, kind)
