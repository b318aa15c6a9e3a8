#!/usr/bin/env python3
"""Registers, memory and loads in flight of every kernel, from the output of `nvcc -Xptxas -v` and from its SASS.

    ninja -C build -v simile_cuda > build.log        (a build whose kernels are not taken from a cache)
    python3 tests/bench/gpu/kernel_table.py build.log
    python3 tests/bench/gpu/kernel_table.py --compile 80,90      compiles kernels/*.cu itself
    python3 tests/bench/gpu/kernel_table.py --compile 61,70 --cuda12 build/cuda12/toolkit      the same by clang

Prints a Markdown table. Exits with 1 when a kernel spills. Loads in flight are counted with --compile alone, in the
machine code and not on a card: the most loads from global memory that one thread has issued before an instruction
needs the first of them. Copies to shared memory (cp.async) are not among them. --cuobjdump names the program that reads
the machine code; those after CUDA 13.0 read none for sm_61 and sm_70.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)\w*'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
KERNEL = re.compile(r"(\w+)Kernel(?:<(.*)>)?\(")
SASS_ARCH = re.compile(r"code for sm_(\d+)")
SASS_FUNCTION = re.compile(r"Function : (\w+)")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(@\S+ )?([A-Z][\w.]*)\s*(.*?)\s*;")
REGISTER = re.compile(r"(?<![\w.])R(\d+)")


@dataclasses.dataclass
class Kernel:
    name: str
    arch: int
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spills: int = 0
    loads: int | None = None  # in flight at most; None without machine code


def readable(mangled: str) -> str:
    """"row_scan, 64 queries, 6 stages" from the mangled name of RowScanKernel<4, RowRing<6>, ...>."""
    text = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout.strip()
    match = KERNEL.search(text.replace("simile::kernels::", "").replace("(anonymous namespace)::", ""))
    if match is None:
        return mangled
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", match[1]).lower()
    arguments = re.findall(r"[\w<>]+", re.sub(r"(?<=\d)u", "", match[2] or ""))
    if not snake.endswith("_scan") or len(arguments) < 2:
        return f"{snake}<{', '.join(arguments)}>" if arguments else snake
    queries = int(arguments[0]) * (8 if "int8" in snake else 16)
    stages = {"RowRegisters": "no ring"}.get(arguments[1], re.sub(r"\D", "", arguments[1]) + " stages")
    return f"{snake}, {queries} queries, {stages}"


def parse(text: str) -> list[Kernel]:
    kernels: dict[tuple[str, int], Kernel] = {}
    current = None
    for line in text.splitlines():
        if match := ENTRY.search(line):
            current = Kernel(readable(match[1]), int(match[2]))
            kernels[current.name, current.arch] = current
        elif current is not None and (match := FRAME.search(line)):
            current.stack, current.spills = int(match[1]), int(match[2]) + int(match[3])
        elif current is not None and (match := USED.search(line)):
            current.registers = int(match[1])
            shared = SHARED.search(line)
            current.shared = int(shared[1]) if shared else 0
            current = None
    return sorted(kernels.values(), key=lambda kernel: (natural(kernel.name), kernel.arch))


def count_loads(sass: str, kernels: list[Kernel]) -> None:
    """Adds the loads in flight to the kernels, from the output of `cuobjdump -sass`: along straight code, loads whose
    results no instruction has used yet."""
    by_name = {(kernel.name, kernel.arch): kernel for kernel in kernels}
    arch, kernel, waiting = 0, None, []
    for line in sass.splitlines():
        if match := SASS_ARCH.search(line):
            arch = int(match[1])
        elif match := SASS_FUNCTION.search(line):
            kernel, waiting = by_name.get((readable(match[1]), arch)), []
            if kernel is not None:
                kernel.loads = 0
        elif kernel is not None and (match := INSTRUCTION.search(line)):
            predicate, operation, operands = match.groups()
            used = {int(register) for register in REGISTER.findall(operands)}
            waiting = [results for results in waiting if not used & results]
            name, *modifiers = operation.split(".")
            if name in {"LDG", "LD"} and used:
                first = int(REGISTER.search(operands)[1])
                waiting.append(set(range(first, first + (4 if "128" in modifiers else 2 if "64" in modifiers else 1))))
                kernel.loads = max(kernel.loads, len(waiting))
            elif name in {"BRA", "EXIT", "RET"} and predicate is None:
                waiting = []


def natural(name: str) -> list:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def table(kernels: list[Kernel]) -> str:
    """Registers by architecture; other columns list the values where architectures differ."""
    archs = sorted({kernel.arch for kernel in kernels})
    columns = {"loads in flight": "loads", "static shared, bytes": "shared", "stack, bytes": "stack", "spills, bytes": "spills"}
    if all(kernel.loads is None for kernel in kernels):
        del columns["loads in flight"]
    lines = ["| " + " | ".join(["kernel", *(f"sm_{arch}" for arch in archs), *columns]) + " |",
             "| --- | " + "---: | " * (len(archs) + len(columns))]
    rows = []
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        of_name = {kernel.arch: kernel for kernel in kernels if kernel.name == name}
        registers = [str(of_name[arch].registers) if arch in of_name else "" for arch in archs]
        rest = [" / ".join(str(value) for value in dict.fromkeys(getattr(kernel, field) for kernel in of_name.values()))
                for field in columns.values()]
        rows.append((name, " | ".join([*registers, *rest])))
    # Forms that differ in the stages of their ring alone share a line.
    of_line: dict[tuple[str, str], list[str]] = {}
    for name, cells in rows:
        stages = re.search(r"\d+(?= stages$)", name)
        of_line.setdefault((name[:stages.start()] if stages else name, cells), []).append(stages[0] if stages else "")
    for (name, cells), stages in of_line.items():
        lines.append(f"| {name}{', '.join(stages)}{' stages' if stages[0] else ''} | {cells} |")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def output_of(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"error: {command[0]} is not on the path; CUDA's toolkit has it") from None
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)} failed:\n{done.stderr}")
    return done.stdout + done.stderr


def compile_kernels(archs: str, nvcc: str, cuda12: str | None, cuobjdump: str) -> list[Kernel]:
    """Every kernel on these architectures, by nvcc, or by clang with this toolkit."""
    if cuda12:
        flags = (ROOT / "cmake/cuda12/flags").read_text(encoding="utf-8").split()  # those of the build
        command = ["clang++-19", *flags, f"--cuda-path={cuda12}", "-Xcuda-ptxas", "-v", f"-I{ROOT}", f"-I{ROOT}/cmake/cuda12"]
        command += [f"--offload-arch=sm_{arch}" for arch in archs.split(",")]
    else:
        command = [nvcc, "-std=c++17", "-O3", "-ftz=false", "-fmad=false", "-Xptxas=-v", f"-I{ROOT}"]
        command += [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs.split(",")]
    text = sass = ""
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted((ROOT / "kernels").glob("*.cu")):
            compiled = str(pathlib.Path(folder) / "kernel.o")
            text += output_of(*command, "-c", str(source), "-o", compiled)
            sass += output_of(cuobjdump, "-sass", compiled)
    kernels = parse(text)
    count_loads(sass, kernels)
    return kernels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=pathlib.Path, nargs="?", help="output of a build")
    parser.add_argument("--compile", metavar="80,90", help="compile the kernels for these architectures instead")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--cuda12", metavar="FOLDER", help="compile by clang 19 with what cmake/cuda12/fetch put there")
    parser.add_argument("--cuobjdump", metavar="PROGRAM", help="default the one beside nvcc")
    arguments = parser.parse_args()
    if (arguments.log is None) == (arguments.compile is None):
        parser.error("give the log of a build, or --compile")
    cuobjdump = arguments.cuobjdump or str(pathlib.Path(arguments.nvcc).with_name("cuobjdump"))
    kernels = (compile_kernels(arguments.compile, arguments.nvcc, arguments.cuda12, cuobjdump) if arguments.compile
               else parse(arguments.log.read_text(encoding="utf-8")))
    if not kernels:
        print("error: no kernel in it: ptxas prints nothing for kernels from a cache", file=sys.stderr)
        return 1
    print(table(kernels), end="")
    return 1 if any(kernel.spills for kernel in kernels) else 0


if __name__ == "__main__":
    sys.exit(main())
