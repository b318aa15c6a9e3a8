#!/usr/bin/env python3
"""run.py with fake programs: a step that is killed, fails or runs out of time loses nothing of itself nor of any other."""

import contextlib
import io
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gpu_plots
import pack
import run
import step_lists

FIGURES = json.loads((HERE / "sample_results.json").read_text(encoding="utf-8"))["steps"]
PROGRAMS = (*step_lists.PROGRAMS, "python", "ncu/ncu", "compute-sanitizer/compute-sanitizer")
TRUTH, TIMES = step_lists.LISTS


def first_cases(data: dict) -> dict:
    """The figures as they are when one case is measured."""
    return data | {"cases": [data["cases"][0], *({"batch": case["batch"], "k": case["k"]} for case in data["cases"][1:])]}


def against_cpu(rounds: int) -> dict:
    """What engine_bench has written after so many rounds."""
    cases = [{"name": name, "batch": 1, "k": 10, "median_ms": 2.5, "rounds": rounds} for name in ("scan-single", "auto", "gpu")]
    compared = [{"batch": 1, "k": 10, "filter_pass": 1, "cpu_engine": "int8-amx", "gpu_engine": "fp16-scan-sm90", "cpu_ms": 2.5,
                 "gpu_ms": 0.5, "times_faster": 5, "scan_single_ms": 12.5}]
    return {"cpu": "a processor", "threads": 16, "data": "clustered, seed 1", "rows": 9, "dim": 8,
            "engines": [{"name": case["name"]} for case in cases], "cases": cases, "gpu_against_cpu": compared}


def figures_of(step: str) -> tuple[dict, dict]:
    """What a program has written of this step halfway, and at its end."""
    if step.startswith(("bench-", "torch-")):
        whole = FIGURES[step.split("-")[0] + "-62423x384"]["data"]
        return first_cases(whole), whole
    if step.startswith("tune-"):
        return None, FIGURES["tune-62423x384"]["data"]  # it prints all at its end
    if step == "profile":
        return {"profile": "profile\n"}, {"profile": "profile\n"}  # what the fake program prints
    if step == "sums":
        return {"lines": []}, FIGURES["tensor-sums"]["data"]
    if step.startswith("against-cpu-"):
        whole = against_cpu(15)
        return against_cpu(1), whole
    if step == "server":
        one = {"in_flight": 1, "rate": 9.5, "latency_us": [1, 2, 3], "engine": "cuda", "wrong": 0, "cores_by_thread": {"simile-io": 0.51}}
        return {"rows": 9, "dim": 8, "runs": [one]}, {"rows": 9, "dim": 8, "runs": [one, one], "a100": "report"}
    if step in ("server-films", "server-made"):
        whole = FIGURES["server-films"]["data"]
        return whole | {"loads": whole["loads"][:1], "a100": ""}, whole
    test = {"test": "Strategies/Gemm", "passed": True, "cases": "9", "by_strategy": "8", "queries": "8"}
    return {"tests": [test]}, {"tests": [test, test]}


