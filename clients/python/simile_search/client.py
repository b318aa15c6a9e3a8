"""The client for threads."""

import collections
import concurrent.futures
import time
from collections.abc import Iterable, Iterator
from typing import Any, Optional, TypeVar

import grpc

from . import answers, calls, errors, queries
from .connection import Connection, NamedCollection

T = TypeVar("T")


def connect(target: str = "localhost:50051", *, token: Optional[str] = None,
            credentials: Optional[grpc.ChannelCredentials] = None, timeout: float = calls.DEFAULT_TIMEOUT) -> "Client":
    """A client of the server at HOST:PORT. Connects at the first call.

    token        sent as `authorization: Bearer TOKEN`
    credentials  of grpc.ssl_channel_credentials; None: without encryption
    timeout      seconds for each search, waiting for the connection and for a busy server included
    """
    return Client(target, token, credentials, timeout)


class Client(Connection):
    """A connection. Safe to use from several threads. Close it, or use it in a `with` statement.

    A process that is forked before the first call by gRPC opens a channel of its own. After that call gRPC cannot go on in a forked
    process, unless GRPC_ENABLE_FORK_SUPPORT=1 was set before Python started: calls there say so. A client without credentials can
    be pickled.
    """

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. Calls that are made later raise SimileError."""
        for channel in self._take_channels():
            channel.close()

    def collection(self, name: str) -> "Collection":
        """A collection by its name. Asks nothing of the server."""
        return Collection(self, name)

    def collections(self, *, timeout: Optional[float] = None) -> list[Any]:
        """What is served: the messages simile.v1.Collection."""
        return self.run(calls.list_collections(self.seconds(timeout)))

    def _make(self, options: Any) -> grpc.Channel:
        return (grpc.insecure_channel(self._target, options) if self._credentials is None
                else grpc.secure_channel(self._target, self._credentials, options))

    def run(self, steps: calls.Steps[T]) -> T:
        """Makes the calls of a function of `calls`. Returns what it returns; raises SimileError."""
        try:
            call = next(steps)
            while True:
                try:
                    response = self._call(call)
                except errors.SimileError as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(response)
        except StopIteration as end:
            value: T = end.value
            return value

    def stream_of(self, call: calls.Call) -> Iterator[Any]:
        """The messages of a streamed call. Raises grpc.RpcError."""
        return self._method(call)(call.request, timeout=call.timeout, metadata=self._metadata())  # type: ignore[no-any-return]

    def _call(self, call: calls.Call) -> Any:
        attempts = calls.Attempts(call)
        while True:
            method = self._method(call)
            try:
                response = method(call.request, timeout=attempts.seconds_left(), metadata=self._metadata())
                return next(iter(collections.deque(response, 1)), None) if call.streamed else response
            except ValueError:  # gRPC's, of a channel that was closed meanwhile
                if self._closed:
                    raise self._closed_error() from None
                raise
            except grpc.RpcError as error:
                time.sleep(attempts.wait_after(error))


class Collection(NamedCollection[Client]):
    """A collection of a client. Its searches take these options, each None or left out for the server's default:

    filter           rows that may be returned: 'genres:"Sci-Fi" AND year >= 1990' (docs/filters.md)
    required_filter  rows that exist for the call
    offset           best hits skipped
    score_threshold  hits with a lower score are left out
    exclude_ids      items never returned
    allow_ids        the only items that may be returned
    payload          True for all fields of each hit, names for some; default none
    with_vectors, with_rows  return the stored vector, the row of each hit
    diversity        0..1, where 1 ranks by score alone, or a Diversity
    group_by         a field, or a GroupBy: the best k groups of rows that share its value (Answer.groups)
    as_stored        the vectors are rows of the collection as the server returned them
    partial          a query that cannot be answered has its error in Answer.errors, and the others are answered
    bulk             runs on what other calls leave of the device
    expected_snapshot_id  NotReady unless this content is served (Receipt.snapshot_id)
    queries_per_call the most queries of one call; default as many as a server takes
    timeout          seconds for all calls of the search, in place of the client's
    """

    def search(self, queries: Any, k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each query.

        queries  [queries, dim] or [dim] of any real dtype and most libraries (vectors.matrix_of), or one or several Query, Examples,
                 Blend and Item objects
        options  filter, payload, group_by and others: help(simile_search.Collection)
        More than a call takes are sent in several calls; all come back as one answer, of one content of the collection.
        Raises InvalidVectors before anything is sent; SimileError.
        """
        return self._client.run(calls.search(self.name, queries, self._options(k, options)))

    def similar(self, ids: queries.Ids, k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each item, which is not returned itself."""
        return self._client.run(calls.similar(self.name, ids, self._options(k, options)))

    def recommend(self, users: queries.Ids, k: int = 10, *, exclude_seen: bool = False, cold_start: Optional[str] = None,
                  **options: Any) -> answers.Answer:
        """The k rows nearest to each user's profile.

        exclude_seen  without what the user has seen
        cold_start    "newest" or "popular": rows for a user without a profile, who is NotFound without it
        """
        return self._client.run(calls.recommend(self.name, users, exclude_seen, cold_start, self._options(k, options)))

    def pages(self, queries: Any, k: int = 10, **options: Any) -> Iterator[answers.Answer]:
        """The answers to the queries of one call, page after page of k hits, all of one content.

        `timeout` is that of each page.
        """
        checked = self._options(k, options)
        request = calls.first_page(self.name, queries, checked)
        while True:
            answer = self._client.run(calls.page(request, checked))
            yield answer
            if not answer.next_page_token:
                return

    def stream(self, batches: Iterable[Any], k: int = 10, *, in_flight: int = 4, **options: Any) -> Iterator[answers.Answer]:
        """The answer to each batch of queries, in order and of one content, while the next ones are under way.

        batches    each as search takes it; read as answers are taken
        in_flight  batches asked for at a time, by as many threads
        `timeout` is that of each batch. bulk=True leaves the device to other callers.
        """
        with concurrent.futures.ThreadPoolExecutor(in_flight) as pool:
            waiting: collections.deque[concurrent.futures.Future[answers.Answer]] = collections.deque()
            try:
                for batch in batches:
                    waiting.append(pool.submit(self.search, batch, k, **options))
                    if options.get("expected_snapshot_id") is None and waiting[-1].result().receipts:
                        options["expected_snapshot_id"] = waiting[-1].result().receipt.snapshot_id
                    if len(waiting) >= in_flight:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def explain(self, query: Any, ids: queries.Ids, k: int = 10, *, exclude_seen: bool = False, cold_start: Optional[str] = None,
                **options: Any) -> list[calls.Explanation]:
        """Why each item is, or is not, among the k hits of a query. The server scores every row.

        query    one, as search takes it, or an item's id; Query(user=...) for recommend
        options  those of the search
        Costs one scan of the collection for every 100 ids, and for each vector of the query.
        """
        return self._client.run(calls.explain(self.name, query, ids, exclude_seen, cold_start, self._options(k, options)))

    def export(self, k: int = 10, *, sources: str = "items", source_filter: str = "", cursor: str = "", exclude_seen: bool = False,
               **options: Any) -> Iterator[calls.ExportPart]:
        """The k neighbours of every item, or recommendations for every user, in parts, in the order of the loaded files.

        sources        "items" or "users"
        source_filter  only items that pass
        cursor         of the last part that was saved: the export resumes after it
        options        those of search
        All parts are of one content. A stream that ends early is resumed: the server stopped, or was busy. `timeout` is how long
        that may take until the next part. exporting.write_export writes a file.
        """
        run = calls.Export(self.name, sources, source_filter, cursor, exclude_seen, self._options(k, options))
        while True:
            try:
                for response in self._client.stream_of(run.stream()):
                    part = run.part(response)
                    yield part
                    if not part.cursor:
                        return
                run.check_end()
                return
            except grpc.RpcError as error:
                wait = run.wait_after(error)
            time.sleep(wait)

    def fetch(self, ids: queries.Ids, *, timeout: Optional[float] = None) -> list[calls.Row]:
        """Items in the order of the ids: `id` and `payload` of each. Raises NotFound for unknown ids."""
        return self._client.run(calls.fetch(self.name, ids, self._seconds(timeout)))

    def lookup(self, text: str, *, field: str = "", limit: int = 20, timeout: Optional[float] = None) -> list[calls.Row]:
        """Items whose look-up fields contain a text, best matches first: `id`, `payload` and `match` of each.

        field  one of Collection.lookup_fields; default all
        """
        return self._client.run(calls.lookup(self.name, text, field, limit, self._seconds(timeout)))

    def describe(self, *, timeout: Optional[float] = None) -> Any:
        """What is served: the message simile.v1.Collection."""
        return self._client.run(calls.describe(self.name, self._seconds(timeout)))

    def fields(self, *, values: int = 10, timeout: Optional[float] = None) -> list[Any]:
        """The payload fields: messages simile.v1.FieldDescription, with up to so many of their values."""
        return self._client.run(calls.fields(self.name, values, self._seconds(timeout)))

    def load(self, folder: str, *, timeout: float = 3600) -> Any:
        """Loads a folder of the server's data root. Returns the message simile.v1.Collection when it is served."""
        return self._client.run(calls.change("Load", self.name, timeout, folder=folder))

    def reload(self, folder: str = "", *, allow_shape_change: bool = False, min_overlap: Optional[float] = None,
               expected_snapshot_id: str = "", timeout: float = 3600) -> Any:
        """Loads new content, which is served when it is ready. Returns the message simile.v1.Collection.

        folder              of the server's data root; empty: that which is served
        allow_shape_change  accept another dimension, metric or type of a field
        min_overlap         0..1: how much of the answers must stay (ReloadCollectionRequest)
        """
        return self._client.run(calls.change("Reload", self.name, timeout, folder=folder, allow_shape_change=allow_shape_change,
                                             min_overlap=min_overlap, expected_snapshot_id=expected_snapshot_id))

    def rollback(self, *, allow_shape_change: bool = False, expected_snapshot_id: str = "", timeout: float = 3600) -> Any:
        """Serves the content before the last reload again. Returns the message simile.v1.Collection."""
        return self._client.run(calls.change("Rollback", self.name, timeout, allow_shape_change=allow_shape_change,
                                             expected_snapshot_id=expected_snapshot_id))

    def unload(self, *, expected_snapshot_id: str = "", timeout: Optional[float] = None) -> None:
        """Ends the serving of the collection."""
        self._client.run(calls.unload(self.name, expected_snapshot_id, self._seconds(timeout)))
