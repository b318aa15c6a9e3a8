#!/usr/bin/env python3
"""Removes one barrier, wait or bounds guard at a time from the CUDA kernels and checks that a test fails.

    mutate.py --build DIR [--sanitized DIR] [--jobs N] [--list] [--only TEXT]

DIR is a build folder with gpu_test and gpu_conformance_test. Each mutant is compiled for the emulated device into
a library of its own, and the built tests run with it; where they pass, those of the sanitized folder run too, in
which AddressSanitizer detects reads beyond an allocation. Prints a line per mutant and exits 1 when one survives
that is not listed as equivalent with a reason. Standard library only.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[3]
KERNELS = ROOT / "kernels"
SECONDS_MAX = 240

# What is removed wherever it occurs in a kernel, and its replacement.
OPERATORS = (
    ("barrier", re.compile(r"__syncthreads\(\);"), ""),
    ("warp barrier", re.compile(r"__syncwarp\(\);"), ""),
    ("wait for copies", re.compile(r"AsyncCopyWait<[^;]*>\(\);"), ""),
    ("end of a group of copies", re.compile(r"(?<!void )AsyncCopyCommit\(\);"), ""),
    ("grid barrier", re.compile(r"(?<!void )GridBarrier\((arguments\.)?rounds\);"), "__syncthreads();"),
    ("wait for other blocks", re.compile(r"while \(LoadAcquire[^{]*\{\s*\}"), ""),
    ("capacity", re.compile(r"slot < pass\.capacity"), "true"),
    ("capacity", re.compile(r"at < kStagedHits"), "true"),
    ("capacity", re.compile(r"min\(staged\.count\[0\], kStagedHits\)"), "staged.count[0]"),
    ("capacity", re.compile(r"min\(LoadFromL2\(pass\.hit_counts \+ query\), pass\.capacity\)"),
     "LoadFromL2(pass.hit_counts + query)"),
    ("last row", re.compile(r"position < (arguments|pass)\.row_count"), "true"),
    ("last row", re.compile(r"position >= pass\.row_count"), "false"),
    ("last row", re.compile(r"tile_? \* kScanTileRows \+ row < pass\.row_count"), "true"),
    ("last row", re.compile(r"walk_\.tile \* kScanTileRows \+ row_ \+ rows_on < row_count_"), "true"),
    ("whole stage", re.compile(r"\(walk_\.tile \+ 1\) \* kScanTileRows <= row_count_"), "true"),
    ("last column", re.compile(r"chunk_ \* kChunk \+ column_ \+ columns_on < stride_"), "true"),
    ("whole stage", re.compile(r"\(chunk_ \+ 1\) \* kChunk <= stride_"), "true"),
    ("last column", re.compile(r"column < pass\.stride"), "true"),
    ("last query", re.compile(r"query( \+ 8)? < pass\.batch"), "true"),
    ("last query", re.compile(r"slot < pass\.batch"), "true"),
    ("last column", re.compile(r"at( \+ 32)? < stride \?"), "true ?"),
    ("last column", re.compile(r"column < int8\.stride"), "true"),
    ("empty slot", re.compile(r" && pass\.terms\[slot\]\.wanted != 0"), ""),
    ("last query", re.compile(r"if \(query >= pass\.batch\) return;"), ""),
    ("end of the tile", re.compile(r"base \+ kChunk <= columns"), "true"),
    ("end of the tile", re.compile(r"base \+ kChunk > tile\.columns"), "false"),
    ("end of the tile", re.compile(r"base \+ \(u \* 32 \+ lane\) \* kScores < columns"), "true"),
    ("end of the sample", re.compile(r"min\(kScores, sample\.rows - i \* kScores\)"), "kScores"),
    ("end of the sample", re.compile(r"min\(base \+ u \* blockDim\.x, loads - 1\)"), "base + u * blockDim.x"),
    ("end of the sample", re.compile(r"i < loads(?= &&)"), "true"),
    ("end of the list", re.compile(r"place >= end"), "false"),
    ("end of the list", re.compile(r"i \+ 1 < (listed|count)"), "true"),
    ("end of the list", re.compile(r"min\(i \+ 1, (listed|count) - 1\)"), "i + 1"),
    ("end of the list", re.compile(r"min\(step\.first \+ step\.count, limit\)"), "step.first + step.count"),
    ("end of the run", re.compile(r"min\(kRunKeys, count - base\)"), "kRunKeys"),
    ("end of the run", re.compile(r"i < length \? keys\[i\] : 0"), "keys[i]"),
    ("end of the run", re.compile(r"if \(mine >= k\) continue;"), ""),
    ("end of the run", re.compile(r"if \(mine \+ others < k\) "), ""),
    ("end of the values", re.compile(r"at < count \? LoadFromL2\(values \+ at\) : 2 \* kLowestScore"),
     "LoadFromL2(values + at)"),
    ("end of the hits", re.compile(r"i < count(?= \? Bits<Hit>| && IsExcluded)"), "true"),
    ("mask", re.compile(r"if \(!MaskPasses\(pass\.terms\[query\], position\)\) continue;"), ""),
    ("mask", re.compile(r"if \(mask != nullptr && hits != 0\) [^;]*;"), ""),
    ("mask", re.compile(r"mask != nullptr(?= \? mask\[)"), "false"),
    ("mask", re.compile(r" && \(passing >> row & 1U\) != 0"), ""),
    ("exclusion", re.compile(r" && IsExcluded\(terms, rows\[j\]\)"), " && false"),
    ("exclusion", re.compile(r" && !IsExcluded\(terms, mine\.row\)"), ""),
    ("proof", re.compile(r"if \(hits > pass\.capacity\) return kOverflow;"), ""),
    ("proof", re.compile(r"if \(kept < terms\.wanted\) return kTooFew;"), ""),
    ("proof", re.compile(r">= limit \? kProven : kBelowGate"), ">= limit ? kProven : kProven"),
    ("bound", re.compile(r"query\.margin - threshold"), "-threshold"),
    ("bound", re.compile(r"__fmaf_rn\(gate\.kappa, row\.residual, gate\.start\)"), "gate.start"),
    ("bound", re.compile(r" - query\.length \* limits\.residual - query\.margin"), ""),
    ("bound", re.compile(r"static_cast<double>\(shared\.rotated\[i\]\) - static_cast<double>\(scale\) \* code"), "0.0"),
    ("rows not listed yet", re.compile(r" && loaded\[j\]\.score < below"), ""),
    ("reached gate", re.compile(r"if \(terms\.reached > kLowestScore\) return [^;]*;"), ""),
    ("empty groups", re.compile(r"arguments\.second_maxima\[i\] = 0;"), ""),
    ("bound", re.compile(r" - Scan::HitMargin\(arguments, gate, slot\)"), ""),
    ("last query", re.compile(r"query < queries"), "true"),
    ("bound", re.compile(r" - 2\.0F \* pass\.bound"), ""),
    ("bound", re.compile(r": floor - arguments\.margin"), ": floor"),
    ("bound", re.compile(r"ValueOf\(key\) - sample\.margin"), "ValueOf(key)"),
    ("-0 becomes +0", re.compile(r"return __fadd_rn\(sum, 0\.0F\);"), "return sum;"),
)

# Mutants without an observable effect, by the text of their line, and why.
EQUIVALENT: dict[tuple[str, str], str] = {
    ("canonical_scan.cu", "if (slot < pass.capacity) {"):
        "no step is long enough to overrun the list (PassRunner::RunCanonical)",
    ("order_mask.cu", "if (position % 32 == 0 && position < arguments.row_count) {"):
        "a filter's place holds the words of the last block",
    ("scan_frame.cuh", "__syncwarp();"):
        "reconverges the lanes of a card for the next product; emulated lanes meet there anyway",
    ("scan_frame.cuh", "if (blockIdx.x == 0 && slot < pass.batch) pass.gates[slot] = threshold;"):
        "the array holds the gates of all slots",
    ("select.cuh", "if (mine + others < k) to[start + mine + others] = key;"):
        "saves work: places from k on are distinct and never read",
    ("select.cuh", "if (mine >= k) continue;"):
        "saves work: such a key has k greater ones in its own run and finds no place among the first k",
    ("finish.cuh", "if (lane == 1 && i + 1 < listed) pass.keys[first + i + 1] = MakeKey(scores.second, b);"):
        "capacities are even, and nothing after the last key is read",
    ("finish.cuh", "if (pass.host_polls) __syncthreads();  // the whole answer comes before its flag"):
        "the emulated device runs whole kernels between two reads of the host",
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: pathlib.Path
    line: int
    what: str
    start: int
    end: int
    left: str

    def text(self) -> str:
        source = self.file.read_text(encoding="utf-8")
        return source[:self.start] + self.left + source[self.end:]

    def source_line(self) -> str:
        return self.file.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: without {self.what}: {self.source_line()}"


def mutants() -> Iterator[Mutant]:
    """Every place where an operator applies, outside comments. An operator that applies nowhere is out of date
    and ends the run."""
    idle = set(OPERATORS)
    for file in sorted(KERNELS.iterdir()):
        if file.suffix not in {".cu", ".cuh"}:
            continue
        source = file.read_text(encoding="utf-8")
        for operator in OPERATORS:
            what, pattern, left = operator
            for match in pattern.finditer(source):
                idle.discard(operator)
                line_start = source.rfind("\n", 0, match.start()) + 1
                if "//" in source[line_start:match.start()]:
                    continue
                yield Mutant(file, source.count("\n", 0, match.start()) + 1, what, match.start(), match.end(),
                             match.expand(left))
    if idle:
        sys.exit("mutate.py: nothing in kernels/ matches: " + "; ".join(sorted(pattern.pattern for _, pattern, _ in idle)))


class Builder:
    """Compiles kernels for the emulated device as the build folder does."""

    def __init__(self, build: pathlib.Path):
        self.build = build
        self.commands = {}
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
            name = pathlib.Path(entry["file"]).name
            if name.endswith(".cu.cpp") and "/emulated_gpu/" in entry["file"]:
                self.commands[name.removesuffix(".cpp")] = entry
        if not self.commands:
            sys.exit(f"mutate.py: {build} has no emulated kernels; configure it with tests and build gpu_test first")

    def affected(self, file: pathlib.Path) -> list[str]:
        """The .cu files that the changed one is, or is included by."""
        if file.suffix == ".cu":
            return [file.name]
        changed = {file.name}
        while True:
            more = {other.name for other in KERNELS.iterdir() if other.suffix in {".cu", ".cuh"} and other.name not in changed
                    and any(f'"kernels/{name}"' in other.read_text(encoding="utf-8") for name in changed)}
            if not more:
                return sorted(name for name in changed if name.endswith(".cu"))
            changed |= more

    def compile(self, mutant: Mutant | None, folder: pathlib.Path) -> str:
        """Builds the library in the folder, of the unchanged kernels without a mutant. Returns the compiler's
        errors."""
        copies = folder / "kernels"
        shutil.copytree(KERNELS, copies)
        affected = list(self.commands)
        if mutant:
            (copies / mutant.file.name).write_text(mutant.text(), encoding="utf-8")
            affected = self.affected(mutant.file)
        objects = []
        for name, entry in self.commands.items():
            words = shlex.split(entry["command"])
            built = pathlib.Path(entry["directory"]) / words[words.index("-o") + 1]
            if name not in affected:
                objects.append(str(built))
                continue
            wrapper = folder / f"{name}.cpp"
            wrapper.write_text(f'#include "{copies / name}"\n', encoding="utf-8")
            own = str(folder / f"{name}.o")
            words[words.index("-o") + 1] = own
            words[words.index("-c") + 1] = str(wrapper)
            words = ["-O1" if word == "-O3" else word for word in words if word not in {"-MD", "-Werror"}]
            for flag in ("-MT", "-MF"):
                if flag in words:
                    del words[words.index(flag):words.index(flag) + 2]
            if pathlib.Path(words[0]).name == "ccache":
                words = words[1:]
            words.insert(1, f"-I{folder}")
            result = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True, check=False)
            if result.returncode:
                return result.stderr[:300]
            objects.append(own)
        sanitize = [flag for flag in words if flag.startswith("-fsanitize=")]
        link = ["g++", "-shared", *sanitize, *objects, "-o", str(folder / "libemulated_gpu_kernels.so"),
                f"-L{self.build}/tests", "-lemulated_cuda", f"-Wl,-rpath,{self.build}/tests"]
        result = subprocess.run(link, capture_output=True, text=True, check=False)
        return result.stderr[:300] if result.returncode else ""

    def first_failure(self, folder: pathlib.Path) -> str:
        """The first failure of the tests with the library of the folder; empty when they pass."""
        environment = dict(os.environ, LD_LIBRARY_PATH=str(folder))
        for program, rotation, chosen in (
                ("gpu_test", "all", "*KernelVariant*:*GpuStrategyTest*_on_H200:*GpuStrategyTest*scan*_on_T4:*GpuFilter*:GpuEngine*:Int8Bound*"),
                ("gpu_conformance_test", "0", "*")):
            environment["TEST_ROTATION"] = rotation
            command = [str(self.build / "tests" / program), f"--gtest_filter={chosen}", "--gtest_fail_fast"]
            try:
                result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                                        errors="replace", timeout=SECONDS_MAX)
            except subprocess.TimeoutExpired:
                return "hang"
            if result.returncode:
                words = re.search(r"kernel [^\n]*|AddressSanitizer: [^\n]*|[^\n]*: Failure|rank \d+: row[^\n]*",
                                  result.stdout + result.stderr)
                return words[0][:110] if words else f"exit {result.returncode}"
        return ""


# What a host that polls needs on a card, in this order; the emulated device runs whole kernels between two of its reads.
POLLED_ANSWER = ("out[i] = i < found ? best[i] : 0;", "if (pass.host_polls) __syncthreads();",
                 "if (pass.host_polls) __threadfence_system();", "*static_cast<volatile unsigned*>(&proof.flag) =")


def check_polled_answer() -> None:
    """Ends the run unless the finish writes an answer, waits, and then writes its flag."""
    source = (KERNELS / "finish.cuh").read_text(encoding="utf-8")
    places = [source.find(step) for step in POLLED_ANSWER]
    if -1 in places or places != sorted(places):
        sys.exit("mutate.py: kernels/finish.cuh does not hold these, in this order: " + "  ".join(POLLED_ANSWER))


def check_unchanged(builder: Builder) -> None:
    """Ends the run if the tests fail with the unchanged kernels."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = pathlib.Path(name)
        errors = builder.compile(None, folder)
        failure = "" if errors else builder.first_failure(folder)
    if errors or failure:
        sys.exit(f"mutate.py: the unchanged kernels do not pass, rebuild the tests: {errors or failure}")


