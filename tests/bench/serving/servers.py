"""The servers that are measured here, each started as a user would and stopped while another is measured, and what sends
them calls.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILMS = ROOT / "examples/films"
# A server with gRPC's callbacks sleeps when a call comes this long after another.
IDLE_INTERVAL_S = 1.05
SEARCH = "/simile.v1.SearchService/Search"


class Failed(Exception):
    """A server did not start, or answers wrongly; the text is for a person."""


@dataclasses.dataclass
class Server:
    name: str
    address: str
    collection: str  # its name there
    processes: list[subprocess.Popen]
    metrics: str | None = None  # the address of its metrics

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
def running(name: str, commands: list[list], address: str | None, collection: str, environment: dict, stderr=subprocess.STDOUT):
    """Starts the processes, and ends them afterwards. Without an address the first one prints it."""
    processes, addresses = [], []
    try:
        for command in commands:
            process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment)
            processes.append(process)
            addresses = re.findall(r"\S+:\d+", await_listening(process, name))
            process.send_signal(signal.SIGSTOP)
        yield Server(name, address or addresses[0], collection, processes, addresses[1] if len(addresses) > 1 else None)
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in processes:
            process.communicate()


@contextlib.contextmanager
def simile(program: pathlib.Path, collection: str, folder: pathlib.Path, *flags, stderr=subprocess.STDOUT,
           variables: dict[str, str] | None = None):
    """With its default configuration, but for `flags` and the settings in `variables`: SIMILE_BACKEND_ISA and such."""
    with tempfile.TemporaryDirectory() as home:
        command = [program, "serve", "--collection", f"{collection}={folder}", "--port", 0, "--metrics-port", 0, *flags]
        environment = dict(os.environ, HOME=home, XDG_CACHE_HOME=home) | (variables or {})
        with running("Simile", [command], None, collection, environment, stderr) as server:
            yield server


def require_built(parser: argparse.ArgumentParser, *programs: pathlib.Path) -> None:
    """Ends the script with a way on where one of them is missing."""
    for program in programs:
        if not program.exists():
            targets = " and ".join(each.name for each in programs)
            parser.error(f"{program.name} is not built: cmake --preset bench, then build the targets {targets}")


def await_indexes(program: pathlib.Path, server: Server) -> None:
    """They are built after a collection begins to serve. REQUIRES: the server's turn."""
    command = [program, "list", "--json", "--server", server.address]
    while any(collection["index_built"] < 1 for collection in
              json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["collections"]):
        threading.Event().wait(0.1)


def echo(program: pathlib.Path, answer: pathlib.Path, shape: tuple[int, int], transport: str = "async-raw"):
    name = {"async-raw": "echo", "raw-callback": "callback echo", "own": "own echo"}[transport]
    command = [program, "--answer", answer, "--rows", shape[0], "--dim", shape[1], "--transport", transport]
    return running(name, [command], None, "echo", dict(os.environ))


def python_servers(library: str, vectors: pathlib.Path, metadata: list[str], stubs: pathlib.Path, batch_max: int = 256):
    """One process with all processors for the search, and a process for each processor."""
    processors = os.cpu_count() or 1
    for processes, threads in dict.fromkeys([(1, processors), (processors, 1)]):
        # These two choose OpenBLAS's kernels and threads against its own judgement.
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS")}
        environment |= {"PYTHONPATH": str(stubs), "OMP_NUM_THREADS": str(threads), "PYTHONDONTWRITEBYTECODE": "1"}
        port = free_port()
        command = [sys.executable, pathlib.Path(__file__).with_name("rival.py"), library, vectors, port, threads, batch_max,
                   *metadata]
        yield running(f"{library} {processes}x{threads}", [command] * processes, f"127.0.0.1:{port}", "rival", environment)


def make_stubs(folder: pathlib.Path) -> None:
    """The messages of simile.v1, made in this folder, which becomes importable."""
    protos = ROOT / "proto"
    files = [*sorted((protos / "simile/v1").glob("*.proto")), protos / "google/rpc/status.proto",
             protos / "google/rpc/error_details.proto"]
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{protos}", f"--python_out={folder}", *map(str, files)],
                   check=True)
    sys.path.insert(0, str(folder))


def load(program: pathlib.Path, server: Server, *flags) -> list[dict]:
    """What `simile bench` measures of the server: a run for each of its loads."""
    command = [program, "bench", "--server", server.address, "--json", *flags]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failed(f"{server.name}: {run.stderr.strip()}")
    return json.loads(run.stdout)["runs"]


def films_request(payload: bool) -> bytes:
    """For ten films like another one, by its id."""
    from simile.v1 import search_pb2
    request = search_pb2.SearchRequest(collection="films")
    request.queries.add(id="feeding-sea-lions-1900")
    request.options.payload.selection = 1 if payload else 2
    return request.SerializeToString()


def ask(server: Server, request: bytes, calls: int = 0, interval_s: float = 0) -> tuple[bytes, list[float]]:
    """The answer to a Search, and the latencies in us of all calls but the first, which connects."""
    import grpc
    pause = threading.Event()
    latencies = []
    with grpc.insecure_channel(server.address) as channel:
        search = channel.unary_unary(SEARCH)
        answer = search(request, timeout=10)
        for _ in range(calls):
            pause.wait(interval_s)
            begin = time.monotonic()
            search(request, timeout=10)
            latencies.append((time.monotonic() - begin) * 1e6)
    return answer, latencies
