#!/usr/bin/env python3
"""Removes one barrier, wait or bounds guard at a time from the CUDA kernels and checks that a test fails.

    mutate.py --build DIR [--sanitized DIR] [--jobs N] [--list] [--only TEXT]

DIR is a build folder with gpu_test and gpu_conformance_test. One library for the emulated device holds all mutants, each
behind a condition; a variable of the environment chooses one. Each test runs once with none chosen, which tells how long it
takes and which mutants' code it reaches. A mutant then runs with the tests that reach it, shortest first, those of the
sanitized folder among them, in which AddressSanitizer detects reads beyond an allocation, and which must pass without the
mutant. Prints a line per mutant and exits 1 when one survives that is not listed as equivalent with a reason.
Standard library only.
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
import time
from typing import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[3]
KERNELS = ROOT / "kernels"
# The tests that mutants run with: program, TEST_ROTATION, filter.
TESTS = (("gpu_test", "all", "*KernelVariant*:FinishTest.*:*GpuStrategyTest*_on_H200:*GpuStrategyTest*scan*_on_T4:*GpuFilter*:"
          "GpuEngine*:Int8Bound*:SampleGate*:TopkFp16*"),
         ("gpu_conformance_test", "0", "*"))
# A mutant's tests run in groups of at least these seconds, shortest first, so that starting programs costs little.
GROUP_SECONDS = (2, 10, 40, 1e9)
# A group hangs when it takes this many times as long as without a mutant and a sanitizer, and these seconds.
HANG_TIMES, HANG_SECONDS = 40, 60
# About how many times as long a test takes with a sanitizer.
SANITIZER_TIMES = 6

# What is removed wherever it occurs in a kernel, and its replacement: a whole statement, a whole expression, or an expression
# with the && before it.
OPERATORS = (
    ("barrier", re.compile(r"__syncthreads\(\);"), ""),
    ("warp barrier", re.compile(r"__syncwarp\(\);"), ""),
    ("wait for copies", re.compile(r"AsyncCopyWait<[^;]*>\(\);"), ""),
    ("end of a group of copies", re.compile(r"(?<!void )AsyncCopyCommit\(\);"), ""),
    ("grid barrier", re.compile(r"GridBarrier\(arguments\.rounds\);"), "__syncthreads();"),
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
    ("last column", re.compile(r"at( \+ 32)? < stride(?= \?)"), "true"),
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
    ("end of the list", re.compile(r"if \(i >= listed\) continue;"), ""),
    ("end of the list", re.compile(r"min\(step\.first \+ step\.count, limit\)"), "step.first + step.count"),
    ("end of the run", re.compile(r"min\(kRun, count - base\)"), "kRun"),
    ("end of the run", re.compile(r"at < length \? keys\[at\] : 0"), "keys[at]"),
    ("end of the run", re.compile(r"if \(i >= count\) places\[j\] = kNoPlace;"), ""),
    ("end of the run", re.compile(r"places\[j\] >= k"), "false"),
    ("end of the run", re.compile(r"next <= lengths\[j\](?= &&)"), "true"),
    ("end of the run", re.compile(r"rank < k(?= \?)"), "true"),
    ("end of the values", re.compile(r"at < count \? LoadFromL2\(values \+ at\) : 2 \* kLowestScore"),
     "LoadFromL2(values + at)"),
    ("end of the hits", re.compile(r"i < count(?= \? Bits<Hit>| && IsExcluded)"), "true"),
    ("mask", re.compile(r"if \(!MaskPasses\(pass\.terms\[query\], position\)\) continue;"), ""),
    ("mask", re.compile(r"if \(mask != nullptr && hits != 0\) [^;]*;"), ""),
    ("mask", re.compile(r"mask != nullptr(?= \? mask\[)"), "false"),
    ("mask", re.compile(r" && \(passing >> row & 1U\) != 0"), ""),
    ("exclusion", re.compile(r" && IsExcluded\((terms|pass\.terms\[query\]), rows\[j\]\)"), " && false"),
    ("places of excluded rows", re.compile(r"terms\.wanted \+ ExcludedOfList\(terms\)"), "terms.wanted"),
    ("exclusion", re.compile(r" && !IsExcluded\(terms, mine\.row\)"), ""),
    ("proof", re.compile(r"if \(hits > pass\.capacity\) return kOverflow;"), ""),
    ("proof", re.compile(r"if \(kept < terms\.wanted\) return kTooFew;"), ""),
    ("proof", re.compile(r"static_cast<double>\(ToScore\(last\)\) >= limit"), "true"),
    ("bound", re.compile(r"query\.margin - threshold"), "-threshold"),
    ("bound", re.compile(r"__fmaf_rn\(gate\.kappa, row\.residual, gate\.start\)"), "gate.start"),
    ("bound", re.compile(r"threshold - query\.length \* limits\.residual - query\.margin"), "threshold"),
    ("bound", re.compile(r"static_cast<double>\(shared\.rotated\[i\]\) - static_cast<double>\(scale\) \* code"), "0.0"),
    ("rows not listed yet", re.compile(r" && loaded\[j\]\.score < below"), ""),
    ("reached gate", re.compile(r"if \(terms\.reached > kLowestScore\) return [^;]*;"), ""),
    ("empty groups", re.compile(r"arguments\.second_maxima\[i\] = 0;"), ""),
    ("bound", re.compile(r"first \+ floor - Scan::HitMargin\(arguments, gate, slot\)"), "first + floor"),
    ("last query", re.compile(r"query < queries"), "true"),
    ("bound", re.compile(r"low \+ static_cast<float>\(bin\) / bins_per_unit - 2\.0F \* pass\.bound"),
     "low + static_cast<float>(bin) / bins_per_unit"),
    ("bound", re.compile(r"(?<=: )floor - arguments\.margin"), "floor"),
    ("bound", re.compile(r"ToValue\(key\) - sample\.margin"), "ToValue(key)"),
    ("threshold", re.compile(r"if \(score >= threshold\) \+\+reaching;"), "++reaching;"),
    ("-0 becomes +0", re.compile(r"return __fadd_rn\(sum, 0\.0F\);"), "return sum;"),
)

# Mutants without an observable effect, by the text of their line, and why.
EQUIVALENT: dict[tuple[str, str], str] = {
    ("canonical_scan.cu", "if (slot < pass.capacity) {"):
        "no step is long enough to overrun the list (PassRunner::RunCanonical)",
    ("pass_inputs.cu", "if (position % 32 == 0 && position < arguments.row_count) {"):
        "a filter's place holds the words of the last block",
    ("scan_frame.cuh", "__syncwarp();"):
        "reconverges the lanes of a card for the next product; emulated lanes meet there anyway",
    ("select.cuh", "places[j] = rank < k ? start + rank : kNoPlace;"):
        "saves work: places from k on are distinct and never read",
    ("select.cuh", "if (places[j] >= k) places[j] = kNoPlace;"):
        "saves work: such a key has k greater ones in its own run and finds no place among the first k",
    ("finish.cu", "if (lane == 1 && i + 1 < listed) pass.keys[first + i + 1] = MakeKey(scores.second, b);"):
        "capacities are even, and nothing after the last key is read",
    ("finish.cu", "__syncthreads();  // all have loaded the former ones"):
        "where a list grows, barriers lie between; where not, what other threads may then load changes in `scored` alone, which "
        "they do not use",
    ("sample_gate.cu", "if (i < loads && grouped) keys[i] = static_cast<unsigned short>(best);"):
        "there is a key for each load of all threads, and those after the last are not counted",
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: pathlib.Path
    line: int
    what: str
    start: int
    end: int
    before: str
    after: str

    def conditional(self, index: int) -> str:
        """Both forms, of which the chosen mutant decides."""
        if self.before.endswith((";", "}")):
            return f"if (IsMutant({index})) {{ {self.after} }} else {{ {self.before} }}"
        joint = " && " if self.before.startswith(" && ") else ""
        after = self.after.removeprefix(joint) or "true"
        return f"{joint}(IsMutant({index}) ? ({after}) : ({self.before.removeprefix(joint)}))"

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
                yield Mutant(file, source.count("\n", 0, match.start()) + 1, what, match.start(), match.end(), match[0],
                             match.expand(left))
    if idle:
        sys.exit("mutate.py: nothing in kernels/ matches: " + "; ".join(sorted(pattern.pattern for _, pattern, _ in idle)))


# Included before everything else in every kernel's source. The emulated device runs a kernel's threads as fibers of one
# thread at a time.
CHOICE = """#pragma once
#include <cstdio>
#include <cstdlib>
struct MutantChoice {{
  int chosen = -1;
  bool reached[{count}] = {{}};
  MutantChoice() {{
    if (const char* text = std::getenv("SIMILE_MUTANT")) chosen = std::atoi(text);
  }}
  ~MutantChoice() {{
    const char* path = std::getenv("SIMILE_MUTANTS_REACHED");
    std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    for (int i = 0; i < {count}; ++i) {{
      if (reached[i]) std::fprintf(file, "%d\\n", i);
    }}
    std::fclose(file);
  }}
}};
inline MutantChoice mutant_choice;
inline bool IsMutant(int index) {{
  mutant_choice.reached[index] = true;
  return mutant_choice.chosen == index;
}}
"""


@dataclasses.dataclass(frozen=True)
class Test:
    program: str
    rotation: str
    name: str


@dataclasses.dataclass(frozen=True)
class Reach:
    """Of a test without a mutant: how long it takes, and the indexes of the mutants whose code it runs."""
    seconds: float
    mutants: frozenset[int]


class MutantLibrary:
    """The kernels with all mutants, built in a folder as the build folder does it, and the tests that use them."""

    def __init__(self, build: pathlib.Path, folder: pathlib.Path):
        self.build = build
        self.folder = folder
        folder.mkdir()

    def compile(self, all_mutants: list[Mutant], jobs: int) -> None:
        copies = self.folder / "kernels"
        shutil.copytree(KERNELS, copies)
        for file in {mutant.file for mutant in all_mutants}:
            source = file.read_text(encoding="utf-8")
            # From the end, so that places before it keep theirs.
            for index, mutant in sorted(enumerate(all_mutants), key=lambda one: -one[1].start):
                if mutant.file == file:
                    source = source[:mutant.start] + mutant.conditional(index) + source[mutant.end:]
            (copies / file.name).write_text(source, encoding="utf-8")
        (self.folder / "choice.h").write_text(CHOICE.format(count=len(all_mutants)), encoding="utf-8")
        entries = [entry for entry in json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
                   if entry["file"].endswith(".cu.cpp") and "/emulated_gpu/" in entry["file"]]
        if not entries:
            sys.exit(f"mutate.py: {self.build} has no emulated kernels; configure it with tests and build gpu_test first")
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            objects = list(pool.map(self.compile_kernel, entries))
        sanitize = [word for word in shlex.split(entries[0]["command"]) if word.startswith("-fsanitize=")]
        run(["g++", "-shared", *sanitize, *objects, "-o", str(self.folder / "libemulated_gpu_kernels.so"),
             f"-L{self.build}/tests", "-lemulated_cuda", f"-Wl,-rpath,{self.build}/tests"], self.folder)

    def compile_kernel(self, entry: dict) -> str:
        """Returns the object's path."""
        source = pathlib.Path(pathlib.Path(entry["file"]).read_text(encoding="utf-8").split('"')[1])
        name = source.name
        if source.parent == KERNELS:
            source = self.folder / "kernels" / name
        wrapper, built = self.folder / f"{name}.cpp", str(self.folder / f"{name}.o")
        wrapper.write_text(f'#include "choice.h"\n#include "{source}"\n', encoding="utf-8")
        words = shlex.split(entry["command"])
        words[words.index("-o") + 1] = built
        words[words.index("-c") + 1] = str(wrapper)
        words = ["-O1" if word == "-O3" else word for word in words if word not in {"-MD", "-Werror"}]
        for flag in ("-MT", "-MF"):
            if flag in words:
                del words[words.index(flag):words.index(flag) + 2]
        if pathlib.Path(words[0]).name == "ccache":
            words = words[1:]
        run([words[0], f"-I{self.folder}", *words[1:]], pathlib.Path(entry["directory"]))
        return built

    def tests(self) -> list[Test]:
        found = []
        for program, rotation, chosen in TESTS:
            listed = subprocess.run([str(self.build / "tests" / program), "--gtest_list_tests", f"--gtest_filter={chosen}"],
                                    capture_output=True, text=True, check=True).stdout
            suite = ""
            for line in listed.splitlines():
                word = line.split("#")[0].rstrip()
                if not line.startswith(" "):
                    suite = word
                elif suite.endswith("."):
                    found.append(Test(program, rotation, suite + word.strip()))
        return found

    def reach(self, test: Test) -> Reach:
        """Ends the run if the test fails without a mutant."""
        with tempfile.NamedTemporaryFile(dir=self.folder) as file:
            start = time.monotonic()
            if failure := self.first_failure([test], 900, {"SIMILE_MUTANTS_REACHED": file.name}):
                sys.exit(f"mutate.py: {test.name} fails without a mutant, rebuild the tests: {failure}")
            seconds = time.monotonic() - start
            return Reach(seconds, frozenset(int(line) for line in pathlib.Path(file.name).read_text(encoding="utf-8").split()))

    def first_failure(self, tests: list[Test], seconds_max: float, variables: dict[str, str]) -> str:
        """The first failure of the tests, which are of one program; empty when they pass."""
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.folder), TEST_ROTATION=tests[0].rotation, **variables)
        command = [str(self.build / "tests" / tests[0].program), f'--gtest_filter={":".join(test.name for test in tests)}',
                   "--gtest_fail_fast"]
        try:
            result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                                    errors="replace", timeout=seconds_max)
        except subprocess.TimeoutExpired:
            return "hang"
        if result.returncode == 0:
            return ""
        words = re.search(r"kernel [^\n]*|AddressSanitizer: [^\n]*|[^\n]*: Failure|rank \d+: row[^\n]*",
                          result.stdout + result.stderr)
        return words[0][:110] if words else f"exit {result.returncode}"


