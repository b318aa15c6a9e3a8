"""Connections and collections."""

import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import grpc

from . import answers, errors, messages, vectors

REPLY_BYTES_MAX = 64 << 20
QUERIES_PER_CALL_MAX = 1024  # limits.queries_per_call_max; a server with a smaller limit says so
REQUEST_BYTES_MAX = 16 << 20  # of vectors; below limits.receive_bytes_max
DEFAULT_TIMEOUT = 10.0

_LAYOUT_COLUMNS = 2
_SELECTION_ALL, _SELECTION_NONE = 1, 2
_RETRIED = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.FAILED_PRECONDITION)

_FORKED = ("this process was forked after the client had made a call, and gRPC cannot go on here: make the first call after the "
           "fork (gunicorn: without --preload), or set GRPC_ENABLE_FORK_SUPPORT=1 before Python starts")
_of_parents: list[grpc.Channel] = []

Payload = Union[bool, str, Sequence[str]]


def connect(target: str = "localhost:50051", *, token: Optional[str] = None,
            credentials: Optional[grpc.ChannelCredentials] = None, timeout: float = DEFAULT_TIMEOUT) -> "Client":
    """A client of the server at HOST:PORT. Connects at the first call.

    token        sent as `authorization: Bearer TOKEN`
    credentials  of grpc.ssl_channel_credentials; None: without encryption
    timeout      seconds for each call, waiting for the connection and for a busy server included
    """
    return Client(target, token=token, credentials=credentials, timeout=timeout)


class Client:
    """A connection. Safe to use from several threads. Close it, or use it in a `with` statement.

    A process that is forked before the first call opens a channel of its own. After the first call gRPC cannot go on in a forked
    process, unless GRPC_ENABLE_FORK_SUPPORT=1 was set when it was imported: calls there say so. A client without credentials can
    be pickled.
    """

    def __init__(self, target: str, *, token: Optional[str] = None, credentials: Optional[grpc.ChannelCredentials] = None,
                 timeout: float = DEFAULT_TIMEOUT):
        self._target, self._token, self._credentials, self.timeout = target, token, credentials, timeout
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._channel: Optional[grpc.Channel] = None
        self._channel_pid = 0

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
        if self._channel is not None and self._channel_pid == os.getpid():
            self._channel.close()
            self._channel = None

    def collection(self, name: str) -> "Collection":
        """A collection by its name. Asks nothing of the server."""
        return Collection(self, name)

    def collections(self) -> list[Any]:
        """What is served: the messages simile.v1.Collection."""
        found: list[Any] = []
        request = messages.ListCollectionsRequest()
        while True:
            response = self.call("CollectionService/ListCollections", request, messages.ListCollectionsResponse)
            found.extend(response.collections)
            if not response.next_page_token:
                return found
            request.page_token = response.next_page_token

    def call(self, method: str, request: Any, response: Any, timeout: Optional[float] = None) -> Any:
        """Makes a call of the contract, again after RetryInfo while there is time.

        request   a message, or its bytes
        response  the message class of the answer
        Raises SimileError.
        """
        seconds = self.timeout if timeout is None else timeout
        ends_at = time.monotonic() + seconds
        data = request if isinstance(request, bytes) else request.SerializeToString()
        while True:
            left = max(0.0, ends_at - time.monotonic())
            try:
                return self._method(method, response)(data, timeout=left, wait_for_ready=True, metadata=self._metadata())
            except grpc.RpcError as error:
                failed = errors.of_call(error, seconds)
                wait = failed.retry_after
                if failed.code not in _RETRIED or wait is None or time.monotonic() + wait >= ends_at:
                    raise failed from None
            time.sleep(wait)

    def _method(self, method: str, response: Any) -> Any:
        return self._open().unary_unary(f"/simile.v1.{method}", request_serializer=None, response_deserializer=response.FromString)

    def _open(self) -> grpc.Channel:
        if self._channel is not None and self._channel_pid == os.getpid():
            return self._channel
        with self._lock:
            if self._channel is not None and self._channel_pid != os.getpid():
                if os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "").lower() not in ("1", "true", "yes"):
                    raise errors.SimileError(_FORKED)
                _of_parents.append(self._channel)  # its end would wait for threads that are not here
            if self._channel is None or self._channel_pid != os.getpid():
                # http_proxy and its like are for the web, not for this server.
                options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", REPLY_BYTES_MAX)]
                self._channel = (grpc.insecure_channel(self._target, options) if self._credentials is None
                                 else grpc.secure_channel(self._target, self._credentials, options))
                self._channel_pid = os.getpid()
        return self._channel

    def _metadata(self) -> Optional[Sequence[tuple[str, str]]]:
        return None if self._token is None else (("authorization", f"Bearer {self._token}"),)


