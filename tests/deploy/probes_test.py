#!/usr/bin/env python3
"""Lets the probes of deploy/kubernetes ask real servers: while they load, drain, and lose their GPU.

    probes_test.py SIMILE HOLD_READS [EMULATED_GPU EMULATED_CUDA FAKE_DRIVER] [--real-time]

HOLD_READS is the built hold_reads.c. The others are the GPU plug-in on the emulated device and what it needs; without them the
tests of a GPU are skipped. The load, and the probes that ask meanwhile, are ten times as fast as the manifest says, unless
--real-time; a drain takes its time.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import manifests
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}; it is Debian's python3-yaml")
    sys.exit(77)
from prober import Prober, ask
from servers import await_true, environment, make_gpu_machine, steady_port

SPEED = 1 if "--real-time" in sys.argv else 10
SIMILE, HOLD_READS, *GPU = [pathlib.Path(word) for word in sys.argv[1:] if word != "--real-time"]
LOAD_SECONDS = 60  # of the manifest
# How long a wait may take that should take next to nothing, on a busy machine.
PATIENCE_SECONDS = 60
# Far above what a search takes on the emulated device: 0.4 s on a busy machine.
BATCH_TIMEOUT_MS = 10_000
CONTAINER = manifests.container(manifests.written())
GRACE_SECONDS = manifests.pod(manifests.written())["terminationGracePeriodSeconds"]


class Server:
    """`simile serve` with the settings of the manifests, on this machine."""

    def __init__(self, folder: pathlib.Path, program: pathlib.Path = SIMILE, **variables):
        if not (folder / "data").exists():
            settings = json.loads(manifests.moved(manifests.settings_text("kubernetes/base"), "/data", folder))
            for part in ("server", "metrics"):
                settings[part]["listen"] = "127.0.0.1"
            (folder / "simile.json").write_text(json.dumps(settings))
        port, metrics_port = steady_port(), steady_port()  # known before it listens, for the probes of its start
        self.address, self.metrics_address = f"127.0.0.1:{port}", f"127.0.0.1:{metrics_port}"
        self._log = open(folder / "log", "a", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "serve", "--config", folder / "simile.json", "--port", str(port), "--metrics-port", str(metrics_port)],
            env=environment(folder, **variables), stdout=self._log, stderr=self._log)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self._log.close()

    def ready(self) -> tuple[bool, str]:
        return ask(self.metrics_address, "/readyz", 5)

    def await_ready(self) -> None:
        await_true(lambda: self.ready()[0] or self.process.poll() is not None, PATIENCE_SECONDS, "the server is ready")

    def search(self) -> dict:
        """The receipt of a search."""
        command = [SIMILE, "similar", "--id", "toy-story-1995", "--json", "--server", self.address, "--timeout", str(PATIENCE_SECONDS)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise AssertionError(f"the search failed: {result.stderr}")
        return json.loads(result.stdout)["receipt"]


class ProbesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_load_of_a_minute_is_not_killed_and_gets_no_calls(self):
        go = self.folder / "go"
        server = self.enterContext(Server(self.folder, LD_PRELOAD=str(HOLD_READS), HOLD_READS_OF="/content_vectors.npy",
                                          HOLD_READS_UNTIL=str(go)))
        prober = self.enterContext(Prober(CONTAINER, server.metrics_address, SPEED))
        began = time.monotonic()
        threading.Timer(LOAD_SECONDS / SPEED, go.touch).start()
        await_true(lambda: prober.ready or prober.killed_by, LOAD_SECONDS / SPEED + PATIENCE_SECONDS, "the server is ready")
        loaded_seconds = (time.monotonic() - began) * SPEED
        self.assertIsNone(prober.killed_by)
        self.assertIsNone(server.process.poll())
        self.assertGreaterEqual(loaded_seconds, LOAD_SECONDS)
        self.assertGreater(len(prober.of("liveness")), 3)
        refusals = {answer.text for answer in prober.of("readiness") if not answer.passed}
        self.assertTrue(any(text.startswith("loading films, ") for text in refusals), refusals)
        print(f"a load of {loaded_seconds:.0f} s: {len(prober.of('liveness'))} liveness and {len(prober.of('readiness'))} "
              f"readiness probes, not killed; {sorted(refusals)}")

    def test_a_drain_is_noticed_answers_and_is_not_killed(self):
        server = self.enterContext(Server(self.folder))
        prober = self.enterContext(Prober(CONTAINER, server.metrics_address, speed=1))
        await_true(lambda: prober.ready, PATIENCE_SECONDS, "the server is ready")
        server.process.terminate()
        stopped = time.monotonic()
        await_true(lambda: not prober.ready, PATIENCE_SECONDS, "the drain is noticed")
        noticed_seconds = time.monotonic() - stopped
        self.assertEqual(server.ready(), (False, "draining"))
        self.assertEqual(server.search()["backend"], "cpu")
        self.assertIsNone(prober.killed_by)
        self.assertEqual(server.process.wait(GRACE_SECONDS), 0)
        took_seconds = time.monotonic() - stopped
        self.assertIsNone(prober.killed_by)
        self.assertLess(took_seconds, GRACE_SECONDS)
        print(f"a drain: noticed after {noticed_seconds:.1f} s, ended with 0 after {took_seconds:.1f} of {GRACE_SECONDS} s")


@unittest.skipUnless(GPU and all(part.is_file() for part in GPU), "built without the emulated device")
class GpuProbesTest(unittest.TestCase):
    """The real GPU engine on a device that hangs when a test says so."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        plugin, cuda, driver = GPU
        self.program, self.variables = make_gpu_machine(self.folder, SIMILE, plugin,
                                                        {"libcublas.so.13": cuda, "libcuda.so.1": driver})
        self.hang = self.folder / "hang"

    def server(self, on_fault: str) -> Server:
        # The emulated device is small and slow.
        server = Server(self.folder, self.program, EMULATED_CUDA_HANG_FILE=str(self.hang), SIMILE_BACKEND_PREFERENCE="auto",
                        SIMILE_GPU_ON_FAULT=on_fault, SIMILE_GPU_RESERVE_MIB="0",
                        SIMILE_GPU_BATCH_TIMEOUT=str(BATCH_TIMEOUT_MS), SIMILE_LIMITS_SEARCH_DEADLINE_DEFAULT="60000",
                        SIMILE_LIMITS_SEARCH_DEADLINE_MAX="60000", **self.variables)
        return self.enterContext(server)

    def test_a_hung_device_ends_the_server_with_75_and_a_supervisor_has_it_back(self):
        server = self.server("restart")
        server.await_ready()  # the emulated device starts slowly, and the prober is SPEED times as fast as a kubelet
        with Prober(CONTAINER, server.metrics_address, SPEED) as prober:
            await_true(lambda: prober.ready, PATIENCE_SECONDS, "the server is ready")
            self.assertEqual(server.search()["backend"], "gpu")
            self.hang.touch()
            hung = time.monotonic()
            self.assertEqual(server.search()["backend"], "cpu", "the call that meets the hang is answered")
            answered_seconds = time.monotonic() - hung
            # One late batch may be another process's work; after the second the device counts as lost.
            self.assertEqual(server.search()["backend"], "cpu")
            self.assertEqual(server.process.wait(GRACE_SECONDS), 75)
            ended_seconds = time.monotonic() - hung
            self.assertIsNone(prober.killed_by)
        self.hang.unlink()  # a new process has the device again
        again = self.server("restart")
        again.await_ready()
        self.assertEqual(again.search()["backend"], "gpu")
        print(f"a hung device: the call answered by the CPU after {answered_seconds:.1f} s, ended with 75 after "
              f"{ended_seconds:.1f} s, answers from the GPU after {time.monotonic() - hung:.1f} s")

    def test_a_hung_device_leaves_the_server_on_the_cpu_with_failover(self):
        server = self.server("failover")
        server.await_ready()  # the emulated device starts slowly, and the prober is SPEED times as fast as a kubelet
        with Prober(CONTAINER, server.metrics_address, SPEED) as prober:
            await_true(lambda: prober.ready, PATIENCE_SECONDS, "the server is ready")
            self.assertEqual(server.search()["backend"], "gpu")
            self.hang.touch()
            for _ in range(3):
                self.assertEqual(server.search()["backend"], "cpu")
            answers = len(prober.of("readiness"))
            await_true(lambda: len(prober.of("readiness")) > answers + 1, PATIENCE_SECONDS, "two more probes")
            self.assertTrue(prober.ready)
            self.assertIsNone(prober.killed_by)
            self.assertIsNone(server.process.poll())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
