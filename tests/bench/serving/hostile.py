#!/usr/bin/env python3
"""What hostile and heavy callers do to everyone else, beside their targets: health and plain searches meanwhile, memory and
how it goes back, overload, deadlines, a log that nobody reads. Prints a table.

Needs build/bin/simile, and a Python with grpcio, grpcio-tools and NumPy, such as the virtual environment of run.py:

    rivals/bin/python tests/bench/serving/hostile.py
    rivals/bin/python tests/bench/serving/hostile.py --rows health,stderr --json hostile.json --before earlier.json

Clients and server share the machine.
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.request
from typing import Callable, Iterator

import grpc
import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import attacks
import floods
import memory_plan
import targets
from credentials import write_certificates
from targets import Figure, Machine
from servers import FILMS, SEARCH, Failed, Server, await_indexes, load, simile

PLAIN = {"kind": "id", "payload": "none"}
HEAVY = {"kind": "diversity", "candidates": 1_000, "k": 100}  # about 10 ms
DEADLINE_S = 0.1
OVERLOAD_DEADLINE_S = 1.0
FLOOD_MIB_MAX = 4_096  # a server that takes more is ended
DEADLINE_CAP_S = 10  # limits.search_deadline_max
MILLION = (1_000_000, 384)


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


@contextlib.contextmanager
def serving(machine: Machine, collection: str, folder, *flags, stderr=subprocess.DEVNULL):
    with simile(machine.arguments.simile, collection, folder, *flags, stderr=stderr) as server, server.turn():
        await_indexes(machine.arguments.simile, server)
        yield server


def pid_of(server: Server) -> int:
    return server.processes[0].pid


def health(machine: Machine) -> Iterator[Figure]:
    kinds = [(SEARCH, attacks.filters(), 1), (SEARCH, attacks.diversity(), 1), (attacks.LOOKUP, attacks.lookup(), 1),
             (SEARCH, attacks.large_reply(), 1)]
    with serving(machine, "films", FILMS) as server:
        attacks.check_taken(server.address, [(path, request) for path, request, _ in kinds])
        yield from health_beside(machine, server, kinds * 2)


def health_beside(machine: Machine, server: Server, kinds: list[tuple[str, bytes, int]]) -> Iterator[Figure]:
    with attacks.Attack(server.address, kinds) as attack:
        pause(4)  # until all of them call
        with (attacks.probing(server.address, attacks.HEALTH, b"", 0.01) as checks,
              attacks.probing(server.address, SEARCH, attacks.plain("films"), 0.1) as searches,
              attacks.connecting(server.address, 0.25) as connections):
            pause(machine.seconds(20))
        machine.notes.append(f"health: meanwhile {attack.answered.value:,} hostile calls were answered, {attack.refused.value:,} "
                             f"were not; a plain search took {searches.p99_ms():.0f} ms (p99), {len(searches.failures)} failed")
    yield Figure("health beside 8 hostile clients: p99", [checks.p99_ms()], 50, "ms")
    yield Figure("health without an answer in 2 s", [len(checks.failures)], 0)
    yield Figure("new connections that failed", [len(connections.failures)], 0)


def cancelled(machine: Machine) -> Iterator[Figure]:
    request, latencies_ms = attacks.diversity(), []
    with serving(machine, "films", FILMS) as server, contextlib.ExitStack() as stack:
        channels = [stack.enter_context(attacks.channel(server.address)) for _ in range(16)]
        search = stack.enter_context(attacks.channel(server.address)).unary_unary(SEARCH)
        search(attacks.plain("films"), timeout=10)
        for _ in machine.rounds():
            calls = [channels[number % 16].unary_unary(SEARCH).future(request, timeout=10) for number in range(1_000)]
            pause(0.5)
            for call in calls:
                call.cancel()
            begin = time.monotonic()
            with contextlib.suppress(grpc.RpcError):
                while not answered_once(search):  # a refused caller tries again
                    pause(0.001)
            latencies_ms.append((time.monotonic() - begin) * 1e3)
            pause(2)
    yield Figure("a search after 1,000 cancelled calls", latencies_ms, 50, "ms")


def answered_once(search) -> bool:
    try:
        search(attacks.plain("films"), timeout=10)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise
        return False
    return True


@contextlib.contextmanager
def meanwhile(work: Callable[[threading.Event], None]):
    """Runs `work` beside the block, until the event that it gets."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def films_alone_and_beside(machine: Machine, server: Server, work: Callable[[threading.Event], None]):
    """The p99 in ms of plain films, 300 a second: alone, and beside the work in each round."""
    def p99_ms() -> float:
        run = machine.load(server, "--collection", "films", "--rate", 300, *machine.mix(PLAIN), seconds=4)
        return run["latency"]["p99_us"] / 1e3

    alone = [p99_ms() for _ in machine.rounds()]
    with meanwhile(work):
        pause(0.5)
        beside = [p99_ms() for _ in machine.rounds()]
    return Figure("", alone, 0).median(), beside


