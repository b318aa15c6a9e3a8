#!/usr/bin/python3
"""Two servers take turns to stop by SIGTERM and to start again, under the load of a client that knows both.

    sigterm_cycles.py SIMILE FILMS STUBS_DIR [--cycles 200] [--json FILE]

The client is gRPC's own with round robin and retries by service config. No call of its may fail, nor one of a client that comes
meanwhile. Each server that stops must say so by GOAWAY and end with 0, also while a reply is not read (every tenth cycle).
"""

import contextlib
import pathlib
import sys
import tempfile
import time

from command_line import parse, parser_of

parser = parser_of(__doc__)
parser.add_argument("--cycles", type=int, default=200, help="default %(default)s")
ARGUMENTS = parse(parser)

import film_calls
from callers import Callers, Newcomers
from cycle_report import Figure, Report, exactly, spread
from film_calls import FilmCalls
from http2_peer import Http2Peer
from server_program import ServerProgram
from servers import await_true

THREADS = 6
NEWCOMER_SECONDS = 0.02
UNREAD_EVERY = 10
DRAIN_SECONDS_MAX = 5  # limits.drain_timeout
CUT_SECONDS_MAX = DRAIN_SECONDS_MAX + 1  # and the end of the process
CALLS_TO_RETURN = 20
PATIENCE_SECONDS = 60
CALL_COUNT = "rpc_server_call_duration_seconds_count"


class Cycles:
    def __init__(self, calls: FilmCalls, report: Report):
        self._report = report
        self._servers: list[ServerProgram] = []
        self._calls = calls
        self.drains: list[float] = []
        self.cuts: list[float] = []
        self.made_during = self.goaways = self.clean_exits = 0

    def run(self, count: int) -> None:
        with contextlib.ExitStack() as stack:
            home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            flags = ["--collection", f"films={ARGUMENTS.films}"]
            self._servers = [stack.enter_context(ServerProgram(ARGUMENTS.simile, flags, home)) for _ in range(2)]
            for server in self._servers:
                server.start_and_await()
            addresses = [server.address for server in self._servers]
            callers = stack.enter_context(Callers(self._calls, addresses, THREADS))
            newcomers = stack.enter_context(Newcomers(self._calls, addresses, NEWCOMER_SECONDS))
            for number in range(count):
                self._cycle(number, callers, newcomers)
            stack.pop_all().close()
        for who, clients in (("the client", callers), ("newcomers", newcomers)):
            self._report.add(Figure(f"calls of {who}", clients.made, at_least=1),
                             exactly(f"calls of {who} that failed", clients.failed, 0))
            for failure in clients.failures:
                self._report.fail(f"{who}: {failure}")

    def _cycle(self, number: int, callers: Callers, newcomers: Newcomers) -> None:
        server = self._servers[number % 2]
        self._await_both(newcomers)
        unread = number % UNREAD_EVERY == UNREAD_EVERY // 2
        with Http2Peer(server.address) as peer:
            peer.await_settings(PATIENCE_SECONDS)
            if unread:
                peer.call(film_calls.SEARCH, film_calls.large_reply_request())
                peer.await_answer(PATIENCE_SECONDS)
            made = callers.made + newcomers.made
            began = time.monotonic()
            server.process.terminate()
            status = server.await_exit(PATIENCE_SECONDS)
            seconds = time.monotonic() - began
            self.made_during += callers.made + newcomers.made - made
            peer.await_end(PATIENCE_SECONDS)
            self.goaways += any(error == 0 for _, error in peer.goaways)
        (self.cuts if unread else self.drains).append(seconds)
        self.clean_exits += status == 0
        if status != 0:
            self._report.fail(f"cycle {number}: the server ended with {status}: {server.log[-1].strip()}")
        server.start_and_await(PATIENCE_SECONDS)

    def _await_both(self, newcomers: Newcomers) -> None:
        """Until the client calls both servers; newcomers would count as well."""
        newcomers.allowed.clear()
        for server in self._servers:
            before = server.metric(CALL_COUNT)
            await_true(lambda: server.metric(CALL_COUNT) >= before + CALLS_TO_RETURN, PATIENCE_SECONDS,
                       "the client calls both servers")
        newcomers.allowed.set()


def main() -> int:
    report = Report(command=f"sigterm_cycles.py --cycles {ARGUMENTS.cycles}")
    cycles = Cycles(FilmCalls(ARGUMENTS.films), report)
    began = time.monotonic()
    cycles.run(ARGUMENTS.cycles)
    report.add(Figure("calls that ended while a server stopped", cycles.made_during, at_least=1),
               exactly("servers that ended with 0", cycles.clean_exits, ARGUMENTS.cycles),
               exactly("servers that sent GOAWAY", cycles.goaways, ARGUMENTS.cycles),
               *spread("SIGTERM to the end", cycles.drains, DRAIN_SECONDS_MAX))
    if cycles.cuts:
        report.add(Figure("of them with a reply that nobody read", len(cycles.cuts)),
                   *spread("SIGTERM to the end with an unread reply", cycles.cuts, CUT_SECONDS_MAX))
    report.add(Figure("time of all", time.monotonic() - began, "s"))
    print(f"{ARGUMENTS.cycles} stops by SIGTERM under load\n{report.table()}")
    report.write(ARGUMENTS.json)
    return 0 if report.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
