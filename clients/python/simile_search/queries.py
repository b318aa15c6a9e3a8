"""What can be asked: a query with options of its own, examples, blends and groups."""

import dataclasses
import numbers
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from . import errors, messages, vectors

_STRATEGIES = {"average_vector": 1, "best_score": 2, "sum_scores": 3}
_LARGEST_FLOAT_ID = 2.0**53  # floats beyond do not hold every integer

Id = Union[str, int, uuid.UUID]
Ids = Union[Id, Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class Item:
    """An item of a named collection of the server."""
    collection: str
    id: Id


@dataclasses.dataclass(frozen=True)
class Weighted:
    """An example that counts more or less than the others: its similarities are multiplied by the weight, above 0."""
    target: Any
    weight: float


@dataclasses.dataclass(frozen=True)
class Examples:
    """Items or vectors that the rows should be like, or unlike.

    positive, negative  ids, Items, vectors [dim], or Weighted of these; 64 of both together
    strategy            "average_vector", "best_score" or "sum_scores" (Examples.Strategy in search.proto has their formulas)
    """
    positive: Iterable[Any] = ()
    negative: Iterable[Any] = ()
    strategy: str = "average_vector"


@dataclasses.dataclass(frozen=True)
class Blend:
    """(1 - user_weight) * target + user_weight * the profile of the user.

    target       an id, an Item or a vector [dim]
    user_weight  0..1; None for the server's default
    """
    target: Any
    user: Id
    user_weight: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class GroupBy:
    """The best k groups of rows that share a value of a field, each with its best `size` rows."""
    field: str
    size: int = 1


@dataclasses.dataclass(frozen=True)
class Diversity:
    """Maximal marginal relevance.

    relevance   0..1: 1 ranks by score alone (Diversity.lambda)
    candidates  best rows by score to choose from; None for the server's default
    """
    relevance: float = 0.5
    candidates: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Query:
    """A query with options of its own. Each option replaces that of the search; None takes it from there.

    target      a vector [dim], an id, an Item, Examples or a Blend
    user        a user's id, in place of a target
    as_stored   the vector is a row of the collection as the server returned it, and is searched bit for bit
    The options are those of Collection.search.
    """
    target: Any = None
    user: Optional[Id] = None
    k: Optional[int] = None
    filter: Optional[str] = None
    offset: Optional[int] = None
    score_threshold: Optional[float] = None
    exclude_ids: Optional[Ids] = None
    exclude_seen: Optional[bool] = None
    diversity: Union[float, Diversity, None] = None
    group_by: Union[str, GroupBy, None] = None
    as_stored: Optional[bool] = None

    def message(self, as_stored: bool) -> Any:
        """The message simile.v1.Query.

        as_stored  where this query does not say
        """
        query = messages.Query()
        if (self.target is None) == (self.user is None):
            raise errors.InvalidRequest("a query needs a target or a user, and not both")
        if self.user is not None:
            query.user_id = id_of(self.user)
        elif isinstance(self.target, Examples):
            _set_examples(query.examples, self.target)
        elif isinstance(self.target, Blend):
            _set_target(query.blend, self.target.target)
            query.blend.user_id = id_of(self.target.user)
            if self.target.user_weight is not None:
                query.blend.user_weight = self.target.user_weight
        else:
            _set_target(query, self.target, as_stored if self.as_stored is None else self.as_stored)
        query.exclude_ids.extend(ids_of(() if self.exclude_ids is None else self.exclude_ids))
        set_rankings(query, self.diversity, self.group_by)
        for name in ("k", "filter", "offset", "score_threshold", "exclude_seen"):
            if (value := getattr(self, name)) is not None:
                set_field(query, name, value)
        return query


TARGETS = (Query, Examples, Blend, Item)  # what may be asked for beside vectors

_KINDS = {FieldDescriptor.CPPTYPE_STRING: "a text", FieldDescriptor.CPPTYPE_BOOL: "True or False",
          FieldDescriptor.CPPTYPE_UINT32: "a whole number of 0 or more", FieldDescriptor.CPPTYPE_UINT64: "a whole number of 0 or more",
          FieldDescriptor.CPPTYPE_FLOAT: "a number", FieldDescriptor.CPPTYPE_DOUBLE: "a number"}


def set_field(message: Any, name: str, value: Any) -> None:
    """Sets a field of a message; a value that it cannot have is InvalidRequest, with the field's name."""
    try:
        setattr(message, name, value)
    except (TypeError, ValueError):
        kind = _KINDS[message.DESCRIPTOR.fields_by_name[name].cpp_type]
        raise errors.InvalidRequest(f"{name} is {value!r}; give {kind}") from None


def set_rankings(message: Any, diversity: Union[float, Diversity, None], group_by: Union[str, GroupBy, None]) -> None:
    """Of a Query or of SearchOptions."""
    if diversity is not None:
        wanted = diversity if isinstance(diversity, Diversity) else Diversity(diversity)
        set_field(message.diversity, "lambda", wanted.relevance)
        if wanted.candidates is not None:
            set_field(message.diversity, "candidates", wanted.candidates)
    if group_by is not None:
        groups = group_by if isinstance(group_by, GroupBy) else GroupBy(group_by)
        set_field(message.group_by, "field", groups.field)
        set_field(message.group_by, "group_size", groups.size)


def _set_examples(message: Any, examples: Examples) -> None:
    if examples.strategy not in _STRATEGIES:
        raise errors.InvalidRequest(f"strategy is {examples.strategy!r}; give one of {', '.join(_STRATEGIES)}")
    message.strategy = _STRATEGIES[examples.strategy]
    for name in ("positive", "negative"):
        given = getattr(examples, name)
        if isinstance(given, (str, Mapping, Item, Weighted)):
            raise errors.InvalidRequest(f"{name} is {given!r}; give a list")
        for example in given:
            target, weight = (example.target, example.weight) if isinstance(example, Weighted) else (example, None)
            added = getattr(message, name).add()
            _set_target(added, target)
            if weight is not None:
                set_field(added, "weight", weight)


def _set_target(message: Any, target: Any, as_stored: bool = False) -> None:
    """An Item, an id or a vector, in a message that can have each."""
    if isinstance(target, Item):
        message.item.collection, message.item.id = target.collection, id_of(target.id)
    elif is_id(target):
        message.id = id_of(target)
    else:
        matrix = vectors.matrix_of(target)
        if len(matrix) != 1:
            raise errors.InvalidVectors(f"{len(matrix)} vectors as one target; give one of [dim]")
        vectors.set_vector(message.packed_vector, matrix, as_stored)


def is_id(value: Any) -> bool:
    """Whether a value is one id, and no list of them or vector."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, (str, numbers.Integral, uuid.UUID, float))


def ids_of(ids: Any) -> list[str]:
    """One id or several as texts: integers in digits, UUIDs in their usual form. Anything else is refused, and never changed."""
    if is_id(ids) and not isinstance(ids, float):
        ids = [ids if not isinstance(ids, np.ndarray) else ids.item()]
    elif isinstance(ids, (bytes, bytearray)) or not hasattr(ids, "__iter__"):
        raise errors.InvalidRequest(f"{ids!r} is no id")
    return [id_of(value) for value in ids]


def id_of(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (str, uuid.UUID)):
        return str(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    # Integers that a column of floats holds, as pandas keeps them beside missing values.
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_FLOAT_ID:
        return str(int(value))
    raise errors.InvalidRequest(f"{value!r} is no id: give texts, integers or UUIDs")
