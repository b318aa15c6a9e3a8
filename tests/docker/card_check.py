#!/usr/bin/env python3
"""The GPU image on a machine that has a card and no engine for containers: its root, unpacked and entered with chroot.

    make docker-test                                                        leaves build/gpu-image-root.tar.xz
    python3 -B tests/docker/card_check.py build/gpu-image-root.tar.xz       there, as root; a Python is all it needs
    python3 -B tests/docker/card_check.py --plan                            the steps and their seconds

The archive is the image without cuBLAS, so batches take several scans. The driver's libraries and device nodes of this machine
are bound into the root, or copied where mounting is refused. Programs run as the image's user, without rights. Exits with 0 when
every step passed, 1 when one did not: what follows from it is not run.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER = 10001
PLACE = "usr/lib/x86_64-linux-gnu"  # of libraries, in the root
DRIVER_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4",
                    "libnvidia-gpucomp.so.*", "libcudadebugger.so.1")
LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64", "/usr/lib64", "/usr/lib", "/usr/local/cuda/compat")
# Planned seconds on a machine with 16 cores, and the limit. Estimated: no card has run them yet.
STEPS = {"unpack": (10, 60), "driver": (1, 10), "versions": (2, 20), "doctor": (8, 30), "serve": (12, 60), "ask": (2, 20),
         "batch": (8, 40), "verify": (5, 60), "stop": (2, 20)}
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG = 38, 1


class Failed(Exception):
    """The text is for a person."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=pathlib.Path, nargs="?", help="the image's root")
    parser.add_argument("--films", type=pathlib.Path, default=ROOT / "examples/films",
                        help="the collection; default examples/films")
    parser.add_argument("--engine", choices=("gpu", "cpu"), default="gpu",
                        help="what receipts must name; cpu for a dry run; default gpu")
    parser.add_argument("--reason", default="", help="words that the reason of receipts must have")
    parser.add_argument("--driver", type=pathlib.Path, help="a folder with libcuda.so.1 in place of this machine's driver")
    parser.add_argument("--no-mount", action="store_true", help="copy, as where mounting is refused")
    parser.add_argument("--plan", action="store_true", help="print the steps and their seconds, and end")
    return parser.parse_args()


def plan() -> str:
    lines, spent_s = [], 0
    for name, (planned_s, limit_s) in STEPS.items():
        spent_s += planned_s
        lines.append(f"{name:10} {planned_s:3} s, at most {limit_s:3}, done by {spent_s:3}")
    return "\n".join(lines)


