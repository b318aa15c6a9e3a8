#!/usr/bin/python3
"""Kills a server by SIGKILL at random moments of what it does, and starts it again: it must serve as before.

    sigkill_cycles.py SIMILE FILMS STUBS_DIR FAKES_DIR [--cycles 500] [--seed N] [--json FILE]

A third of the kills meets a reload, under load; one that comes too late for it is made up for. The others fall into a load, a
publication, calls, and the writing of the tuning cache and of the journal of lost GPUs. Each start must serve, with exact answers,
within two seconds more than a server of the same data that nobody killed and that starts at the same time: what else runs on the
machine slows both. FAKES_DIR holds the built fakes of a GPU.
"""

import contextlib
import itertools
import json
import math
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time

from command_line import parse, parser_of, path

parser = parser_of(__doc__)
parser.add_argument("fakes", type=path)
parser.add_argument("--cycles", type=int, default=500, help="default %(default)s")
parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10 ** 6), help="of the moments")
ARGUMENTS = parse(parser)

import grpc
from simile.v1 import collections_pb2

import film_calls
from callers import Callers
from cycle_report import Figure, Report, exactly, spread
from film_calls import FilmCalls, WrongAnswer
from made_up_collections import write_collection
from server_program import ServerProgram
from servers import make_fake_gpu_machine

START_SECONDS_MAX = 2.0  # beyond the load time
PATIENCE_SECONDS = 60
CALLERS = 3
MADE_ROWS, MADE_DIM = 12_000, 128  # so that loads and reloads take a while
RELOAD_EVERY = 3
OTHER_MOMENTS = ("load", "call", "publish", "file")
RELOADED = ("films", "made")
STAGE_VERIFYING = collections_pb2.ChangeProgress.STAGE_VERIFYING


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


class Kind:
    """A server that is killed, and one of the same data that is starts beside it and loses no GPU."""

    def __init__(self, server: ServerProgram, control: ServerProgram, written: pathlib.Path | None = None):
        self.server, self.control = server, control
        self.written = written  # the file that the server writes
        self.load_seconds = 0.0  # at first, to draw moments from
        self.loads: list[float] = []  # of the control, beside each start after a kill
        self.starts: list[float] = []  # of the server after a kill, beyond the control's


