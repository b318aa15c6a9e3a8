"""A Docker engine of the test's own: its folders, socket and runtimes are apart from any engine of the machine."""

import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time

READY_SECONDS = 30
SPACE_BYTES = 8 << 30  # on the disk of the images: they take half of it, and making them the rest
STOP_SECONDS = 30
NEEDED = {"dockerd": "docker.io", "docker": "docker.io", "docker-compose": "docker-compose", "runc": "docker.io",
          "ip": "iproute2"}
BRIDGE_ADDRESS = "10.213.213.1/24"
PATH = "/usr/sbin:/sbin:" + os.environ.get("PATH", "/usr/bin:/bin")
NVIDIA_RUNTIME = pathlib.Path(__file__).resolve().parent / "nvidia_runtime.py"
HOOK = "nvidia-container-runtime-hook"  # the engine looks for the toolkit's hook by this name
DRIVER_VERSION = "580.65.06"


class CannotStart(Exception):
    """Why there is no engine here."""


def find(program: str) -> str | None:
    return shutil.which(program, path=PATH)


class Engine:
    """Starts dockerd. Images stay in `images` from one run to the next; all else is temporary.

    A bridge of its own (with none, dockerd would remove docker0, another engine's) and no iptables: the machine's network
    stays as it is. Networks that compose makes are reached through ports published on loopback; builds use the machine's.
    """

    def __init__(self, images: pathlib.Path):
        if os.geteuid() != 0:
            raise CannotStart("an engine needs root")
        missing = sorted({package for program, package in NEEDED.items() if find(program) is None})
        if missing:
            raise CannotStart(f"not installed: {', '.join(missing)} (packages/install deploy)")
        self.images = images.resolve()
        self.images.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.images.parent).free
        if not self.images.exists() and free < SPACE_BYTES:
            raise CannotStart(f"{self.images.parent} has {free / 1e9:.1f} GB free, and images need {SPACE_BYTES / 1e9:.1f}")
        # Short, because the path of a socket has at most 107 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="engine-"))
        self.socket = self.folder / "socket"
        self.log = self.folder / "log"
        self.host = self.folder / "host"  # the driver that the runtime "nvidia" brings: see nvidia_runtime.py
        self.bridge = f"engine{os.getpid()}"
        self.process: subprocess.Popen | None = None

    def scratch(self) -> tempfile.TemporaryDirectory:
        """A folder for what images are made of, on their disk: the machine's own folder for temporary files may be in memory."""
        return tempfile.TemporaryDirectory(prefix="images-", dir=self.images.parent)

    def _make_bridge(self) -> None:
        for command in (f"link add name {self.bridge} type bridge", f"address add {BRIDGE_ADDRESS} dev {self.bridge}",
                        f"link set {self.bridge} up"):
            done = subprocess.run([find("ip"), *command.split()], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise CannotStart(f"no network bridge can be made: {done.stderr.strip()}")

    def _write_program(self, name: str, role: str) -> pathlib.Path:
        program = self.folder / role / name
        program.parent.mkdir(exist_ok=True)
        words = shlex.join([sys.executable, "-B", str(NVIDIA_RUNTIME), str(self.host), role])
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        return program

    def install_driver(self, compute: pathlib.Path, utility: pathlib.Path, cards: int = 1, version: str = DRIVER_VERSION) -> None:
        """Of this engine's runtime "nvidia" alone, until remove_driver.

          compute, utility  the libraries libcuda and libnvidia-ml
        The nodes are /dev/null's, which every container may open.
        """
        self.remove_driver()
        for capability, name, source in (("compute", "libcuda", compute), ("utility", "libnvidia-ml", utility)):
            (self.host / capability).mkdir(parents=True)
            shutil.copyfile(source, self.host / capability / f"{name}.so.{version}")
            (self.host / capability / f"{name}.so.1").symlink_to(f"{name}.so.{version}")
        (self.host / "dev").mkdir()
        for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{card}" for card in range(cards))):
            os.mknod(self.host / "dev" / name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            (self.host / "dev" / name).chmod(0o666)

    def remove_driver(self) -> None:
        shutil.rmtree(self.host, ignore_errors=True)

    def start(self, with_toolkit: bool = False) -> None:
        """Returns when the engine answers.

        `with_toolkit`: the engine finds the hook of the NVIDIA Container Toolkit, which serves reserved devices. Always: a runtime
        "nvidia". Both are nvidia_runtime.py, which adds nothing to a container until install_driver.
        """
        if not pathlib.Path("/sys/class/net", self.bridge).exists():
            self._make_bridge()
        path = PATH
        if with_toolkit:
            path = f"{self._write_program(HOOK, 'hook').parent}:{PATH}"
        command = [find("dockerd"), "--data-root", self.images, "--exec-root", self.folder / "exec",
                   "--pidfile", self.folder / "pid", "--host", f"unix://{self.socket}", "--bridge", self.bridge,
                   "--iptables=false", "--ip6tables=false", "--ip-forward=false",
                   "--add-runtime", f"nvidia={self._write_program('nvidia', 'runtime')}"]
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={**os.environ, "PATH": path})
        until = time.monotonic() + READY_SECONDS
        while self.docker("version", check=False).returncode != 0:
            if not self.runs_on(0.1) or time.monotonic() > until:
                last_lines = self.log.read_text(encoding="utf-8").splitlines()[-3:]
                self.stop()
                raise CannotStart("dockerd does not start: " + " | ".join(last_lines))

    def restart(self, with_toolkit: bool) -> None:
        self.stop()
        self.start(with_toolkit)

    def runs_on(self, seconds: float) -> bool:
        """Waits; False at once when the engine ends."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def stop(self) -> None:
        """Ends the engine and, through it, its containerd."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def remove(self) -> None:
        self.stop()
        # dockerd leaves the network namespace that it shares with the machine mounted.
        for left in [*self.folder.glob("exec/netns/*")]:
            subprocess.run(["umount", "--lazy", left], capture_output=True, check=False)
        subprocess.run([find("ip"), "link", "delete", self.bridge], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command, check=True, timeout=600, environment=None, **options) -> subprocess.CompletedProcess:
        """A program that talks to this engine."""
        own = {"DOCKER_HOST": f"unix://{self.socket}", "DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0", "PATH": PATH}
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False,
                              env={**os.environ, **own, **(environment or {})}, **options)
        if check and done.returncode != 0 and "no space left on device" in done.stdout:
            raise CannotStart(f"no space left on the disk of {self.images}: {' '.join(str(word) for word in command)}")
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(str(word) for word in command)}: {done.returncode}\n{done.stdout[-4000:]}")
        return done

    def docker(self, *arguments, **options) -> subprocess.CompletedProcess:
        return self.run("docker", *arguments, **options)
