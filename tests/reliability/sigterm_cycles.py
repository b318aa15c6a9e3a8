#!/usr/bin/python3
"""Two servers take turns to stop by SIGTERM and to start again, under the load of clients that know both.

    sigterm_cycles.py SIMILE FILMS STUBS_DIR [--cycles 200] [--json FILE]

The client is gRPC's own with round robin and retries by service config. No call of its may fail, nor one of a client that comes
meanwhile. Each server that stops must say so by GOAWAY, log a clean stop and end with 0, also while a reply is not read (every
tenth cycle). Beside it calls a client without retries, gRPC's transparent ones included. As many stops each:

    at once            as by default: what the server refuses from SIGTERM on until that client has read NOT_SERVING is counted,
                       and nothing else may fail
    after drain_delay  of a second: no call of that client may fail either
"""

import contextlib
import json
import pathlib
import sys
import tempfile
import time

from command_line import parse, parser_of

parser = parser_of(__doc__)
parser.add_argument("--cycles", type=int, default=200, help="default %(default)s")
ARGUMENTS = parse(parser)

import film_calls
from callers import Callers, CallersWithoutRetries, Newcomers
from cycle_report import Figure, Report, exactly, spread
from film_calls import FilmCalls
from http2_peer import Http2Peer
from server_program import ServerProgram
from servers import await_true

THREADS, THREADS_WITHOUT_RETRIES = 6, 3
NEWCOMER_SECONDS = 0.02
UNREAD_EVERY = 10
DRAIN_DELAY_SECONDS = 1
DRAIN_SECONDS_MAX = 5  # limits.drain_timeout
CUT_SECONDS_MAX = DRAIN_SECONDS_MAX + 1  # and the end of the process
STOPPED, STOPPED_BY_CUT = "stopped", "stopped; calls that took too long were cut off"  # the last line of the log
CALLS_TO_RETURN = 20  # more than there are threads
PATIENCE_SECONDS = 60
CALL_COUNT = "rpc_server_call_duration_seconds_count"


class Cycles:
    """Stops with one drain_delay."""

    def __init__(self, calls: FilmCalls, drain_delay_seconds: float):
        self._calls, self._drain_delay_seconds = calls, drain_delay_seconds
        self._servers: list[ServerProgram] = []
        self._clients: list[Callers] = []  # of these the newcomers last
        self._stops: list[float] = []  # when SIGTERM was sent
        self._drains: list[float] = []  # how long the stops took
        self._cuts: list[float] = []
        self._made_during = self._goaways = self._clean_exits = self._clean_logs = 0
        self._failures: list[str] = []

    def run(self, count: int) -> None:
        with contextlib.ExitStack() as stack:
            home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            flags = ["--collection", f"films={ARGUMENTS.films}"]
            delay = {"SIMILE_LIMITS_DRAIN_DELAY": f"{1_000 * self._drain_delay_seconds:.0f}"}
            self._servers = [stack.enter_context(ServerProgram(ARGUMENTS.simile, flags, home, **delay)) for _ in range(2)]
            for server in self._servers:
                server.start_and_await()
            addresses = [server.address for server in self._servers]
            self._clients = [stack.enter_context(client) for client in (
                Callers(self._calls, addresses, THREADS),
                CallersWithoutRetries(self._calls, addresses, THREADS_WITHOUT_RETRIES),
                Newcomers(self._calls, addresses, NEWCOMER_SECONDS))]
            for number in range(count):
                self._cycle(number)
            stack.pop_all().close()

    def _cycle(self, number: int) -> None:
        server = self._servers[number % 2]
        self._await_both()
        unread = self._drain_delay_seconds == 0 and number % UNREAD_EVERY == UNREAD_EVERY // 2
        with Http2Peer(server.address) as peer:
            peer.await_settings(PATIENCE_SECONDS)
            if unread:
                peer.call(film_calls.SEARCH, film_calls.large_reply_request())
                peer.await_answer(PATIENCE_SECONDS)
            made = self._made()
            self._stops.append(time.monotonic())
            server.process.terminate()
            status = server.await_exit(PATIENCE_SECONDS)
            seconds = time.monotonic() - self._stops[-1]
            self._made_during += self._made() - made
            peer.await_end(PATIENCE_SECONDS)
            self._goaways += any(error == 0 for _, error in peer.goaways)
        (self._cuts if unread else self._drains).append(seconds)
        last_message = json.loads(server.log[-1])["message"]
        is_clean = last_message == (STOPPED_BY_CUT if unread else STOPPED)
        self._clean_exits += status == 0
        self._clean_logs += is_clean
        if status != 0 or not is_clean:
            self._failures.append(f"cycle {number}: the server ended with {status} and said last: {last_message}")
        server.start_and_await(PATIENCE_SECONDS)

    def _made(self) -> int:
        return sum(client.made for client in self._clients)

    def _await_both(self) -> None:
        """Until either client that stays calls both servers, while the others are silent."""
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
        delayed = f", drain_delay {DRAIN_DELAY_SECONDS} s" if self._drain_delay_seconds else ""
        clients = ("the client", "that failed"), ("the client without retries", "that failed otherwise"), ("newcomers", "that failed")
        for (who, failed), client in zip(clients, self._clients):
            report.add(Figure(f"calls of {who}{delayed}", client.made, at_least=1),
                       exactly(f"calls of {who} {failed}{delayed}", client.failed, 0))
            for failure in client.failures:
                report.fail(f"{who}{delayed}: {failure}")
        refused = [at - max(stop for stop in self._stops if stop <= at) for at in self._clients[1].refused_at]
        report.add(Figure(f"calls of the client without retries that were refused (STOPPING){delayed}", len(refused),
                          at_most=0 if self._drain_delay_seconds else None))
        if refused:
            report.add(Figure(f"SIGTERM to a refusal: longest{delayed}", max(refused), "s"))
        stops = len(self._stops)
        report.add(Figure(f"calls that ended while a server stopped{delayed}", self._made_during, at_least=1),
                   exactly(f"servers that ended with 0{delayed}", self._clean_exits, stops),
                   exactly(f"servers that logged a clean stop{delayed}", self._clean_logs, stops),
                   exactly(f"servers that sent GOAWAY{delayed}", self._goaways, stops),
                   *spread("SIGTERM to the end" + delayed, self._drains, self._drain_delay_seconds + DRAIN_SECONDS_MAX))
        if self._cuts:
            report.add(Figure("of them with a reply that nobody read", len(self._cuts)),
                       *spread("SIGTERM to the end with an unread reply", self._cuts, CUT_SECONDS_MAX))
        for failure in self._failures:
            report.fail(failure)


def main() -> int:
    report = Report(command=f"sigterm_cycles.py --cycles {ARGUMENTS.cycles}")
    began = time.monotonic()
    for drain_delay_seconds in (0, DRAIN_DELAY_SECONDS):
        cycles = Cycles(FilmCalls(ARGUMENTS.films), drain_delay_seconds)
        cycles.run(ARGUMENTS.cycles)
        cycles.tell(report)
    report.add(Figure("time of all", time.monotonic() - began, "s"))
    print(f"{ARGUMENTS.cycles} stops by SIGTERM under load at once, and as many after drain_delay\n{report.table()}")
    report.write(ARGUMENTS.json)
    return 0 if report.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
