"""The steps of run.py: what each runs, how long it takes and may take, in named lists.

Whatever may break the device runs in a process of its own, so that its error or its hang costs no other figure: each
strategy's conformance, each collection's times.
"""

import dataclasses
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
TRUTH, TIMES = LISTS = ("truth", "times")
MINUTES = {TRUTH: 4.0, TIMES: 6.0}  # of a list, at most
PROGRAMS = ("gpu_bench", "tensor_sums", "device_conformance", "engine_bench", "simile")
CUDA12_PLUGIN = "libsimile_cuda12.so"
# Of device_conformance. A scan, lists of rows and canonical scores need no cuBLAS, whose own kernels would also be checked
# for races, and which the plug-in of CUDA 12 wants from CUDA 12.
STRATEGIES = ("AsServed", "Int8Scan", "RowScan", "Gemm", "Gather", "Canonical")
WITHOUT_BLAS = ("Int8Scan", "RowScan", "Gather", "Canonical")
# A conformance case of 1,273 rows, short answers and lists among them, so that even one case is answered by every strategy.
FIRST_SEED_OF_FEW = "3000937"
CHECKER_FOUND = 9  # compute-sanitizer's exit code
SAVED_BYTES_MAX = 4 << 30  # of vectors that other steps read from a file; above, torch draws its own


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    description: str
    planned_s: float  # as on an H100 or an H200, where it ran there
    limit_s: float
    command: list[str]
    output: pathlib.Path | None = None  # the JSON that it writes
    # "rival" runs in a Python of its own, "checker" under compute-sanitizer, "profile" under Nsight Compute, "cuda12" with that
    # plug-in; "prints" writes its JSON to stdout.
    kind: str = "program"
    folder: pathlib.Path | None = None  # of vectors that it writes or reads; removed after its last step


@dataclasses.dataclass
class Machine:
    """Paths and programs of this machine."""
    bin: pathlib.Path
    python: str
    work: pathlib.Path
    blas: list[str]
    sanitizer: str | None
    profiler: str | None


@dataclasses.dataclass(frozen=True)
class Sizes:
    conformance: tuple[str, ...] = ("--cases", "2000", "--seconds", "12")
    suites: tuple[str, ...] = ("Strategies", "Large")  # of device_conformance
    sanitizer: tuple[str, ...] = ("--cases", "12", "--seconds", "7", "--first-seed", FIRST_SEED_OF_FEW,
                                  "--batch-timeout", "50")  # it is slow
    sums: tuple[str, ...] = ("--sums", "1e9", "--seconds", "25")
    small: str = "62423x384"
    large: str = "1000000x768"
    large_narrow: str = "1000000x384"
    huge: str = "10000000x768"
    bench: tuple[str, ...] = ()
    rival: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    against_cpu: tuple[str, ...] = ("--batch", "1,10,32,100,1000")
    tune: tuple[str, ...] = ("--duration", "8s")
    profile: tuple[str, ...] = ("--batch", "32", "--k", "1000")
    films: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    limit_factor: float = 1  # of every step's limit


# For a dry run on the emulated device, which is a million times slower: the paths, not the figures. Every step has two cases at
# least, so that it can be killed after its first figure.
FEW_CASES = ("--cases", "6", "--seconds", "300", "--first-seed", FIRST_SEED_OF_FEW, "--batch-timeout", "300")
TINY_KINDS = ("--one-by-one", "--duration", "0.3", "--in-flight", "1", "--requests", "2", "--timeout", "300", "--dim", "32")
TINY = Sizes(conformance=FEW_CASES, suites=("Strategies",), sanitizer=FEW_CASES, limit_factor=10,
             small="5001x32", large="5002x32", large_narrow="5003x32", huge="5004x32",
             bench=("--batch", "1,3", "--k", "10", "--query-count", "16", "--verify", "4"), rival=("--batch", "1", "--k", "10"),
             against_cpu=("--batch", "1,3", "--batch-timeout", "300"),
             server=("--duration", "1", "--in-flight", "1", "--backend", "cpu"), tune=("--duration", "1s", "--batch", "1"),
             profile=("--batch", "1,3", "--k", "10", "--query-count", "16"), films=(*TINY_KINDS, "--rows", "200"),
             made=(*TINY_KINDS, "--rows", "1100", "--users", "300", "--no-report"))


