"""The servers that run.py measures, each started as a user would and stopped while another is measured."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile


class Failed(Exception):
    """A server did not start, or answers wrongly; the text is for a person."""


@dataclasses.dataclass
class Server:
    name: str
    address: str
    collection: str  # its name there
    processes: list[subprocess.Popen]

    @contextlib.contextmanager
    def turn(self):
        """Runs it meanwhile; else it is stopped, and keeps no processor busy."""
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
        try:
            yield self
        finally:
            for process in self.processes:
                process.send_signal(signal.SIGSTOP)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_listening(process: subprocess.Popen, name: str) -> str:
    """The line that says so."""
    printed = []
    for line in process.stdout:
        printed.append(line)
        if "listening" in line:
            return line
    raise Failed(f"{name} ended before it listened:\n{''.join(printed)}")


@contextlib.contextmanager
def running(name: str, commands: list[list], address: str | None, collection: str, environment: dict):
    """Starts the processes, and ends them afterwards. Without an address the first one prints it."""
    processes = []
    try:
        for command in commands:
            process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       env=environment)
            processes.append(process)
            line = await_listening(process, name)
            address = address or line.split()[-1]
            process.send_signal(signal.SIGSTOP)
        yield Server(name, address, collection, processes)
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in processes:
            process.communicate()


@contextlib.contextmanager
def simile(program: pathlib.Path, collection: str, folder: pathlib.Path):
    """With its default configuration."""
    with tempfile.TemporaryDirectory() as home:
        port = free_port()
        command = [program, "serve", "--collection", f"{collection}={folder}", "--no-metrics", "--port", port]
        environment = dict(os.environ, HOME=home, XDG_CACHE_HOME=home)
        with running("Simile", [command], f"127.0.0.1:{port}", collection, environment) as server:
            yield server


def echo(program: pathlib.Path, answer: pathlib.Path, shape: tuple[int, int], *flags: str):
    command = [program, "--answer", answer, "--rows", shape[0], "--dim", shape[1], *flags]
    return running("callback echo" if "--callback" in flags else "echo", [command], None, "echo", dict(os.environ))


def python_servers(library: str, vectors: pathlib.Path, metadata: list[str], stubs: pathlib.Path):
    """One process with all processors for the search, and a process for each processor."""
    processors = os.cpu_count() or 1
    for processes, threads in dict.fromkeys([(1, processors), (processors, 1)]):
        # These two choose OpenBLAS's kernels and threads against its own judgement.
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS")}
        environment |= {"PYTHONPATH": str(stubs), "OMP_NUM_THREADS": str(threads), "PYTHONDONTWRITEBYTECODE": "1"}
        port = free_port()
        command = [sys.executable, pathlib.Path(__file__).with_name("rival.py"), library, vectors, port, threads, *metadata]
        yield running(f"{library} {processes}x{threads}", [command] * processes, f"127.0.0.1:{port}", "rival", environment)
