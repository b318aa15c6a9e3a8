"""Compose projects on the test's engine, for the tests of docker_test.py and gpu_image_test.py."""

import datetime
import json
import pathlib
import re
import signal
import sys
import time
import unittest

import engine
import images

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import servers

ROOT = images.ROOT
COMPOSE = ROOT / "docker" / "compose.yaml"
GPU = ROOT / "docker" / "compose.gpu.yaml"
RESERVATIONS = ROOT / "docker" / "compose.gpu-reservations.yaml"
QUERY = ["similar", "--title", "Toy Story", "-k", "3", "--json"]
# The end of a start's line where a GPU was wanted.
EXPLAINS = "; `simile doctor` explains"
CPU_WANTED = "the configuration asks for the CPU"
NO_DRIVER = "no NVIDIA driver on this machine (libcuda.so.1 not found)"

docker: engine.Engine  # of the whole run; set before its first test
figures: list[tuple[str, str]] = []


def await_true(holds, seconds: float, what: str) -> float:
    """servers.await_true, as long as the engine runs."""
    def pause(pause_seconds: float) -> None:
        if not docker.runs_on(pause_seconds):
            raise AssertionError(f"the engine ended before: {what}")

    return servers.await_true(holds, seconds, what, pause)


def inspect(container: str) -> dict:
    return json.loads(docker.docker("inspect", container).stdout)[0]


class Project:
    """`docker-compose up` of some of the files, under a name and on ports of its own; `variables` are the files' own."""

    def __init__(self, name: str, *files: pathlib.Path, tag: str, **variables: str):
        self.name = name
        self.command = ["docker-compose", "--project-name", name, *[word for file in files for word in ("--file", file)]]
        self.port, self.metrics_port = str(servers.steady_port()), str(servers.steady_port())
        self.environment = {"TAG": tag, "PORT": self.port, "METRICS_PORT": self.metrics_port, **variables}

    def compose(self, *arguments, check=True):
        return docker.run(*self.command, *arguments, check=check, environment=self.environment)

    def up(self) -> float:
        """Returns how many seconds after its start the container was healthy."""
        self.compose("up", "--detach", "--no-build")
        self.container = self.compose("ps", "--quiet", "simile").stdout.split()[-1]
        started = inspect(self.container)["State"]["StartedAt"][:26]  # "2026-11-23T06:15:34.123456", and nanoseconds
        await_true(lambda: inspect(self.container)["State"]["Health"]["Status"] == "healthy", 60, "healthy")
        return time.time() - datetime.datetime.fromisoformat(started + "+00:00").timestamp()

    def down(self):
        self.compose("down", "--volumes", "--timeout", "10")

    def execute(self, *command, check=True):
        return docker.docker("exec", self.container, *command, check=check)

    def starts(self) -> list[tuple[str, str]]:
        """Of each start, the engine that answers ("cpu") and what its line says of the reason."""
        return re.findall(r"^simile \S+  (\w+) engine \(.*?\): (.*)$", docker.docker("logs", self.container).stdout,
                          re.MULTILINE)


class Client:
    """A container on the machine's network that calls servers on their published ports."""

    def __init__(self):
        self.container = docker.docker("run", "--detach", "--network", "host", "--entrypoint", "sleep", "simile:cpu",
                                       "infinity").stdout.strip()

    def stop(self):
        docker.docker("rm", "--force", self.container)

    def call(self, project: Project, *command, check=True):
        return docker.docker("exec", self.container, "simile", *command, "--server", f"127.0.0.1:{project.port}",
                             check=check)

    def query(self, project: Project) -> dict:
        return json.loads(self.call(project, *QUERY).stdout)

    def answers(self, project: Project) -> bool:
        return self.call(project, *QUERY, check=False).returncode == 0


class ServedTest(unittest.TestCase):
    """Helpers of the tests that bring a compose project up."""

    def bring_up(self, name: str, *files: pathlib.Path, tag: str, **variables: str) -> Project:
        project = Project(name, *files, tag=tag, **variables)
        self.addCleanup(project.down)
        figures.append((f"{name}: start to healthy", f"{project.up():.1f} s (asked of a calm machine: 5)"))
        self.client = Client()
        self.addCleanup(self.client.stop)
        return project

    def expect_no_rights(self, project: Project) -> None:
        self.assertEqual(project.execute("id", "-u").stdout.strip(), "10001")
        for file in ["/here", "/usr/local/bin/here", "/data/films/here"]:
            refused = project.execute("touch", file, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("Read-only file system", refused.stdout)
        status = project.execute("cat", "/proc/1/status").stdout
        self.assertRegex(status, r"CapEff:\t0+\n")
        self.assertRegex(status, r"CapBnd:\t0+\n")
        self.assertIn("NoNewPrivs:\t1", status)

    def expect_the_cpu(self, project: Project, reason: str, line_end: str = "") -> None:
        answer = self.client.query(project)
        self.assertIn("Toy Story 2", json.dumps(answer))
        self.assertEqual(answer["receipt"]["backend"], "cpu")
        self.assertIn(reason, answer["receipt"]["reason"])
        self.assertEqual(project.starts(), [("cpu", reason + line_end)])
        figures.append((f"{project.name}: says", reason))

    def expect_back_after_a_kill(self, project: Project) -> None:
        before = inspect(project.container)
        servers.send_signal(before["State"]["Pid"], signal.SIGKILL)
        seconds = await_true(lambda: inspect(project.container)["RestartCount"] == before["RestartCount"] + 1
                             and self.client.answers(project), 30, "answers after kill -9")
        figures.append((f"{project.name}: kill -9 to answering", f"{seconds:.1f} s (asked of a calm machine: 5)"))
