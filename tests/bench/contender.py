"""A process that searches on command and is stopped while others search."""

import ctypes
import json
import os
import pathlib
import selectors
import signal
import subprocess
import time


PR_SET_PDEATHSIG = 1  # prctl(2)


class Failed(Exception):
    """A contender's error message."""


class TooSlow(Exception):
    """The contender did not answer within the limit and was killed."""


def end_with_parent() -> None:
    """Called in the new process: while stopped it could not notice that its parent has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Contender:
    """Speaks the protocol of engine_bench --paced and peer_engines.py.

    The process is stopped between its turns, because threads that spin after their work, as those of OpenMP do, would
    otherwise use the next contender's processor.
    """

    def __init__(self, name: str, command: list[str], threads: int, log: pathlib.Path):
        self.name = name
        self._command = command
        self._threads = threads
        self._log = log
        self._process = None
        self._buffer = b""
        self.greeting = {}

    def start(self) -> None:
        # Settings for other programs must not slow a rival.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
        environment["OMP_NUM_THREADS"] = str(self._threads)
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                             env=environment, preexec_fn=end_with_parent)
        self._buffer = b""
        self.greeting = self._read(None)
        self._process.send_signal(signal.SIGSTOP)

    def __enter__(self) -> "Contender":
        """Begins its turn."""
        if self._process is None:
            self.start()
        self._process.send_signal(signal.SIGCONT)
        return self

    def __exit__(self, *_) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def call(self, line: str, limit_s: float | None = None) -> dict:
        """Sends a line and returns the answer. REQUIRES: called inside `with`."""
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._read(limit_s)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def finish(self) -> None:
        """Closes its input and waits until it ends."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.stdin.close()
        code = self._process.wait()
        self._process = None
        if code != 0:
            raise Failed(f"{self.name} ended with {code}: {self._last_log_line()}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _read(self, limit_s: float | None) -> dict:
        deadline = None if limit_s is None else time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0 or not selector.select(left):
                    self.kill()
                    raise TooSlow
                part = os.read(self._process.stdout.fileno(), 65_536)
                if not part:
                    self.kill()
                    raise Failed(f"{self.name} ended early: {self._last_log_line()}")
                self._buffer += part
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def _last_log_line(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"
