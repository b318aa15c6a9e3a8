#!/usr/bin/env python3
"""The GPU engine on a real card: checks it, measures it, and writes docs/benchmarks/gpu.md.

    python3 tests/bench/gpu/pack.py --arch 90             packs programs and scripts for another machine that has the card
    python3 tests/bench/gpu/run.py --list truth           are the answers right; `make gpu-test` builds and does this
    python3 tests/bench/gpu/run.py --list times           how long do they take, beside torch and this machine's CPU
    python3 tests/bench/gpu/run.py --report gpu-truth.json gpu-times.json

Needs an NVIDIA card with its driver, the programs of the target gpu_bench_all, and for the rival a Python with torch; no
network. Each list ends by itself after its minutes (--minutes). Every program writes its figures case by case, and they are collected
while it runs: a step that fails, is killed or runs out of time keeps what it measured, is reported as such, and ends no
other. Writes gpu.md, gpu-LIST.json, gpu-LIST.log and a picture of each data set to --out.

Exits with 0 when every step passed or was skipped for lack of torch, of compute-sanitizer, of Nsight Compute, of cuBLAS or of
the plug-in of CUDA 12; 1 when one did not pass, was not built or had no time; 2 when there is no card.
"""

import argparse
import collections
import contextlib
import ctypes
import datetime
import glob
import json
import os
import pathlib
import re
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
import json_file
from step_lists import (CHECKER_FOUND, CUDA12_PLUGIN, LISTS, MINUTES, PROGRAMS, SAVED_BYTES_MAX, TINY, Machine, Sizes, Step, ask,
                        plan_text, steps_of)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NO_CARD = 2
LAST_S = 12  # for the page and its pictures; estimated
COLLECT_S = 5  # between two looks at what a step has written
REAP_S = 15  # until a killed process that has not ended counts as kept by the driver
PROFILE_CHARACTERS = 20_000  # of what Nsight Compute prints, the last ones
LOG_BYTES = (350_000, 150_000)  # of a step's output that are kept: its first, its last
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", dest="lists", action="append", choices=LISTS,
                        metavar="|".join(LISTS), help="the steps to run; repeat for both; default both")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin",
                        help="folder of the programs, and of the libraries they need in its folder lib; default build/bin")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch; default this one")
    parser.add_argument("--minutes", type=float, help="for everything; default " + " and ".join(f"{MINUTES[name]:g} for {name}" for name in LISTS))
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
    arguments.minutes = arguments.minutes or sum(MINUTES[name] for name in arguments.lists)
    return arguments


def blas_libraries(python: str) -> list[str]:
    """The candidates for cuBLAS: the toolkit's own, then those of this Python's packages."""
    folders = sys.path
    if python != sys.executable:
        asked = ask([python, "-c", "import sys; print(*sys.path, sep='\\n')"])
        folders = asked.stdout.splitlines() if asked else []
    roots = [pathlib.Path(path) for path in folders if path.endswith(("site-packages", "dist-packages"))]
    found = [path for root in roots for path in sorted(glob.glob(str(root / "nvidia/*/lib/libcublas.so.*")), reverse=True)]
    return ["libcublas.so.13", "libcublas.so.12", *found]


def find_tool(name: str, folder: pathlib.Path) -> str | None:
    places = [folder / name / name, pathlib.Path("/usr/local/cuda/bin") / name]
    return shutil.which(name) or next((str(place) for place in places if place.exists()), None)


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


