"""Connections and collections."""

import numbers
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, Optional, Union

import grpc
import numpy as np

from . import answers, errors, messages, vectors

REPLY_BYTES_MAX = 64 << 20
REQUEST_BYTES_MAX = 16 << 20  # below limits.receive_bytes_max
QUERIES_PER_CALL = 1024       # limits.queries_per_call_max
DEFAULT_TIMEOUT = 10.0

_LAYOUT_COLUMNS = 2
_SELECTION_ALL, _SELECTION_NONE = 1, 2
_PRIORITY_BULK = 2
_COLD_START_ORDERS = {"newest": 1, "popular": 2}
_RETRIED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION)
_FIRST_WAIT_S = 0.05  # before a call is made again that has no RetryInfo; doubled each time
_LARGEST_FLOAT_ID = 2.0**53  # floats beyond do not hold every integer

# gRPC reads this when it is imported.
_FORK_SUPPORT = os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "").lower() in ("1", "true", "yes")
_FORKED = ("this process was forked after its parent had made a call by gRPC, which cannot go on here: make the first call after the "
           "fork (gunicorn: without --preload; multiprocessing: set_start_method(\"spawn\")), or set GRPC_ENABLE_FORK_SUPPORT=1 before "
           "Python starts")

Ids = Union[str, int, uuid.UUID, Iterable[Any]]


class _Process:
    """What gRPC has begun in this process."""
    lock = threading.Lock()
    pid: Optional[int] = None  # of the process that made the first channel
    of_parents: list[grpc.Channel] = []  # their end would wait for threads that are not here


def _renew_lock() -> None:
    _Process.lock = threading.Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def connect(target: str = "localhost:50051", *, token: Optional[str] = None,
            credentials: Optional[grpc.ChannelCredentials] = None, timeout: float = DEFAULT_TIMEOUT) -> "Client":
    """A client of the server at HOST:PORT. Connects at the first call.

    token        sent as `authorization: Bearer TOKEN`
    credentials  of grpc.ssl_channel_credentials; None: without encryption
    timeout      seconds for each search, waiting for the connection and for a busy server included
    """
    return Client(target, token=token, credentials=credentials, timeout=timeout)


