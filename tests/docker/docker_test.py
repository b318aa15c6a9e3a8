#!/usr/bin/env python3
"""The containers on a real engine, which this starts and stops itself (`make docker-test`).

  tests/docker/docker_test.py IMAGES [unittest's arguments]

IMAGES is a folder in which the engine keeps its images from one run to the next. Exits with 75 where no engine can be started, or
no GPU image be built for lack of a CUDA toolkit, after all else has passed: the last lines say why. No card is needed: the
runtime "nvidia" brings a fake driver (nvidia_runtime.py), and beside the real plug-in there is a fake one. images.py says which
variables choose images and cards. With GPU_IMAGE=optional a GPU image that cannot be built is skipped, with the end of its output.
"""

import errno
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import urllib.request

import cuda_image
import engine
import images
import served
from gpu_image_test import GpuImageTest  # unittest runs what this module names
from served import (COMPOSE, CPU_WANTED, EXPLAINS, GPU, NO_DRIVER, RESERVATIONS, ROOT, Project, ServedTest, await_true, figures,
                    inspect)

IMAGE_MEGABYTES = 150
SKIPPED = 75  # what .ci/run counts as skipped


def build_images() -> None:
    figures.extend((f"built: {what}", f"{seconds:.1f} s") for what, seconds in images.build_all(served.docker))
    try:
        took = images.build_gpu(served.docker)
    except cuda_image.NoToolkit as why:
        GpuImageTest.why_not_built = str(why)
    except AssertionError as why:
        if os.environ.get("GPU_IMAGE") != "optional":
            raise
        # Without the last line, in which docker repeats the command.
        GpuImageTest.why_not_built = "\n".join(str(why).strip().splitlines()[-12:-1])
    else:
        figures.extend((f"built: {what}", f"{seconds:.1f} s") for what, seconds in took)
    images.keep_first_build(served.docker)


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.image = json.loads(served.docker.docker("image", "inspect", "simile:cpu").stdout)[0]

    def sh(self, command: str) -> str:
        return served.docker.docker("run", "--rm", "--network", "none", "--entrypoint", "sh", "simile:cpu", "-c", command).stdout

    def test_is_small(self):
        megabytes = self.image["Size"] / 1e6
        figures.append(("image, uncompressed", f"{megabytes:.1f} MB"))
        self.assertLessEqual(megabytes, IMAGE_MEGABYTES)

    def test_runs_as_a_user_without_rights(self):
        self.assertEqual(self.image["Config"]["User"], "10001:10001")
        self.assertEqual(self.sh("id -u; id -g").split(), ["10001", "10001"])
        self.assertEqual(self.sh("find / -xdev -user 10001 2>/dev/null; true").split(), ["/var/lib/simile"])

    def test_has_no_compiler(self):
        tools = "cc gcc g++ c++ clang as ld make ninja cmake nvcc python3 git"
        self.assertEqual(self.sh(f"for tool in {tools}; do command -v $tool; done; true"), "")

    def test_is_labelled_with_its_version(self):
        labels = self.image["Config"]["Labels"]
        # Without a network, of which docker may print a warning.
        version = served.docker.docker("run", "--rm", "--network", "none", "simile:cpu", "--version").stdout.split()[1]
        self.assertEqual(labels["org.opencontainers.image.version"], version)
        self.assertEqual(labels["org.opencontainers.image.licenses"], "Apache-2.0")

    def test_lists_what_is_inside(self):
        document = json.loads(self.sh("cat /var/lib/db/sbom/simile.spdx.json"))
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        installed = self.sh("dpkg-query --show --showformat '${Package} ${Version}\\n'").splitlines()
        depends = {each["relatedSpdxElement"] for each in document["relationships"] if each["relationshipType"] == "DEPENDS_ON"}
        listed = [f"{each['name']} {each['versionInfo']}" for each in document["packages"] if each["SPDXID"] in depends]
        self.assertEqual(sorted(listed), sorted(installed))
        simile = document["packages"][0]
        self.assertEqual(simile["checksums"][0]["checksumValue"], self.sh("sha256sum /usr/local/bin/simile").split()[0])
        figures.append(("packages in the SBOM", str(len(document["packages"]))))


