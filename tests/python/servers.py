"""Starts real servers for tests: the built program, on this machine, or as on one with a GPU (fakes, or the emulated device)."""

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import threading
import time


@dataclasses.dataclass
class Server:
    address: str
    metrics_address: str
    process: subprocess.Popen


# Sockets that each keep one port for this process, as steady_port says.
PORTS_TAKEN: list[socket.socket] = []


def steady_port() -> int:
    """A port that nobody else has while this process runs, also while no server listens on it.

    It is below the ports that Linux gives to connections. Tests that run beside this one take others: an abstract socket, whose
    name one process alone can have, stands for each port.
    """
    for _ in range(1_000):
        port = random.SystemRandom().randrange(20_000, 32_000)
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0simile-test-port-{port}")
            with socket.create_server(("127.0.0.1", port)):
                PORTS_TAKEN.append(name)
                return port
        except OSError:
            name.close()
    raise AssertionError("no free port from 20,000 to 31,999")


def send_signal(pid: int, number: int) -> None:
    """To one process: kill(2) takes 0 and negative numbers, those of processes that never started, for groups of processes."""
    if pid <= 0:
        raise AssertionError(f"no process was started, its number is {pid}")
    os.kill(pid, number)


def await_true(holds, seconds: float, what: str, pause=time.sleep) -> float:
    """Waits for something that must come to pass; returns after how many seconds it did."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        pause(0.01)
    return time.monotonic() - start


def environment(home: str | pathlib.Path, **settings: str) -> dict[str, str]:
    """This process' variables with these settings and no other; the strategies of the processor are the same in every run.

    home  in place of the user's, which tests neither read nor write
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SIMILE_", "XDG_"))}
    return clean | {"HOME": str(home), "SIMILE_BACKEND_TUNING": "defaults"} | settings


def make_gpu_machine(folder: pathlib.Path, program: pathlib.Path, plugin: pathlib.Path,
                     libraries: dict[str, pathlib.Path]) -> tuple[pathlib.Path, dict]:
    """Lays out a machine with a GPU; returns its program and variables. (tests/integration/gpu_machine.cpp in Python.)

    libraries  what its driver installs, by name: "libcuda.so.1"
    """
    # Not a symbolic link, because the program looks for its plug-in in its own folder.
    copy = folder / "simile"
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    (folder / "libsimile_cuda.so").symlink_to(plugin)
    (folder / "driver").mkdir()
    for name, library in libraries.items():
        (folder / "driver" / name).symlink_to(library)
    return copy, {"LD_LIBRARY_PATH": str(folder / "driver")}


def describe_card(path: pathlib.Path, utilization: int, temperature: int, watts: int) -> None:
    """What the fake management library says from now on (tests/backend/fake_nvml.c reads this file)."""
    memory = "memory_used=15032385536\nmemory_total=150323855360\n"
    path.write_text(f"{memory}utilization={utilization}\ntemperature={temperature}\npower={watts * 1000}\nthrottle=0\necc=0\n")


def make_fake_gpu_machine(folder: pathlib.Path, program: pathlib.Path, fakes: pathlib.Path) -> tuple[pathlib.Path, dict]:
    """A machine whose GPU, with the card that folder/card describes, is a fake."""
    libraries = {"libcuda.so.1": fakes / "libfake_cuda_driver.so", "libnvidia-ml.so.1": fakes / "libfake_nvml.so"}
    copy, variables = make_gpu_machine(folder, program, fakes / "libfake_working.so", libraries)
    describe_card(folder / "card", 0, 35, 70)
    return copy, variables | {"FAKE_NVML_FILE": str(folder / "card"), "SIMILE_GPU_FAULT_JOURNAL": ""}


@contextlib.contextmanager
def running(program: pathlib.Path, *flags: str | pathlib.Path, port: int = 0, **variables: str):
    """`simile serve` with these flags, on ports of its own unless it gets one; stopped at the end."""
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen([program, "serve", "--port", str(port), "--metrics-port", "0", "--log-format", "json", *flags],
                                   env=environment(home, **variables), stderr=subprocess.PIPE, text=True)
        try:
            printed = []
            for line in process.stderr:
                printed.append(line)
                entry = json.loads(line)
                if entry["message"] == "listening":
                    break
            else:
                raise RuntimeError("the server ended before it listened:\n" + "".join(printed))
            threading.Thread(target=process.stderr.read, daemon=True).start()  # so that it never waits for its log
            yield Server(entry["address"], entry["metrics_address"], process)
        finally:
            process.terminate()
            process.wait()