class Client:
    """A connection. Safe to use from several threads. Close it, or use it in a `with` statement.

    A process that is forked before the first call by gRPC opens a channel of its own. After that call gRPC cannot go on in a forked
    process, unless GRPC_ENABLE_FORK_SUPPORT=1 was set before Python started: calls there say so. A client without credentials can
    be pickled.
    """

    def __init__(self, target: str, *, token: Optional[str] = None, credentials: Optional[grpc.ChannelCredentials] = None,
                 timeout: float = DEFAULT_TIMEOUT):
        self._target, self._token, self._credentials, self.timeout = target, token, credentials, timeout
        self._reset()

    def _reset(self) -> None:
        self._channel: Optional[grpc.Channel] = None
        self._channel_pid = 0
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        if self._credentials is not None:
            raise TypeError("a client with credentials cannot be pickled: connect in the process that uses it")
        return {"_target": self._target, "_token": self._token, "_credentials": None, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. Calls that are made later raise SimileError."""
        with _Process.lock:
            self._closed = True
            channel, self._channel = self._channel, None
            if channel is not None and self._channel_pid != os.getpid():
                _Process.of_parents.append(channel)
            elif channel is not None:
                channel.close()

    def collection(self, name: str) -> "Collection":
        """A collection by its name. Asks nothing of the server."""
        return Collection(self, name)

    def collections(self) -> list[Any]:
        """What is served: the messages simile.v1.Collection."""
        found: list[Any] = []
        request, ends_at = messages.ListCollectionsRequest(), self.ends_at(None)
        while True:
            response = self.call("CollectionService/ListCollections", request, messages.ListCollectionsResponse, ends_at)
            found.extend(response.collections)
            if not response.next_page_token:
                return found
            request.page_token = response.next_page_token

    def ends_at(self, timeout: Optional[float]) -> float:
        """The time.monotonic() until which a call may take."""
        return time.monotonic() + (self.timeout if timeout is None else timeout)

    def call(self, method: str, request: Any, response: Any, ends_at: float, first: int = 0) -> Any:
        """Makes a call of the contract, again after RetryInfo, or after a lost connection, while there is time.

        request   a message, or its bytes
        response  the message class of the answer
        ends_at   of ends_at()
        first     queries that earlier calls of the same search have sent, for the places in errors
        Raises SimileError.
        """
        began_at = time.monotonic()
        data = request if isinstance(request, bytes) else request.SerializeToString()
        next_wait = _FIRST_WAIT_S
        while True:
            left = max(0.0, ends_at - time.monotonic())
            try:
                return self._method(method, response)(data, timeout=left, wait_for_ready=True, metadata=self._metadata())
            except grpc.RpcError as error:
                failed = errors.of_call(error, time.monotonic() - began_at, first)
            wait = failed.retry_after
            if wait is None and failed.code == grpc.StatusCode.UNAVAILABLE:
                wait, next_wait = next_wait, 2 * next_wait
            if failed.code not in _RETRIED or wait is None or time.monotonic() + wait >= ends_at:
                raise failed from None
            time.sleep(max(wait, 0.01))

    def _method(self, method: str, response: Any) -> Any:
        return self._open().unary_unary(f"/simile.v1.{method}", request_serializer=None, response_deserializer=response.FromString)

    def _open(self) -> grpc.Channel:
        with _Process.lock:
            if self._closed:
                raise errors.SimileError("the client is closed")
            pid = os.getpid()
            if self._channel is not None and self._channel_pid == pid:
                return self._channel
            if _Process.pid not in (None, pid) and not _FORK_SUPPORT:
                raise errors.SimileError(_FORKED)
            if self._channel is not None:
                _Process.of_parents.append(self._channel)
            # http_proxy and its like are for the web, not for this server.
            options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", REPLY_BYTES_MAX)]
            self._channel = (grpc.insecure_channel(self._target, options) if self._credentials is None
                             else grpc.secure_channel(self._target, self._credentials, options))
            self._channel_pid = _Process.pid = pid
            return self._channel

    def _metadata(self) -> Optional[Sequence[tuple[str, str]]]:
        return None if self._token is None else (("authorization", f"Bearer {self._token}"),)


class Collection:
    """A collection of a client. Its searches take these options, each None or left out for the server's default:

    filter           rows that may be returned: 'genres:"Sci-Fi" AND year >= 1990' (docs/filters.md)
    required_filter  rows that exist for the call
    offset           best hits skipped
    score_threshold  hits with a lower score are left out
    exclude_ids      items never returned
    allow_ids        the only items that may be returned
    payload          True for all fields of each hit, names for some; default none
    with_vectors, with_rows  return the stored vector, the row of each hit
    diversity        0..1: 1 ranks by score alone (Diversity.lambda)
    partial          a query that cannot be answered has its error in Answer.errors, and the others are answered
    bulk             runs on what other calls leave of the device
    queries_per_call the most queries of one call; default 1,024
    timeout          seconds for all calls of the search, in place of the client's
    """

    def __init__(self, client: Client, name: str):
        self._client, self.name = client, name

    def search(self, queries: Any, k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each vector.

        queries  [queries, dim] or [dim] of any real dtype and most libraries; see vectors.matrix_of
        More than a call takes are sent in several calls; all come back as one answer, of one content of the collection.
        Raises InvalidVectors before anything is sent; SimileError.
        """
        matrix = vectors.matrix_of(queries)
        timeout, per_call, shared = self._options(k, options)
        row_bytes = max(1, matrix.shape[1] * matrix.dtype.itemsize)
        fits = max(1, (REQUEST_BYTES_MAX - min(REQUEST_BYTES_MAX // 2, shared.ByteSize())) // row_bytes)

        def ask(begin: int, end: int, ends_at: float) -> Any:
            return self._search(vectors.queries_of(matrix[begin:end]), shared, ends_at, begin)

        return answers.Answer(self._ask_all(len(matrix), min(per_call, fits), shared, timeout, ask), k)

    def similar(self, ids: Ids, k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each item, which is not returned itself."""
        names = _ids_of(ids)
        timeout, per_call, shared = self._options(k, options)

        def ask(begin: int, end: int, ends_at: float) -> Any:
            request = messages.SearchRequest()
            for name in names[begin:end]:
                request.queries.add(id=name)
            return self._search(request.SerializeToString(), shared, ends_at, begin)

        return answers.Answer(self._ask_all(len(names), per_call, shared, timeout, ask), k)

    def recommend(self, users: Ids, k: int = 10, *, exclude_seen: bool = False, cold_start: Optional[str] = None,
                  **options: Any) -> answers.Answer:
        """The k rows nearest to each user's profile.

        exclude_seen  without what the user has seen
        cold_start    "newest" or "popular": rows for a user without a profile, who is NotFound without it
        """
        names = _ids_of(users)
        timeout, per_call, shared = self._options(k, options)
        shared.exclude_seen = exclude_seen
        if cold_start is not None:
            if cold_start not in _COLD_START_ORDERS:
                raise errors.InvalidRequest(f"cold_start is {cold_start!r}; give \"newest\" or \"popular\"")
            shared.cold_start.order = _COLD_START_ORDERS[cold_start]

        def ask(begin: int, end: int, ends_at: float) -> Any:
            request = messages.RecommendRequest(collection=self.name, user_ids=names[begin:end], options=shared)
            return self._client.call("SearchService/Recommend", request, messages.RecommendResponse, ends_at, begin)

        return answers.Answer(self._ask_all(len(names), per_call, shared, timeout, ask), k)

    def fetch(self, ids: Ids, *, timeout: Optional[float] = None) -> list[dict[str, Any]]:
        """The payload of items in the order of the ids, each with the item's `id`, a text. Raises NotFound for unknown ids."""
        names, ends_at = _ids_of(ids), self._client.ends_at(timeout)
        found: list[dict[str, Any]] = []
        request = messages.FetchRequest(collection=self.name, reply_bytes_max=REPLY_BYTES_MAX)
        for begin in range(0, len(names), QUERIES_PER_CALL):
            del request.ids[:]
            request.ids.extend(names[begin:begin + QUERIES_PER_CALL])
            response = self._client.call("LookupService/Fetch", request, messages.FetchResponse, ends_at, begin)
            request.expected_snapshot_id = response.snapshot_id
            for item in response.items:
                found.append({**{name: answers.value_of(value) for name, value in item.payload.items()}, "id": item.id})
        return found

    def pages(self, query: Any, k: int = 10, **options: Any) -> Iterator[answers.Answer]:
        """The answers to one vector, or to the several of one call, page after page of k hits, all of one content.

        `timeout` is that of each page.
        """
        matrix = vectors.matrix_of(query)
        timeout, _, shared = self._options(k, options)
        shared.paged = True
        while True:
            response = self._search(vectors.queries_of(matrix), shared, self._client.ends_at(timeout), 0)
            yield answers.Answer([response], k)
            if not response.next_page_token:
                return
            shared.page_token = response.next_page_token

    def _search(self, queries: bytes, options: Any, ends_at: float, first: int) -> Any:
        request = messages.SearchRequest(collection=self.name, options=options).SerializeToString() + queries
        return self._client.call("SearchService/Search", request, messages.SearchResponse, ends_at, first)

    def _ask_all(self, count: int, per_call: int, shared: Any, timeout: Optional[float],
                 ask: Callable[[int, int, float], Any]) -> list[Any]:
        """The responses to the queries [0, count), per_call at a time, or fewer where an answer would be too large."""
        ends_at = self._client.ends_at(timeout)
        found: list[Any] = []
        begin = 0
        while begin < count:
            end = min(count, begin + per_call)
            try:
                response = ask(begin, end, ends_at)
            except errors.InvalidRequest as error:
                if error.reason != "REPLY_TOO_LARGE" or end - begin == 1:
                    raise
                per_call = (end - begin + 1) // 2
                continue
            found.append(response)
            shared.expected_snapshot_id = response.receipt.snapshot_id
            begin = end
        return found

    @staticmethod
    def _options(k: int, given: Mapping[str, Any]) -> tuple[Optional[float], int, Any]:
        options = {name: value for name, value in given.items() if value is not None}
        timeout = options.pop("timeout", None)
        per_call = options.pop("queries_per_call", QUERIES_PER_CALL)
        if per_call < 1:
            raise errors.InvalidRequest(f"queries_per_call is {per_call}; give 1 or more")
        payload = options.pop("payload", False)
        shared = messages.SearchOptions(k=k, layout=_LAYOUT_COLUMNS, reply_bytes_max=REPLY_BYTES_MAX)
        if options.pop("bulk", False):
            shared.priority = _PRIORITY_BULK
        names = [payload] if isinstance(payload, str) else [] if isinstance(payload, bool) else list(payload)
        if names:
            shared.payload.fields.extend(names)
        else:
            shared.payload.selection = _SELECTION_ALL if payload is True else _SELECTION_NONE
        if "diversity" in options:
            setattr(shared.diversity, "lambda", options.pop("diversity"))
        if "allow_ids" in options:
            shared.allow_ids.SetInParent()
            shared.allow_ids.ids.extend(_ids_of(options.pop("allow_ids")))
        shared.exclude_ids.extend(_ids_of(options.pop("exclude_ids", ())))
        for name in ("filter", "required_filter", "offset", "score_threshold", "with_vectors", "with_rows", "partial"):
            if name in options:
                setattr(shared, name, options.pop(name))
        if options:
            raise TypeError(f"no such option: {', '.join(sorted(options))}")
        return timeout, per_call, shared


def _ids_of(ids: Any) -> list[str]:
    """One id or several as texts: integers in digits, UUIDs in their usual form. Anything else is refused, and never changed."""
    if isinstance(ids, (str, numbers.Integral, uuid.UUID)) or (isinstance(ids, np.ndarray) and ids.ndim == 0):
        ids = [ids if not isinstance(ids, np.ndarray) else ids.item()]
    elif isinstance(ids, (bytes, bytearray)) or not hasattr(ids, "__iter__"):
        raise errors.InvalidRequest(f"{ids!r} is no id")
    return [_id_of(value) for value in ids]


def _id_of(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    # Integers that a column of floats holds, as pandas keeps them beside missing values.
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_FLOAT_ID:
        return str(int(value))
    raise errors.InvalidRequest(f"{value!r} is no id: give texts, integers or UUIDs")