class Chroot:
    """The image's root, with this machine's driver."""

    def __init__(self, root: pathlib.Path, arguments: argparse.Namespace):
        self.root = root
        self.arguments = arguments
        # Of this process and its children alone (see in_child).
        self.mounts = not arguments.no_mount and LIBC.unshare(CLONE_NEWNS) == 0 and LIBC.mount(
            b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0

    def unpack(self) -> str:
        trusted = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}  # of Python 3.12 and later
        with tarfile.open(self.arguments.archive) as archive:
            archive.extractall(self.root, numeric_owner=True, **trusted)
        shutil.copytree(self.arguments.films, self.root / "data/films")
        size = self.arguments.archive.stat().st_size
        return f"{size / 1e6:.1f} MB"

    def bring(self, source: pathlib.Path, place: pathlib.Path) -> None:
        """Binds a file or folder, or copies a file."""
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        state = source.stat()
        if self.mounts:
            place.touch()
            if LIBC.mount(bytes(source), bytes(place), None, MS_BIND, None) == 0:
                return
            place.unlink()
        if stat.S_ISCHR(state.st_mode):
            try:
                os.mknod(place, stat.S_IFCHR | 0o666, state.st_rdev)
                place.chmod(0o666)
            except OSError as error:
                raise Failed(f"{source} can neither be bound nor made again in the root: {error.strerror}") from error
        else:
            shutil.copyfile(source, place)
            place.chmod(0o755)

    def library_folders(self) -> list[pathlib.Path]:
        """Where this machine's programs would find its driver, first first."""
        if self.arguments.driver:
            return [self.arguments.driver]
        named = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout if shutil.which(
            "ldconfig") else ""
        cached = [os.path.dirname(path) for path in re.findall(r"libcuda\.so\.1 .*x86-64.*=> (\S+)", listed)]
        return [pathlib.Path(folder) for folder in dict.fromkeys([*named, *cached, *LIBRARY_FOLDERS])]

    def bring_driver(self) -> str:
        folders = self.library_folders()
        libraries: dict[str, pathlib.Path] = {}
        for folder in folders:
            for pattern in DRIVER_LIBRARIES:
                for path in folder.glob(pattern):
                    libraries.setdefault(path.name, path.resolve())
        if "libcuda.so.1" not in libraries:
            raise Failed(f"no libcuda.so.1 in {', '.join(map(str, folders))}: this machine has no NVIDIA driver")
        for name, path in libraries.items():
            self.bring(path, self.root / PLACE / name)
        nodes = [path for path in pathlib.Path("/dev").glob("nvidia*") if path.is_char_device()]
        for node in [*nodes, *(pathlib.Path("/dev", name) for name in ("null", "zero", "urandom"))]:
            self.bring(node, self.root / "dev" / node.name)
        (self.root / "proc").mkdir(exist_ok=True)
        if not (self.mounts and LIBC.mount(b"/proc", bytes(self.root / "proc"), None, MS_BIND | MS_REC, None) == 0):
            self.copy_process_information()
        return f"{'bound' if self.mounts else 'copied'}: {len(libraries)} libraries, {len(nodes)} device nodes"

    def copy_process_information(self) -> None:
        """What the program and the driver read there, as it is now."""
        (self.root / "proc/self").mkdir(parents=True, exist_ok=True)
        (self.root / "proc/self/exe").symlink_to("/usr/local/bin/simile")
        proc = pathlib.Path("/proc")
        for name in ("meminfo", "cpuinfo", "devices", "modules", "version", "driver/nvidia/version", "driver/nvidia/params"):
            with contextlib.suppress(OSError):
                text = (proc / name).read_bytes()
                (self.root / "proc" / name).parent.mkdir(parents=True, exist_ok=True)
                (self.root / "proc" / name).write_bytes(text)

    def _enter(self) -> None:
        """In the child, before it becomes the program: as compose starts it, but for its name spaces."""
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.chroot(self.root)
        os.chdir("/")
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

    def start(self, *words: str, **options) -> subprocess.Popen:
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "XDG_CACHE_HOME": "/var/lib", "XDG_STATE_HOME": "/var/lib"}
        inherited = {name: value for name, value in os.environ.items() if name.startswith(("CUDA_", "FAKE_"))}
        return subprocess.Popen(["/usr/local/bin/simile", *words], env=inherited | variables, preexec_fn=self._enter, text=True,
                                stdin=subprocess.DEVNULL, **options)

    def run(self, limit_s: float, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        process = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failed(f"simile {words[0]}: no end within {limit_s} s") from None
        if process.returncode not in codes:
            raise Failed(f"simile {' '.join(words)} exits with {process.returncode}: {said.strip()[-2000:]}")
        return said


class Check:
    """The steps, in order: each method's words are what its line says."""

    def __init__(self, chroot: Chroot, arguments: argparse.Namespace, log: pathlib.Path):
        self.chroot, self.arguments, self.log = chroot, arguments, log
        self.server: subprocess.Popen | None = None
        self.address = ""

    def unpack(self, limit_s: float) -> str:
        return self.chroot.unpack()

    def driver(self, limit_s: float) -> str:
        return self.chroot.bring_driver()

    def versions(self, limit_s: float) -> str:
        said = self.chroot.run(limit_s, "--version", "--verbose").splitlines()
        return "; ".join([said[0], *(line.strip() for line in said if "libsimile_cuda" in line)])

    def doctor(self, limit_s: float) -> str:
        on_gpu = self.arguments.engine == "gpu"
        said = self.chroot.run(limit_s, "doctor", codes=(0,) if on_gpu else (1,))
        print(said, end="")
        return said.splitlines()[-1]

    def serve(self, limit_s: float) -> str:
        backend = "gpu" if self.arguments.engine == "gpu" else "auto"
        with self.log.open("w", encoding="utf-8") as log:
            self.server = self.chroot.start("serve", "--collection", "films=/data/films", "--backend", backend, "--port", "0",
                                            "--no-metrics", stdout=log, stderr=log)
        until = time.monotonic() + limit_s
        while not (found := re.search(r"listening on (\S+:\d+)", said := self.log.read_text(encoding="utf-8"))):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.server.wait(0.02)
            if self.server.returncode is not None or time.monotonic() > until:
                said = self.log.read_text(encoding="utf-8").strip()
                raise Failed(f"the server does not listen (status {self.server.returncode}): {said[-2000:]}")
        self.address = found[1]
        return next(line for line in said.splitlines() if line.startswith("simile "))

    def ask_server(self, limit_s: float, *words: str) -> str:
        return self.chroot.run(limit_s, *words, "--server", self.address)

    def expect_receipt(self, answer: dict) -> str:
        receipt = answer["receipt"]
        if receipt["backend"] != self.arguments.engine or self.arguments.reason not in receipt["reason"]:
            raise Failed(f'the receipt says backend {receipt["backend"]}: {receipt["reason"]}')
        return f'receipt {receipt["backend"]}: {receipt["reason"]}'

    def ask(self, limit_s: float) -> str:
        answer = json.loads(self.ask_server(limit_s, "similar", "--title", "Toy Story", "-k", "5", "--json"))
        if "Toy Story 2" not in json.dumps(answer):
            raise Failed(f"Toy Story 2 is not among the neighbours of Toy Story: {json.dumps(answer)[:500]}")
        return self.expect_receipt(answer)

    def load(self, limit_s: float, duration: str, *words: str) -> dict:
        return json.loads(self.ask_server(limit_s, "bench", "--batch", "100", "--in-flight", "1", "--duration", duration,
                                          "--warm-up", "0.5s", *words, "--json"))["runs"][0]

    def batch(self, limit_s: float) -> str:
        """Times calls of 100 queries; then compares about ten of them, because a comparison takes longer than an answer."""
        run = self.load(limit_s, "2s")
        backends = [*run["receipts"]["backends"]]
        if not all(backend.startswith(self.arguments.engine) for backend in backends):
            raise Failed(f'calls of 100 are answered by {", ".join(backends)}')
        if run["calls_per_s"] == 0:
            raise Failed("no call of 100 ended within 2 s")
        verified = self.load(limit_s, "1s", "--verify", f'{min(1, 10 / run["calls_per_s"]):.6f}')["verify"]
        if verified["compared"] == 0 or verified["wrong"] > 0:
            raise Failed(f'{verified["wrong"]} of {verified["compared"]} answers that were compared are wrong')
        return (f'{run["queries_per_s"]:,.0f} queries/s in calls of 100 by {", ".join(backends)}; '
                f'{verified["compared"]} answers compared, none wrong')

    def verify(self, limit_s: float) -> str:
        return self.ask_server(limit_s, "verify", "--folder", "/data/films").splitlines()[-1]

    def stop(self, limit_s: float) -> str:
        self.server.terminate()
        try:
            code = self.server.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"the server does not stop within {limit_s} s") from None
        if code != 0:
            raise Failed(f"the server ends with {code}: {self.log.read_text(encoding='utf-8')[-2000:]}")
        return "status 0"

    def run_all(self) -> int:
        try:
            for name, (_, limit_s) in STEPS.items():
                start = time.monotonic()
                try:
                    said = getattr(self, name)(limit_s)
                except Failed as failure:
                    print(f"{name:10} FAILED after {time.monotonic() - start:.1f} s  {failure}", flush=True)
                    return 1
                print(f"{name:10} passed {time.monotonic() - start:5.1f} s  {said}", flush=True)
            return 0
        finally:
            if self.server is not None and self.server.poll() is None:
                self.server.kill()
                self.server.wait()


def check(work: pathlib.Path, arguments: argparse.Namespace) -> int:
    root = work / "root"
    root.mkdir()
    return Check(Chroot(root, arguments), arguments, work / "log").run_all()


def in_child(run: Callable[[], int]) -> int:
    """What it mounts ends with it, so that this process may remove the folder: below a mount lies the machine itself."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = run()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> int:
    arguments = parse()
    if arguments.plan:
        print(plan())
        return 0
    if arguments.archive is None or not arguments.archive.exists():
        print(f"error: no archive{f' {arguments.archive}' if arguments.archive else ''}: `make docker-test` leaves "
              "build/gpu-image-root.tar.xz", file=sys.stderr)
        return 1
    if os.geteuid() != 0:
        print("error: chroot needs root", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        return in_child(lambda: check(pathlib.Path(work), arguments))


if __name__ == "__main__":
    sys.exit(main())
