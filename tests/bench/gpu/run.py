#!/usr/bin/env python3
"""The GPU engine on a real card: checks it, measures it, and writes docs/benchmarks/gpu.md.

    tests/bench/gpu/pack.py --arch 90                     what follows, for a machine that has only a card (pack.py --help)
    python3 tests/bench/gpu/run.py --list truth           are the answers right, are the times what was estimated
    python3 tests/bench/gpu/run.py --list variants        every variant of every kernel
    python3 tests/bench/gpu/run.py --list winners         the whole table and the large sizes, as served
    python3 tests/bench/gpu/run.py --report gpu-truth.json gpu-variants.json gpu-winners.json

Needs an NVIDIA card with its driver, the programs of the target gpu_bench_all, and for the rival a Python with torch; no
network. Each list ends by itself within --minutes. Every program writes its figures case by case, and they are collected
while it runs: a step that fails, is killed or runs out of time keeps what it measured, is reported as such, and ends no
other. At most 8 files are written to --out.

Exits with 0 when every step passed, 1 when one did not, 2 when there is no card.
"""

import argparse
import datetime
import glob
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import gpu_plots
import gpu_report
from step_lists import LISTS, SAVED_BYTES_MAX, TINY, Machine, Sizes, Step, list_kernel_steps, plan_text, steps_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NO_CARD = 2
MINUTES_OF_LIST = 8
LAST_S = 12  # for the page and its pictures
COLLECT_S = 5  # between two looks at what a step has written


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", dest="lists", action="append", choices=LISTS, metavar="|".join(LISTS),
                        help="the steps to run; repeat for several; default all three")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin",
                        help="folder of the programs, and of the libraries they need in its folder lib; default build/bin")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch; default this one")
    parser.add_argument("--minutes", type=float, help=f"for everything; default {MINUTES_OF_LIST} a list")
    parser.add_argument("--steps", metavar="A,B", help="only these, or those that begin with them: conformance,bench,torch-62423x384")
    parser.add_argument("--plan", action="store_true", help="print the minutes of each step and end")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks", help="folder for gpu.md, pictures and figures")
    parser.add_argument("--json", type=pathlib.Path, help="file for all figures; default gpu-LIST.json in --out")
    parser.add_argument("--report", type=pathlib.Path, nargs="+", metavar="FILE", help="write the page from these figures and end")
    parser.add_argument("--work", type=pathlib.Path, help="folder for vectors; default a temporary one, in memory if it fits")
    parser.add_argument("--blas", help="cuBLAS, as for dlopen; default the toolkit's, then that of --python's packages")
    parser.add_argument("--tiny", action="store_true", help="for the emulated device: sizes that time nothing (gpu_dry_run.py)")
    arguments = parser.parse_args(words)
    arguments.json = arguments.json or arguments.out / f'gpu-{"-".join(arguments.lists or ["results"])}.json'
    arguments.lists = arguments.lists or list(LISTS)
    arguments.minutes = arguments.minutes or MINUTES_OF_LIST * len(arguments.lists)
    return arguments


def blas_libraries(python: str) -> list[str]:
    """The candidates for cuBLAS: the toolkit's own, then those of this Python's packages."""
    folders = sys.path
    if python != sys.executable:
        asked = subprocess.run([python, "-c", "import sys; print(*sys.path, sep='\\n')"], capture_output=True, text=True, check=False)
        folders = asked.stdout.splitlines()
    roots = [pathlib.Path(path) for path in folders if path.endswith(("site-packages", "dist-packages"))]
    found = [path for root in roots for path in sorted(glob.glob(str(root / "nvidia/*/lib/libcublas.so.*")), reverse=True)]
    return ["libcublas.so.13", "libcublas.so.12", *found]


def find_sanitizer(folder: pathlib.Path) -> str | None:
    places = [folder / "compute-sanitizer/compute-sanitizer", pathlib.Path("/usr/local/cuda/bin/compute-sanitizer")]
    return shutil.which("compute-sanitizer") or next((str(place) for place in places if place.exists()), None)