class Collection:
    """A collection of a client. Its searches take these options, each None or left out for the server's default:

    filter           rows that may be returned: 'genres:"Sci-Fi" AND year >= 1990' (docs/filters.md)
    offset           best hits skipped
    score_threshold  hits with a lower score are left out
    exclude_ids      items never returned
    allow_ids        the only items that may be returned
    payload          True for all fields of each hit, names for some; default none
    with_vectors, with_rows  return the stored vector, the row of each hit
    diversity        0..1: 1 ranks by score alone (Diversity.lambda)
    partial          a query that cannot be answered has its error in Answer.errors, and the others are answered
    bulk             runs on what other calls leave of the device
    timeout          seconds, in place of the client's
    """

    def __init__(self, client: Client, name: str):
        self._client, self.name = client, name

    def search(self, queries: Any, k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each vector.

        queries  [queries, dim] or [dim] of any dtype and library; see vectors.matrix_of
        More than a call takes are sent in several calls; all come back as one answer.
        Raises InvalidVectors before anything is sent; SimileError.
        """
        matrix = vectors.matrix_of(queries)
        timeout, shared = self._options(k, options)
        row_bytes = max(1, matrix.shape[1] * matrix.dtype.itemsize)
        step = max(1, min(QUERIES_PER_CALL_MAX, REQUEST_BYTES_MAX // row_bytes))
        found: list[Any] = []
        for begin in range(0, len(matrix), step):
            found.append(self._search(vectors.queries_of(matrix[begin:begin + step]), shared, timeout))
            shared.expected_snapshot_id = found[0].receipt.snapshot_id  # one answer is of one content
        return answers.Answer(found)

    def similar(self, ids: Union[str, Iterable[str]], k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each item, which is not returned itself."""
        timeout, shared = self._options(k, options)
        found: list[Any] = []
        for some in _parts(_strings(ids)):
            request = messages.SearchRequest()
            for item in some:
                request.queries.add(id=item)
            found.append(self._search(request.SerializeToString(), shared, timeout))
            shared.expected_snapshot_id = found[0].receipt.snapshot_id
        return answers.Answer(found)

    def recommend(self, users: Union[str, Iterable[str]], k: int = 10, *, exclude_seen: bool = False,
                  **options: Any) -> answers.Answer:
        """The k rows nearest to each user's profile; without what the user has seen if exclude_seen."""
        timeout, shared = self._options(k, options)
        shared.exclude_seen = exclude_seen
        found: list[Any] = []
        for some in _parts(_strings(users)):
            request = messages.RecommendRequest(collection=self.name, user_ids=some, options=shared)
            found.append(self._client.call("SearchService/Recommend", request, messages.RecommendResponse, timeout))
            shared.expected_snapshot_id = found[0].receipt.snapshot_id
        return answers.Answer(found)

    def fetch(self, ids: Union[str, Iterable[str]], *, timeout: Optional[float] = None) -> list[dict[str, Any]]:
        """The payload of items, with `id` added, in the order of the ids. Raises NotFound with all ids that are unknown."""
        found: list[dict[str, Any]] = []
        for some in _parts(_strings(ids)):
            request = messages.FetchRequest(collection=self.name, ids=some, reply_bytes_max=REPLY_BYTES_MAX)
            response = self._client.call("LookupService/Fetch", request, messages.FetchResponse, timeout)
            for item in response.items:
                found.append({"id": item.id, **{name: answers.value_of(value) for name, value in item.payload.items()}})
        return found

    def pages(self, query: Any, k: int = 10, **options: Any) -> Iterator[answers.Answer]:
        """The answers to one vector, or to several, page after page of k hits, all from one content of the collection."""
        matrix = vectors.matrix_of(query)
        timeout, shared = self._options(k, options)
        shared.paged = True
        while True:
            response = self._search(vectors.queries_of(matrix), shared, timeout)
            yield answers.Answer([response])
            if not response.next_page_token:
                return
            shared.page_token = response.next_page_token

    def _search(self, queries: bytes, options: Any, timeout: Optional[float]) -> Any:
        request = messages.SearchRequest(collection=self.name, options=options).SerializeToString() + queries
        return self._client.call("SearchService/Search", request, messages.SearchResponse, timeout)

    @staticmethod
    def _options(k: int, given: Mapping[str, Any]) -> tuple[Optional[float], Any]:
        options = dict(given)
        timeout = options.pop("timeout", None)
        payload: Payload = options.pop("payload", False)
        diversity = options.pop("diversity", None)
        allow_ids = options.pop("allow_ids", None)
        shared = messages.SearchOptions(k=k, layout=_LAYOUT_COLUMNS, reply_bytes_max=REPLY_BYTES_MAX)
        if options.pop("bulk", False):
            shared.priority = 2
        if isinstance(payload, bool):
            shared.payload.selection = _SELECTION_ALL if payload else _SELECTION_NONE
        else:
            shared.payload.fields.extend(_strings(payload))
        if diversity is not None:
            setattr(shared.diversity, "lambda", diversity)
        if allow_ids is not None:
            shared.allow_ids.SetInParent()
            shared.allow_ids.ids.extend(_strings(allow_ids))
        for name in ("filter", "offset", "score_threshold", "with_vectors", "with_rows", "partial"):
            value = options.pop(name, None)
            if value is not None:
                setattr(shared, name, value)
        shared.exclude_ids.extend(_strings(options.pop("exclude_ids", None) or ()))
        if options:
            raise TypeError(f"no such option: {', '.join(sorted(options))}")
        return timeout, shared


def _strings(values: Union[str, Iterable[Any]]) -> list[str]:
    """Ids as texts: integers, also NumPy's, are written in digits."""
    if isinstance(values, str):
        return [values]
    texts = []
    for value in values:
        if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
            raise errors.InvalidRequest(f"{value!r} is no id")
        texts.append(value if isinstance(value, str) else str(int(value)) if hasattr(value, "__int__") else str(value))
    return texts


def _parts(values: list[str]) -> Iterator[list[str]]:
    for begin in range(0, len(values), QUERIES_PER_CALL_MAX):
        yield values[begin:begin + QUERIES_PER_CALL_MAX]
