#!/usr/bin/python3
"""A server under mixed calls for a long time: what grows, what fails?

    soak.py SIMILE FILMS STUBS_DIR [--minutes 30] [--json FILE] [--plot FILE.png]

Over TLS, with tokens and the frame guard. `simile bench` measures the rate that the server can answer, then calls at 70 % of it,
at random times. Beside it: calls of every kind whose answers are compared with the exact ones; a reload every minute, every tenth
of files that are bad, and with it a new access file; clients that are killed, that fall silent, that do not read their replies.
Fails when memory, descriptors or threads grow, or when a call fails.
Clients and server share the machine: the rate is lowered while calls come late.

Growth is measured after the first fifth of the time, since memory follows the rate and the most calls at once: until then what
the server can answer is measured again and again, of which the least counts from then on; and in the first half of that time it
is stopped for moments, so that what a stall of the machine would add later is there from the start. What the server holds of
replies that clients do not read is left out, 9 MiB for each such client until it is cut: the server says how much it is, and must
hold none when all clients are gone.
"""

import contextlib
import itertools
import json
import math
import os
import pathlib
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Callable

from command_line import parse, parser_of, path

parser = parser_of(__doc__)
parser.add_argument("--minutes", type=float, default=30, help="default %(default)s; below 2 all happens more often, and sooner")
parser.add_argument("--plot", type=path, help="file to draw the series to; needs matplotlib")
ARGUMENTS = parse(parser)

import grpc
from simile.v1 import collections_pb2

import film_calls
from call_errors import reason_of
from callers import attempt
from credentials import new_token, write_access_file, write_certificates
from cycle_report import Figure, Report, exactly, number_text
from film_calls import FilmCalls
from http2_peer import Http2Peer
from server_program import ServerProgram

IS_SHORT = ARGUMENTS.minutes < 2
SPEED = 20 if IS_SHORT else 1
SHARE_OF_CAPACITY = 0.7
RUN_SECONDS = 3 if IS_SHORT else 10  # of one load, which gives one point of the latencies
CAPACITY_SECONDS = 2 if IS_SHORT else 5
MEASURE_AGAIN_SECONDS = 60 / SPEED
LATE_P99_MS = 500  # calls come late: the machine has less for the server than it had
RELOAD_SECONDS = 2 if IS_SHORT else 60
BAD_EVERY = 2 if IS_SHORT else 10
DEATH_SECONDS = 10 / SPEED
CHECK_SECONDS = 0.05
SAMPLE_SECONDS = 1 / SPEED
# Of silence, and for an answer: limits.keepalive_time and limits.keepalive_timeout, of which a short run cannot wait for the defaults.
KEEPALIVE_SECONDS = (2, 5) if IS_SHORT else (20, 10)
MUTE_SECONDS_MAX = 1.5 * sum(KEEPALIVE_SECONDS)
WARM_UP_SHARE = 0.2
STALL_SECONDS = 0.2
BETWEEN_STALLS_SECONDS = 15 / SPEED
SLOPE_MIB_MAX = 1.0  # in ten minutes
UNREAD = 'simile_budget_bytes{budget="unsent_replies"}'
GROWTH_MAX = 3  # of the medians of descriptors and threads
MIX = [{"kind": "vector", "weight": 30, "payload": ["title"]}, {"kind": "id", "weight": 20},
       {"kind": "recommend", "weight": 20, "exclude_seen": True}, {"kind": "filter", "weight": 15},
       {"kind": "examples", "weight": 5}, {"kind": "blend", "weight": 4}, {"kind": "groups", "weight": 3, "field": "genres"},
       {"kind": "diversity", "weight": 3, "candidates": 100}]


