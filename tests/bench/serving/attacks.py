"""Callers that a server must withstand, and what looks at it meanwhile."""

import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import random
import signal
import threading
import time
from typing import Callable

import grpc
import numpy as np

from servers import SEARCH, Failed

HEALTH = "/grpc.health.v1.Health/Check"
LOOKUP = "/simile.v1.LookupService/Lookup"
NUMBER = "%number%"  # in a request: another number in each call, so that nothing is answered from a cache
FILM = "feeding-sea-lions-1900"
REPLY_BYTES_MAX = 64 << 20
REFUSED_PAUSE_S = 0.005
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]


def channel(address: str, authority: pathlib.Path | None = None) -> grpc.Channel:
    """With a connection of its own; over TLS when an authority is given, which has signed the server's certificate."""
    if authority is None:
        return grpc.insecure_channel(address, options=OPTIONS)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(authority.read_bytes()), options=OPTIONS)


def search(collection: str, queries: int, **options):
    from simile.v1 import search_pb2
    request = search_pb2.SearchRequest(collection=collection, options=search_pb2.SearchOptions(**options))
    for _ in range(queries):
        request.queries.add(id=FILM if collection == "films" else "1")
    return request


def plain(collection: str) -> bytes:
    return search(collection, 1, payload={"selection": 2}).SerializeToString()


def filters() -> bytes:
    """As many looks at every row as a call may have, none of which passes."""
    request = search("films", 2)
    for number, query in enumerate(request.queries):
        query.filter = " OR ".join(f'title:"{NUMBER}-{number}-{look}"' for look in range(64))
    return request.SerializeToString()


def diversity() -> bytes:
    """As many comparisons of rows as a call may have."""
    return search("films", 2, k=1_000, diversity={"candidates": 1_000}).SerializeToString()


def large_reply() -> bytes:
    """About 55 MiB: every film with its vector, six times."""
    return search("films", 6, k=10_000, with_vectors=True, reply_bytes_max=REPLY_BYTES_MAX).SerializeToString()


def lookup() -> bytes:
    from simile.v1 import lookup_pb2
    return lookup_pb2.LookupRequest(collection="films", text="e", limit=1_000, with_vectors=True).SerializeToString()


def exclusions(collection: str, ids: list[str], k: int) -> bytes:
    """26 queries that share a list of 10,000 ids."""
    return search(collection, 26, k=k, exclude_ids=ids, reply_bytes_max=REPLY_BYTES_MAX).SerializeToString()


def check_taken(address: str, requests: list[tuple[str, bytes]]) -> None:
    """Raises Failed for a request that is refused unseen: it would hold up nobody."""
    with channel(address) as connection:
        for path, request in requests:
            call = connection.unary_unary(path).future(request, timeout=60)
            if call.code() == grpc.StatusCode.INVALID_ARGUMENT:
                raise Failed(f"{path} is refused: {call.details()}")


def call_in_loop(address: str, path: str, request: bytes, in_flight: int, answered, refused) -> None:
    """What an attacking process does: calls over one connection, each as soon as another has ended."""
    def loop(call) -> None:
        while True:
            try:
                call(request.replace(NUMBER.encode(), f"{random.randrange(10 ** 8):08d}".encode()), timeout=10)
                with answered.get_lock():
                    answered.value += 1
            except grpc.RpcError:
                with refused.get_lock():
                    refused.value += 1
                pause.wait(REFUSED_PAUSE_S)

    pause = threading.Event()
    call = channel(address).unary_unary(path)
    threads = [threading.Thread(target=loop, args=(call,)) for _ in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Attack:
    """Processes that call in a loop until the end of the block.

    clients  (path, request, calls in flight) of each process
    """

    def __init__(self, address: str, clients: list[tuple[str, bytes, int]]):
        context = multiprocessing.get_context("spawn")
        self.answered, self.refused = (context.Value(ctypes.c_int64) for _ in range(2))
        self._processes = [context.Process(target=call_in_loop, args=(address, *client, self.answered, self.refused), daemon=True)
                           for client in clients]

    def __enter__(self):
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *error):
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def stop(self) -> None:
        """From now on they read nothing, and keep their connections."""
        for process in self._processes:
            os.kill(process.pid, signal.SIGSTOP)


class Probe:
    """Repeats a call during the block, and keeps how long each took. A call that fails counts with its time, too."""

    def __init__(self, call: Callable[[], None], interval_s: float):
        self._call, self._interval_s = call, interval_s
        self.latencies_ms: list[float] = []
        self.failures: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self._thread.join()

    def p99_ms(self) -> float:
        return float(np.percentile(self.latencies_ms, 99))

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            begin = time.monotonic()
            try:
                self._call()
            except grpc.RpcError as error:
                self.failures.append(f"{error.code().name}: {error.details()}")
            self.latencies_ms.append((time.monotonic() - begin) * 1e3)


@contextlib.contextmanager
def probing(address: str, path: str, request: bytes, interval_s: float, timeout_s: float = 2, authority: pathlib.Path | None = None):
    """A probe over one connection."""
    with channel(address, authority) as connection:
        call = connection.unary_unary(path)
        with contextlib.suppress(grpc.RpcError):
            call(request, timeout=timeout_s)  # connects
        with Probe(lambda: call(request, timeout=timeout_s), interval_s) as probe:
            yield probe


def connecting(address: str, interval_s: float, timeout_s: float = 2) -> Probe:
    """A probe that makes a new connection for each health call."""
    def connect() -> None:
        with channel(address) as connection:
            connection.unary_unary(HEALTH)(b"", timeout=timeout_s)
    return Probe(connect, interval_s)


def resident_mib(pid: int) -> float:
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2 ** 20


@contextlib.contextmanager
def unread_replies(address: str, request: bytes, calls: int):
    """Calls whose replies nobody reads, two over each connection."""
    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(channel(address)) for _ in range((calls + 1) // 2)]
        under_way = [channels[number // 2].unary_stream(SEARCH)(request, timeout=120) for number in range(calls)]
        yield
        del under_way  # kept until here: calls end when nobody has them