def environment(kind: str, folder: pathlib.Path, blas: list[str]) -> dict[str, str]:
    """Programs use the libraries packed beside them; torch uses its own."""
    variables = dict(os.environ)
    if kind != "rival":
        beside = [str(pathlib.Path(library).parent) for library in blas if "/" in library]  # the server has no --blas
        paths = [str(folder), str(folder / "lib"), variables.get("LD_LIBRARY_PATH", ""), *dict.fromkeys(beside)]
        variables["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    return variables


def error_line(text: str) -> str:
    """The line with the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Run with --help")]
    errors = [line for line in lines if line.startswith("error:") or "Error" in line or "Failure" in line]
    return (errors or lines or ["it printed nothing"])[-1][:300]


def missing(step: Step, machine: Machine) -> str | None:
    """Why the step cannot run, or None."""
    if step.kind == "rival":
        found = importlib.util.find_spec("torch") is not None if machine.python == sys.executable else \
            subprocess.run([machine.python, "-c", "import torch"], capture_output=True, check=False).returncode == 0
        return None if found else "this Python has no torch; name one that has with --python"
    if step.kind == "checker" and machine.sanitizer is None:
        return "no compute-sanitizer on this machine; it comes with the CUDA toolkit"
    program = next(word for word in step.command if word.startswith(str(machine.bin)))
    return None if pathlib.Path(program).exists() else f"{pathlib.Path(program).name} is not built: target gpu_bench_all"


def written(step: Step) -> dict:
    """The figures so far."""
    if step.output is None or not step.output.exists():
        return {}
    try:
        return {"data": json.loads(step.output.read_text(encoding="utf-8"))}
    except ValueError:  # not by our programs, which replace the file in one step
        return {}


def end_group(process: subprocess.Popen) -> None:
    """Ends the step with all that it has started, else something of it could go on using the card."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_step(step: Step, machine: Machine, limit_s: float, collect: Callable[[dict], None]) -> dict:
    """Runs the step; calls collect(result so far) from time to time."""
    if reason := missing(step, machine):
        return {"status": "skipped", "seconds": 0, "message": reason}
    if step.folder is not None:
        step.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    log = machine.work / f"{step.name}.log"
    code = None
    with log.open("wb") as out:
        process = subprocess.Popen(step.command, stdout=out, stderr=subprocess.STDOUT, preexec_fn=os.setpgrp,
                                   env=environment(step.kind, machine.bin, machine.blas))
        try:
            while code is None and (left := began + limit_s - time.monotonic()) > 0:
                try:
                    code = process.wait(min(COLLECT_S, left))
                except subprocess.TimeoutExpired:
                    collect({"status": "running", "seconds": round(time.monotonic() - began), "message": "not done"} | written(step))
        finally:
            end_group(process)
    text = log.read_text(encoding="utf-8", errors="replace")
    print("\n".join("    " + line for line in text.splitlines()[-40:]), flush=True)
    result = {"status": "passed", "seconds": round(time.monotonic() - began, 1), "message": ""} | written(step)
    if code is None:
        result |= {"status": "timed out", "message": f"not done after {limit_s:.0f} s"}
    elif code < 0 or code == 128 + signal.SIGKILL:
        result |= {"status": "killed", "message": signal.Signals(abs(code) % 128).name}
    elif step.kind == "checker" and "not supported" in text:
        result |= {"status": "skipped", "message": error_line(text)}
    elif code != 0:
        result |= {"status": "failed", "message": error_line(text)}
    elif "data" not in result:
        result |= {"status": "failed", "message": "it ended well but wrote no figures"}
    if result["status"] not in ("passed", "skipped"):
        result["log"] = text.splitlines()[-60:]
    result["message"] = gpu_report.summary(step.description, result)
    return result


def card_facts() -> dict:
    """Card, driver and clocks, from nvidia-smi where there is one."""
    fields = ["name", "driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.limit", "temperature.gpu"]
    try:
        line = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"], capture_output=True,
                              text=True, check=True, timeout=30).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return {}
    name, driver, clock, clock_max, memory, power, heat = (word.strip() for word in line.split(","))
    return {"card": name, "driver": driver, "clocks": f"clocks {clock} of {clock_max}, memory {memory}, {power}, {heat} C at start"}


def look_for_card(machine: Machine) -> tuple[int, dict]:
    """0 and the card's name, or the exit code after printing the reason."""
    if not (machine.bin / "gpu_steps").exists():
        print("error: gpu_steps is not built: target gpu_bench_all", file=sys.stderr)
        return 1, {}
    blas = [word for name in machine.blas for word in ("--blas", name)]
    asked = subprocess.run([str(machine.bin / "gpu_steps"), "--card", *blas], capture_output=True, text=True, check=False,
                           env=environment("program", machine.bin, machine.blas))
    if asked.returncode != 0:
        print(error_line(asked.stderr), file=sys.stderr)
        return NO_CARD if asked.returncode == NO_CARD else 1, {}
    return 0, {"card": json.loads(asked.stdout)["name"]}


