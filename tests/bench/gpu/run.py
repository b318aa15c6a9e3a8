#!/usr/bin/env python3
"""The GPU engine on a real card, in one command: checks it, measures it, and writes docs/benchmarks/gpu.md.

    cmake --preset bench && cmake --build --preset bench --target gpu_bench_all
    python3 tests/bench/gpu/run.py --bin build/bin

Needs an NVIDIA card with its driver, the programs of the target gpu_bench_all, and for the rival a Python with torch; no
network and no gRPC. Steps run one after the other, each within its own time limit and all within --minutes; a failed step
does not end the others. Results are written after every step, so that a later run can add to them (--keep) and another
machine can write the page:

    python3 tests/bench/gpu/run.py --report gpu-results.json

Exits with 0 when every step passed, 1 when one did not, 2 when there is no card.
"""

import argparse
import dataclasses
import datetime
import glob
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import gpu_plots
import gpu_report

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SHAPES = [("62423x384", 1000), ("1000000x768", 1000), ("1000000x384", 1000), ("10000000x768", 64)]  # queries verified
SAVED_BYTES_MAX = 4 << 30  # of vectors that torch reads from a file; above, it draws its own
NO_CARD = 2


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    description: str
    limit_s: float
    command: list[str]
    output: pathlib.Path | None = None  # the JSON that it writes
    kind: str = "program"  # "rival" runs in a Python of its own, "checker" under compute-sanitizer


@dataclasses.dataclass
class Machine:
    """Paths and programs of this machine."""
    bin: pathlib.Path
    python: str
    work: pathlib.Path
    blas: list[str]
    sanitizer: str | None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin",
                        help="folder of the programs, and of the libraries they need in its folder lib; default build/bin")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch; default this one")
    parser.add_argument("--minutes", type=float, default=9, help="for all steps together; default 9")
    parser.add_argument("--quick", action="store_true", help="fewer cases and smaller sets")
    parser.add_argument("--steps", metavar="A,B", help="only these, or those that begin with them: conformance,bench-62423x384,torch")
    parser.add_argument("--list", action="store_true", help="print the steps and end")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks", help="folder for gpu.md and pictures")
    parser.add_argument("--json", type=pathlib.Path, help="file for all figures; default gpu-results.json in --out")
    parser.add_argument("--keep", type=pathlib.Path, help="results of an earlier run, used for steps that do not run now")
    parser.add_argument("--report", type=pathlib.Path, help="write the page from these results and end")
    parser.add_argument("--work", type=pathlib.Path, help="folder for vectors; default a temporary one, in memory if it fits")
    arguments = parser.parse_args()
    if arguments.json is None:
        arguments.json = arguments.out / "gpu-results.json"
    return arguments


def all_steps(machine: Machine, quick: bool) -> list[Step]:
    """All steps; a failure makes the later ones less useful."""
    work = machine.work
    blas = [word for name in machine.blas for word in ("--blas", name)]

    def program(name: str, *options: str) -> list[str]:
        return [str(machine.bin / name), *options, *blas]

    def conformance(output: str, *options: str) -> list[str]:
        return program("device_conformance", f"--gtest_output=json:{work / output}", *options)

    cases, seconds, sums = ("200", "4", "1e8") if quick else ("2000", "14", "1e9")
    steps = [Step("conformance", "every strategy against the oracle, large segments against the plain scan", 170,
                  conformance("conformance.json", "--cases", cases, "--seconds", seconds), work / "conformance.json"),
             Step("tensor-sums", "the bound's assumption about sums on tensor cores", 60,
                  program("tensor_sums", "--sums", sums, "--seconds", "40", "--json", str(work / "sums.json")), work / "sums.json")]
    steps += [bench for name, verify in SHAPES[:1] for bench in shape_steps(machine, name, verify, program)]
    shapes = ["62423x384", "200000x768"] if quick else ["62423x384", "1000000x768"]
    shape_options = [word for shape in shapes for word in ("--shape", shape)]
    steps.append(Step("steps", "kernels one by one", 150,
                      program("gpu_steps", *shape_options, "--json", str(work / "steps.json")), work / "steps.json"))
    steps += [bench for name, verify in (SHAPES[1:2] if quick else SHAPES[1:3])
              for bench in shape_steps(machine, name, verify, program)]
    few = ["--gtest_filter=Strategies/*", "--cases", "3" if quick else "12", "--seconds", "12"]
    for tool in ("memcheck", "racecheck"):
        checked = [machine.sanitizer or "", "--tool", tool, "--error-exitcode", "9",
                   *conformance(f"{tool}.json", *few)]
        steps.append(Step(f"sanitizer-{tool}", f"the same cases, a few, under compute-sanitizer's {tool}", 60, checked,
                          work / f"{tool}.json", "checker"))
    if not quick:  # the longest last: they are skipped when time runs out
        steps += shape_steps(machine, *SHAPES[0], program, "isotropic")
        steps += [bench for name, verify in SHAPES[3:] for bench in shape_steps(machine, name, verify, program)]
    return steps