def beside_load(machine: Machine, title: str, collection: str, *flags) -> Iterator[Figure]:
    """Plain films beside another load, of the same collection or a million rows."""
    million = machine.random_rows(*(100_000, 384) if machine.arguments.quick else MILLION)
    with serving(machine, "films", FILMS, "--collection", f"million={million}") as server:
        def work(ended: threading.Event) -> None:
            while not ended.is_set():
                load(machine.arguments.simile, server, "--collection", collection, "--duration", "1s", "--warm-up", "0s", *flags)

        alone_ms, beside = films_alone_and_beside(machine, server, work)
    machine.notes.append(f"plain films {title} take {alone_ms:.1f} ms alone (p99)")
    yield Figure(f"plain films {title}: p99", beside, round(3 * alone_ms + 20, 1), "ms")


def beside_calls_of_1000(machine: Machine) -> Iterator[Figure]:
    """Single queries of the films and of a million rows, while two calls of 1,000 queries of these are always under way."""
    million = machine.random_rows(*(100_000, 384) if machine.arguments.quick else MILLION)
    with serving(machine, "films", FILMS, "--collection", f"million={million}") as server:
        def work(ended: threading.Event) -> None:
            while not ended.is_set():
                load(machine.arguments.simile, server, "--collection", "million", "--batch", 1_000, "--in-flight", 2,
                     "--timeout", 60, "--duration", "1s", "--warm-up", "0s")

        def single(column: str) -> float:
            run = machine.load(server, "--collection", "million", "--in-flight", 1, seconds=4)
            return run["latency"][column] / 1e3

        alone_ms = Figure("", [single("p50_us") for _ in machine.rounds()], 0).median()
        films_ms, films_beside = films_alone_and_beside(machine, server, work)
        with meanwhile(work):
            pause(0.5)
            beside = [single("p99_us") for _ in machine.rounds()]
    machine.notes.append(f"beside calls of 1,000: a query of the same rows takes {alone_ms:.1f} ms alone (p50), films {films_ms:.1f} "
                         "ms (p99)")
    yield Figure("plain films beside calls of 1,000 of a million rows: p99", films_beside, round(films_ms + 25, 1), "ms")
    yield Figure("a query of the same rows beside them: p99", beside, round(2 * alone_ms + 25, 1), "ms")


def beside_reload(machine: Machine) -> Iterator[Figure]:
    million = machine.random_rows(*(100_000, 384) if machine.arguments.quick else MILLION)
    settings = million / "collection.json"
    changing = ["--collection", f"million={million}", "--allow-changes", "--data-root", machine.work]
    with serving(machine, "films", FILMS, *changing) as server:
        def work(ended: threading.Event) -> None:
            content = "{}"
            while not ended.is_set():
                content += " "  # other bytes, so other content
                settings.write_text(content, encoding="utf-8")
                subprocess.run([machine.arguments.simile, "reload", "million", "--server", server.address], check=True,
                               capture_output=True)

        alone_ms, beside = films_alone_and_beside(machine, server, work)
    settings.unlink()
    machine.notes.append(f"plain films take {alone_ms:.1f} ms alone (p99), before a reload")
    yield Figure("plain films during reloads of a million rows: p99", beside, round(2 * alone_ms, 1), "ms")


def admission_s(search, request: bytes, ended: threading.Event) -> float:
    """From the first attempt until the call's first batch begins; refused calls come again when they may."""
    from simile.v1 import search_pb2
    begin = time.monotonic()
    while not ended.is_set():
        sent = time.monotonic()
        try:
            receipt = search_pb2.SearchResponse.FromString(search(request, timeout=10)).receipt
            return sent - begin + receipt.queue_us / 1e6
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
            ended.wait(0.05)
    return time.monotonic() - begin