def steps_of(names: list[str], machine: Machine, sizes: Sizes) -> list[Step]:
    """The steps of these lists; a failure makes the later ones of its list less useful."""
    return [dataclasses.replace(step, limit_s=sizes.limit_factor * step.limit_s)
            for name in names for step in {TRUTH: truth, TIMES: times}[name](machine, sizes)]


def truth(machine: Machine, sizes: Sizes) -> list[Step]:
    """Are the answers right? Nothing is timed."""
    steps = [Step(f"conformance-{name}", f"{name} against the oracle, and against the plain scan on large segments", 18, 65,
                  conformance(machine, f"conformance-{name}", sizes.suites, (name,), sizes.conformance),
                  machine.work / f"conformance-{name}.json") for name in STRATEGIES]
    steps.append(Step("tensor-sums", "the bound's assumption about sums on tensor cores", 3, 60,
                      program(machine, "tensor_sums", *sizes.sums, "--json", str(machine.work / "sums.json")),
                      machine.work / "sums.json"))
    steps.append(Step("conformance-cuda12", "the plug-in of CUDA 12 against the oracle", 18, 100,
                      conformance(machine, "conformance-cuda12", ("Strategies",), WITHOUT_BLAS,
                                  ("--plugin", str(machine.bin / CUDA12_PLUGIN), *sizes.conformance)),
                      machine.work / "conformance-cuda12.json", "cuda12"))
    for tool, names, planned_s in (("memcheck", STRATEGIES, 50), ("racecheck", WITHOUT_BLAS, 36)):
        checked = [machine.sanitizer or "", "--tool", tool, "--error-exitcode", str(CHECKER_FOUND),
                   *conformance(machine, tool, ("Strategies",), names, sizes.sanitizer)]
        steps.append(Step(f"sanitizer-{tool}", f"a few of the cases under compute-sanitizer's {tool}", planned_s, 150, checked,
                          machine.work / f"{tool}.json", "checker"))
    return steps


def times(machine: Machine, sizes: Sizes) -> list[Step]:
    """The whole table beside torch, the server, what the card chooses, and the same machine's CPU."""
    small, large = bench_steps(machine, sizes, sizes.small, 5, 12), bench_steps(machine, sizes, sizes.large, 14, 16)
    served = machine.work / "server.json"
    server = Step("server", "simile bench, the CPU cores of its threads, and the A100 report, through a server", 32, 78,
                  [machine.python, "-B", str(HERE / "server_bench.py"), "--simile", str(machine.bin / "simile"), "--files",
                   str(small[0].folder), *sizes.server, "--json", str(served)], served, "program", small[0].folder)
    return [*small, server, tune(machine, sizes, small[0], 14), *large, tune(machine, sizes, large[0], 20),
            server_kinds(machine, "films", 16, "5,000 films, 500 users with interactions", *sizes.films),
            server_kinds(machine, "made", 34, "62,423 rows, 119,808 users", *sizes.made),
            against_cpu(machine, sizes, sizes.small, 24, "--quick"), against_cpu(machine, sizes, sizes.large_narrow, 50, "--quick"),
            profile(machine, sizes, 20), *bench_steps(machine, sizes, sizes.huge, 70, 20, verify=64)]


def tune(machine: Machine, sizes: Sizes, bench: Step, planned_s: float) -> Step:
    """What the card chooses for a collection at its load, and the rate of 1 to 1,024 queries."""
    name = bench.name.replace("bench-", "tune-")
    return Step(name, "simile tune: the passes that the card chooses, its rates", planned_s, limit_s(planned_s),
                [str(machine.bin / "simile"), "tune", f"rows={bench.folder}", "--dry-run", "--json", *sizes.tune],
                machine.work / f"{name}.json", "prints", bench.folder)


def profile(machine: Machine, sizes: Sizes, planned_s: float) -> Step:
    """Of long answers the scan and the rescoring: the kernels that took longest on the cards that were measured."""
    rows, dim = sizes.small.split("x")
    output = machine.work / "profile.json"
    return Step("profile", "the two slowest kernels under Nsight Compute", planned_s, limit_s(planned_s),
                [machine.profiler or "", "--kernel-name", "regex:^(Int8Scan|Rescore)Kernel$", "--launch-count", "2", "--section",
                 "SpeedOfLight", "--section", "Occupancy", "--section", "LaunchStats",
                 *program(machine, "gpu_bench", "--synthetic", "clustered", "--rows", rows, "--dim", dim, "--verify", "1",
                          *sizes.profile, "--json", str(output))], output, "profile")