class CpuTest(ServedTest):
    def test_serves_without_rights_and_comes_back(self):
        project = self.bring_up("cpu", COMPOSE, tag="cpu")
        self.expect_the_cpu(project, CPU_WANTED)
        with urllib.request.urlopen(f"http://127.0.0.1:{project.metrics_port}/metrics", timeout=5) as reply:
            self.assertIn("simile_rows", reply.read().decode())
        self.expect_no_rights(project)
        host = inspect(project.container)["HostConfig"]
        self.assertEqual((host["Memory"], host["PidsLimit"]), (4 << 30, 512))
        for published in inspect(project.container)["NetworkSettings"]["Ports"].values():
            self.assertEqual([each["HostIp"] for each in published], ["127.0.0.1"])
        self.assertIn("cpu-tuning.json", project.execute("ls", "/var/lib/simile").stdout)

        self.expect_back_after_a_kill(project)
        start = time.monotonic()
        project.compose("stop")
        self.assertEqual(inspect(project.container)["State"]["ExitCode"], 0)
        figures.append(("cpu: docker-compose stop", f"{time.monotonic() - start:.1f} s"))

    # As on a machine of 64 processors: the number of threads follows the processors that the container may use.
    def test_counts_the_processors_it_may_use(self):
        with tempfile.TemporaryDirectory() as folder:
            pretended = pathlib.Path(folder) / "possible"
            pretended.write_text("0-63\n", encoding="utf-8")
            for cpus in (1, 2):
                counts = self.threads_under_load(cpus, pretended)
                figures.append((f"threads under load with --cpus {cpus} of 64",
                                ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))))
                # The server's own, most of them for parts of calls that wait their turn: "simile", "simile-io", "simile-resolve", ...
                own = [name for name in counts if name == "simile" or name.startswith("simile-")]
                self.assertLessEqual(sum(counts.pop(name) for name in own), 64)
                self.assertEqual(counts.pop("simile-io", 1), 1)
                self.assertLessEqual(sum(counts.values()), 4, counts)

    def threads_under_load(self, cpus: int, possible: pathlib.Path) -> dict[str, int]:
        """How many threads of each name a server with so many processors has, after a load of many connections."""
        container = served.docker.docker(
            "run", "--detach", "--cpus", cpus, "--network", "none", "--read-only", "--volume",
            f"{possible}:/sys/devices/system/cpu/possible:ro", "--volume", f"{ROOT}/examples/films:/data/films:ro", "simile:cpu",
            "serve", "--collection", "films=/data/films").stdout.strip()
        self.addCleanup(served.docker.docker, "rm", "--force", "--volumes", container)

        def execute(*command, check=True):
            return served.docker.docker("exec", container, *command, check=check)

        await_true(lambda: execute("simile", "health", check=False).returncode == 0, 30, "healthy")
        self.assertEqual(execute("getconf", "_NPROCESSORS_CONF").stdout.strip(), "64")
        self.assertRegex(served.docker.docker("logs", container).stdout, rf"engine \(.*, {min(cpus, os.cpu_count())} threads?\): ")
        execute("simile", "bench", "--connections", "32", "--in-flight", "256", "--duration", "2s", "--warm-up", "0s")
        counts: dict[str, int] = {}
        for thread in pathlib.Path(f"/proc/{inspect(container)['State']['Pid']}/task").iterdir():
            name = (thread / "comm").read_text(encoding="utf-8").strip()
            counts[name] = counts.get(name, 0) + 1
        return counts


class GpuTest(ServedTest):
    def test_serves_from_the_cpu_where_the_runtime_brings_no_driver(self):
        project = self.bring_up("nvidia-runtime", COMPOSE, GPU, tag="gpu-environment")
        container = inspect(project.container)
        self.assertEqual(container["HostConfig"]["Runtime"], "nvidia")
        self.assertLessEqual({"NVIDIA_VISIBLE_DEVICES=all", "CUDA_VISIBLE_DEVICES=0", "SIMILE_GPU_ON_FAULT=restart",
                              "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}, set(container["Config"]["Env"]))
        self.expect_the_cpu(project, NO_DRIVER, EXPLAINS)
        self.expect_back_after_a_kill(project)

    # The fake GPU is lost at the first search of each start: one by which the server measures its collection.
    def test_starts_on_the_cpu_after_three_faults_in_ten_minutes(self):
        project = self.bring_up("gpu-faults", COMPOSE, GPU, tag="gpu-fake")
        await_true(lambda: inspect(project.container)["RestartCount"] == 3, 90, "restarted three times")
        await_true(lambda: self.client.call(project, "health", check=False).returncode == 0, 30, "serves again")
        starts = project.starts()
        self.assertEqual([backend for backend, _ in starts], ["gpu", "gpu", "gpu", "cpu"])
        self.assertTrue(starts[-1][1].endswith(EXPLAINS), starts[-1][1])
        reason = starts[-1][1].removesuffix(EXPLAINS)
        self.assertIn("the GPU was lost 3 times in the last 10 minutes", reason)
        figures.append(("gpu-faults: the fourth start says", reason))
        for _ in range(3):
            self.assertEqual(self.client.query(project)["receipt"]["reason"], reason)
        self.assertEqual(inspect(project.container)["RestartCount"], 3)
        journal = project.execute("cat", "/var/lib/simile/gpu-faults.json").stdout
        self.assertEqual(journal.count('"reason"'), 3)

        # The journal outlives its container.
        project.compose("down")
        project.up()
        self.assertEqual(project.starts(), [("cpu", reason + EXPLAINS)])

    def test_reserves_a_device_where_the_toolkit_is(self):
        project = Project("reservations", COMPOSE, RESERVATIONS, tag="gpu-environment")
        self.addCleanup(project.down)
        refused = project.compose("up", "--detach", "--no-build", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('could not select device driver "nvidia" with capabilities: [[gpu]]', refused.stdout)
        project.down()
        self.addCleanup(served.docker.restart, with_toolkit=False)
        served.docker.restart(with_toolkit=True)
        project = self.bring_up("reservations", COMPOSE, RESERVATIONS, tag="gpu-environment")
        request = inspect(project.container)["HostConfig"]["DeviceRequests"][0]
        self.assertEqual((request["Driver"], request["DeviceIDs"], request["Capabilities"]), ("nvidia", ["0"], [["gpu"]]))
        self.expect_the_cpu(project, NO_DRIVER, EXPLAINS)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        served.docker = engine.Engine(pathlib.Path(sys.argv.pop(1)))
        try:
            served.docker.start()
            build_images()
            done = unittest.main(exit=False, verbosity=2).result
        finally:
            served.docker.remove()
    except engine.CannotStart as why:
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    except OSError as why:
        if why.errno != errno.ENOSPC:
            raise
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    width = max((len(what) for what, _ in figures), default=0)
    for what, figure in figures:
        print(f"{what:{width}}  {figure}")
    if not done.wasSuccessful():
        sys.exit(1)
    if done.skipped:
        print(f"skipped: {done.skipped[0][1]}")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