def write_generations(films: pathlib.Path, root: pathlib.Path) -> None:
    """Two good generations with the same rows, and bad ones."""
    for name in ("a", "b", "truncated", "not-finite", "short"):
        shutil.copytree(films, root / name)
    (root / "b" / "collection.json").write_text("{ }", encoding="utf-8")
    vectors = (root / "a" / "content_vectors.npy").read_bytes()
    (root / "truncated" / "content_vectors.npy").write_bytes(vectors[:len(vectors) // 2])
    (root / "not-finite" / "content_vectors.npy").write_bytes(vectors[:-2] + b"\x00\x7e")  # NaN in fp16
    lines = (root / "a" / "metadata.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (root / "short" / "metadata.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")


class Access:
    """An encrypted server's files in a folder, and how clients connect to it."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        write_certificates(folder)
        self._authority = (folder / "ca.pem").read_bytes()
        self._token, self._principal = new_token(ARGUMENTS.simile, "soak", "write")
        (folder / "token").write_text(self._token, encoding="utf-8")
        self.second_token = ""
        self.renew()
        self._tls = ssl.create_default_context(cafile=folder / "ca.pem")
        self._tls.set_alpn_protocols(["h2"])

    def server_flags(self) -> list:
        return ["--tls-certificate", self._folder / "server.pem", "--tls-key", self._folder / "server.key", "--access-file",
                self._folder / "access.json"]

    def client_flags(self) -> list:
        return ["--ca", self._folder / "ca.pem", "--token-file", self._folder / "token"]

    def renew(self) -> None:
        """Replaces the access file by one with another second token."""
        self.second_token, second = new_token(ARGUMENTS.simile, "second")
        write_access_file(self._folder / "access.json", self._principal, second)

    def channel(self, address: str, token: str = "") -> grpc.Channel:
        """token  default the one that lasts"""
        return film_calls.channel(address, credentials=grpc.composite_channel_credentials(
            grpc.ssl_channel_credentials(self._authority), grpc.access_token_call_credentials(token or self._token)))

    def peer(self, address: str, mute: bool) -> Http2Peer:
        return Http2Peer(address, mute, self._tls, self._token)


class Soak:
    def __init__(self, server: ServerProgram, work: pathlib.Path, access: Access, calls: FilmCalls):
        self._server, self._work, self._access, self._calls = server, work, access, calls
        self._began = time.monotonic()
        self.ended = threading.Event()
        self.samples: list[dict] = []  # of the process
        self.loads: list[dict] = []
        self.failures: list[str] = []
        self.unread_bytes_at_end = math.nan
        self._second_token_before = ""
        self.counts = dict.fromkeys(("calls", "failed", "checked", "check_failed", "access_files", "access_failed", "reloads",
                                     "reload_failed", "bad_reloads", "bad_refused", "killed", "mute", "mute_cut", "mute_kept", "unread",
                                     "stalls"), 0)
        (work / "mix.json").write_text(json.dumps({"calls": MIX}), encoding="utf-8")

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def fail(self, count: str, text: str) -> None:
        self.counts[count] += 1
        self.failures.append(f"after {self.seconds():.0f} s: {text}")

    def _bench(self, *flags) -> list:
        return [ARGUMENTS.simile, "bench", "films", "--server", self._server.address, "--mix", self._work / "mix.json", "--users",
                ARGUMENTS.films / "user_ids.json", "--server-pid", str(self._server.process.pid), *self._access.client_flags(),
                *map(str, flags)]

    def _load(self, *flags) -> dict:
        # Its samples are of one content: where a reload comes while it takes them, it refuses to mix two, and begins again.
        for _ in range(5):
            run = subprocess.run(self._bench("--json", *flags), capture_output=True, text=True, check=False)
            if run.returncode == 0 or "--expect-snapshot" not in run.stderr:
                break
        if run.returncode != 0:
            self.fail("failed", f"simile bench: {run.stderr.strip()}")
            self.ended.wait(1)
            return {}
        return json.loads(run.stdout)["runs"][0]

    def load(self, warm_up_seconds: float) -> None:
        """Calls at a share of the capacity, which is measured in the warm-up."""
        target = rate = math.inf
        measured_at = -math.inf
        while not self.ended.is_set():
            is_due = self.seconds() < warm_up_seconds and self.seconds() - measured_at >= MEASURE_AGAIN_SECONDS
            if is_due or target == math.inf:
                measured_at = self.seconds()
                run = self._load("--in-flight", 16, "--warm-up", "1s", "--duration", f"{CAPACITY_SECONDS}s")
                if not run:
                    continue
                self._count_errors(run)
                rate = target = min(target, SHARE_OF_CAPACITY * run["calls_per_s"])
            at = self.seconds()
            run = self._load("--rate", f"{max(rate, 1):.0f}", "--warm-up", "0s", "--duration", f"{RUN_SECONDS}s")
            if not run:
                continue
            self._count_errors(run)
            p99_ms = run["latency"]["p99_us"] / 1e3
            self.loads.append({"at_s": at, "rate": rate, "p50_ms": run["latency"]["p50_us"] / 1e3, "p99_ms": p99_ms,
                               "calls": run["latency"]["count"]})
            rate = rate * 0.8 if p99_ms > LATE_P99_MS else min(target, rate * 1.1)

    def _count_errors(self, run: dict) -> None:
        self.counts["calls"] += run.get("latency", {}).get("count", 0)
        for reason, error in run.get("errors", {}).items():
            self.fail("failed", f"{error['count']} calls: {reason}: {error.get('message', '')}")
            self.counts["failed"] += error["count"] - 1

    def check(self) -> None:
        """Calls of every kind, whose answers are compared."""
        with self._access.channel(self._server.address) as channel:
            for number in itertools.count():
                if self.ended.wait(CHECK_SECONDS):
                    return
                self.counts["checked"] += 1
                if failure := attempt(self._calls, channel, number):
                    self.fail("check_failed", failure)

    def reload(self) -> None:
        good, bad = itertools.cycle(["b", "a"]), itertools.cycle(["truncated", "not-finite", "short"])
        with self._access.channel(self._server.address) as channel:
            for number in itertools.count(1):
                if self.ended.wait(RELOAD_SECONDS):
                    return
                self._renew_access()
                if number % BAD_EVERY == 0:
                    self._reload_bad(channel, next(bad))
                else:
                    self.counts["reloads"] += 1
                    if (error := self._reload(channel, next(good))) is not None:
                        self.fail("reload_failed", f"a reload: {error.code().name}: {error.details()}")

    def _renew_access(self) -> None:
        """Replaces the second token: by now the server knows that of the last file, and not the one before."""
        self.counts["access_files"] += 1
        if self._second_token_before and self._code_of(self._second_token_before) != grpc.StatusCode.UNAUTHENTICATED:
            self.fail("access_failed", "a token that is no longer in the access file is not refused")
        if (code := self._code_of(self._access.second_token)) is not None:
            self.fail("access_failed", f"the token of the last access file: {code.name}")
        self._second_token_before = self._access.second_token
        self._access.renew()

    def _code_of(self, token: str) -> grpc.StatusCode | None:
        """How a search with this token fails; None when it does not."""
        with self._access.channel(self._server.address, token) as channel:
            try:
                self._calls.similar(channel, 0)
            except grpc.RpcError as error:
                return error.code()
        return None

    def _reload_bad(self, channel: grpc.Channel, folder: str) -> None:
        self.counts["bad_reloads"] += 1
        error = self._reload(channel, folder)
        if error is None:
            self.failures.append(f"after {self.seconds():.0f} s: a reload of the bad files of {folder} succeeded")
        elif reason_of(error) != "INVALID_FILES":
            self.failures.append(f"after {self.seconds():.0f} s: a reload of the bad files of {folder} failed with "
                                 f"{error.code().name}, not for INVALID_FILES: {error.details()}")
        else:
            self.counts["bad_refused"] += 1

    def _reload(self, channel: grpc.Channel, folder: str) -> grpc.RpcError | None:
        request = collections_pb2.ReloadCollectionRequest(collection="films", folder=folder).SerializeToString()
        try:
            for _ in channel.unary_stream(film_calls.RELOAD)(request, timeout=120):
                pass
        except grpc.RpcError as error:
            return error
        return None

    def die(self) -> None:
        """Clients that die in one way after the other."""
        with contextlib.ExitStack() as stack:
            peers: list[tuple[float, Http2Peer]] = []
            for number in itertools.count():
                if self.ended.wait(DEATH_SECONDS):
                    return
                if number % 3 == 0:
                    self._kill_client()
                else:
                    peers.append((self.seconds(), stack.enter_context(self._silent_peer(mute=number % 3 == 1))))
                for at, peer in [each for each in peers if self.seconds() - each[0] > MUTE_SECONDS_MAX]:
                    peers.remove((at, peer))
                    if peer.is_mute() and peer.is_open():
                        self.fail("mute_kept", f"the connection of a silent client is kept for {self.seconds() - at:.0f} s")
                    self.counts["mute_cut"] += peer.is_mute() and not peer.is_open()
                    peer.__exit__(None, None, None)

    def _kill_client(self) -> None:
        client = subprocess.Popen(self._bench("--rate", 50, "--duration", "60s"), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.ended.wait(1)
        client.kill()
        client.wait()
        self.counts["killed"] += 1

    def _silent_peer(self, mute: bool) -> Http2Peer:
        peer = self._access.peer(self._server.address, mute)
        peer.await_settings(10)
        peer.call(film_calls.SEARCH, film_calls.large_reply_request())
        self.counts["mute" if mute else "unread"] += 1
        return peer

    def sample(self) -> None:
        process = pathlib.Path(f"/proc/{self._server.process.pid}")
        while not self.ended.wait(SAMPLE_SECONDS):
            unread_mib = self._server.metric(UNREAD) / 2 ** 20
            pages = int((process / "statm").read_text(encoding="utf-8").split()[1])
            self.samples.append({"at_s": self.seconds(), "rss_mib": pages * os.sysconf("SC_PAGESIZE") / 2 ** 20,
                                 "unread_mib": unread_mib,
                                 "descriptors": len(os.listdir(process / "fd")), "threads": len(os.listdir(process / "task"))})

    def stall(self, seconds: float) -> None:
        """Stops the process for a moment again and again, until so many seconds have passed."""
        while self.seconds() < seconds and not self.ended.wait(BETWEEN_STALLS_SECONDS):
            self._server.process.send_signal(signal.SIGSTOP)
            self.ended.wait(STALL_SECONDS)
            self._server.process.send_signal(signal.SIGCONT)
            self.counts["stalls"] += 1

    def run(self, seconds: float) -> None:
        warm_up_seconds = WARM_UP_SHARE * seconds
        load = threading.Thread(target=self.load, args=(warm_up_seconds,))
        threads = [load, *(threading.Thread(target=work) for work in (self.check, self.reload, self.die, self.sample))]
        stalls = threading.Thread(target=self.stall, args=(warm_up_seconds / 2,))
        for thread in (*threads, stalls):
            thread.start()
        while self.seconds() < seconds and all(thread.is_alive() for thread in threads):
            self.ended.wait(0.5)
        if self.seconds() < seconds:
            self.failures.append("a part of the load ended early; its error is above")
        self.ended.set()
        for thread in (*threads, stalls):
            thread.join()
        self.unread_bytes_at_end = self._await_no_unread()

    def _await_no_unread(self) -> float:
        """What the server still holds of replies a minute after the last client, or 0 as soon as it holds none."""
        end = time.monotonic() + 60
        while (held := self._server.metric(UNREAD)) > 0 and time.monotonic() < end:
            pass
        return held


def medians(samples: list[dict], value: Callable[[dict], float]) -> list[tuple[float, float]]:
    """The median from one reload to the next, and the middle of that time: without the peaks that reloads make."""
    groups = itertools.groupby(samples, lambda sample: int(sample["at_s"] / RELOAD_SECONDS))
    return [((number + 0.5) * RELOAD_SECONDS, statistics.median(map(value, group))) for number, group in groups]


def slope(points: list[tuple[float, float]]) -> float:
    """A second, by Theil and Sen: the median of the slopes between every two points, which a few outliers do not move."""
    return statistics.median((b - a) / (at_b - at_a) for (at_a, a), (at_b, b) in itertools.combinations(points, 2))


def growth(samples: list[dict], key: str) -> float:
    """From the first third to the last one, of their medians."""
    third = len(samples) // 3
    return statistics.median(s[key] for s in samples[-third:]) - statistics.median(s[key] for s in samples[:third])


def figures(soak: Soak) -> list[Figure]:
    settled = soak.samples[int(WARM_UP_SHARE * len(soak.samples)):]
    counts = soak.counts
    mib = slope(medians(settled, lambda sample: sample["rss_mib"] - sample["unread_mib"])) * 600
    mib_with_unread = slope(medians(settled, lambda sample: sample["rss_mib"])) * 600
    return [Figure("time", soak.seconds() / 60, "min"),
            Figure("calls of the load", counts["calls"], at_least=1), exactly("of them failed", counts["failed"], 0),
            Figure("calls whose answers were compared", counts["checked"], at_least=1),
            exactly("of them failed or wrong", counts["check_failed"], 0),
            Figure("access files", counts["access_files"], at_least=1),
            exactly("of them with a token that was not taken or not given up", counts["access_failed"], 0),
            Figure("reloads", counts["reloads"], at_least=1), exactly("reloads that failed", counts["reload_failed"], 0),
            Figure("reloads of bad files", counts["bad_reloads"], at_least=1),
            exactly("of them refused for INVALID_FILES", counts["bad_refused"], counts["bad_reloads"]),
            Figure("clients killed", counts["killed"], at_least=1),
            Figure("clients that fell silent", counts["mute"], at_least=1),
            Figure("of them cut by the server", counts["mute_cut"], at_least=1),
            exactly(f"of them still connected after {number_text(MUTE_SECONDS_MAX)} s", counts["mute_kept"], 0),
            Figure("clients with unread replies", counts["unread"], at_least=1),
            Figure("most held of unread replies", max(s["unread_mib"] for s in soak.samples), "MiB", at_least=1),
            exactly("bytes of them held after the last client", soak.unread_bytes_at_end, 0),
            Figure(f"stalls of {number_text(STALL_SECONDS)} s in the first tenth of the time", counts["stalls"], at_least=1),
            Figure("p99 of the load: median", statistics.median(load["p99_ms"] for load in soak.loads), "ms"),
            Figure("p99 of the load: worst 10 s", max(load["p99_ms"] for load in soak.loads), "ms"),
            Figure("memory at the end", statistics.median(s["rss_mib"] for s in soak.samples[-10:]), "MiB"),
            # Too short a time tells more of reloads than of leaks.
            Figure("memory's growth in 10 min: not applicable, the run is too short", mib, "MiB") if IS_SHORT else
            Figure("memory's growth in 10 min", mib, "MiB", SLOPE_MIB_MAX),
            Figure("the same with replies that nobody reads", mib_with_unread, "MiB"),
            Figure("growth of descriptors", growth(settled, "descriptors"), at_most=20 if IS_SHORT else GROWTH_MAX),
            Figure("growth of threads", growth(settled, "threads"), at_most=GROWTH_MAX)]


def main() -> int:
    report = Report(command=f"soak.py --minutes {ARGUMENTS.minutes:g}")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        write_generations(ARGUMENTS.films, work / "data")
        access = Access(work)
        flags = ["--collection", f"films={work / 'data' / 'a'}", "--data-root", work / "data", *access.server_flags()]
        keepalive = {f"SIMILE_LIMITS_KEEPALIVE_{name}": f"{1_000 * seconds}"
                     for name, seconds in zip(("TIME", "TIMEOUT"), KEEPALIVE_SECONDS)}
        with ServerProgram(ARGUMENTS.simile, flags, work, **keepalive) as server:
            server.start_and_await()
            soak = Soak(server, work, access, FilmCalls(ARGUMENTS.films))
            soak.run(60 * ARGUMENTS.minutes)
            server.process.terminate()
            status = server.await_exit(60)
    report.add(*figures(soak), exactly("exit status after SIGTERM", status, 0))
    for failure in soak.failures:
        report.fail(failure)
    print(f"{ARGUMENTS.minutes:g} minutes of mixed calls\n{report.table()}")
    series = {"load": soak.loads, "process": soak.samples[::max(1, len(soak.samples) // 400)]}
    report.write(ARGUMENTS.json, **series)
    if ARGUMENTS.plot:
        import soak_plot
        soak_plot.draw(series, ARGUMENTS.plot)
    return 0 if report.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