class Kills:
    def __init__(self, stack: contextlib.ExitStack, work: pathlib.Path, calls: FilmCalls, random_moments: random.Random):
        self._calls, self._random = calls, random_moments
        self.counts: dict[str, int] = {}
        self.during_reload = 0
        self._reload_seconds: dict[str, float] = {}  # without load
        self.answers_checked = 0
        self.failures: list[str] = []
        data = work / "data"
        for name in ("a", "b"):
            shutil.copytree(ARGUMENTS.films, data / f"films-{name}")
            write_collection(data / f"made-{name}", MADE_ROWS, MADE_DIM, seed=ord(name))
        (data / "films-b" / "collection.json").write_text("{ }", encoding="utf-8")
        flags = ["--collection", f"films={data / 'films-a'}", "--collection", f"made={data / 'made-a'}", "--data-root", data,
                 "--allow-changes"]
        def server(*arguments, **variables) -> ServerProgram:
            return stack.enter_context(ServerProgram(*arguments, **variables))

        self.usual = Kind(server(ARGUMENTS.simile, flags, work), server(ARGUMENTS.simile, flags, work))
        films = ["--collection", f"films={ARGUMENTS.films}"]
        cache = work / "tuning" / "cpu-tuning.json"
        tuning = {"SIMILE_BACKEND_TUNING": "auto", "SIMILE_BACKEND_TUNING_CACHE": str(cache)}
        self.tuning = Kind(server(ARGUMENTS.simile, films, work, **tuning), server(ARGUMENTS.simile, films, work), cache)
        journal = work / "journal" / "gpu-faults.json"
        (work / "gpu").mkdir()
        program, variables = make_fake_gpu_machine(work / "gpu", ARGUMENTS.simile, ARGUMENTS.fakes)
        variables |= {"SIMILE_BACKEND_PREFERENCE": "auto"}
        losing = variables | {"SIMILE_GPU_FAULT_JOURNAL": str(journal), "FAKE_GPU_SEARCHES": "lost"}
        self.journal = Kind(server(program, films, work, **losing), server(program, films, work, **variables), journal)

    def measure_loads(self) -> None:
        for kind in (self.usual, self.tuning, self.journal):
            seconds = []
            for _ in range(3):
                self._remove_written(kind)
                seconds.append(self._start(kind))
                kind.server.kill()
            kind.load_seconds = statistics.median(seconds)

    def measure_reloads(self) -> None:
        self._start(self.usual)
        with film_calls.channel(self.usual.server.address) as channel:
            for name in RELOADED:
                began = time.monotonic()
                for _ in self._reload(channel, name):
                    pass
                self._reload_seconds[name] = time.monotonic() - began
        self.usual.server.kill()

    def run(self, count: int) -> None:
        self._start(self.usual)
        others, written = itertools.cycle(OTHER_MOMENTS), itertools.cycle((self.tuning, self.journal))
        for number in range(count):
            # One ahead, so that one that comes too late at the end can be made up for.
            moment = "reload" if self.during_reload <= (number + RELOAD_EVERY) // RELOAD_EVERY else next(others)
            self.counts[moment] = self.counts.get(moment, 0) + 1
            if moment == "file":
                self._kill_while_written(next(written))
                continue
            getattr(self, f"_kill_in_{moment}")()
            self._start_again(self.usual, f"kill {number}, in a {moment}")
        self.usual.server.kill()

    def _start(self, kind: Kind) -> float:
        """Until it says SERVING; returns after how many seconds."""
        began = time.monotonic()
        kind.server.start()
        kind.server.await_listening(PATIENCE_SECONDS)
        with film_calls.channel(kind.server.address) as channel:
            while not film_calls.is_serving(channel):
                if time.monotonic() - began > PATIENCE_SECONDS:
                    raise AssertionError(f"not SERVING within {PATIENCE_SECONDS} s")
        return time.monotonic() - began

    def _start_again(self, kind: Kind, after: str) -> None:
        kind.control.start()
        seconds = self._start(kind)
        kind.control.await_listening(PATIENCE_SECONDS)
        kind.loads.append(kind.control.listening_seconds)
        kind.control.kill()
        kind.starts.append(seconds - kind.loads[-1])
        if kind.starts[-1] > START_SECONDS_MAX:
            self.failures.append(f"after {after}: SERVING after {seconds:.2f} s, {kind.loads[-1]:.2f} s for the other server")
        with film_calls.channel(kind.server.address) as channel:
            try:
                self._calls.similar(channel, self._random.randrange(1_000))
                self.answers_checked += 1
            except (grpc.RpcError, WrongAnswer) as error:
                self.failures.append(f"after {after}: {error}")

    @contextlib.contextmanager
    def _load(self):
        with Callers(self._calls, [self.usual.server.address], CALLERS, failures_expected=True) as callers:
            yield
        self.answers_checked += callers.made
        self.failures += callers.failures

    def _kill_in_load(self) -> None:
        """While the server before this one's end is replaced: the kill meets its first load."""
        self.usual.server.kill()
        self.usual.server.start()
        pause(self._random.uniform(0, 1.1 * self.usual.load_seconds))
        self.usual.server.kill()

    def _kill_in_call(self) -> None:
        with self._load():
            pause(self._random.uniform(0, 0.2))
            self.usual.server.kill()

    @staticmethod
    def _reload(channel: grpc.Channel, name: str):
        request = collections_pb2.ReloadCollectionRequest(collection=name, folder=f"{name}-b")  # each start serves -a
        return channel.unary_stream(film_calls.RELOAD)(request.SerializeToString(), timeout=PATIENCE_SECONDS)

    def _kill_in_reload(self) -> None:
        with self._load(), film_calls.channel(self.usual.server.address) as channel:
            name = self._random.choice(RELOADED)
            events = self._reload(channel, name)
            next(events)  # it has begun
            ended = threading.Event()
            reader = threading.Thread(target=self._await_end, args=(events, ended))
            reader.start()
            pause(self._random.uniform(0, 0.9 * self._reload_seconds[name]))
            self.usual.server.kill()
            reader.join()
            self.during_reload += not ended.is_set()

    @staticmethod
    def _await_end(events, ended: threading.Event) -> None:
        with contextlib.suppress(grpc.RpcError):
            for answer in events:
                if collections_pb2.ReloadCollectionResponse.FromString(answer).HasField("collection"):
                    ended.set()

    def _kill_in_publish(self) -> None:
        """When the new generation is verified, or has just been published."""
        with self._load(), film_calls.channel(self.usual.server.address) as channel:
            for answer in self._reload(channel, self._random.choice(RELOADED)):
                event = collections_pb2.ReloadCollectionResponse.FromString(answer)
                if event.progress.stage == STAGE_VERIFYING or event.HasField("collection"):
                    break
            pause(self._random.uniform(0, 0.01))
            self.usual.server.kill()

    def _remove_written(self, kind: Kind) -> None:
        if kind.written is not None:
            shutil.rmtree(kind.written.parent, ignore_errors=True)

    def _kill_while_written(self, kind: Kind) -> None:
        """As soon as the file, or a draft of it, is there; or a moment later."""
        self._remove_written(kind)
        kind.server.start()
        with contextlib.ExitStack() as stack:
            if kind is self.journal:
                kind.server.await_listening(PATIENCE_SECONDS)
                channel = stack.enter_context(film_calls.channel(kind.server.address))
                request = self._calls.similar_request(0).SerializeToString()
                stack.callback(channel.unary_unary(film_calls.SEARCH).future(request, timeout=PATIENCE_SECONDS).cancel)
            end = time.monotonic() + PATIENCE_SECONDS
            while not (kind.written.parent.exists() and any(kind.written.parent.iterdir())):
                if time.monotonic() > end:
                    raise AssertionError(f"{kind.written.name} is not written within {PATIENCE_SECONDS} s; the log:\n"
                                         + "".join(kind.server.log[-10:]))
            pause(self._random.choice((0, self._random.uniform(0, 0.005))))
            kind.server.kill()
        if kind.written.exists():
            json.loads(kind.written.read_text(encoding="utf-8"))  # all of it, or nothing
        self._start_again(kind, f"a kill while {kind.written.name} was written")
        kind.server.kill()