class Bench:
    """A folder of fake programs."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.out = folder, folder / "out"
        for tool in ("ncu", "compute-sanitizer"):
            (folder / tool).mkdir(parents=True)
        for name in PROGRAMS:
            shutil.copy(HERE / "fake_program.sh", folder / name)
            (folder / name).chmod(0o755)
        (folder / step_lists.CUDA12_PLUGIN).touch()
        self.figures = folder / "figures"
        self.figures.mkdir()

    def machine(self) -> step_lists.Machine:
        return step_lists.Machine(self.folder, str(self.folder / "python"), self.folder / "work", [],
                                  *(str(self.folder / name / name) for name in ("compute-sanitizer", "ncu")))

    def steps(self, name: str) -> list[step_lists.Step]:
        found = step_lists.steps_of([name], self.machine(), step_lists.Sizes())
        for step in found:
            for figures, part in zip(figures_of(step.output.stem), ("half", "whole")):
                (self.figures / f"{step.output.stem}.{part}").write_text(json.dumps(figures), encoding="utf-8")
        return found

    def variables(self, killed: str = "") -> dict[str, str]:
        return {"FIGURES": str(self.figures), "KILLED": killed,
                "PATH": f"{self.folder}:{self.folder / 'compute-sanitizer'}:{os.environ['PATH']}"}

    def words(self, *words: str) -> list[str]:
        return ["--bin", str(self.folder), "--out", str(self.out), "--python", str(self.folder / "python"), *words]

    def run(self, *words: str, killed: str = "", draw: Callable = lambda results, folder: []) -> tuple[int, str]:
        """The exit code, and what it printed. Draws no pictures by itself."""
        printed = io.StringIO()
        with mock.patch.dict(os.environ, self.variables(killed)), mock.patch.object(run.gpu_plots, "draw", draw), \
                contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run.main(self.words(*words))
        return code, printed.getvalue()

    def script(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (self.folder / name).chmod(0o755)

    def results(self, name: str) -> dict:
        return json.loads((self.out / f"gpu-{name}.json").read_text(encoding="utf-8"))["steps"]


class RunTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        for number in run.ENDING:  # which run.main sets
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.bench = Bench(pathlib.Path(temporary.name).resolve())

    def test_loses_no_other_step_when_any_one_is_killed(self):
        for name in step_lists.LISTS:
            steps = self.bench.steps(name)
            code, printed = self.bench.run("--list", name)
            self.assertEqual(code, 0, printed)
            whole = self.bench.results(name)
            self.assertEqual(list(whole), [step.name for step in steps])
            self.assertEqual({step["status"] for step in whole.values()}, {"passed"})
            for step in steps:
                code, printed = self.bench.run("--list", name, killed=step.output.stem)
                self.assertEqual(code, 1, printed)
                results = self.bench.results(name)
                self.assertEqual(results[step.name]["status"], "killed", step.name)
                self.assertTrue(results[step.name]["message"].startswith("SIGKILL"), results[step.name]["message"])
                self.assertEqual(results[step.name].get("data"), figures_of(step.output.stem)[0], step.name)
                for other in whole:
                    if other != step.name:
                        self.assertEqual((results[other]["status"], results[other]["data"]), ("passed", whole[other]["data"]), other)
                self.assertIn(f"| {step.name} | killed |", (self.bench.out / "gpu.md").read_text(encoding="utf-8"))

    def test_the_results_of_both_lists_make_one_page(self):
        for name in step_lists.LISTS:
            self.bench.steps(name)
            self.bench.run("--list", name, killed="torch-1000000x768" if name == TIMES else "")
        files = [str(self.bench.out / f"gpu-{name}.json") for name in step_lists.LISTS]
        code, printed = self.bench.run("--report", *files)
        self.assertEqual(code, 0, printed)
        page = (self.bench.out / "gpu.md").read_text(encoding="utf-8")
        for expected in ("| conformance-Gemm | passed |", "| tune-1000000x768 | passed |", "| bench-10000000x768 | passed |",
                         "| torch-1000000x768 | killed |", "### What the card chooses", "simile-io 0.51", "### The two slowest kernels", "### Through a server", "### The GPU against the CPU of the same server",
                         "| 1 | 12.500 | 2.500 | 0.500 | 5.0 | fp16-scan-sm90 |", "### Users, filters and groups through a server",
                         "| server-made | passed |", "### Sums on tensor cores"):
            self.assertIn(expected, page)

    def test_writes_the_page_the_figures_the_output_and_at_most_five_pictures_of_a_list(self):
        draw = gpu_plots.draw
        for name, picture_count in ((TRUTH, 0), (TIMES, 3)):
            shutil.rmtree(self.bench.out, ignore_errors=True)
            self.bench.steps(name)
            with mock.patch.dict(sys.modules, {"matplotlib": mock.MagicMock()}), \
                    mock.patch.object(gpu_plots, "draw_one", lambda bench, torch, path: path.touch()):
                self.bench.run("--list", name, draw=draw)
            written = {path.name for path in self.bench.out.iterdir()}
            pictures = {path for path in written if path.endswith(".png")}
            self.assertEqual(written - pictures, {f"gpu-{name}.json", f"gpu-{name}.log", "gpu.md"})
            self.assertEqual(len(pictures), picture_count)
            self.assertLessEqual(len(written), 8)

    def test_checks_every_strategy_of_device_conformance(self):
        source = (HERE / "device_conformance.cpp").read_text(encoding="utf-8")
        self.assertEqual(tuple(re.findall(r'\{"(\w+)", ForcedStrategy::', source)), step_lists.STRATEGIES)
        steps = {step.name: step.command for step in self.bench.steps(TRUTH)}
        self.assertIn("--gtest_filter=Strategies/*/Gemm*:Large/*/Gemm*", steps["conformance-Gemm"])

    def test_the_list_of_make_gpu_test_checks_every_strategy_and_times_nothing(self):
        names = [step.name for step in self.bench.steps(TRUTH)]
        for strategy in step_lists.STRATEGIES:
            self.assertIn(f"conformance-{strategy}", names)
        for name in ("tensor-sums", "sanitizer-memcheck", "sanitizer-racecheck", "conformance-cuda12"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if name.startswith(("bench-", "torch-", "tune-", "server"))])
        code, printed = self.bench.run("--list", TRUTH)
        self.assertEqual(code, 0, printed)
        self.assertTrue(printed.endswith(f"{len(names)} steps: {len(names)} passed\n"), printed[-300:])

    def test_counts_a_checker_that_the_machine_refuses(self):
        names = [step.name for step in self.bench.steps(TRUTH)]
        self.bench.script("compute-sanitizer/compute-sanitizer", "echo '========= Device not supported'\nexit 1")
        code, printed = self.bench.run("--list", TRUTH)
        self.assertEqual(code, 0, printed)
        self.assertIn(f"{len(names)} steps: {len(names) - 2} passed, 2 skipped\n"
                      "  sanitizer-memcheck: skipped: ", printed)
        self.assertIn("compute-sanitizer: Device not supported", printed[printed.index("2 skipped"):])

    def test_each_limit_leaves_time_to_see_that_the_device_hangs(self):
        defaults = {re.search(pattern, (HERE / source).read_text(encoding="utf-8"))[1]
                    for source, pattern in (("bench_options.cpp", r"batch_timeout = std::chrono::seconds\((\d+)\)"),
                                            ("device_conformance.cpp", r"batch_timeout_s = (\d+)"))}
        self.assertEqual(len(defaults), 1)
        for name in step_lists.LISTS:
            for step in self.bench.steps(name):
                words = [*step.command, "--batch-timeout", *defaults]  # a program takes the first
                hang_s = 2 * int(words[words.index("--batch-timeout") + 1])
                self.assertGreaterEqual(step.limit_s, hang_s + 15, step.name)
        checker = {step.name: step for step in self.bench.steps(TRUTH)}["sanitizer-memcheck"]
        self.assertIn("--batch-timeout", checker.command)

    def test_steps_on_the_emulated_device_have_fewer_cases_and_more_time(self):
        few, all_cases = ({step.name: step for step in step_lists.steps_of([TRUTH], self.bench.machine(), sizes)}["conformance-Gemm"]
                          for sizes in (step_lists.TINY, step_lists.Sizes()))
        self.assertEqual(few.command[few.command.index("--cases") + 1], "6")
        self.assertEqual(few.limit_s, 10 * all_cases.limit_s)

    def test_each_list_is_planned_within_its_minutes(self):
        for name in step_lists.LISTS:
            planned = sum(step.planned_s for step in self.bench.steps(name))
            self.assertLessEqual(planned, 60 * step_lists.MINUTES[name] - run.LAST_S, name)
        code, printed = self.bench.run("--plan")
        self.assertEqual(code, 0)
        self.assertIn("  sanitizer-racecheck          0.6 min, at most 2.5", printed)
        self.assertIn("tune-62423x384", printed)

    def test_ends_by_itself_when_the_minutes_are_over(self):
        self.bench.steps(TRUTH)
        code, _ = self.bench.run("--list", TRUTH, "--minutes", str(run.LAST_S / 60))
        self.assertEqual(code, 1)
        self.assertEqual({(step["status"], step["message"]) for step in self.bench.results(TRUTH).values()},
                         {("not run", "no time left of 0.2 minutes")})

    def hanging(self) -> tuple[step_lists.Step, int]:
        """A step whose child never ends and holds the end of a pipe open."""
        pipe, out = self.bench.folder / "pipe", self.bench.folder / "hangs.json"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.bench.script("hangs", f"""echo '{{"lines": [1]}}' > {out}\ntail -f /dev/null > {pipe} &\nwait""")
        (self.bench.folder / "work").mkdir()
        return step_lists.Step("hangs", "", 1, 1, [str(self.bench.folder / "hangs")], out), reader

    def test_a_step_out_of_time_ends_with_its_children_and_keeps_its_figures(self):
        step, reader = self.hanging()
        seen = []
        with mock.patch.object(run, "COLLECT_S", 0.1), contextlib.redirect_stdout(io.StringIO()):
            result = run.run_step(step, self.bench.machine(), 1.0, seen.append)
        self.assertEqual((result["status"], result["message"], result["data"]), ("timed out", "not done after 1 s", {"lines": [1]}))
        self.assertEqual((seen[-1]["status"], seen[-1]["data"]), ("running", {"lines": [1]}))
        os.set_blocking(reader, True)
        self.assertEqual(os.read(reader, 1), b"")  # nobody is left to write

    def test_a_run_that_is_told_to_end_again_and_again_writes_what_it_has_and_ends_its_step(self):
        self.bench.steps(TRUTH)
        for number in (signal.SIGTERM, signal.SIGHUP):
            shutil.rmtree(self.bench.out, ignore_errors=True)
            began = self.bench.folder / f"began-{number}"
            os.mkfifo(began)
            self.bench.script("tensor_sums", f"echo it began\necho $$ > {began}\nsleep 100")
            process = subprocess.Popen([sys.executable, "-B", str(HERE / "run.py"),
                                        *self.bench.words("--list", TRUTH, "--steps", "conformance-Gemm,tensor-sums")],
                                       env=dict(os.environ, **self.bench.variables()), stdout=subprocess.DEVNULL)
            child = os.pidfd_open(int(began.read_text(encoding="utf-8")))  # once it has begun
            for _ in range(3):
                process.send_signal(number)
            self.assertEqual(process.wait(60), 128 + number)
            # It can be read once the process has ended, also before anybody waited for it.
            self.assertEqual(select.select([child], [], [], 10)[0], [child])
            os.close(child)
            self.assertIn("it began", (self.bench.out / "gpu-truth.log").read_text(encoding="utf-8"))
            self.assertEqual(self.bench.results(TRUTH)["conformance-Gemm"]["status"], "passed")
            self.assertIn("What was run", (self.bench.out / "gpu.md").read_text(encoding="utf-8"))

    def test_continues_after_a_failed_step_and_reports_it(self):
        for name in step_lists.LISTS:
            self.bench.steps(name)
        self.bench.script("tensor_sums", "echo 'error: it broke' >&2\nexit 1")
        (self.bench.folder / "device_conformance").unlink()
        code, printed = self.bench.run("--list", TRUTH, "--list", TIMES, "--steps", "tensor-sums,conformance-Gemm,bench-62423x384")
        self.assertEqual(code, 1, printed)
        results = self.bench.results(f"{TRUTH}-{TIMES}")
        self.assertEqual({name: step["status"] for name, step in results.items()},
                         {"conformance-Gemm": "missing", "tensor-sums": "failed", "bench-62423x384": "passed"})
        page = (self.bench.out / "gpu.md").read_text(encoding="utf-8")
        self.assertIn("| tensor-sums | failed | 0 | error: it broke |", page)
        self.assertIn("device_conformance is not built", page)

    def test_an_error_of_its_own_in_one_step_ends_no_other(self):
        self.bench.steps(TRUTH)
        real = run.gpu_report.summary
        def broken(description, result):
            if "sums" in description:
                raise TypeError("odd figures")
            return real(description, result)
        with mock.patch.object(run.gpu_report, "summary", broken):
            code, _ = self.bench.run("--list", TRUTH, "--steps", "tensor-sums,sanitizer")
        results = self.bench.results(TRUTH)
        self.assertEqual(code, 1)
        self.assertEqual(results["tensor-sums"]["message"], "run.py: TypeError('odd figures')")
        self.assertEqual(results["tensor-sums"]["data"], FIGURES["tensor-sums"]["data"])
        self.assertEqual(results["sanitizer-racecheck"]["status"], "passed")

    def test_runs_programs_whose_copies_lost_their_bits_and_takes_figures_that_are_no_numbers(self):
        self.bench.steps(TRUTH)
        (self.bench.figures / "sums.whole").write_text('{"sums": 9, "seen_over_bound": null, "lines": []}', encoding="utf-8")
        (self.bench.folder / "tensor_sums").chmod(0o644)
        code, printed = self.bench.run("--list", TRUTH, "--steps", "tensor-sums")
        self.assertEqual(code, 0, printed)
        self.assertIn("worst not a number of the bound", self.bench.results(TRUTH)["tensor-sums"]["message"])

    def test_runs_nothing_more_when_the_driver_keeps_a_killed_program(self):
        self.bench.steps(TRUTH)
        with mock.patch.object(run, "end_group", lambda process: process.wait() is None):
            code, _ = self.bench.run("--list", TRUTH, "--steps", "conformance-Gemm,tensor-sums")
        results = self.bench.results(TRUTH)
        self.assertEqual((code, results["conformance-Gemm"]["status"]), (1, "stuck"))
        self.assertEqual((results["tensor-sums"]["status"], results["tensor-sums"]["message"]),
                         ("not run", "the driver still holds conformance-Gemm"))

    def test_skips_what_the_machine_lacks_and_has_passed(self):
        for name in step_lists.LISTS:
            self.bench.steps(name)
        (self.bench.folder / step_lists.CUDA12_PLUGIN).unlink()
        (self.bench.folder / "ncu/ncu").unlink()
        self.bench.script("python", "exit 1")
        for name, steps in ((TRUTH, "conformance-cuda12"), (TIMES, "torch-62423x384"), (TIMES, "profile")):
            code, printed = self.bench.run("--list", name, "--steps", steps)
            self.assertEqual((code, self.bench.results(name)[steps]["status"]), (0, "skipped"), printed)

    def test_a_step_that_measures_nothing_without_cublas_is_skipped_with_the_reason(self):
        self.bench.steps(TRUTH)
        reason = "cuBLAS cannot be loaded: why"
        partly = FIGURES["tensor-sums"]["data"] | {"lines": [1], "skipped": {"sums by cuBLAS": reason}}
        for name, figures in (("conformance-Gemm", {"tests": [], "skipped": {"Gemm": reason}}), ("sums", partly)):
            (self.bench.figures / f"{name}.whole").write_text(json.dumps(figures), encoding="utf-8")
        code, printed = self.bench.run("--list", TRUTH, "--steps", "conformance-Gemm,tensor-sums")
        results = self.bench.results(TRUTH)
        self.assertEqual((code, results["conformance-Gemm"]["status"], results["tensor-sums"]["status"]), (0, "skipped", "passed"), printed)
        self.assertEqual(results["conformance-Gemm"]["message"], reason)
        self.assertIn(f"without sums by cuBLAS, {reason}", results["tensor-sums"]["message"])

    def test_what_a_checker_found_has_failed_and_a_machine_that_it_cannot_check_is_skipped(self):
        self.bench.steps(TRUTH)
        self.bench.script("compute-sanitizer/compute-sanitizer", r"""cat <<'END'