def shape_steps(machine: Machine, name: str, verify: int, program, spread: str = "clustered") -> list[Step]:
    rows, dim = name.split("x")
    if spread != "clustered":
        name += f"-{spread}"
    folder = machine.work / name
    shared = int(rows) * int(dim) * 4 <= SAVED_BYTES_MAX
    ours, theirs = machine.work / f"bench-{name}.json", machine.work / f"torch-{name}.json"
    saving = ["--save", str(folder)] if shared else []
    source = ["--files", str(folder)] if shared else ["--rows", rows, "--dim", dim]
    limit = 60 if shared else 120
    return [Step(f"bench-{name}", f"{name}: device and host-to-host times, answers verified", limit,
                 program("gpu_bench", "--synthetic", spread, "--rows", rows, "--dim", dim, "--verify", str(verify), *saving,
                         "--json", str(ours)), ours),
            Step(f"torch-{name}", f"{name}: torch fp16 matmul and topk, eager and graphed", limit,
                 [machine.python, "-B", str(HERE / "torch_rival.py"), *source, "--json", str(theirs)], theirs, "rival")]


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


def environment(step: Step, folder: pathlib.Path) -> dict[str, str]:
    """Programs use the libraries packed beside them; torch uses its own."""
    variables = dict(os.environ)
    if step.kind != "rival":
        paths = [str(folder), str(folder / "lib"), variables.get("LD_LIBRARY_PATH", "")]
        variables["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    return variables


def error_line(text: str) -> str:
    """The line with the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error:") or "Error" in line or "Failure" in line]
    return (errors or lines or ["it printed nothing"])[-1][:300]


def conformance_summary(report: dict) -> str:
    parts = []
    for suite in report.get("testsuites", []):
        for test in suite.get("testsuite", []):
            if "cases" in test:
                parts.append(f'{test["name"].split("/")[-1]} {test["cases"]} cases, '
                             f'{test["by_strategy"]} of {test["queries"]} queries by it')
    return f'{report.get("tests", 0)} tests, {report.get("failures", 0)} failed' + (": " + "; ".join(parts) if parts else "")


def summary(step: Step, data: dict | None) -> str:
    if not data:
        return step.description
    if "testsuites" in data:
        return conformance_summary(data)
    if "seen_over_bound" in data:
        return f'{data["sums"]:,} sums per method, worst {data["seen_over_bound"]:.3f} of the bound, ' \
               f'{data["fp16_seen_over_bound"]:.3f} once stored as fp16'
    count = len(data.get("lines", data.get("cases", [])))
    return f"{step.description}: {count} lines"


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


def run_step(step: Step, machine: Machine, limit_s: float) -> dict:
    if reason := missing(step, machine):
        return {"status": "skipped", "seconds": 0, "message": reason}
    if step.name.startswith("bench-") and "--save" in step.command:
        pathlib.Path(step.command[step.command.index("--save") + 1]).mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    log = machine.work / f"{step.name}.log"
    with log.open("wb") as out:
        try:
            code = subprocess.run(step.command, stdout=out, stderr=subprocess.STDOUT, timeout=limit_s, check=False,
                                  env=environment(step, machine.bin)).returncode
        except subprocess.TimeoutExpired:
            code = None
    text = log.read_text(encoding="utf-8", errors="replace")
    print("\n".join("    " + line for line in text.splitlines()[-40:]), flush=True)
    data = None
    if step.output is not None and step.output.exists():
        data = json.loads(step.output.read_text(encoding="utf-8"))
    refused = step.kind == "checker" and "not supported" in text
    status = "passed" if code == 0 else "timed out" if code is None else "skipped" if refused else "failed"
    message = summary(step, data) if code == 0 else f"not done after {limit_s:.0f} s" if code is None else error_line(text)
    result = {"status": status, "seconds": round(time.monotonic() - began, 1), "message": message}
    return result | ({"data": data} if data is not None else {})


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
    blas = [word for name in machine.blas for word in ("--blas", name)]
    step = Step("card", "", 60, [str(machine.bin / "gpu_steps"), "--card", *blas])
    if reason := missing(step, machine):
        print(f"error: {reason}", file=sys.stderr)
        return 1, {}
    asked = subprocess.run(step.command, capture_output=True, text=True, check=False, env=environment(step, machine.bin))
    if asked.returncode != 0:
        print(error_line(asked.stderr), file=sys.stderr)
        return NO_CARD if asked.returncode == NO_CARD else 1, {}
    return 0, {"card": json.loads(asked.stdout)["name"]}


def write(arguments: argparse.Namespace, results: dict) -> None:
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def write_report(arguments: argparse.Namespace, results: dict) -> None:
    plots = []
    if importlib.util.find_spec("matplotlib") is not None:
        plots = gpu_plots.draw(results, arguments.out)
    else:
        plots = [path for step in results["steps"] if (path := arguments.out / f'gpu-{step.removeprefix("bench-")}.png').exists()]
    text = gpu_report.render(results)
    gpu_report.write_page(arguments.out / "gpu.md", text, plots)
    print(text)


def chosen(steps: list[Step], names: str | None) -> list[Step]:
    """The steps with these names; a word that is not a step's name selects all that begin with it."""
    if names is None:
        return steps
    known = {step.name for step in steps}
    return [step for step in steps if any(step.name == name or (name not in known and step.name.startswith(name))
                                          for name in names.split(","))]


def run(arguments: argparse.Namespace, machine: Machine) -> int:
    code, about = look_for_card(machine)
    if code != 0:
        return code
    steps = chosen(all_steps(machine, arguments.quick), arguments.steps)
    if not steps:
        print(f"error: no step is called {arguments.steps}; --list shows them", file=sys.stderr)
        return 1
    typed = [pathlib.Path(word).name if word.startswith(("/", "../", "./", "~")) else word for word in sys.argv[1:]]
    about |= card_facts() | {"date": datetime.date.today().isoformat(), "command": "tests/bench/gpu/run.py " + shlex.join(typed)}
    results = {"about": about, "steps": {}}
    if arguments.keep:
        kept = json.loads(arguments.keep.read_text(encoding="utf-8"))
        if kept["about"].get("card") != about.get("card"):
            print(f'error: {arguments.keep.name} is of another card, {kept["about"].get("card")}', file=sys.stderr)
            return 1
        results["steps"] = kept["steps"]
        about["command"] = f'{kept["about"]["command"]}\n{about["command"]}'
    deadline = time.monotonic() + 60 * arguments.minutes
    outcomes = []
    for step in steps:
        left = deadline - time.monotonic()
        print(f"{step.name}: {step.description}", flush=True)
        if left < 5:
            result = {"status": "skipped", "seconds": 0, "message": f"no time left of {arguments.minutes:g} minutes"}
        else:
            result = run_step(step, machine, min(step.limit_s, left))
        print(f'{step.name}: {result["status"]} after {result["seconds"]:.0f} s. {result["message"]}\n', flush=True)
        outcomes.append(result["status"])
        results["steps"][step.name] = result
        torch = result.get("data") or {}
        if step.kind == "rival" and torch.get("cuda"):
            about["cuda"] = f'{torch["cuda"]} (of torch)'
        write(arguments, results)
        if step.kind == "rival":  # its vectors are no longer needed
            shutil.rmtree(machine.work / step.name.removeprefix("torch-"), ignore_errors=True)
    write_report(arguments, results)
    return 1 if any(outcome in ("failed", "timed out") for outcome in outcomes) else 0


def work_folder() -> str | None:
    """A folder in memory if the largest saved file fits, else the system's default."""
    shared = pathlib.Path("/dev/shm")
    return str(shared) if shared.exists() and shutil.disk_usage(shared).free > 2 * SAVED_BYTES_MAX else None


def main() -> int:
    arguments = parse()
    if arguments.report:
        write_report(arguments, json.loads(arguments.report.read_text(encoding="utf-8")))
        return 0
    folder = arguments.bin.resolve()
    with tempfile.TemporaryDirectory(dir=None if arguments.work else work_folder()) as temporary:
        work = (arguments.work or pathlib.Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        machine = Machine(folder, arguments.python, work, blas_libraries(arguments.python), find_sanitizer(folder))
        if arguments.list:
            for step in all_steps(machine, arguments.quick):
                print(f"{step.name:24} at most {step.limit_s:3.0f} s  {step.description}")
            return 0
        return run(arguments, machine)


if __name__ == "__main__":
    sys.exit(main())