def main() -> int:
    report = Report(command=f"sigkill_cycles.py --cycles {ARGUMENTS.cycles}", seed=ARGUMENTS.seed)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kills = Kills(stack, work, FilmCalls(ARGUMENTS.films), random.Random(ARGUMENTS.seed))
        kills.measure_loads()
        kills.measure_reloads()
        kills.run(ARGUMENTS.cycles)
    kinds = (kills.usual, kills.tuning, kills.journal)
    starts = [seconds for kind in kinds for seconds in kind.starts]
    report.add(exactly("servers that served again", len(starts), ARGUMENTS.cycles),
               Figure("killed during a reload", kills.during_reload, at_least=math.ceil(ARGUMENTS.cycles / RELOAD_EVERY)),
               *(Figure(f"killed in or about a {moment}", count) for moment, count in kills.counts.items()),
               *spread("load time beside it", [seconds for kind in kinds for seconds in kind.loads]),
               *spread("SERVING again, beyond the load time", starts, START_SECONDS_MAX),
               Figure("answers compared", kills.answers_checked, at_least=ARGUMENTS.cycles),
               exactly("failed starts and wrong answers", len(kills.failures), 0),
               Figure("time of all", time.monotonic() - began, "s"))
    for failure in kills.failures:
        report.fail(failure)
    print(f"{ARGUMENTS.cycles} kills by SIGKILL, seed {ARGUMENTS.seed}\n{report.table()}")
    report.write(ARGUMENTS.json)
    return 0 if report.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
