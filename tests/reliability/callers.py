"""Threads that call without a pause, and keep what failed."""

import itertools
import threading

import grpc

import film_calls
from film_calls import FilmCalls, WrongAnswer


class Callers:
    """Threads over one channel, each with a call under way at all times, until the end of the block.

    failures_expected  calls may fail, as when their only server is killed; wrong answers may not come in any case
    """

    def __init__(self, calls: FilmCalls, addresses: list[str], threads: int, failures_expected: bool = False):
        self._calls, self._addresses = calls, addresses
        self._failures_expected = failures_expected
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self.made = 0
        self.failed = 0
        self.failures: list[str] = []  # the first ones; wrong answers too
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def __enter__(self):
        self._channel = film_calls.channel(*self._addresses)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        if self._failures_expected:  # nobody waits for what a killed server owes
            self._channel.close()
        for thread in self._threads:
            thread.join()
        self._channel.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            number = next(self._numbers)
            try:
                self.count(attempt(self._calls, self._channel, number, self._failures_expected))
            except ValueError:  # of a channel that is closed
                if not self._ended.is_set():
                    raise

    def count(self, failure: str | None) -> None:
        with self._lock:
            self.made += 1
            if failure is not None:
                self.failed += 1
                self.failures = [*self.failures, failure][:20]


def attempt(calls: FilmCalls, channel: grpc.Channel, number: int, failures_expected: bool = False) -> str | None:
    """Makes the call of this number; returns why it failed."""
    kind = calls.kinds[number % len(calls.kinds)]
    try:
        kind.call(channel, number)
    except grpc.RpcError as error:
        return None if failures_expected else f"{kind.name}: {error.code().name}: {error.details()}"
    except WrongAnswer as error:
        return f"{kind.name}: a wrong answer: {error}"
    return None


class Newcomers(Callers):
    """A thread that makes a new channel for each call, as a client that has just started. It calls while it is told to."""

    def __init__(self, calls: FilmCalls, addresses: list[str], interval_seconds: float):
        super().__init__(calls, addresses, threads=1)
        self._interval_seconds = interval_seconds
        self.allowed = threading.Event()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_seconds):
            if not self.allowed.is_set():
                continue
            with film_calls.channel(*self._addresses) as channel:
                self.count(attempt(self._calls, channel, next(self._numbers)))
