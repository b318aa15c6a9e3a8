"""Threads that call without a pause, and keep what failed."""

import itertools
import threading

import grpc

import film_calls
from film_calls import FilmCalls, WrongAnswer


class Callers:
    """Threads over one channel, each with a call under way at all times that are allowed, until the end of the block.

    failures_expected  calls may fail, as when their only server is killed; wrong answers may not come in any case
    retries            as film_calls.channel
    """

    def __init__(self, calls: FilmCalls, addresses: list[str], threads: int, failures_expected: bool = False, retries: bool = True):
        self._calls, self._addresses, self._retries = calls, addresses, retries
        self._failures_expected = failures_expected
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self.allowed = threading.Event()
        self.allowed.set()
        self.made = 0
        self.failed = 0
        self.failures: list[str] = []  # the first ones; wrong answers too
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def __enter__(self):
        self._channel = self._open()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self.allowed.set()
        if self._failures_expected:  # nobody waits for what a killed server owes
            self._channel.close()
        for thread in self._threads:
            thread.join()
        self._channel.close()

    def _open(self) -> grpc.Channel:
        return film_calls.channel(*self._addresses, retries=self._retries)

    def _run(self) -> None:
        while self.allowed.wait() and not self._ended.is_set():
            number = next(self._numbers)
            try:
                self.count(attempt(self._calls, self._channel, number, self._failures_expected))
            except ValueError:  # of a channel that is closed
                if not self._ended.is_set():
                    raise

    def count(self, failure: str) -> None:
        with self._lock:
            self.made += 1
            if failure:
                self.failed += 1
                self.failures = [*self.failures, failure][:20]


def attempt(calls: FilmCalls, channel: grpc.Channel, number: int, failures_expected: bool = False) -> str:
    """Makes the call of this number; returns why it failed, empty when it did not."""
    kind = calls.kinds[number % len(calls.kinds)]
    try:
        kind.call(channel, number)
    except grpc.RpcError as error:
        return "" if failures_expected else f"{kind.name}: {error.code().name}: {error.details()}"
    except WrongAnswer as error:
        return f"{kind.name}: a wrong answer: {error}"
    return ""


class Newcomers(Callers):
    """A thread that makes a new channel for each call, as a client that has just started."""

    def __init__(self, calls: FilmCalls, addresses: list[str], interval_seconds: float):
        super().__init__(calls, addresses, threads=1)
        self._interval_seconds = interval_seconds

    def _run(self) -> None:
        while self.allowed.wait() and not self._ended.wait(self._interval_seconds):
            with self._open() as channel:
                self.count(attempt(self._calls, channel, next(self._numbers)))