========= Program hit cudaErrorNotSupported (error 801) due to "operation not supported" on CUDA API call
========= Invalid __global__ write of size 4 bytes
=========     at void simile::kernels::RowScanKernel<(unsigned int)4>(simile::kernels::Pass)+0x1b0
END
exit 9""")
        code, _ = self.bench.run("--list", TRUTH, "--steps", "sanitizer-memcheck")
        memcheck = self.bench.results(TRUTH)["sanitizer-memcheck"]
        self.assertEqual((code, memcheck["status"], memcheck["message"]), (1, "failed", "errors found: RowScanKernel 1"))
        self.bench.script("compute-sanitizer/compute-sanitizer", "echo '========= Device not supported'\nexit 1")
        code, _ = self.bench.run("--list", TRUTH, "--steps", "sanitizer-memcheck")
        self.assertEqual((code, self.bench.results(TRUTH)["sanitizer-memcheck"]["status"]), (0, "skipped"))

    def test_keeps_the_first_and_the_last_of_what_a_step_printed(self):
        self.bench.steps(TRUTH)
        self.bench.script("tensor_sums", "echo the first line\nseq 200000\necho the last line")
        self.bench.run("--list", TRUTH, "--steps", "conformance-Gemm,tensor-sums")
        text = (self.bench.out / "gpu-truth.log").read_text(encoding="utf-8")
        self.assertLess(len(text), sum(run.LOG_BYTES) + 200)
        for expected in ("==== conformance-Gemm\n", "==== tensor-sums\nthe first line\n1\n2\n", "\n200000\nthe last line\n"):
            self.assertIn(expected, text)

    def test_does_without_facts_of_the_card_in_an_unknown_form(self):
        self.bench.steps(TRUTH)
        for line in ("", "A card, 9", "a, b, c, d, e, f, g, h"):
            self.bench.script("nvidia-smi", f"echo '{line}'")
            code, printed = self.bench.run("--list", TRUTH, "--steps", "tensor-sums")
            self.assertEqual(code, 0, printed)

    def test_a_program_that_measures_nothing_has_not_passed(self):
        self.bench.steps(TRUTH)
        self.bench.script("tensor_sums", "")
        code, _ = self.bench.run("--list", TRUTH, "--steps", "tensor-sums")
        self.assertEqual((code, self.bench.results(TRUTH)["tensor-sums"]["message"]), (1, "it ended well but wrote no figures"))

    def test_says_what_is_not_built_and_that_there_is_no_card(self):
        gpu_bench = self.bench.folder / "gpu_bench"
        self.bench.script("gpu_bench", "echo 'error: no GPU to measure: none (cudaErrorNoDevice)' >&2\nexit 2")
        self.assertEqual(self.bench.run(), (2, "error: no GPU to measure: none (cudaErrorNoDevice)\n"))
        gpu_bench.unlink()
        self.assertEqual(self.bench.run(), (1, "error: gpu_bench is not built: target gpu_bench_all\n"))

    def test_names_the_line_of_the_error(self):
        self.assertEqual(run.error_line("a\nerror: why\nbye\n"), "error: why")
        self.assertEqual(run.error_line("--rows: too many\nRun with --help for more information.\n"), "--rows: too many")
        self.assertEqual(run.error_line(""), "it printed nothing")


class PackTest(unittest.TestCase):
    def test_holds_every_script_that_a_packed_one_imports(self):
        packed = {name.removesuffix(".py") for name in pack.SCRIPTS}
        for name in pack.SCRIPTS:
            for line in (HERE / name).read_text(encoding="utf-8").splitlines():
                words = line.split()
                if words[:1] in (["import"], ["from"]) and (HERE / f"{words[1]}.py").exists():
                    self.assertIn(words[1], packed, f"{name}: {line}")

    def test_leaves_out_what_the_system_and_the_driver_have(self):
        for name in ("libc.so.6", "libstdc++.so.6", "libcuda.so.1", "libcublas.so.13", "libnvidia-ml.so.1"):
            self.assertTrue(pack.OF_THE_SYSTEM.match(name), name)
        for name in ("libgrpc.so.29", "libcrypto.so.3", "libabsl_base.so.20220623", "libcurl.so.4"):
            self.assertFalse(pack.OF_THE_SYSTEM.match(name), name)

    def test_refuses_programs_that_do_not_run_or_are_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = pathlib.Path(folder)
            cuda12, out = programs / "elsewhere" / pack.CUDA12_PLUGIN, programs / "out"
            cuda12.parent.mkdir()
            for path in (*(programs / name for name in (*pack.PROGRAMS, pack.PLUGIN)), cuda12):
                if path != cuda12:
                    with self.assertRaisesRegex(pack.Failed, f"{path.name} is not built"):
                        pack.pack(programs, cuda12, out)
                shutil.copyfile(shutil.which("true"), path)
            pack.pack(programs, cuda12, out)
            self.assertTrue((out / "build/bin" / pack.CUDA12_PLUGIN).exists())
            with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(pack.Failed, "gpu_bench of the pack does not run"):
                pack.check(out)

    def test_fails_above_forty_megabytes(self):
        for mb, code in ((39.9, 0), (40.1, 1)):
            with mock.patch.object(sys, "argv", ["pack.py", "--no-build"]), mock.patch.multiple(
                    pack, pack=mock.DEFAULT, check=mock.DEFAULT, size_mb=lambda out, mb=mb: mb), \
                    contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(pack.main(), code, mb)

    def test_replaces_nothing_but_a_pack(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            for name in (*pack.PROGRAMS, pack.PLUGIN):
                (out / name).touch()
            with self.assertRaisesRegex(pack.Failed, "holds something else than a pack"):
                pack.pack(out, out, out)
            self.assertTrue((out / pack.PLUGIN).exists())


if __name__ == "__main__":
    unittest.main()
