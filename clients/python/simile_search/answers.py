"""Answers as arrays."""

import functools
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import errors, messages

Array = npt.NDArray[Any]

_STATE_IN_VALUES, _STATE_IN_OTHERS = 1, 3  # PayloadColumn.states
_DTYPES = {"integers": "<i8", "numbers": "<f8", "booleans": "?"}


class Answer:
    """The hits of several queries. Query i has the hits offsets[i] to offsets[i + 1], best first.

    offsets     int64 [queries + 1]
    counts      int64 [queries], hits of each query
    hit_ids     [hits] int64 where all ids of the collection are integers, else str
    hit_scores  float32 [hits]
    ids, scores, rows  the same as [queries, k]; shorter lists are filled up with None or -1, NaN and -1
    errors      of a partial call: a SimileError or None for each query
    notes       what of the options had no effect
    query_notes what of each query had no effect, and what of its answer was cut
    results     the messages simile.v1.SearchResult, whose hits are in the arrays
    receipts    what served the answer, why, and what it cost: one for each call that it took
    """

    def __init__(self, responses: Sequence[Any], k: int):
        self._responses, self._k = responses, k
        self.results = [result for response in responses for result in response.results]
        self._columns = [response.columns for response in responses]
        self.receipts = [response.receipt for response in responses]
        self.next_page_token: str = responses[-1].next_page_token if responses else ""
        self.notes = list(dict.fromkeys(note for response in responses for note in response.notes))
        self.query_notes = [list(result.notes) for result in self.results]
        self.hit_scores: Array = self._joined("scores", "<f4")
        hit_counts = [np.diff(np.frombuffer(columns.offsets, "<u4").astype(np.int64)) for columns in self._columns]
        self.counts: Array = np.concatenate([np.zeros(0, np.int64), *hit_counts])  # hits of each query
        self.offsets: Array = np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def receipt(self) -> Any:
        """Of the last call."""
        return self.receipts[-1]

    def __len__(self) -> int:
        return len(self.results)

    def __reduce__(self) -> Any:
        kinds = [type(response).DESCRIPTOR.name for response in self._responses]
        return _restored, (kinds, [response.SerializeToString() for response in self._responses], self._k)

    @functools.cached_property
    def errors(self) -> list[Optional[errors.SimileError]]:
        found: list[Optional[errors.SimileError]] = []
        for response in self._responses:
            first = len(found)
            found.extend(errors.of_status(result.error, first) if result.HasField("error") else None for result in response.results)
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
        """The values of each payload field, [hits]; None where the item lacks the field."""
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

    def hits(self, query: int) -> list[tuple[Any, float]]:
        """(id, score) of each hit of a query."""
        query = range(len(self))[query]
        begin, end = int(self.offsets[query]), int(self.offsets[query + 1])
        return list(zip(self.hit_ids[begin:end].tolist(), self.hit_scores[begin:end].tolist()))

    def to_pandas(self) -> Any:
        """A data frame with a line for each hit: query, rank, id, score and the payload fields. Needs pandas."""
        import pandas
        counts = self.counts
        ranks = np.arange(len(self._items)) - np.repeat(self.offsets[:-1], counts)
        first_ranks = self._joined("first_ranks", "<u4")
        columns = {"query": np.repeat(np.arange(len(counts)), counts), "rank": ranks + np.repeat(first_ranks, counts),
                   "id": self.hit_ids, "score": self.hit_scores}
        return pandas.DataFrame({**columns, **{f"payload.{field}": pandas.Series(values, dtype=object)
                                             for field, values in self.payload.items()}})

    def _joined(self, name: str, dtype: str) -> Array:
        """An array of all calls."""
        return np.concatenate([np.zeros(0, dtype), *(np.frombuffer(getattr(columns, name), dtype) for columns in self._columns)])

    def _table(self, values: Array, missing: Any) -> Array:
        counts = self.counts
        width = self._k
        if len(counts) and (counts == width).all():
            return values.reshape(len(counts), width)
        table = np.full((len(counts), width), missing, values.dtype)
        table[np.arange(width) < counts[:, np.newaxis]] = values
        return table


def _restored(kinds: list[str], responses: list[bytes], k: int) -> Answer:
    return Answer([getattr(messages, kind).FromString(response) for kind, response in zip(kinds, responses)], k)


def _texts_of(column: Any) -> Array:
    offsets = np.frombuffer(column.offsets, "<u4").tolist()
    utf8 = column.utf8
    if utf8.isascii():  # one text is cut instead of many decoded
        whole = utf8.decode("ascii")
        texts = [whole[begin:end] for begin, end in zip(offsets, offsets[1:])]
    else:
        texts = [utf8[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]
    array = np.empty(len(texts), object)
    array[:] = texts
    return array[np.frombuffer(column.places, "<u4")] if column.places else array


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
