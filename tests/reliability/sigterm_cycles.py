#!/usr/bin/python3
"""Two servers take turns to stop by SIGTERM and to start again, under the load of clients that know both.

    sigterm_cycles.py SIMILE FILMS STUBS_DIR [--cycles 200] [--drain-delay SECONDS] [--json FILE]

The clients are gRPC's own with round robin and health checks by service config. One also retries by it, one does not retry at all,
gRPC's transparent retries included, and one comes anew for each call. No call of theirs may fail. Each server that stops must say
so by GOAWAY, log a clean stop and end with 0, also while a reply is not read (every tenth cycle).
"""

import contextlib
import pathlib
import sys
import tempfile
import time

from command_line import parse, parser_of

parser = parser_of(__doc__)
parser.add_argument("--cycles", type=int, default=200, help="default %(default)s")
parser.add_argument("--drain-delay", type=float, metavar="SECONDS", help="limits.drain_delay; default the server's own")
ARGUMENTS = parse(parser)

import film_calls
from callers import Callers, Newcomers
from cycle_report import Figure, Report, exactly, spread
from film_calls import FilmCalls
from http2_peer import Http2Peer
from server_program import ServerProgram, message_of
from servers import await_true

THREADS, THREADS_WITHOUT_RETRIES = 6, 3
NEWCOMER_SECONDS = 0.02
UNREAD_EVERY = 10
DELAY_SECONDS = 0.1 if ARGUMENTS.drain_delay is None else ARGUMENTS.drain_delay
DRAIN_SECONDS_MAX = DELAY_SECONDS + 5  # limits.drain_timeout
CUT_SECONDS_MAX = DRAIN_SECONDS_MAX + 1  # and the end of the process
STOPPED, STOPPED_BY_CUT = "stopped", "stopped; calls that took too long were cut off"  # the last line of the log
CALLS_TO_RETURN = 20  # more than there are threads
PATIENCE_SECONDS = 60
CALL_COUNT = "rpc_server_call_duration_seconds_count"


class Cycles:
    def __init__(self, calls: FilmCalls):
        self._calls = calls
        self._servers: list[ServerProgram] = []
        self._clients: list[Callers] = []  # of these the newcomers last
        self._drains: list[float] = []  # how long the stops took
        self._cuts: list[float] = []
        self._made_during = self._goaways = self._clean_exits = self._clean_logs = 0
        self._failures: list[str] = []

    def run(self, count: int) -> None:
        with contextlib.ExitStack() as stack:
            home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            flags = ["--collection", f"films={ARGUMENTS.films}"]
            delay = {"SIMILE_LIMITS_DRAIN_DELAY": f"{1_000 * DELAY_SECONDS:.0f}"} if ARGUMENTS.drain_delay is not None else {}
            self._servers = [stack.enter_context(ServerProgram(ARGUMENTS.simile, flags, home, **delay)) for _ in range(2)]
            for server in self._servers:
                server.start_and_await()
            addresses = [server.address for server in self._servers]
            self._clients = [stack.enter_context(client) for client in (
                Callers(self._calls, addresses, THREADS),
                Callers(self._calls, addresses, THREADS_WITHOUT_RETRIES, retries=False),
                Newcomers(self._calls, addresses, NEWCOMER_SECONDS))]
            for number in range(count):
                self._cycle(number)
            stack.pop_all().close()

    def _cycle(self, number: int) -> None:
        server = self._servers[number % 2]
        self._await_both()
        unread = number % UNREAD_EVERY == UNREAD_EVERY // 2
        with Http2Peer(server.address) as peer:
            peer.await_settings(PATIENCE_SECONDS)
            if unread:
                peer.call(film_calls.SEARCH, film_calls.large_reply_request())
                peer.await_answer(PATIENCE_SECONDS)
            made = self._made()
            began = time.monotonic()
            server.process.terminate()
            status = server.await_exit(PATIENCE_SECONDS)
            seconds = time.monotonic() - began
            self._made_during += self._made() - made
            peer.await_end(PATIENCE_SECONDS)
            self._goaways += any(error == 0 for _, error in peer.goaways)
        (self._cuts if unread else self._drains).append(seconds)
        last_message = message_of(server.log[-1])
        is_clean = last_message == (STOPPED_BY_CUT if unread else STOPPED)
        self._clean_exits += status == 0
        self._clean_logs += is_clean
        if status != 0 or not is_clean:
            self._failures.append(f"cycle {number}: the server ended with {status} and said last: {last_message}")
        server.start_and_await(PATIENCE_SECONDS)

    def _made(self) -> int:
        return sum(client.made for client in self._clients)

    def _await_both(self) -> None:
        """Until each of the two lasting clients calls both servers while no other client begins a call."""
        for client in self._clients:
            client.allowed.clear()
        for client in self._clients[:-1]:
            client.allowed.set()
            for server in self._servers:
                before = server.metric(CALL_COUNT)
                await_true(lambda: server.metric(CALL_COUNT) >= before + CALLS_TO_RETURN, PATIENCE_SECONDS,
                           "the client calls both servers")
            client.allowed.clear()
        for client in self._clients:
            client.allowed.set()

    def tell(self, report: Report) -> None:
        for who, client in zip(("the client", "the client without retries", "newcomers"), self._clients):
            report.add(Figure(f"calls of {who}", client.made, at_least=1), exactly(f"calls of {who} that failed", client.failed, 0))
            for failure in client.failures:
                report.fail(f"{who}: {failure}")
        stops = len(self._drains) + len(self._cuts)
        report.add(Figure("calls that ended while a server stopped", self._made_during, at_least=1),
                   exactly("servers that ended with 0", self._clean_exits, stops),
                   exactly("servers that logged a clean stop", self._clean_logs, stops),
                   exactly("servers that sent GOAWAY", self._goaways, stops),
                   *spread("SIGTERM to the end", self._drains, DRAIN_SECONDS_MAX))
        if self._cuts:
            report.add(Figure("of them with a reply that nobody read", len(self._cuts)),
                       *spread("SIGTERM to the end with an unread reply", self._cuts, CUT_SECONDS_MAX))
        for failure in self._failures:
            report.fail(failure)


def main() -> int:
    delay = "" if ARGUMENTS.drain_delay is None else f" --drain-delay {ARGUMENTS.drain_delay:g}"
    report = Report(command=f"sigterm_cycles.py --cycles {ARGUMENTS.cycles}{delay}")
    began = time.monotonic()
    cycles = Cycles(FilmCalls(ARGUMENTS.films))
    cycles.run(ARGUMENTS.cycles)
    cycles.tell(report)
    report.add(Figure("time of all", time.monotonic() - began, "s"))
    print(f"{ARGUMENTS.cycles} stops by SIGTERM under load\n{report.table()}")
    report.write(ARGUMENTS.json)
    return 0 if report.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
