#!/usr/bin/env python3
"""Registers and memory of every kernel, from the output of `nvcc -Xptxas -v`.

    ninja -C build -v simile_cuda > build.log        (a build whose kernels are not taken from a cache)
    python3 tests/bench/gpu/kernel_table.py build.log
    python3 tests/bench/gpu/kernel_table.py --compile 80,90      compiles kernels/*.cu itself

Prints a Markdown table. Exits with 1 when a kernel spills.
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
PIECE = re.compile(r"\d+")


@dataclasses.dataclass
class Kernel:
    name: str
    arch: int
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spills: int = 0


def readable(mangled: str) -> str:
    """RowScanKernel<4, 6> from its mangled name (Itanium C++ ABI): the last name, and its numbers."""
    at, names = 0, []
    text = mangled.removeprefix("_ZN").removeprefix("_Z")
    while match := PIECE.match(text, at):
        end = match.end() + int(match[0])
        names.append(text[match.end():end])
        at = end
    numbers = re.match(r"I((?:Lj\d+E)+)", text[at:])
    arguments = re.findall(r"Lj(\d+)E", numbers[1]) if numbers else []
    name = names[-1].removesuffix("Kernel") if names else mangled
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    if snake == "row_scan" and len(arguments) == 2:
        return f"row_scan, {16 * int(arguments[0])} queries, " + ("no ring" if arguments[1] == "1" else f"{arguments[1]} stages")
    return f"{snake}<{', '.join(arguments)}>" if arguments else snake


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


def natural(name: str) -> list:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def table(kernels: list[Kernel]) -> str:
    """Registers by architecture; other columns list the values where architectures differ."""
    archs = sorted({kernel.arch for kernel in kernels})
    lines = ["| kernel | " + " | ".join(f"sm_{arch}" for arch in archs) + " | static shared, bytes | stack, bytes | spills, bytes |",
             "| --- | " + "---: | " * (len(archs) + 3)]
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        of_name = {kernel.arch: kernel for kernel in kernels if kernel.name == name}
        registers = [str(of_name[arch].registers) if arch in of_name else "" for arch in archs]
        rest = [" / ".join(str(value) for value in dict.fromkeys(getattr(kernel, field) for kernel in of_name.values()))
                for field in ("shared", "stack", "spills")]
        lines.append("| " + " | ".join([name, *registers, *rest]) + " |")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def compile_kernels(archs: str, nvcc: str) -> str:
    """The output of nvcc for every kernel on these architectures."""
    text = ""
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted((ROOT / "kernels").glob("*.cu")):
            targets = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs.split(",")]
            done = subprocess.run([nvcc, "-std=c++17", "-O3", "-ftz=false", "-fmad=false", "-Xptxas=-v", f"-I{ROOT}", *targets, "-c",
                                   str(source), "-o", str(pathlib.Path(folder) / "kernel.o")], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"error: {source.name} does not compile:\n{done.stderr}")
            text += done.stderr
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=pathlib.Path, nargs="?", help="output of a build")
    parser.add_argument("--compile", metavar="80,90", help="compile the kernels for these architectures instead")
    parser.add_argument("--nvcc", default="nvcc")
    arguments = parser.parse_args()
    if (arguments.log is None) == (arguments.compile is None):
        parser.error("give the log of a build, or --compile")
    text = compile_kernels(arguments.compile, arguments.nvcc) if arguments.compile else arguments.log.read_text(encoding="utf-8")
    kernels = parse(text)
    if not kernels:
        print("error: no kernel in it: ptxas prints nothing for kernels from a cache", file=sys.stderr)
        return 1
    print(table(kernels), end="")
    return 1 if any(kernel.spills for kernel in kernels) else 0


if __name__ == "__main__":
    sys.exit(main())