def large(machine: Machine) -> Iterator[Figure]:
    request = attacks.search("sentences", 1_024, payload={"selection": 2}).SerializeToString()
    admissions_s, alone, beside = [], [], []
    with serving(machine, "sentences", machine.sentences()) as server, attacks.channel(server.address) as connection:
        search = connection.unary_unary(SEARCH)

        def work(ended: threading.Event) -> None:
            while not ended.is_set():
                admissions_s.append(admission_s(search, request, ended))

        for _ in machine.rounds():
            for p99_ms, context in ((alone, contextlib.nullcontext()), (beside, meanwhile(work))):
                with context:
                    p99_ms.append(machine.load(server, "--in-flight", 64)["latency"]["p99_us"] / 1e3)
    yield Figure("a call of 1,024 queries beside 64 single ones: admitted after, the longest", [max(admissions_s)], 2, "s")
    yield Figure("the single ones beside it: p99", beside, round(2 * Figure("", alone, 0).median() + 20, 1), "ms")


def overload(machine: Machine) -> Iterator[Figure]:
    calls = [*machine.mix(HEAVY), "--timeout", OVERLOAD_DEADLINE_S]
    request = attacks.search("films", 1, k=HEAVY["k"], diversity={"candidates": HEAVY["candidates"]}).SerializeToString()
    refusals_ms = []
    with serving(machine, "films", FILMS) as server, attacks.channel(server.address) as connection:
        search = connection.unary_unary(SEARCH)
        peak = machine.load(server, "--in-flight", 16, *calls, seconds=10)
        start_mib = resident = attacks.resident_mib(pid_of(server))

        def watch(ended: threading.Event) -> None:
            nonlocal resident
            while not ended.wait(0.05):
                resident = max(resident, attacks.resident_mib(pid_of(server)))

        def ask(ended: threading.Event) -> None:
            while not ended.wait(0.05):
                begin = time.monotonic()
                try:
                    search(request, timeout=OVERLOAD_DEADLINE_S)
                except grpc.RpcError as error:
                    if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                        refusals_ms.append((time.monotonic() - begin) * 1e3)

        with meanwhile(watch), meanwhile(ask):
            run = machine.load(server, "--rate", 4 * peak["calls_per_s"], *calls, seconds=60)
    answered, late = run["latency"]["count"], run["errors"].get("DEADLINE_EXCEEDED", {"count": 0})["count"]
    machine.notes.append(f"overload: {run['rate']:.0f} calls/s wanted; {answered:,} answered, {late:,} not in time, "
                         f"{run['failed_latency']['count'] - late:,} refused, {run['unsent']:,} never sent; "
                         f"a call takes {peak['server_cpu_us_per_call'] / 1e3:.1f} ms of CPU")
    yield Figure("4x overload: answered, of the peak", [run["calls_per_s"] / peak["calls_per_s"]], 0.9, at_least=True)
    if refusals_ms:
        yield Figure("refusals: p99", [float(np.percentile(refusals_ms, 99))], 5, "ms")
    yield Figure("accepted calls that were answered in time", [answered / max(1, answered + late)], 0.95, at_least=True)
    yield Figure("memory grew by", [resident - start_mib], 64, "MiB")


