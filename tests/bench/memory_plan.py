#!/usr/bin/env python3
"""What `simile plan` says of the host's memory, beside what a server's process takes: at rest, and at the peak of a reload.

    python3 tests/bench/memory_plan.py                          # examples/films and made-up collections
    python3 tests/bench/memory_plan.py FOLDER... --threads 2    # others

Serves each collection from a copy on the CPU, reads its resident memory from /proc, changes collection.json and reloads.
Prints a table and exits with 1 where a plan is off by more than 5 %.
"""

import argparse
import array
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OFF_MAX = 0.05
RELOADS = 2
WAIT_S = 300
# Memory is at rest when it has not fallen by more during so many calls.
CALM_CALLS = 40
CALM_BYTES = 1 << 20


def write_vectors(path: pathlib.Path, rows: int, dim: int, source: random.Random) -> None:
    """Rows that are different windows of one block of random numbers."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    block = array.array("f", (source.gauss(0, 1) for _ in range(dim * 61 + 4099))).tobytes()
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for _ in range(rows):
            start = 4 * source.randrange(len(block) // 4 - dim)
            file.write(block[start:start + 4 * dim])


def write_collection(folder: pathlib.Path, rows: int, dim: int, text_words: int, users: int) -> None:
    folder.mkdir()
    source = random.Random(f"{rows}/{dim}/{text_words}/{users}")
    write_vectors(folder / "vectors.npy", rows, dim, source)
    words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randrange(3, 10))) for _ in range(20_000)]

    def text(count: int, of: int) -> str:
        return " ".join(words[int(of * source.random() ** 2)] for _ in range(count))

    if text_words:
        with (folder / "metadata.jsonl").open("w") as file:
            for row in range(rows):
                file.write(json.dumps({"id": f"item-{row:07d}", "title": text(4, 20_000), "year": 1900 + source.randrange(120),
                                       "tags": [text(1, 500) for _ in range(source.randrange(5))], "author": text(2, 3_000),
                                       "price": source.random(), "sold": source.random() < 0.3,
                                       "description": text(text_words, 20_000)}) + "\n")
    if users:
        write_vectors(folder / "preference_vectors.npy", users, dim, source)
        (folder / "user_ids.json").write_text(json.dumps([f"user-{user:06d}" for user in range(users)]))
        with (folder / "interactions.jsonl").open("w") as file:
            for user in range(users):
                for _ in range(source.randrange(1, 20)):
                    file.write(json.dumps({"user_id": f"user-{user:06d}", "item_id": f"item-{source.randrange(rows):07d}"}) + "\n")


class Server:
    """The collection in `root`/c, served on the CPU."""

    def __init__(self, program: str, root: pathlib.Path, threads: int):
        self.program, self.folder = program, root / "c"
        port_file = root / "port"
        self.process = subprocess.Popen(
            [program, "serve", "--collection", f"c={self.folder}", "--data-root", str(root), "--allow-changes", "--backend", "cpu",
             "--threads", str(threads), "--port", "0", "--no-metrics", "--port-file", str(port_file)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        if not any(line.startswith("listening") for line in self.process.stdout):
            raise SystemExit("the server did not start")
        self.address = f"127.0.0.1:{port_file.read_text().strip()}"

    def run(self, *arguments: str) -> str:
        return subprocess.run([self.program, *arguments, "--server", self.address], check=False, capture_output=True,
                              text=True).stdout

    def await_built(self) -> None:
        """Until it serves with its index, and the former generation, which is freed in the background, has gone."""
        end = time.monotonic() + WAIT_S
        calm = 0
        before = 0
        while calm < CALM_CALLS:
            if time.monotonic() > end:
                raise SystemExit("the collection did not become ready")
            said = json.loads(self.run("list", "c", "--json"))
            now = self.memory("VmRSS")
            ready = said.get("state") == "serving" and said["index_built"] >= 1
            calm = calm + 1 if ready and now >= before - CALM_BYTES else 0
            before = now

    def memory(self, field: str) -> int:
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
        raise SystemExit(f"/proc has no {field}")

    def reload_peak(self, number: int) -> int:
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # resets VmHWM
        settings = self.folder / "collection.json"
        content = settings.read_text() if settings.exists() else "{}"
        settings.write_text(content.rstrip() + " " * number)  # other bytes, so other content
        self.run("reload", "c", "--timeout", str(WAIT_S))
        self.await_built()
        return self.memory("VmHWM")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def measure(program: str, folder: pathlib.Path, threads: int, scratch: pathlib.Path) -> tuple[int, int, int, int]:
    """Planned and measured bytes at rest, then at the peak of a reload."""
    root = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    shutil.copytree(folder, root / "c")
    environment = dict(os.environ, SIMILE_BACKEND_PREFERENCE="cpu", SIMILE_BACKEND_THREADS=str(threads))
    said = json.loads(subprocess.run([program, "plan", str(root / "c"), "--host-bandwidth", "1GB/s", "--json"], check=False,
                                     capture_output=True, text=True, env=environment).stdout)
    server = Server(program, root, threads)
    try:
        server.await_built()
        rest = server.memory("VmRSS")
        peak = max(server.reload_peak(number) for number in range(1, RELOADS + 1))
    finally:
        server.stop()
        shutil.rmtree(root)
    return said["host"]["rest"], rest, said["host"]["reload_peak"], peak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "simile"))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        folders = options.folders
        if not folders:
            folders = [ROOT / "examples" / "films"]
            for rows, dim, text_words, users in ((60_000, 384, 0, 0), (100_000, 128, 30, 20_000), (300_000, 64, 5, 0),
                                                 (20_000, 1536, 10, 2_000)):
                name = f"{rows // 1000}k-{dim}" + (f"-text{text_words}" if text_words else "") + ("-users" if users else "")
                write_collection(scratch / name, rows, dim, text_words, users)
                folders.append(scratch / name)
        print(f"{'collection':24}{'at rest: plan':>14}{'measured':>10}{'off':>8}   {'reload: plan':>13}{'measured':>10}{'off':>8}")
        for folder in folders:
            rest_plan, rest, peak_plan, peak = measure(options.program, folder, options.threads, scratch)
            rest_off, peak_off = rest_plan / rest - 1, peak_plan / peak - 1
            worst = max(worst, abs(rest_off), abs(peak_off))
            print(f"{folder.name:24}{rest_plan / 2**20:10.1f} MiB{rest / 2**20:10.1f}{rest_off:8.1%}   {peak_plan / 2**20:9.1f} MiB"
                  f"{peak / 2**20:10.1f}{peak_off:8.1%}", flush=True)
    print(f"the largest difference is {worst:.1%}")
    return 0 if worst <= OFF_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