def run(command: list[str], folder: pathlib.Path) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f'mutate.py: {" ".join(command[:1])}: {result.stderr[:2000]}')


def groups(reaches: dict[Test, Reach], index: int) -> Iterator[tuple[list[Test], float]]:
    """The tests that reach a mutant, shortest first, in groups of one program, each with its seconds."""
    waiting = sorted((test for test, reach in reaches.items() if index in reach.mutants), key=lambda test: reaches[test].seconds)
    for seconds_max in GROUP_SECONDS:
        taken: list[Test] = []
        while waiting and sum(reaches[test].seconds for test in taken) < seconds_max:
            taken.append(waiting.pop(0))
        for program, _, _ in TESTS:
            if of_program := [test for test in taken if test.program == program]:
                yield of_program, sum(reaches[test].seconds for test in of_program)


# What a card needs in this order, by file and function, although no test on the emulated device can fail without it: there
# every store is visible at once, a kernel ends before the next begins, and the host reads between whole kernels.
ORDERS = (
    ("finish.cu", "void Conclude(",
     ("WriteAnswer(pass", "if (pass.host_polls) __threadfence_system();", "*static_cast<volatile unsigned*>(&proof.flag) =")),
    ("select.cuh", "unsigned WriteAnswer(", ("answer[i] = {", "__syncthreads();", "return scratch;")),
    ("scan_frame.cuh", "void GridBarrier(",
     ("__syncthreads();", "LoadAcquire(&rounds->number)", "__threadfence();", "atomicAdd(&rounds->arrived",
      "rounds->arrived = 0;", "__threadfence();", "atomicAdd(&rounds->number", "while (LoadAcquire(&rounds->number)",
      "__threadfence();", "__syncthreads();")),
    ("pass_inputs.cu", "TakeQueriesKernel(", ("const volatile unsigned*>(arguments.from)", "= from[word];")),
)