def try_mutant(builders: list[Builder], mutant: Mutant) -> tuple[Mutant, bool, str]:
    """Whether the mutant is caught or known to be equivalent, and how."""
    reason = EQUIVALENT.get((mutant.file.name, mutant.source_line()), "")
    if reason:
        return mutant, True, f"equivalent: {reason}"
    for builder in builders:
        with tempfile.TemporaryDirectory(prefix="mutant-") as name:
            folder = pathlib.Path(name)
            errors = builder.compile(mutant, folder)
            if errors:
                return mutant, False, f"does not compile: {errors}"
            failure = builder.first_failure(folder)
        if failure:
            return mutant, True, f"caught: {failure}"
    return mutant, False, "SURVIVED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--sanitized", type=pathlib.Path, help="a build with AddressSanitizer, for what survives")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--only", default="", help="mutants whose line, as --list prints it, holds this text")
    arguments = parser.parse_args()
    chosen = [mutant for mutant in mutants() if arguments.only in str(mutant)]
    if arguments.list:
        print(*chosen, f"{len(chosen)} mutants", sep="\n")
        return 0
    builders = [Builder(folder.resolve()) for folder in (arguments.build, arguments.sanitized) if folder]
    check_polled_answer()
    check_unchanged(builders[0])
    survived = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, caught, how in pool.map(lambda one: try_mutant(builders, one), chosen):
            survived += not caught
            print(f"{mutant}\n    {how}", flush=True)
    print(f"{len(chosen)} mutants, {survived} survived")
    return 1 if survived or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