def why_not(step: Step, machine: Machine) -> dict | None:
    """The outcome of a step that cannot run, or None."""
    reason = None
    if step.kind == "rival":
        asked = ask([machine.python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"])
        reason = None if asked and asked.returncode == 0 else "this Python has no torch; name one that has with --python"
    elif step.kind == "checker" and machine.sanitizer is None:
        reason = "no compute-sanitizer on this machine; it comes with the CUDA toolkit"
    elif step.kind == "profile" and machine.profiler is None:
        reason = "no ncu (Nsight Compute) on this machine; it comes with the CUDA toolkit"
    elif step.kind == "cuda12" and not (machine.bin / CUDA12_PLUGIN).exists():
        reason = f"no {CUDA12_PLUGIN} beside the programs: `make cuda12`"
    if reason:
        return {"status": "skipped", "seconds": 0, "message": reason}
    programs = [path for path in map(pathlib.Path, step.command) if path.name in PROGRAMS and path.parent == machine.bin]
    absent = [path.name for path in programs if not path.exists()]
    return {"status": "missing", "seconds": 0, "message": f"{absent[0]} is not built: target gpu_bench_all"} if absent else None


def written(step: Step) -> dict:
    """The figures so far."""
    if step.output is None or not step.output.exists():
        return {}
    try:
        return {"data": json.loads(step.output.read_text(encoding="utf-8"))}
    except ValueError:  # not by our programs, which replace the file in one step
        return {}


def in_group_of_its_own() -> None:
    """In the child, before it becomes the step's program: it ends with this run."""
    os.setpgrp()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_group(process: subprocess.Popen) -> bool:
    """Ends the step with all that it has started, else something of it could go on using the card. False if the driver,
    where a card hangs, does not let it end."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(REAP_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def kernels_with_errors(text: str) -> str:
    """Of compute-sanitizer's output: how often each kernel is named as the place of an error, most first."""
    named = collections.Counter(name.split("::")[-1] for line in text.splitlines() if "=========" in line and "+0x" in line
                                for name in re.findall(r"\bat (?:void )?([\w:]+)", line))
    return ", ".join(f"{name} {count}" for name, count in named.most_common(8))


def keep_log(path: pathlib.Path, step: str, log: pathlib.Path) -> None:
    """Appends the step's output, if it ran: its beginning, where the first error is, and its end."""
    if not log.exists():
        return
    text = log.read_bytes()
    first, last = LOG_BYTES
    if len(text) > first + last:
        text = text[:first] + b"\n... %d bytes left out ...\n" % (len(text) - first - last) + text[-last:]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as out:
        out.write(f"==== {step}\n".encode() + text + b"\n")


def run_step(step: Step, machine: Machine, limit_s: float, collect: Callable[[dict], None]) -> dict:
    """Runs the step; calls collect(result so far) from time to time. Its output is in machine.work/NAME.log."""
    if outcome := why_not(step, machine):
        return outcome
    if step.folder is not None:
        step.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    log = machine.work / f"{step.name}.log"
    code, ended, process = None, True, None
    with log.open("wb") as out, contextlib.ExitStack() as stack:
        printed = stack.enter_context(step.output.open("wb")) if step.kind == "prints" else out
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until its end is taken care of
        try:
            process = subprocess.Popen(step.command, stdout=printed, stderr=out, preexec_fn=in_group_of_its_own,
                                       env=environment(step.kind, machine.bin, machine.blas))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            while code is None and (left := began + limit_s - time.monotonic()) > 0:
                try:
                    code = process.wait(min(COLLECT_S, left))
                except subprocess.TimeoutExpired:
                    collect({"status": "running", "seconds": round(time.monotonic() - began), "message": "not done"} | written(step))
        finally:
            if process is not None:
                ended = end_group(process)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    text = log.read_text(encoding="utf-8", errors="replace")
    print("\n".join("    " + line for line in text.splitlines()[-40:]), flush=True)
    result = {"status": "passed", "seconds": round(time.monotonic() - began, 1), "message": ""} | written(step)
    if not ended:
        result |= {"status": "stuck", "message": f"not done after {limit_s:.0f} s, and could not be killed: the driver holds it"}
    elif code is None:
        result |= {"status": "timed out", "message": f"not done after {limit_s:.0f} s"}
    elif code < 0 or code == 128 + signal.SIGKILL:
        result |= {"status": "killed", "message": signal.Signals(abs(code) % 128).name}
    elif step.kind == "checker" and code == CHECKER_FOUND:
        result |= {"status": "failed", "message": f"errors found: {kernels_with_errors(text) or error_line(text)}"}
    elif step.kind == "checker" and "Device not supported" in text:  # NVIDIA's words for a card, or a machine, it cannot check
        result |= {"status": "skipped", "message": "compute-sanitizer: Device not supported"}
    elif code != 0:
        result |= {"status": "failed", "message": error_line(text)}
    elif reason := gpu_report.why_skipped(result.get("data", {})):
        return result | {"status": "skipped", "message": reason}
    elif "data" not in result:
        result |= {"status": "failed", "message": "it ended well but wrote no figures"}
    if step.kind == "profile":
        result["data"] = {"profile": text[-PROFILE_CHARACTERS:]}
    result["message"] = gpu_report.summary(step.description, result)
    return result


def card_facts() -> dict:
    """Card, driver and clocks, from nvidia-smi where there is one."""
    fields = ["name", "driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.limit", "temperature.gpu"]
    asked = ask(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"])
    words = [word.strip() for word in asked.stdout.partition("\n")[0].split(",")] if asked else []
    if len(words) != len(fields):  # another form, of a driver that does not know a field
        return {}
    name, driver, clock, clock_max, memory, power, heat = words
    return {"card": name, "driver": driver, "clocks": f"clocks {clock} of {clock_max}, memory {memory}, {power}, {heat} C at start"}


def look_for_card(machine: Machine) -> tuple[int, dict]:
    """0 and the card's name, or the exit code after printing the reason."""
    if not (machine.bin / "gpu_bench").exists():
        print("error: gpu_bench is not built: target gpu_bench_all", file=sys.stderr)
        return 1, {}
    blas = [word for name in machine.blas for word in ("--blas", name)]
    asked = ask([str(machine.bin / "gpu_bench"), "--card", *blas], environment("program", machine.bin, machine.blas))
    if asked is None:
        print("error: gpu_bench --card cannot be started, or does not end: the driver hangs", file=sys.stderr)
        return 1, {}
    if asked.returncode != 0:
        print(error_line(asked.stderr), file=sys.stderr)
        return NO_CARD if asked.returncode == NO_CARD else 1, {}
    return 0, {"card": json.loads(asked.stdout)["name"]}


def write_report(out: pathlib.Path, results: dict) -> None:
    plots = [path for step in results["steps"] if (path := out / f'gpu-{step.removeprefix("bench-")}.png').exists()]
    try:
        plots = gpu_plots.draw(results, out)
    except ImportError:
        pass  # no matplotlib on this machine
    except Exception as error:  # the page matters more
        print(f"error: no pictures: {error!r}", file=sys.stderr)
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
    log = arguments.json.with_suffix(".log")
    log.unlink(missing_ok=True)
    stuck = None
    for index, step in enumerate(steps):
        def collect(result: dict, name: str = step.name) -> None:
            results["steps"][name] = result
            json_file.write(arguments.json, results)

        left = deadline - time.monotonic()
        print(f"{step.name}: {step.description}", flush=True)
        if stuck:
            result = {"status": "not run", "seconds": 0, "message": f"the driver still holds {stuck}"}
        elif left < 5:
            result = {"status": "not run", "seconds": 0, "message": f"no time left of {arguments.minutes:g} minutes"}
        else:
            output = machine.work / f"{step.name}.log"
            for stale in filter(None, (output, step.output)):  # of an earlier run with the same --work
                stale.unlink(missing_ok=True)
            try:
                result = run_step(step, machine, min(step.limit_s, left), collect)
            except Exception as error:  # of one step, which ends no other
                result = {"status": "failed", "seconds": 0, "message": f"run.py: {error!r}"} | written(step)
            finally:  # also when a signal ends the run
                keep_log(log, step.name, output)
        stuck = step.name if result["status"] == "stuck" else stuck
        print(f'{step.name}: {result["status"]} after {result["seconds"]:.0f} s. {result["message"]}\n', flush=True)
        torch = result.get("data") or {}
        if step.kind == "rival" and torch.get("cuda"):
            results["about"]["cuda"] = f'{torch["cuda"]} (of torch)'
        collect(result)
        if step.folder is not None and all(later.folder != step.folder for later in steps[index + 1:]):
            shutil.rmtree(step.folder, ignore_errors=True)


def count_text(steps: dict[str, dict]) -> str:
    """How many steps ended how, and a line for each that did not pass."""
    counts = collections.Counter(step["status"] for step in steps.values())
    counted = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    lines = [f'{len(steps)} {"step" if len(steps) == 1 else "steps"}: {counted}']
    lines += [f'  {name}: {step["status"]}: {step["message"]}' for name, step in steps.items() if step["status"] != "passed"]
    return "\n".join(lines)


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
    finally:  # also when a signal ends the run
        for result in results["steps"].values():
            if result["status"] == "running":
                result |= {"status": "killed", "message": "a signal ended the run"}
        json_file.write(arguments.json, results)
        write_report(arguments.out, results)
        print(count_text(results["steps"]), flush=True)
    passed = all(step["status"] in ("passed", "skipped") for step in results["steps"].values())
    return 0 if passed else 1


def end_once(number: int, frame: object) -> None:
    """Ends this run, which then writes what it has; a second signal must not disturb that."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def work_folder() -> str | None:
    """A folder in memory if the largest saved file fits, else the system's default."""
    shared = pathlib.Path("/dev/shm")
    return str(shared) if shared.exists() and shutil.disk_usage(shared).free > 2 * SAVED_BYTES_MAX else None


def main(words: list[str]) -> int:
    arguments = parse(words)
    if arguments.report:
        write_report(arguments.out, gpu_report.merge([json.loads(path.read_text(encoding="utf-8")) for path in arguments.report]))
        return 0
    for number in ENDING:
        signal.signal(number, end_once)
    folder = arguments.bin.resolve()
    for name in PROGRAMS:  # a copy may have lost the bit
        with contextlib.suppress(OSError):
            (folder / name).chmod(0o755)
    with tempfile.TemporaryDirectory(dir=None if arguments.work else work_folder()) as temporary:
        work = (arguments.work or pathlib.Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        blas = [arguments.blas] if arguments.blas else blas_libraries(arguments.python)
        machine = Machine(folder, arguments.python, work, blas, find_tool("compute-sanitizer", folder), find_tool("ncu", folder))
        sizes = TINY if arguments.tiny else Sizes()
        if arguments.plan:
            print(plan_text(arguments.lists, machine, sizes))
            return 0
        return run(arguments, machine, sizes, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
