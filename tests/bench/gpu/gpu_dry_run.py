#!/usr/bin/env python3
"""Both lists of run.py with the real programs on the emulated device, in tiny sizes: what a card would run, without its times.

    make gpu-dry-run        builds the programs, then: gpu_dry_run.py --bin build/tests/gpu_dry_run --simile build/bin/simile

Each list runs twice. First undisturbed: every step passes, except those of torch and tensor_sums (whose sizes are fixed), which
are not here. Then every program of the bench is killed as soon as it has written a first figure: each must keep figures, and lose
none of another. The server, which writes none, is not killed. Takes minutes; gpu_run_test.py does the same with fake programs in
seconds.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import step_lists

HERE = pathlib.Path(__file__).resolve().parent
# What a program's file holds once it has a figure, beyond its head.
FIGURES = {"gpu_bench": '_us": ', "device_conformance": '"cases": "?[1-9]', "engine_bench": '"median_ms": '}
# How the steps end that no program is there for, undisturbed.
ABSENT = {"torch": "skipped", "tensor": "missing", "profile": "skipped"}
# Of the servers: the emulated device is small and slow.
SETTINGS = {"SIMILE_GPU_RESERVE_MIB": "0", "SIMILE_GPU_BATCH_TIMEOUT": "300000", "SIMILE_GPU_FAULT_JOURNAL": "",
            "SIMILE_LIMITS_SEARCH_DEADLINE_DEFAULT": "300000", "SIMILE_LIMITS_SEARCH_DEADLINE_MAX": "300000"}
# Starts the program, and kills it once its file has a figure.
KILLER = """#!/bin/sh
for word in "$@"; do
  [ "$previous" != --json ] || out=$word
  previous=$word
done
[ -n "$out" ] || exec {program} "$@"
{program} "$@" &
until grep -qsE '{figure}' "$out" || ! kill -0 $!; do sleep 0.01; done
kill -KILL $! 2>&-
wait $!
"""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="programs of the target gpu_dry_run_programs")
    parser.add_argument("--simile", type=pathlib.Path, required=True, help="the server's program")
    parser.add_argument("--list", dest="lists", action="append", choices=step_lists.LISTS, help="default both")
    return parser.parse_args()


def programs_in(folder: pathlib.Path, arguments: argparse.Namespace, killed: bool) -> None:
    """The programs and what they load, or scripts that kill them."""
    (folder / "compute-sanitizer").mkdir(parents=True)
    checker = folder / "compute-sanitizer/compute-sanitizer"  # checks nothing: runs what follows its four words
    checker.write_text('#!/bin/sh\nshift 4\nexec "$@"\n', encoding="utf-8")
    checker.chmod(0o755)
    # No symbolic link: a server looks for its plug-in in its program's own folder.
    shutil.copy(arguments.simile.resolve(), folder / "simile")
    for path in arguments.bin.resolve().iterdir():
        if killed and path.name in FIGURES:
            script = folder / path.name
            script.write_text(KILLER.format(program=path, figure=FIGURES[path.name]), encoding="utf-8")
            script.chmod(0o755)
        else:
            (folder / path.name).symlink_to(path)
    (folder / step_lists.CUDA12_PLUGIN).symlink_to(folder / "libsimile_cuda.so")  # the same engine, built otherwise


def run_list(name: str, folder: pathlib.Path, out: pathlib.Path) -> dict:
    command = [sys.executable, "-B", str(HERE / "run.py"), "--list", name, "--tiny", "--minutes", "30", "--bin", str(folder), "--blas",
               str(folder / "libcublas.so"), "--out", str(out)]
    # Its lines, one as each step begins and one as it ends, go to stderr: the results, below, are for stdout.
    subprocess.run(command, stdout=sys.stderr, check=False, env=os.environ | SETTINGS | {"LD_LIBRARY_PATH": str(folder)})
    file = out / f"gpu-{name}.json"
    if not file.exists():
        sys.exit(f"error: {name} wrote no results; its output is above")
    return json.loads(file.read_text(encoding="utf-8"))["steps"]


def is_cut_with_figures(step: str, result: dict) -> bool:
    """Killed, and what was measured is there."""
    program = {"bench": "gpu_bench", "against": "engine_bench"}.get(step.split("-")[0], "device_conformance")
    return result["status"] == "killed" and bool(re.search(FIGURES[program], json.dumps(result.get("data"))))


def faults(name: str, whole: dict, cut: dict) -> list[str]:
    """What is not as it should be, a line each."""
    found = []
    for step, result in whole.items():
        expected = ABSENT.get(step.split("-")[0], "passed")
        if result["status"] != expected:
            found.append(f'{name}: {step}: {result["status"]}, not {expected}: {result["message"]}')
        if step not in cut:
            found.append(f"{name}: {step}: ran only undisturbed")
        elif step.startswith(("server", "tune")) or expected != "passed":
            if cut[step]["status"] != expected:
                found.append(f'{name}: {step}: lost when others were killed: {cut[step]["status"]}: {cut[step]["message"]}')
        elif not is_cut_with_figures(step, cut[step]):
            found.append(f'{name}: {step}: not killed, or without figures: {cut[step]["status"]}: {cut[step]["message"]}')
    return found


def main() -> int:
    arguments = parse()
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        programs_in(folder / "whole", arguments, killed=False)
        programs_in(folder / "killed", arguments, killed=True)
        for name in arguments.lists or step_lists.LISTS:
            whole = run_list(name, folder / "whole", folder / f"out-{name}")
            cut = run_list(name, folder / "killed", folder / f"cut-{name}")
            for step, result in whole.items():
                print(f'{name}: {step}: {result["status"]} after {result["seconds"]:.0f} s, {result["message"]}; '
                      f'cut short: {cut[step]["status"]}, {cut[step]["message"]}', flush=True)
            found += faults(name, whole, cut)
    print("\n".join(found) or "nothing was lost")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
