#!/usr/bin/env python3
"""Packs the bench for a machine that has an NVIDIA card and its driver, and none of our libraries: a folder of stripped
programs with machine code for one architecture, the shared libraries that they need, and these scripts.

    python3 tests/bench/gpu/pack.py --arch 90             builds in build/pack-sm90, packs into build/gpu-pack
    python3 build/gpu-pack/tests/bench/gpu/run.py --list truth --out results          there; a Python is all it needs
    python3 build/gpu-pack/tests/bench/gpu/run.py --list times --out results

Packs the plug-in of CUDA 12 too, if `make cuda12` has built it from the same commit. Every packed program is then run to its
first CUDA call, with the pack's own libraries. Fails above 40 MB (--mb).
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

from step_lists import CUDA12_PLUGIN, PROGRAMS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PLUGIN = "libsimile_cuda.so"
SCRIPTS = ("run.py", "step_lists.py", "json_file.py", "server_bench.py", "server_kinds.py", "torch_rival.py", "gpu_report.py", "gpu_plots.py")
FILMS = ("content_vectors.npy", "metadata.jsonl", "user_ids.json", "preference_vectors.npy", "interactions.jsonl", "LICENSE.data")
# Every machine has these, as new as its own programs need them; a driver brings its own.
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libstdc\+\+|libgcc_s"
                           r"|libcuda|libcudart|libcublas|libcublasLt|libnvidia-.*)\.so")
NO_CARD = 2  # card.h
ENGINE_RUN = ("engine_bench", "--synthetic", "clustered", "--rows", "64", "--dim", "8", "--batch", "1", "--backend", "gpu")
RUNS = (*((name,) for name in PROGRAMS if name not in ("simile", "engine_bench")), ENGINE_RUN, ("simile", "--version"))
CUDA12_RUN = ("device_conformance", "--plugin", "{folder}/" + CUDA12_PLUGIN)  # says so where it is of another build


class Failed(Exception):
    """The text is for a person."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, default=90, help="the card's compute capability without its point; default 90, an H200")
    parser.add_argument("--build", type=pathlib.Path, help="build folder; default build/pack-smARCH")
    parser.add_argument("--no-build", action="store_true", help="pack what --build holds")
    parser.add_argument("--cuda12", type=pathlib.Path, default=ROOT / "build/cuda12/bin" / CUDA12_PLUGIN,
                        help=f"the plug-in of CUDA 12, packed if it is there; default build/cuda12/bin/{CUDA12_PLUGIN}")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/gpu-pack", help="folder of the pack; replaced")
    parser.add_argument("--mb", type=float, default=40, help="fail above this size; default 40")
    return parser.parse_args()


def build(folder: pathlib.Path, arch: int) -> None:
    """Machine code for this architecture alone, compressed: a pack for all would take three times as much."""
    configure = ["cmake", "--preset", "bench", "-S", str(ROOT), "-B", str(folder), "-D", "SIMILE_CUDA=ON",
                 "-D", f"SIMILE_CUDA_ARCHITECTURES={arch}-real",
                 "-D", "CMAKE_CUDA_FLAGS=-Xfatbin=-compress-all"]
    for command in (configure, ["cmake", "--build", str(folder), "--target", "gpu_bench_all", "simile"]):
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            raise Failed(f'`{" ".join(command)}` failed')


def needed_libraries(program: pathlib.Path, environment: dict[str, str] | None = None) -> dict[str, pathlib.Path]:
    """By name, as the loader resolves them."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True, env=environment).stdout
    found = {}
    for line in listed.splitlines():
        name, arrow, path = (line.split() + ["", "", ""])[:3]
        if OF_THE_SYSTEM.match(name) or arrow != "=>":
            continue
        if path == "not":
            raise Failed(f"{program.name} needs {name}, which is not on this machine")
        found[name] = pathlib.Path(path)
    return found


def copy_stripped(source: pathlib.Path, target: pathlib.Path) -> None:
    shutil.copyfile(source.resolve(), target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


def pack(programs: pathlib.Path, cuda12: pathlib.Path, out: pathlib.Path) -> None:
    """As in the tree, so that the scripts find each other and the programs."""
    plugins = [*programs.glob("libsimile_cuda*.so")] or [programs / PLUGIN]  # by nvcc 12 it has another name
    paths = [*(programs / name for name in PROGRAMS), *plugins]
    if absent := [path for path in paths if not path.exists()]:
        raise Failed(f"{absent[0]} is not built: targets gpu_bench_all and simile")
    if out.exists() and any(out.iterdir()) and not (out / "build/bin" / PROGRAMS[0]).exists():
        raise Failed(f"{out} holds something else than a pack; name another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    (out / "build/bin/lib").mkdir(parents=True)
    libraries = {}
    for path in [*paths, *([cuda12] if cuda12.exists() else [])]:
        libraries |= needed_libraries(path)
        copy_stripped(path, out / "build/bin" / path.name)
    for name, path in libraries.items():
        copy_stripped(path, out / "build/bin/lib" / name)
    (out / "tests/bench/gpu").mkdir(parents=True)
    for name in SCRIPTS:
        shutil.copyfile(HERE / name, out / "tests/bench/gpu" / name)
    (out / "examples/films").mkdir(parents=True)
    for name in FILMS:  # what server_kinds.py serves
        shutil.copyfile(ROOT / "examples/films" / name, out / "examples/films" / name)


def check(out: pathlib.Path) -> None:
    """Runs every program to its first CUDA call. With all cards hidden from it, it says so and exits with NO_CARD."""
    folder = (out / "build/bin").resolve()
    variables = {"LD_LIBRARY_PATH": f"{folder}:{folder / 'lib'}", "CUDA_VISIBLE_DEVICES": "-1", "PATH": os.environ["PATH"]}
    for name, *words in (*RUNS, *([CUDA12_RUN] if (folder / CUDA12_PLUGIN).exists() else [])):
        if outside := [path for path in needed_libraries(folder / name, variables).values() if folder not in path.parents]:
            raise Failed(f"{name} of the pack uses {outside[0]}, which another machine may not have")
        done = subprocess.run([str(folder / name), *(word.format(folder=folder) for word in words)], capture_output=True, text=True, check=False, env=variables, timeout=120)
        said = (done.stderr or done.stdout).strip()
        right = done.returncode == 0 if name == "simile" else done.returncode == NO_CARD and "no GPU to" in done.stderr
        print(f'{name}: {said.splitlines()[-1] if said else "says nothing"}')
        if not right:
            raise Failed(f"{name} of the pack does not run: it exits with {done.returncode}: {said}")


def size_mb(out: pathlib.Path) -> float:
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6


def main() -> int:
    arguments = parse()
    folder = arguments.build or ROOT / f"build/pack-sm{arguments.arch}"
    try:
        if not arguments.no_build:
            build(folder, arguments.arch)
        pack(folder / "bin", arguments.cuda12, arguments.out)
        check(arguments.out)
    except Failed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    mb = size_mb(arguments.out)
    print(f"{arguments.out}: {mb:.1f} MB")
    if mb > arguments.mb:
        print(f"error: the pack takes {mb:.1f} MB, more than --mb {arguments.mb:g}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
