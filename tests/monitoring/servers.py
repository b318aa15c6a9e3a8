"""Starts real servers for tests: the built program, on this machine, or as on one with a GPU (a fake driver and plug-in)."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
import threading

@dataclasses.dataclass
class Server:
    address: str
    metrics_address: str
    process: subprocess.Popen


def describe_card(path: pathlib.Path, utilization: int, temperature: int, watts: int) -> None:
    """What the fake management library says from now on (tests/backend/fake_nvml.c reads this file)."""
    memory = "memory_used=15032385536\nmemory_total=150323855360\n"
    path.write_text(f"{memory}utilization={utilization}\ntemperature={temperature}\npower={watts * 1000}\nthrottle=0\necc=0\n")


def make_gpu_machine(folder: pathlib.Path, program: pathlib.Path, fakes: pathlib.Path) -> tuple[pathlib.Path, dict]:
    """Lays out a machine with a GPU; returns its program and environment. (tests/integration/gpu_machine.cpp in Python.)"""
    # Not a symbolic link, because the program looks for its plug-in in its own folder.
    copy = folder / "simile"
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    (folder / "libsimile_cuda.so").symlink_to(fakes / "libfake_working.so")
    (folder / "driver").mkdir()
    (folder / "driver/libcuda.so.1").symlink_to(fakes / "libfake_cuda_driver.so")
    (folder / "driver/libnvidia-ml.so.1").symlink_to(fakes / "libfake_nvml.so")
    describe_card(folder / "card", 0, 35, 70)
    return copy, {"LD_LIBRARY_PATH": str(folder / "driver"), "FAKE_NVML_FILE": str(folder / "card"), "SIMILE_GPU_FAULT_JOURNAL": ""}


@contextlib.contextmanager
def running(program: pathlib.Path, *flags: str, environment: dict | None = None):
    """`simile serve` with these flags, on ports of its own; stopped at the end."""
    with tempfile.TemporaryDirectory() as home:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SIMILE_")}
        process = subprocess.Popen([program, "serve", "--port", "0", "--metrics-port", "0", "--log-format", "json", *flags],
                                   env=clean | {"HOME": home} | (environment or {}), stderr=subprocess.PIPE, text=True)
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