def conformance(machine: Machine, output: str, suites: tuple[str, ...], strategies: tuple[str, ...],
                options: tuple[str, ...]) -> list[str]:
    patterns = ":".join(f"{suite}/*/{name}*" for suite in suites for name in strategies)
    return program(machine, "device_conformance", f"--gtest_filter={patterns}", *options, "--json",
                   str(machine.work / f"{output}.json"))


def against_cpu(machine: Machine, sizes: Sizes, shape: str, planned_s: float, *options: str) -> Step:
    """The GPU against the CPU engine on all cores and against a plain fp32 scan."""
    rows, dim = shape.split("x")
    name = f"against-cpu-{shape}"
    output = machine.work / f"{name}.json"
    return Step(name, "the GPU against the CPU engine on all cores, and a plain scan of one query at a time; same answers", planned_s,
                limit_s(planned_s),
                program(machine, "engine_bench", "--synthetic", "clustered", "--rows", rows, "--dim", dim, "--backend",
                        "scan-single,auto,gpu", "--k", "10", *sizes.against_cpu, *options, "--json", str(output)), output)


def server_kinds(machine: Machine, collection: str, planned_s: float, what: str, *options: str) -> Step:
    output = machine.work / f"server-{collection}.json"
    return Step(f"server-{collection}", f"every kind of call and the report through a server, beside the CPU: {what}", planned_s,
                limit_s(planned_s),
                [machine.python, "-B", str(HERE / "server_kinds.py"), "--simile", str(machine.bin / "simile"), "--collection", collection,
                 "--work", str(machine.work), *options, "--json", str(output)], output)


def program(machine: Machine, name: str, *options: str) -> list[str]:
    return [str(machine.bin / name), *options, *(word for library in machine.blas for word in ("--blas", library))]


def limit_s(planned_s: float) -> float:
    return 1.5 * planned_s + 30


def bench_steps(machine: Machine, sizes: Sizes, shape: str, ours_s: float, theirs_s: float, verify: int = 1000) -> list[Step]:
    """Ours and torch on the same vectors."""
    rows, dim = shape.split("x")
    folder = machine.work / shape if int(rows) * int(dim) * 4 <= SAVED_BYTES_MAX else None
    ours, theirs = machine.work / f"bench-{shape}.json", machine.work / f"torch-{shape}.json"
    saving = ["--save", str(folder)] if folder else []
    source = ["--files", str(folder)] if folder else ["--rows", rows, "--dim", dim]
    return [Step(f"bench-{shape}", f"{shape}: device and host-to-host times, answers verified", ours_s, limit_s(ours_s),
                 program(machine, "gpu_bench", "--synthetic", "clustered", "--rows", rows, "--dim", dim,
                         *(sizes.bench or ("--verify", str(verify))), *saving, "--json", str(ours)), ours, "program", folder),
            Step(f"torch-{shape}", f"{shape}: torch fp16 matmul and topk, eager and graphed", theirs_s, limit_s(theirs_s),
                 [machine.python, "-B", str(HERE / "torch_rival.py"), *source, *sizes.rival, "--json", str(theirs)], theirs, "rival",
                 folder)]


def ask(command: list[str], environment: dict[str, str] | None = None, limit_s: float = 60) -> subprocess.CompletedProcess | None:
    """What a short command prints; None when it cannot be started, or does not end: it is killed then and not waited for,
    because a driver that hangs may keep it."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    except OSError:
        return None
    try:
        out, error = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return None
    return subprocess.CompletedProcess(command, process.returncode, out, error)


def plan_text(names: list[str], machine: Machine, sizes: Sizes) -> str:
    """The minutes of each step, planned and at most, and the sum of each list."""
    lines = []
    for name in names:
        spent_s = 0.0
        lines.append(f"{name}")
        for step in steps_of([name], machine, sizes):
            spent_s += step.planned_s
            lines.append(f"  {step.name:26} {step.planned_s / 60:5.1f} min, at most {step.limit_s / 60:3.1f}, "
                         f"done by {spent_s / 60:4.1f}  {step.description}")
    return "\n".join(lines)
