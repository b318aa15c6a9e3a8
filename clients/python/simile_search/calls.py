"""What a client asks of the server, apart from how it waits: shared by the client for threads and the one for asyncio.

Each function here is a generator of Calls. It is sent the response to each call, or the error is thrown into it, and it returns
what the caller gets. client.py and aio.py make the calls.
"""

import difflib
import numbers
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional, TypeVar

import grpc

from . import answers, errors, messages, queries, vectors

REPLY_BYTES_MAX = 64 << 20
REQUEST_BYTES_MAX = 16 << 20  # below limits.receive_bytes_max
QUERIES_PER_CALL = 1024       # limits.queries_per_call_max
EXCLUSIONS_PER_CALL = 262_144  # limits.exclusions_per_call_max
DIVERSITY_PAIRS_PER_CALL = 2_000_000  # limits.diversity_pairs_per_call_max
GROUP_ROWS_PER_CALL = 200_000  # limits.group_rows_per_call_max
EXPLAINED_IDS = 100  # limits.explained_ids_max
DEFAULT_TIMEOUT = 10.0

_LAYOUT_COLUMNS = 2
_SELECTION_ALL, _SELECTION_NONE = 1, 2
_PRIORITY_BULK = 2
_COLD_START_ORDERS = {"newest": 1, "popular": 2}
_SOURCES = {"items": 1, "users": 2}
_QUALITIES = {1: "whole", 2: "prefix", 3: "part"}
_RETRIED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION)
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 1.0  # before a call is made again that has no RetryInfo
_EXPORT_S = 300.0  # of one stream: a longer export is resumed in another
# How the stream of an export may end that is resumed: after a wait, or once at once until the next part has come.
_RESUMED_AFTER_WAIT = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
_RESUMED_AT_ONCE = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)

_PLAIN_OPTIONS = ("filter", "required_filter", "offset", "score_threshold", "with_vectors", "with_rows", "partial", "expected_snapshot_id")
_OPTIONS = (*_PLAIN_OPTIONS, "k", "timeout", "as_stored", "bulk", "payload", "diversity", "group_by", "allow_ids", "exclude_ids",
            "queries_per_call", "exclude_seen", "cold_start")

T = TypeVar("T")


class Call(NamedTuple):
    """A call of the contract that has one response, or a stream whose last response counts."""
    method: str
    request: bytes
    response: Any  # the class of the message
    timeout: float
    ends_at: float  # of time.monotonic()
    first: int = 0  # queries that earlier calls of the same search have sent, for the places in errors
    streamed: bool = False
    repeatable: bool = True  # after a lost connection


Steps = Generator[Call, Any, T]


class Attempts:
    """How often a call is made: again after RetryInfo, or after a lost connection, while there is time."""

    def __init__(self, call: Call):
        self._call, self._began_at, self._next_wait = call, time.monotonic(), _FIRST_WAIT_S

    def seconds_left(self) -> float:
        return max(0.0, self._call.ends_at - time.monotonic())

    def wait_after(self, error: Any) -> float:
        """Seconds until the next attempt. Raises what the caller gets where there is none.

        error  a grpc.RpcError
        """
        failed = errors.of_call(error, time.monotonic() - self._began_at, self._call.timeout, self._call.first)
        wait = failed.retry_after
        if wait is None and failed.code == grpc.StatusCode.UNAVAILABLE and self._call.repeatable:
            wait, self._next_wait = self._next_wait, min(_LONGEST_WAIT_S, 2 * self._next_wait)
        if failed.code not in _RETRIED or wait is None or time.monotonic() + wait >= self._call.ends_at:
            raise failed from None
        return max(wait, 0.01)


class Clock:
    """The time that all calls of one search may take together."""

    def __init__(self, timeout: float):
        if not isinstance(timeout, numbers.Real) or not timeout > 0:
            raise errors.InvalidRequest(f"timeout is {timeout!r}; give seconds, more than 0")
        self.timeout: float = float(timeout)
        self.ends_at: float = time.monotonic() + self.timeout

    def call(self, method: str, request: Any, response: Any, first: int = 0) -> Call:
        data = request if isinstance(request, bytes) else request.SerializeToString()
        return Call(method, data, response, self.timeout, self.ends_at, first)