def write(path: pathlib.Path, results: dict) -> None:
    """In one step: a run that is stopped leaves what it wrote before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


def write_report(out: pathlib.Path, results: dict) -> None:
    if importlib.util.find_spec("matplotlib") is not None:
        plots = gpu_plots.draw(results, out)
    else:
        plots = [path for step in results["steps"] if (path := out / f'gpu-{step.removeprefix("bench-")}.png').exists()]
    text = gpu_report.render(results)
    gpu_report.write_page(out / "gpu.md", text, plots)
    print(text)


def chosen(steps: list[Step], names: str | None) -> list[Step]:
    """The steps with these names; a word that is not a step's name selects all that begin with it."""
    if names is None:
        return steps
    known = {step.name for step in steps}
    return [step for step in steps if any(step.name == name or (name not in known and step.name.startswith(name))
                                          for name in names.split(","))]


def run_all(steps: list[Step], machine: Machine, arguments: argparse.Namespace, results: dict) -> None:
    deadline = time.monotonic() + 60 * arguments.minutes - LAST_S
    for index, step in enumerate(steps):
        def collect(result: dict, name: str = step.name) -> None:
            results["steps"][name] = result
            write(arguments.json, results)

        left = deadline - time.monotonic()
        print(f"{step.name}: {step.description}", flush=True)
        if left < 5:
            result = {"status": "skipped", "seconds": 0, "message": f"no time left of {arguments.minutes:g} minutes"}
        else:
            result = run_step(step, machine, min(step.limit_s, left), collect)
        print(f'{step.name}: {result["status"]} after {result["seconds"]:.0f} s. {result["message"]}\n', flush=True)
        torch = result.get("data") or {}
        if step.kind == "rival" and torch.get("cuda"):
            results["about"]["cuda"] = f'{torch["cuda"]} (of torch)'
        collect(result)
        if step.folder is not None and all(later.folder != step.folder for later in steps[index + 1:]):
            shutil.rmtree(step.folder, ignore_errors=True)


def run(arguments: argparse.Namespace, machine: Machine, sizes: Sizes, words: list[str]) -> int:
    code, about = look_for_card(machine)
    if code != 0:
        return code
    steps = chosen(steps_of(arguments.lists, machine, sizes), arguments.steps)
    if not steps:
        print(f"error: no step is called {arguments.steps}; --plan shows them", file=sys.stderr)
        return 1
    typed = [pathlib.Path(word).name if word.startswith(("/", "../", "./", "~")) else word for word in words]
    about |= card_facts() | {"date": datetime.date.today().isoformat(), "command": "tests/bench/gpu/run.py " + shlex.join(typed)}
    results = {"about": about, "steps": {}}
    try:
        run_all(steps, machine, arguments, results)
    finally:  # also when this run is told to end
        for result in results["steps"].values():
            if result["status"] == "running":
                result |= {"status": "killed", "message": "the run was told to end"}
        write(arguments.json, results)
        write_report(arguments.out, results)
    passed = all(step["status"] in ("passed", "skipped") for step in results["steps"].values())
    return 0 if passed else 1


def work_folder() -> str | None:
    """A folder in memory if the largest saved file fits, else the system's default."""
    shared = pathlib.Path("/dev/shm")
    return str(shared) if shared.exists() and shutil.disk_usage(shared).free > 2 * SAVED_BYTES_MAX else None


def main(words: list[str]) -> int:
    arguments = parse(words)
    if arguments.report:
        write_report(arguments.out, gpu_report.merge([json.loads(path.read_text(encoding="utf-8")) for path in arguments.report]))
        return 0
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    folder = arguments.bin.resolve()
    with tempfile.TemporaryDirectory(dir=None if arguments.work else work_folder()) as temporary:
        work = (arguments.work or pathlib.Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        blas = [arguments.blas] if arguments.blas else blas_libraries(arguments.python)
        machine = Machine(folder, arguments.python, work, blas, find_sanitizer(folder),
                          list_kernel_steps(folder, environment("program", folder, blas)))
        sizes = TINY if arguments.tiny else Sizes()
        if arguments.plan:
            print(plan_text(arguments.lists, machine, sizes))
            return 0
        return run(arguments, machine, sizes, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
