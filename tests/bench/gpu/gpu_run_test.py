#!/usr/bin/env python3
"""run.py with fake programs: a step that is killed, fails or runs out of time loses nothing of itself nor of any other."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import pack
import run
import step_lists

FIGURES = json.loads((HERE / "sample_results.json").read_text(encoding="utf-8"))["steps"]
PROGRAMS = ("gpu_steps", "gpu_bench", "tensor_sums", "device_conformance", "simile", "python", "compute-sanitizer/compute-sanitizer")


def first_cases(data: dict) -> dict:
    """The figures as they are when one case is measured."""
    return data | {"cases": [data["cases"][0], *({"batch": case["batch"], "k": case["k"]} for case in data["cases"][1:])]}


def figures_of(step: str) -> tuple[dict, dict]:
    """What a program has written of this step halfway, and at its end."""
    if step.startswith(("bench-", "torch-")):
        whole = FIGURES[step.split("-")[0] + "-62423x384"]["data"]
        return first_cases(whole), whole
    if step.startswith("kernels-"):
        whole = FIGURES["kernels-scan-shape"]["data"]
        return whole | {"lines": whole["lines"][:2]}, whole
    if step == "sums":
        return {"lines": []}, FIGURES["tensor-sums"]["data"]
    if step == "server":
        one = {"in_flight": 1, "rate": 9.5, "latency_us": [1, 2, 3], "engine": "cuda", "wrong": 0}
        return {"rows": 9, "dim": 8, "runs": [one]}, {"rows": 9, "dim": 8, "runs": [one, one], "a100": "report"}
    test = {"test": "Strategies/Gemm", "passed": True, "cases": "9", "by_strategy": "8", "queries": "8"}
    return {"tests": [test]}, {"tests": [test, test]}


class Bench:
    """A folder of fake programs."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.out = folder, folder / "out"
        (folder / "compute-sanitizer").mkdir(parents=True)
        for name in PROGRAMS:
            shutil.copy(HERE / "fake_program.sh", folder / name)
            (folder / name).chmod(0o755)
        self.figures = folder / "figures"
        self.figures.mkdir()

    def machine(self) -> step_lists.Machine:
        return step_lists.Machine(self.folder, str(self.folder / "python"), self.folder / "work", [], str(self.folder / PROGRAMS[-1]),
                                  ["ceilings", "variants", "scan-shape"])

    def steps(self, name: str) -> list[step_lists.Step]:
        found = step_lists.steps_of([name], self.machine(), step_lists.Sizes())
        for step in found:
            for figures, part in zip(figures_of(step.output.stem), ("half", "whole")):
                (self.figures / f"{step.output.stem}.{part}").write_text(json.dumps(figures), encoding="utf-8")
        return found

    def run(self, *words: str, killed: str = "", **changed: str) -> tuple[int, str]:
        """The exit code, and what it printed."""
        printed = io.StringIO()
        variables = {"FIGURES": str(self.figures), "KILLED": killed, "PATH": f"{self.folder / 'compute-sanitizer'}:{os.environ['PATH']}"}
        with mock.patch.dict(os.environ, variables | changed), mock.patch.object(run.gpu_plots, "draw", return_value=[]), \
                contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run.main(["--bin", str(self.folder), "--out", str(self.out), "--python", str(self.folder / "python"), *words])
        return code, printed.getvalue()

    def results(self, name: str) -> dict:
        return json.loads((self.out / f"gpu-{name}.json").read_text(encoding="utf-8"))["steps"]


class RunTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
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
                self.assertEqual(results[step.name]["data"], figures_of(step.output.stem)[0], step.name)
                for other in whole:
                    if other != step.name:
                        self.assertEqual((results[other]["status"], results[other]["data"]), ("passed", whole[other]["data"]), other)
                self.assertIn(f"| {step.name} | killed |", (self.bench.out / "gpu.md").read_text(encoding="utf-8"))

    def test_the_results_of_three_calls_make_one_page(self):
        for name in step_lists.LISTS:
            self.bench.steps(name)
            self.bench.run("--list", name, killed="torch-1000000x768" if name == "winners" else "")
        files = [str(self.bench.out / f"gpu-{name}.json") for name in step_lists.LISTS]
        code, printed = self.bench.run("--report", *files)
        self.assertEqual(code, 0, printed)
        page = (self.bench.out / "gpu.md").read_text(encoding="utf-8")
        for expected in ("| conformance | passed |", "| kernels-variants | passed |", "| bench-10000000x768 | passed |",
                         "| torch-1000000x768 | passed |", "### Every variant", "### Through a server", "### What the figures decide"):
            self.assertIn(expected, page)

    def test_writes_at_most_eight_files_with_a_picture_of_each_data_set(self):
        for name in step_lists.LISTS:
            pictures = sum(step.name.startswith("bench-") for step in self.bench.steps(name))
            self.bench.run("--list", name)
            self.assertLessEqual(pictures + len({f"gpu-{name}.json", "gpu.md"}), 8)
            self.assertEqual(sorted(path.name for path in self.bench.out.iterdir()), sorted([f"gpu-{name}.json", "gpu.md"]))
            shutil.rmtree(self.bench.out)

    def test_each_list_is_planned_within_its_minutes(self):
        for name in step_lists.LISTS:
            planned = sum(step.planned_s for step in self.bench.steps(name))
            self.assertLessEqual(planned, 60 * run.MINUTES_OF_LIST - run.LAST_S, name)
        code, printed = self.bench.run("--plan")
        self.assertEqual(code, 0)
        self.assertIn("  sanitizer-racecheck          1.2 min, at most 2.5", printed)
        self.assertIn("kernels-scan-shape", printed)

    def test_ends_by_itself_when_the_minutes_are_over(self):
        self.bench.steps("truth")
        code, _ = self.bench.run("--list", "truth", "--minutes", str(run.LAST_S / 60))
        self.assertEqual(code, 0)
        self.assertEqual({(step["status"], step["message"]) for step in self.bench.results("truth").values()},
                         {("skipped", "no time left of 0.2 minutes")})

    def hanging(self) -> tuple[step_lists.Step, int]:
        """A step whose child never ends and holds the end of a pipe open."""
        pipe, out = self.bench.folder / "pipe", self.bench.folder / "hangs.json"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        script = self.bench.folder / "hangs"
        script.write_text(f"""#!/bin/sh\necho '{{"lines": [1]}}' > {out}\ntail -f /dev/null > {pipe} &\nwait\n""", encoding="utf-8")
        script.chmod(0o755)
        (self.bench.folder / "work").mkdir()
        return step_lists.Step("hangs", "", 1, 1, [str(script)], out), reader

    def test_a_step_out_of_time_ends_with_its_children_and_keeps_its_figures(self):
        step, reader = self.hanging()
        seen = []
        with mock.patch.object(run, "COLLECT_S", 0.1), contextlib.redirect_stdout(io.StringIO()):
            result = run.run_step(step, self.bench.machine(), 1.0, seen.append)
        self.assertEqual((result["status"], result["message"], result["data"]), ("timed out", "not done after 1 s: 1 lines", {"lines": [1]}))
        self.assertEqual((seen[-1]["status"], seen[-1]["data"]), ("running", {"lines": [1]}))
        os.set_blocking(reader, True)
        self.assertEqual(os.read(reader, 1), b"")  # nobody is left to write

    def test_a_run_that_is_told_to_end_writes_what_it_has(self):
        self.bench.steps("truth")
        def told(*_):
            raise SystemExit(143)
        with mock.patch.object(run, "end_group", side_effect=told), self.assertRaises(SystemExit):
            self.bench.run("--list", "truth")
        self.assertIn("What was run", (self.bench.out / "gpu.md").read_text(encoding="utf-8"))

    def test_continues_after_a_failed_step_and_reports_it(self):
        self.bench.steps("truth")
        (self.bench.folder / "tensor_sums").write_text("#!/bin/sh\necho 'error: it broke' >&2\nexit 1\n", encoding="utf-8")
        (self.bench.folder / "gpu_bench").unlink()
        code, printed = self.bench.run("--list", "truth", "--steps", "tensor-sums,conformance,bench-62423x384")
        self.assertEqual(code, 1, printed)
        results = self.bench.results("truth")
        self.assertEqual({name: step["status"] for name, step in results.items()},
                         {"conformance": "passed", "tensor-sums": "failed", "bench-62423x384": "skipped"})
        self.assertEqual(results["tensor-sums"]["log"], ["error: it broke"])
        page = (self.bench.out / "gpu.md").read_text(encoding="utf-8")
        self.assertIn("| tensor-sums | failed | 0 | error: it broke |", page)
        self.assertIn("gpu_bench is not built", page)

    def test_a_program_that_measures_nothing_has_not_passed(self):
        self.bench.steps("truth")
        (self.bench.folder / "tensor_sums").write_text("#!/bin/sh\n", encoding="utf-8")
        code, _ = self.bench.run("--list", "truth", "--steps", "tensor-sums")
        self.assertEqual((code, self.bench.results("truth")["tensor-sums"]["message"]), (1, "it ended well but wrote no figures"))

    def test_says_what_is_not_built_and_that_there_is_no_card(self):
        gpu_steps = self.bench.folder / "gpu_steps"
        gpu_steps.write_text("#!/bin/sh\necho 'error: no GPU to measure: none (cudaErrorNoDevice)' >&2\nexit 2\n", encoding="utf-8")
        self.assertEqual(self.bench.run(), (2, "error: no GPU to measure: none (cudaErrorNoDevice)\n"))
        gpu_steps.unlink()
        self.assertEqual(self.bench.run(), (1, "error: gpu_steps is not built: target gpu_bench_all\n"))

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
            with self.assertRaisesRegex(pack.Failed, "gpu_steps is not built"):
                pack.pack(programs, programs / "out")
            for name in (*pack.PROGRAMS, pack.PLUGIN):
                shutil.copyfile(shutil.which("true"), programs / name)
            pack.pack(programs, programs / "out")
            with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(pack.Failed, "gpu_steps of the pack does not run"):
                pack.check(programs / "out")


if __name__ == "__main__":
    unittest.main()