def check_orders() -> None:
    """Ends the run unless each function has its steps in their order."""
    for name, function, steps in ORDERS:
        source = (KERNELS / name).read_text(encoding="utf-8")
        body = source[source.index(function):].split("\n}\n")[0]
        at = 0
        for step in steps:
            place = body.find(step, at)
            if place == -1:
                sys.exit(f"mutate.py: {function} of kernels/{name} does not hold these, in this order: " + "  ".join(steps))
            at = place + len(step)


def try_mutant(libraries: list[MutantLibrary], reaches: dict[Test, Reach], mutant: Mutant, index: int) -> tuple[bool, str]:
    """Whether the mutant is caught or known to be equivalent, and how."""
    reason = EQUIVALENT.get((mutant.file.name, mutant.source_line()), "")
    if reason:
        return True, f"equivalent: {reason}"
    start, tried = time.monotonic(), 0
    runs = sorted(((seconds * (1 if library == libraries[0] else SANITIZER_TIMES), seconds, library, tests)
                   for library in libraries for tests, seconds in groups(reaches, index)), key=lambda run: run[0])
    for _, seconds, library, tests in runs:
        tried += len(tests)
        seconds_max = HANG_SECONDS + HANG_TIMES * seconds
        if failure := library.first_failure(tests, seconds_max, {"SIMILE_MUTANT": str(index)}):
            if library != libraries[0] and (without := library.first_failure(tests, seconds_max, {})):
                return False, f"{library.build} fails without a mutant, rebuild its tests: {without}"
            return True, f"caught after {time.monotonic() - start:.0f} s: {failure}"
    return False, f"SURVIVED {tried} tests in {time.monotonic() - start:.0f} s" if tried else "SURVIVED: no test reaches it"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--sanitized", type=pathlib.Path, help="a build with AddressSanitizer, for reads beyond an allocation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--only", default="", help="mutants whose line, as --list prints it, holds this text")
    arguments = parser.parse_args()
    all_mutants = list(mutants())
    chosen = [index for index, mutant in enumerate(all_mutants) if arguments.only in str(mutant)]
    if arguments.list:
        print(*(all_mutants[index] for index in chosen), f"{len(chosen)} mutants", sep="\n")
        return 0
    check_orders()
    survived = 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        libraries = []
        for build in filter(None, (arguments.build, arguments.sanitized)):
            libraries.append(MutantLibrary(build.resolve(), pathlib.Path(name) / str(len(libraries))))
            libraries[-1].compile(all_mutants, arguments.jobs)
        tests = libraries[0].tests()
        reaches = dict(zip(tests, pool.map(libraries[0].reach, tests)))
        print(f"{len(tests)} tests, {sum(reach.seconds for reach in reaches.values()):.0f} s without a mutant; "
              f"{time.monotonic() - start:.0f} s so far", flush=True)
        for index, (caught, how) in zip(chosen, pool.map(lambda one: try_mutant(libraries, reaches, all_mutants[one], one), chosen)):
            survived += not caught
            print(f"{all_mutants[index]}\n    {how}", flush=True)
    print(f"{len(chosen)} mutants, {survived} survived; {time.monotonic() - start:.0f} s")
    return 1 if survived or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