def metric(server: Server, name: str) -> float:
    """0 when the server has no such metric."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=5) as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith((name + " ", name + "{")))


def memory_figures(machine: Machine, server: Server, title: str, attack: Callable[[], float]) -> Iterator[Figure]:
    """Memory during the attack and a minute after it, when the server is rid of its calls, and whether others are served.

    attack  returns the time from which its calls may last as long as the deadline cap
    """
    start_mib = peak_mib = attacks.resident_mib(pid_of(server))

    def watch(ended: threading.Event) -> None:
        nonlocal peak_mib
        while not ended.wait(0.02):
            peak_mib = max(peak_mib, attacks.resident_mib(pid_of(server)))

    request = attacks.plain(server.collection)
    with attacks.probing(server.address, SEARCH, request, 0.1) as others, meanwhile(watch):
        begin = attack()
        while metric(server, "simile_requests_in_flight") > 1 and time.monotonic() < begin + 60:  # one may be the others'
            pause(0.1)
        ended_s = time.monotonic() - begin
        pause(max(0, machine.seconds(60) - ended_s))
        rest_mib = attacks.resident_mib(pid_of(server))
    if others.failures:
        machine.notes.append(f"{title}: the others' first failure is {others.failures[0]}")
    machine.notes.append(f"{title}: the others' searches took {others.p99_ms():.0f} ms (p99)")
    yield Figure(f"{title}: memory above the start", [peak_mib - start_mib], 512, "MiB")
    yield Figure(f"{title}: ended after", [ended_s], DEADLINE_CAP_S + 1, "s")
    yield Figure(f"{title}: a minute later", [rest_mib - start_mib], 64, "MiB")
    yield Figure(f"{title}: others' searches that failed", [len(others.failures)], 0)


def exclusions(machine: Machine) -> Iterator[Figure]:
    unknown = attacks.exclusions("sentences", [f"{number:0512}" for number in range(10_000)], 10)
    known = attacks.exclusions("sentences", [str(number) for number in range(10_000)], 10_000)
    with serving(machine, "sentences", machine.sentences()) as server:
        def attack() -> float:
            with attacks.Attack(server.address, [(SEARCH, request, 10) for request in (unknown, known) * 2]) as callers:
                pause(4 + machine.seconds(15))
                answered, refused = callers.answered.value, callers.refused.value
            machine.notes.append(f"exclusions: {answered:,} calls were answered, {refused:,} were not")
            return time.monotonic()

        yield from memory_figures(machine, server, "40 calls with 10,000 exclusions", attack)


def unread(machine: Machine) -> Iterator[Figure]:
    with serving(machine, "films", FILMS) as server, contextlib.ExitStack() as stack:
        def attack() -> float:
            begin = time.monotonic()
            stack.enter_context(attacks.unread_replies(server.address, attacks.large_reply(), 100))
            pause(2)  # until they have arrived
            return begin

        yield from memory_figures(machine, server, "100 unread replies of 55 MiB", attack)


def stopped(machine: Machine) -> Iterator[Figure]:
    with serving(machine, "films", FILMS) as server:
        with attacks.Attack(server.address, [(SEARCH, attacks.large_reply(), 16)] * 6) as callers:
            def attack() -> float:
                pause(5)
                callers.stop()
                return time.monotonic()

            yield from memory_figures(machine, server, "6 stopped clients", attack)


def fill(pipe: int) -> None:
    """Writes to it until nothing more fits. A server that shares it still waits when it is full."""
    writer = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"\n" * 4096):
            pass
    os.close(writer)


def stderr(machine: Machine) -> Iterator[Figure]:
    calls = [*machine.mix(PLAIN, PLAIN | {"kind": "filter", "filter": "absent = 1"}), "--in-flight", 64, "--timeout", 2]
    share, dropped = [], 0.0

    def answered_per_s(server: Server) -> float:
        try:
            with server.turn():
                run = machine.load(server, *calls, seconds=8)  # until no more lines can wait
        except Failed:  # it answers nobody
            return 0
        return run["latency"]["count"] / run["duration_s"]

    reader, writer = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, writer)
        heard, unheard = (stack.enter_context(simile(machine.arguments.simile, "films", FILMS, "--log-requests", stderr=file))
                          for file in (subprocess.DEVNULL, writer))
        stack.callback(os.close, reader)  # first: a server that waits in a write ends only then
        fill(writer)
        for _ in machine.rounds():
            share.append(answered_per_s(unheard) / answered_per_s(heard))
        with unheard.turn(), contextlib.suppress(OSError):
            dropped = metric(unheard, "simile_log_lines_dropped_total")
    yield Figure("calls/s with a full pipe at stderr, of those without", share, 0.9, at_least=True)
    yield Figure("log lines counted as dropped", [dropped], 1, at_least=True)


def deadlines(machine: Machine) -> Iterator[Figure]:
    """The deadline goes to the server alone: a client with one would end its call itself."""
    requests = [(SEARCH, attacks.filters()), (SEARCH, attacks.diversity()), (attacks.LOOKUP, attacks.lookup()),
                (SEARCH, attacks.large_reply())]
    late_ms, refused = [], 0
    with serving(machine, "films", FILMS) as server, attacks.channel(server.address) as connection:
        attacks.check_taken(server.address, requests)
        for number in range(round(machine.seconds(300))):
            path, request = requests[number % len(requests)]
            request = request.replace(attacks.NUMBER.encode(), f"{number:08d}".encode())
            begin = time.monotonic()
            call = connection.unary_unary(path).future(request, metadata=[("grpc-timeout", f"{DEADLINE_S * 1e3:.0f}m")])
            if call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                refused += 1
            else:
                late_ms.append((time.monotonic() - begin - DEADLINE_S) * 1e3)
    machine.notes.append(f"deadlines: {refused:,} of {refused + len(late_ms):,} calls were refused at once")
    yield Figure("answered after the deadline by: p99", [float(np.percentile(late_ms, 99))], 20, "ms")


def flooded(machine: Machine) -> Iterator[Figure]:
    """What raw HTTP/2 connections of one address can take, plain and over TLS."""
    for tls in (False, True):
        for name in floods.FLOODS:
            with certified(machine, tls) as (flags, authority), serving_films(machine, *flags) as server:
                yield from flood_figures(machine, server, name, authority)


def serving_films(machine: Machine, *flags):
    """With the films, whose index is not awaited: `simile list` would need the certificate."""
    return simile(machine.arguments.simile, "films", FILMS, *flags, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def certified(machine: Machine, tls: bool):
    """The flags of a server, and the authority of its certificate."""
    if not tls:
        yield [], None
        return
    folder = machine.work / "certificates"
    if not folder.exists():
        folder.mkdir()
        write_certificates(folder)
    yield ["--tls-certificate", folder / "server.pem", "--tls-key", folder / "server.key"], folder / "ca.pem"


def flood_figures(machine: Machine, server: Server, name: str, authority: pathlib.Path | None) -> Iterator[Figure]:
    title = name if authority is None else f"{name}, TLS"
    start_mib = peak_mib = attacks.resident_mib(pid_of(server))

    def watch(ended: threading.Event) -> None:
        nonlocal peak_mib
        while not ended.wait(0.02):
            peak_mib = max(peak_mib, attacks.resident_mib(pid_of(server)))
            if peak_mib > FLOOD_MIB_MAX:
                server.processes[0].kill()
                machine.notes.append(f"{title}: the server was ended at {peak_mib:,.0f} MiB")
                return

    with (server.turn(), attacks.probing(server.address, SEARCH, attacks.plain("films"), 0.01, authority=authority) as others,
          meanwhile(watch), floods.Running(server.address, name, machine.seconds(30), authority is not None) as running):
        flood = running.result()
        pause(1)
    machine.notes.append(f"{title}: {flood.sent / 2 ** 20:,.1f} MiB sent, {flood.cut} connections cut, {flood.ended} calls ended by the "
                         f"server; {len(others.latencies_ms):,} searches of others meanwhile")
    yield Figure(f"{title}: memory above the start", [peak_mib - start_mib], 128, "MiB")
    yield Figure(f"{title}: others' searches: p99", [others.p99_ms()], 50, "ms")
    yield Figure(f"{title}: others' searches that failed", [len(others.failures)], 0)


def plan(machine: Machine) -> Iterator[Figure]:
    off = []
    for folder in (FILMS, machine.sentences()):
        rest_plan, rest, peak_plan, peak = memory_plan.measure(str(machine.arguments.simile), folder, 2, machine.work)
        off += [abs(rest_plan / rest - 1), abs(peak_plan / peak - 1)]
    yield Figure("simile plan is off by, the most", [100 * max(off)], 5, "%")


ROWS: targets.Rows = {
    "health": health,
    "cancelled": cancelled,
    "beside-hard": lambda machine: beside_load(machine, "beside hard ones", "films", *machine.mix(HEAVY), "--in-flight", 8),
    "beside-million": lambda machine: beside_load(machine, "beside a million rows", "million", "--in-flight", 16),
    "beside-calls-of-1000": beside_calls_of_1000,
    "beside-reload": beside_reload,
    "large": large,
    "overload": overload,
    "exclusions": exclusions,
    "unread": unread,
    "stopped": stopped,
    "stderr": stderr,
    "deadlines": deadlines,
    "floods": flooded,
    "plan": plan,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    return targets.run(targets.parse(parser, ROWS))


if __name__ == "__main__":
    sys.exit(main())
