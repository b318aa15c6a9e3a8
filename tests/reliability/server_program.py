"""`simile serve` as a supervisor has it: started again and again on the same port, stopped, killed."""

import json
import pathlib
import signal
import subprocess
import threading
import time
import urllib.request

from servers import environment, steady_port


def message_of(line: str) -> str:
    """Of a line of the log in JSON; the line itself when it is something else, such as a sanitizer's."""
    try:
        return json.loads(line)["message"]
    except (ValueError, KeyError):
        return line


class ServerProgram:
    """On ports that stay the same; ended with the block.

    log  what all its processes print
    """

    def __init__(self, program: pathlib.Path, flags: list, home: pathlib.Path, **variables: str):
        self.port, self.metrics_port = steady_port(), steady_port()
        self.address = f"127.0.0.1:{self.port}"
        self._command = [program, "serve", "--port", str(self.port), "--metrics-port", str(self.metrics_port), "--log-format",
                         "json", *map(str, flags)]
        self._environment = environment(home, **{"SIMILE_BACKEND_PREFERENCE": "cpu"} | variables)
        self.log: list[str] = []
        self.process: subprocess.Popen | None = None
        self._reader: threading.Thread | None = None
        self._listening = threading.Event()
        self._started_at = 0.0
        self.listening_seconds = 0.0  # from the last start until it listened

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def start(self) -> None:
        self._listening = threading.Event()
        self._started_at = time.monotonic()
        self.process = subprocess.Popen(self._command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
        self._reader = threading.Thread(target=self._read, args=(self.process, self._listening), daemon=True)
        self._reader.start()

    def await_listening(self, seconds: float) -> None:
        if not self._listening.wait(seconds) or self.process.poll() is not None:
            raise AssertionError(f"not listening within {seconds} s; it ended with {self.process.poll()}; its log:\n"
                                 + "".join(self.log[-20:]))

    def start_and_await(self, seconds: float = 60) -> None:
        self.start()
        self.await_listening(seconds)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.await_exit(60)

    def await_exit(self, seconds: float) -> int:
        """The exit status; negative for a signal."""
        status = self.process.wait(seconds)
        self._reader.join()
        return status

    def metric(self, name: str) -> float:
        """The sum over all labels; 0 when the server has no such metric."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((name + " ", name + "{")))

    def _read(self, process: subprocess.Popen, listening: threading.Event) -> None:
        with process.stderr:
            for line in process.stderr:
                self.log.append(line)
                del self.log[:-1_000]
                if message_of(line) == "listening":
                    self.listening_seconds = time.monotonic() - self._started_at
                    listening.set()
        listening.set()  # or ended: nobody shall wait any more
