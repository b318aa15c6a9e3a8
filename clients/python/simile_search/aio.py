"""The client for asyncio. Its methods take and return what those of client.py do, whose docstrings say more.

    films = simile_search.aio.connect("localhost:50051").collection("films")
    answer = await films.search(matrix, k=10)
"""

import asyncio
import collections
import os
from collections.abc import AsyncIterator, Iterable
from typing import Any, Optional, TypeVar

import grpc
import grpc.aio

from . import answers, calls, errors, queries
from .connection import Connection, NamedCollection

T = TypeVar("T")


def connect(target: str = "localhost:50051", *, token: Optional[str] = None,
            credentials: Optional[grpc.ChannelCredentials] = None, timeout: float = calls.DEFAULT_TIMEOUT) -> "Client":
    """A client of the server at HOST:PORT; see simile_search.connect. Connects at the first call."""
    return Client(target, token, credentials, timeout)


class Client(Connection):
    """A connection. Each event loop that uses it has a channel of its own. Close it, or use it in an `async with` statement.

    gRPC cannot end the channel of an event loop that has ended: each leaves its connection open until the process ends. A program
    that runs many loops, such as one asyncio.run a request, closes the client in each or uses simile_search.connect.
    """

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. Calls that are made later raise SimileError."""
        for channel in self._take_channels():
            await channel.close()

    def collection(self, name: str) -> "Collection":
        """A collection by its name. Asks nothing of the server."""
        return Collection(self, name)

    async def collections(self, *, timeout: Optional[float] = None) -> list[Any]:
        """What is served: the messages simile.v1.Collection."""
        return await self.run(calls.list_collections(self.seconds(timeout)))

    def _current_owner(self) -> Any:
        return os.getpid(), asyncio.get_running_loop()

    def _is_over(self, owner: Any) -> bool:
        pid, loop = owner
        return bool(pid != os.getpid() or loop.is_closed())

    def _make(self, options: Any) -> grpc.aio.Channel:
        return (grpc.aio.insecure_channel(self._target, options) if self._credentials is None
                else grpc.aio.secure_channel(self._target, self._credentials, options))

    async def run(self, steps: calls.Steps[T]) -> T:
        """Makes the calls of a function of `calls`. Returns what it returns; raises SimileError."""
        try:
            call = next(steps)
            while True:
                try:
                    response = await self._call(call)
                except errors.SimileError as error:
                    call = steps.throw(error)
                else:
                    call = steps.send(response)
        except StopIteration as end:
            value: T = end.value
            return value

    def stream_of(self, call: calls.Call) -> Any:
        """The messages of a streamed call, to be iterated. Raises grpc.RpcError."""
        return self._method(call)(call.request, timeout=call.timeout, metadata=self._metadata())

    async def _call(self, call: calls.Call) -> Any:
        attempts = calls.Attempts(call)
        while True:
            method = self._method(call)
            response = method(call.request, timeout=attempts.seconds_left(), metadata=self._metadata())
            try:
                if not call.streamed:
                    return await response
                last = None
                async for last in response:
                    pass
                return last
            except asyncio.CancelledError:
                if self._closed:  # which cancels the calls under way
                    raise self._closed_error() from None
                raise
            except grpc.RpcError as error:
                wait = attempts.wait_after(error)
            await asyncio.sleep(wait)


class Collection(NamedCollection[Client]):
    """A collection of a client. Searches take the options of client.Collection."""

    async def search(self, queries: Any, k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each query."""
        return await self._client.run(calls.search(self.name, queries, self._options(k, options)))

    async def similar(self, ids: queries.Ids, k: int = 10, **options: Any) -> answers.Answer:
        """The k rows nearest to each item, which is not returned itself."""
        return await self._client.run(calls.similar(self.name, ids, self._options(k, options)))

    async def recommend(self, users: queries.Ids, k: int = 10, *, exclude_seen: bool = False, cold_start: Optional[str] = None,
                        **options: Any) -> answers.Answer:
        """The k rows nearest to each user's profile."""
        return await self._client.run(calls.recommend(self.name, users, exclude_seen, cold_start, self._options(k, options)))

    async def pages(self, queries: Any, k: int = 10, **options: Any) -> AsyncIterator[answers.Answer]:
        """The answers to the queries of one call, page after page of k hits, all of one content."""
        checked = self._options(k, options)
        request = calls.first_page(self.name, queries, checked)
        while True:
            answer = await self._client.run(calls.page(request, checked))
            yield answer
            if not answer.next_page_token:
                return

    async def stream(self, batches: Iterable[Any], k: int = 10, *, in_flight: int = 4,
                     **options: Any) -> AsyncIterator[answers.Answer]:
        """The answer to each batch of queries, in order and of one content, while the next ones are under way."""
        waiting: collections.deque[asyncio.Task[answers.Answer]] = collections.deque()
        try:
            for batch in batches:
                waiting.append(asyncio.create_task(self.search(batch, k, **options)))
                if options.get("expected_snapshot_id") is None and (newest := await waiting[-1]).receipts:
                    options["expected_snapshot_id"] = newest.receipt.snapshot_id
                if len(waiting) >= in_flight:
                    yield await waiting.popleft()
            while waiting:
                yield await waiting.popleft()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def explain(self, query: Any, ids: queries.Ids, k: int = 10, *, exclude_seen: bool = False,
                      cold_start: Optional[str] = None, **options: Any) -> list[calls.Explanation]:
        """Why each item is, or is not, among the k hits of a query."""
        return await self._client.run(calls.explain(self.name, query, ids, exclude_seen, cold_start, self._options(k, options)))

    async def export(self, k: int = 10, *, sources: str = "items", source_filter: str = "", cursor: str = "",
                     exclude_seen: bool = False, **options: Any) -> AsyncIterator[calls.ExportPart]:
        """The k neighbours of every item, or recommendations for every user, in parts, in the order of the loaded files."""
        run = calls.Export(self.name, sources, source_filter, cursor, exclude_seen, self._options(k, options))
        while True:
            try:
                async for response in self._client.stream_of(run.stream()):
                    part = run.part(response)
                    yield part
                    if not part.cursor:
                        return
                run.check_end()
                return
            except grpc.RpcError as error:
                wait = run.wait_after(error)
            await asyncio.sleep(wait)

    async def fetch(self, ids: queries.Ids, *, timeout: Optional[float] = None) -> list[calls.Row]:
        """Items in the order of the ids: `id` and `payload` of each."""
        return await self._client.run(calls.fetch(self.name, ids, self._seconds(timeout)))

    async def lookup(self, text: str, *, field: str = "", limit: int = 20, timeout: Optional[float] = None) -> list[calls.Row]:
        """Items whose look-up fields contain a text, best matches first: `id`, `payload` and `match` of each."""
        return await self._client.run(calls.lookup(self.name, text, field, limit, self._seconds(timeout)))

    async def describe(self, *, timeout: Optional[float] = None) -> Any:
        """What is served: the message simile.v1.Collection."""
        return await self._client.run(calls.describe(self.name, self._seconds(timeout)))

    async def fields(self, *, values: int = 10, timeout: Optional[float] = None) -> list[Any]:
        """The payload fields: messages simile.v1.FieldDescription, with up to so many of their values."""
        return await self._client.run(calls.fields(self.name, values, self._seconds(timeout)))

    async def load(self, folder: str, *, timeout: float = 3600) -> Any:
        """Loads a folder of the server's data root. Returns the message simile.v1.Collection when it is served."""
        return await self._client.run(calls.change("Load", self.name, timeout, folder=folder))

    async def reload(self, folder: str = "", *, allow_shape_change: bool = False, min_overlap: Optional[float] = None,
                     expected_snapshot_id: str = "", timeout: float = 3600) -> Any:
        """Loads new content, which is served when it is ready. Returns the message simile.v1.Collection."""
        return await self._client.run(calls.change("Reload", self.name, timeout, folder=folder, min_overlap=min_overlap,
                                                   allow_shape_change=allow_shape_change, expected_snapshot_id=expected_snapshot_id))

    async def rollback(self, *, allow_shape_change: bool = False, expected_snapshot_id: str = "", timeout: float = 3600) -> Any:
        """Serves the content before the last reload again. Returns the message simile.v1.Collection."""
        return await self._client.run(calls.change("Rollback", self.name, timeout, allow_shape_change=allow_shape_change,
                                                   expected_snapshot_id=expected_snapshot_id))

    async def unload(self, *, expected_snapshot_id: str = "", timeout: Optional[float] = None) -> None:
        """Ends the serving of the collection."""
        await self._client.run(calls.unload(self.name, expected_snapshot_id, self._seconds(timeout)))