class Options:
    """The options of a search, checked: `message` is SearchOptions, the rest is for the client."""

    def __init__(self, k: int, timeout: float, given: Mapping[str, Any]):
        options = {name: value for name, value in given.items() if value is not None}
        self.k = k
        self.timeout = options.pop("timeout", timeout)
        self.as_stored = options.pop("as_stored", False)
        self.message = messages.SearchOptions(layout=_LAYOUT_COLUMNS, reply_bytes_max=REPLY_BYTES_MAX)
        queries.set_field(self.message, "k", k)
        if options.pop("bulk", False):
            self.message.priority = _PRIORITY_BULK
        self._set_payload(options.pop("payload", False))
        queries.set_rankings(self.message, options.pop("diversity", None), options.pop("group_by", None))
        if "allow_ids" in options:
            self.message.allow_ids.SetInParent()
            self.message.allow_ids.ids.extend(queries.ids_of(options.pop("allow_ids")))
        self.message.exclude_ids.extend(queries.ids_of(options.pop("exclude_ids", ())))
        per_call = options.pop("queries_per_call", self._most_queries())
        if per_call < 1:
            raise errors.InvalidRequest(f"queries_per_call is {per_call}; give 1 or more")
        self.queries_per_call = int(per_call)
        for name in _PLAIN_OPTIONS:
            if name in options:
                queries.set_field(self.message, name, options.pop(name))
        for name in options:
            near = difflib.get_close_matches(name, _OPTIONS, 1)
            raise TypeError(f"no such option: {name}" + (f"; did you mean {near[0]}?" if near else "; help(simile_search.Collection) lists all"))

    def _set_payload(self, payload: Any) -> None:
        names = [payload] if isinstance(payload, str) else [] if isinstance(payload, bool) else list(payload)
        if names:
            self.message.payload.fields.extend(names)
        else:
            self.message.payload.selection = _SELECTION_ALL if payload is True else _SELECTION_NONE

    def _most_queries(self) -> int:
        """Queries of one call, by what the server takes of all queries of a call together."""
        options, most = self.message, QUERIES_PER_CALL
        ranked = self.k + options.offset
        if options.exclude_ids:
            most = min(most, EXCLUSIONS_PER_CALL // len(options.exclude_ids))
        if options.HasField("diversity"):
            candidates = options.diversity.candidates if options.diversity.HasField("candidates") else max(100, 10 * self.k)
            most = min(most, DIVERSITY_PAIRS_PER_CALL // max(1, candidates * ranked))
        if options.HasField("group_by"):
            most = min(most, GROUP_ROWS_PER_CALL // max(1, ranked * options.group_by.group_size))
        return max(1, most)


def search(collection: str, asked: Any, options: Options) -> Steps[answers.Answer]:
    encode = encoder_of(asked, options)

    def make(clock: Clock, begin: int, end: int) -> Call:
        request = messages.SearchRequest(collection=collection, options=options.message).SerializeToString()
        return clock.call("SearchService/Search", request + encode.slice(begin, end), messages.SearchResponse, begin)

    return (yield from _all_queries(encode.query_count, min(options.queries_per_call, encode.fits), options, make))


def similar(collection: str, ids: queries.Ids, options: Options) -> Steps[answers.Answer]:
    return (yield from search(collection, [queries.Query(name) for name in queries.ids_of(ids)], options))


def recommend(collection: str, users: queries.Ids, exclude_seen: bool, cold_start: Optional[str],
              options: Options) -> Steps[answers.Answer]:
    names = queries.ids_of(users)
    _set_user_options(options, exclude_seen, cold_start)

    def make(clock: Clock, begin: int, end: int) -> Call:
        request = messages.RecommendRequest(collection=collection, user_ids=names[begin:end], options=options.message)
        return clock.call("SearchService/Recommend", request, messages.RecommendResponse, begin)

    return (yield from _all_queries(len(names), options.queries_per_call, options, make))


class Explanation(NamedTuple):
    """Why an item is, or is not, in the answer to a query.

    reasons  none for an item that is returned: the names of simile.v1.Explanation.Reason, such as "filter" and "rank_in_group"
    text     the same as a sentence
    score    canonical, also of an item that is not returned; None where it was not compared
    rank     among all rows that may be returned, 1 is best; for another item the rank that it would have
    message  simile.v1.Explanation: also the parts of the filter, the step of diversity, the places in groups
    """
    id: str
    returned: bool
    reasons: list[str]
    text: str
    score: Optional[float]
    rank: Optional[int]
    message: Any

    def __repr__(self) -> str:
        return f"Explanation(id={self.id!r}, returned={self.returned}, score={self.score}, rank={self.rank}, text={self.text!r})"


def explain(collection: str, query: Any, ids: queries.Ids, exclude_seen: bool, cold_start: Optional[str],
            options: Options) -> Steps[list[Explanation]]:
    _set_user_options(options, exclude_seen, cold_start)
    encode = encoder_of(queries.Query(query) if queries.is_id(query) else query, options)
    if encode.query_count != 1:
        raise errors.InvalidRequest(f"{encode.query_count} queries; one is explained at a time")
    request = messages.ExplainRequest(search=_search_request(collection, encode, options))
    names = queries.ids_of(ids)

    def make(clock: Clock, begin: int, end: int) -> Call:
        del request.ids[:]
        request.ids.extend(names[begin:end])
        return clock.call("SearchService/Explain", request, messages.ExplainResponse, begin)

    def pin(response: Any) -> None:
        request.search.options.expected_snapshot_id = response.receipt.snapshot_id

    responses = yield from _all(len(names), EXPLAINED_IDS, options.timeout, make, pin)
    return [_explanation_of(each) for response in responses for each in response.explanations]


def _explanation_of(message: Any) -> Explanation:
    names = messages.Explanation.DESCRIPTOR.enum_types_by_name["Reason"].values_by_number
    reasons = [names[reason].name.replace("REASON_", "").lower() if reason in names else "unknown" for reason in message.reasons]
    return Explanation(message.id, message.returned, reasons, message.text, message.score if message.HasField("score") else None,
                       message.rank if message.HasField("rank") else None, message)


def _set_user_options(options: Options, exclude_seen: bool, cold_start: Optional[str]) -> None:
    options.message.exclude_seen = exclude_seen
    if cold_start is None:
        return
    if cold_start not in _COLD_START_ORDERS:
        raise errors.InvalidRequest(f"cold_start is {cold_start!r}; give \"newest\" or \"popular\"")
    options.message.cold_start.order = _COLD_START_ORDERS[cold_start]


class ExportPart(NamedTuple):
    """The answers of some sources of an export.

    source_ids  the item or user of each query of the answer
    cursor      continues after this part: Collection.export(cursor=...); empty for the last
    exported    sources that are answered so far, of `total`
    """
    source_ids: list[str]
    answer: answers.Answer
    cursor: str
    exported: int
    total: int


class Export:
    """The state of an export: makes its streams, and resumes after a stream that ended early."""

    def __init__(self, collection: str, sources: str, source_filter: str, cursor: str, exclude_seen: bool, options: Options):
        if sources not in _SOURCES:
            raise errors.InvalidRequest(f"sources is {sources!r}; give \"items\" or \"users\"")
        _set_user_options(options, exclude_seen, None)
        self._options = options
        self._request = messages.ExportRequest(collection=collection, sources=_SOURCES[sources], options=options.message)
        queries.set_field(self._request, "source_filter", source_filter)
        queries.set_field(self._request, "cursor", cursor)
        self._attempts: Optional[Attempts] = None  # since the last part

    def stream(self) -> Call:
        """The next stream. Its timeout is for gRPC."""
        self._call = Clock(_EXPORT_S).call("SearchService/Export", self._request, messages.ExportResponse)._replace(streamed=True)
        return self._call

    def part(self, response: Any) -> ExportPart:
        self._attempts = None
        self._request.cursor = response.cursor
        return ExportPart(list(response.source_ids), answers.Answer([response.answer], self._options.k), response.cursor,
                          response.exported_count, response.source_count)

    def check_end(self) -> None:
        """Raises where a stream has ended without an error and without its last part."""
        if self._request.cursor:
            raise errors.SimileError("the server ended the export before its last part")

    def wait_after(self, error: Any) -> float:
        """Seconds until the next stream. Raises what the caller gets where there is none.

        error  a grpc.RpcError
        """
        first = self._attempts is None
        if error.code() not in _RESUMED_AFTER_WAIT + _RESUMED_AT_ONCE:
            raise errors.of_call(error, 0, self._options.timeout) from None
        if self._attempts is None:
            timeout = self._options.timeout
            self._attempts = Attempts(self._call._replace(timeout=timeout, ends_at=time.monotonic() + timeout))
        return 0.0 if first and error.code() in _RESUMED_AT_ONCE else self._attempts.wait_after(error)


def first_page(collection: str, asked: Any, options: Options) -> Any:
    """The SearchRequest of the first page. The queries of all pages are those of one call."""
    encode = encoder_of(asked, options)
    options.message.paged = True
    return _search_request(collection, encode, options)


def page(request: Any, options: Options) -> Steps[answers.Answer]:
    """One page. Sets the request's token to that of the next one."""
    response = yield Clock(options.timeout).call("SearchService/Search", request, messages.SearchResponse)
    request.options.page_token = response.next_page_token
    return answers.Answer([response], options.k)


class Row(NamedTuple):
    """An item. Of a look-up, `match` says how much of a value the text is: "whole", "prefix" or "part"."""
    id: str
    payload: dict[str, Any]
    match: str = ""


def fetch(collection: str, ids: queries.Ids, timeout: float) -> Steps[list[Row]]:
    names = queries.ids_of(ids)
    request = messages.FetchRequest(collection=collection, reply_bytes_max=REPLY_BYTES_MAX)

    def make(clock: Clock, begin: int, end: int) -> Call:
        del request.ids[:]
        request.ids.extend(names[begin:end])
        return clock.call("LookupService/Fetch", request, messages.FetchResponse, begin)

    def pin(response: Any) -> None:
        request.expected_snapshot_id = response.snapshot_id

    responses = yield from _all(len(names), QUERIES_PER_CALL, timeout, make, pin)
    return [_row_of(item) for response in responses for item in response.items]


def lookup(collection: str, text: str, field: str, limit: int, timeout: float) -> Steps[list[Row]]:
    request = messages.LookupRequest(collection=collection, reply_bytes_max=REPLY_BYTES_MAX)
    for name, value in (("text", text), ("field", field), ("limit", limit)):
        queries.set_field(request, name, value)
    response = yield Clock(timeout).call("LookupService/Lookup", request, messages.LookupResponse)
    return [_row_of(match.item)._replace(match=_QUALITIES.get(match.quality, "")) for match in response.matches]


def list_collections(timeout: float) -> Steps[list[Any]]:
    found: list[Any] = []
    request, clock = messages.ListCollectionsRequest(), Clock(timeout)
    while True:
        response = yield clock.call("CollectionService/ListCollections", request, messages.ListCollectionsResponse)
        found.extend(response.collections)
        if not response.next_page_token:
            return found
        request.page_token = response.next_page_token


def describe(collection: str, timeout: float) -> Steps[Any]:
    response = yield Clock(timeout).call("CollectionService/GetCollection", messages.GetCollectionRequest(collection=collection),
                                         messages.GetCollectionResponse)
    return response.collection


def fields(collection: str, values: int, timeout: float) -> Steps[list[Any]]:
    request = messages.DescribeFieldsRequest(collection=collection)
    queries.set_field(request, "values_max", values)
    response = yield Clock(timeout).call("CollectionService/DescribeFields", request, messages.DescribeFieldsResponse)
    return list(response.fields)


def change(kind: str, collection: str, timeout: float, **settings: Any) -> Steps[Any]:
    """Loads, reloads or rolls back a collection; returns what is served then.

    kind  "Load", "Reload" or "Rollback"
    """
    request = getattr(messages, f"{kind}CollectionRequest")(collection=collection)
    for name, value in settings.items():
        if value is not None:
            queries.set_field(request, name, value)
    call = Clock(timeout).call(f"CollectionService/{kind}Collection", request, getattr(messages, f"{kind}CollectionResponse"))
    response = yield call._replace(streamed=True, repeatable=False)
    if response is None or not response.HasField("collection"):
        raise errors.SimileError(f"the server ended the {kind.lower()} without saying what is served")
    return response.collection


def unload(collection: str, expected_snapshot_id: str, timeout: float) -> Steps[None]:
    request = messages.UnloadCollectionRequest(collection=collection, expected_snapshot_id=expected_snapshot_id)
    # Made again after a lost connection, it could unload what was loaded meanwhile.
    yield Clock(timeout).call("CollectionService/UnloadCollection", request, messages.UnloadCollectionResponse)._replace(repeatable=False)


class Encoder(NamedTuple):
    """The queries of a search as bytes of SearchRequest.queries."""
    query_count: int
    fits: int  # queries whose bytes a request can have
    slice: Callable[[int, int], bytes]


def encoder_of(asked: Any, options: Options) -> Encoder:
    left = REQUEST_BYTES_MAX - min(REQUEST_BYTES_MAX // 2, options.message.ByteSize())
    if isinstance(asked, queries.TARGETS):
        asked = [asked]
    if isinstance(asked, (list, tuple, Iterator)):
        asked = list(asked)
        if any(isinstance(query, queries.TARGETS) for query in asked):
            own = [query.k for query in asked if isinstance(query, queries.Query) and query.k is not None]
            if len(own) == len(asked):
                options.k = max(own)  # of the answer's arrays
            encoded = [_encoded(number, query, options.as_stored) for number, query in enumerate(asked)]
            largest = max(len(query) for query in encoded)
            return Encoder(len(encoded), max(1, left // largest), lambda begin, end: b"".join(encoded[begin:end]))
    matrix = vectors.matrix_of(asked)
    row_bytes = max(1, matrix.shape[1] * matrix.dtype.itemsize)
    return Encoder(len(matrix), max(1, left // row_bytes),
                    lambda begin, end: vectors.queries_of(matrix[begin:end], options.as_stored))


def _search_request(collection: str, encode: Encoder, options: Options) -> Any:
    """The SearchRequest of all queries."""
    request = messages.SearchRequest(collection=collection, options=options.message).SerializeToString()
    return messages.SearchRequest.FromString(request + encode.slice(0, encode.query_count))


def _encoded(number: int, query: Any, as_stored: bool) -> bytes:
    if not isinstance(query, queries.TARGETS):
        raise errors.InvalidRequest(f"query {number} is a {type(query).__name__} among others of type Query; give Query(target=...)")
    if not isinstance(query, queries.Query):
        query = queries.Query(query)
    request = messages.SearchRequest()
    try:
        request.queries.append(query.message(as_stored))
    except errors.SimileError as error:
        error.message = f"query {number}: {error.message}"
        raise
    return bytes(request.SerializeToString())


def _all_queries(count: int, per_call: int, options: Options, make: Callable[[Clock, int, int], Call]) -> Steps[answers.Answer]:
    def pin(response: Any) -> None:
        options.message.expected_snapshot_id = response.receipt.snapshot_id

    return answers.Answer((yield from _all(count, per_call, options.timeout, make, pin)), options.k)


def _all(count: int, per_call: int, timeout: float, make: Callable[[Clock, int, int], Call],
         pin: Callable[[Any], None]) -> Steps[list[Any]]:
    """The responses to [0, count), per_call at a time, or fewer where an answer would be too large.

    make  the call for [begin, end)
    pin   makes the next calls ask for the content of a response
    """
    clock = Clock(timeout)
    found: list[Any] = []
    begin = 0
    while begin < count:
        end = min(count, begin + per_call)
        try:
            response = yield make(clock, begin, end)
        except errors.InvalidRequest as error:
            if error.reason != "REPLY_TOO_LARGE" or end - begin == 1:
                raise
            per_call = (end - begin + 1) // 2
            continue
        found.append(response)
        pin(response)
        begin = end
    return found


def _row_of(item: Any) -> Row:
    return Row(item.id, {name: answers.value_of(value) for name, value in item.payload.items()})
