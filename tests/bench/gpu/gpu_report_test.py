#!/usr/bin/env python3
"""The GPU report from a small results file with invented figures: tables, targets, choices, failures."""

import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gpu_report
import plan_passes

def sample_results() -> dict:
    """Invented figures that produce every kind of sentence."""
    return json.loads((HERE / "sample_results.json").read_text(encoding="utf-8"))


class PlanPassesTest(unittest.TestCase):
    def test_takes_whole_passes_of_the_collections_that_a_plan_knows(self):
        lines = plan_passes.passes_of([sample_results()])
        self.assertIn('    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 1, 10, 15, 36},', lines)


class GpuReportTest(unittest.TestCase):
    def setUp(self):
        self.results = sample_results()
        self.text = gpu_report.render(self.results)

    def test_names_card_driver_clocks_date_and_command(self):
        for expected in ("NVIDIA H200", "driver 999.1", "clocks 1980 MHz", "2026-01-02", "tests/bench/gpu/run.py --bin bin"):
            self.assertIn(expected, self.text)

    def test_shows_targets_beside_figures(self):
        self.assertIn("device aim of 15 reached", self.text)
        self.assertIn("device pass: 30 or less, aim 18", self.text)
        self.assertIn("device **miss**: 40 or less", self.text)
        self.assertIn("host **miss**: 35 or less", self.text)

    def test_shows_how_much_faster_than_torch_and_where_not_enough(self):
        self.assertIn("| 3.0x |", self.text)
        self.assertIn("1.5x, **miss**: 2x", self.text)

    def test_shows_shares_of_copy_bandwidth_and_gemm_rate(self):
        # 62,423 x 384 fp16 values in 15 us are 3,196 GB/s; of 4,000.
        self.assertIn("| 80% |", self.text)

    def test_says_what_failed_and_what_was_not_run(self):
        self.assertIn("| sanitizer-memcheck | skipped | 0 | no compute-sanitizer on this machine", self.text)
        self.assertIn("| torch-1000000x768 | timed out | 60 |", self.text)
        self.assertIn("**`torch-1000000x768` was not completed** (timed out: not done after 60 s)", self.text)
        self.assertIn("torch was not measured", self.text)

    def test_shows_what_a_killed_bench_had_measured(self):
        bench = self.results["steps"]["bench-62423x384"]
        bench |= {"status": "killed", "message": "SIGKILL: 1 of 4 cases"}
        bench["data"]["cases"][1:] = [{"batch": case["batch"], "k": case["k"]} for case in bench["data"]["cases"][1:]]
        text = gpu_report.render(self.results)
        self.assertIn("**`bench-62423x384` was not completed** (killed: SIGKILL: 1 of 4 cases)", text)
        self.assertIn("| 10 | 1 | `fp16-scan-sm90` | 15.0 (13.5 .. 16.5) |", text)
        self.assertEqual(text.count("| **not measured** |"), 3)

    def test_shows_what_the_card_chose_and_its_rates(self):
        self.assertIn("| 1 | 40.0 | 25,000 | `int8-scan-kept-sm90` |", self.text)
        self.assertIn("| 8 | 128 | int8_scan_kept | 25.6 | 28.4 |", self.text)
        self.assertIn("Duration us 42", self.text)
        collection = self.results["steps"]["tune-62423x384"]["data"]["gpu"]["collections"][0]
        collection |= {"passes": [], "why_not": "the card was lost"}
        text = gpu_report.render(self.results)
        self.assertIn("**62423x384**: the card was lost", text)
        self.assertIn("The rules' passes were the fastest.", text)
        self.assertIn("2 batches, 0 passes chosen, the card was lost", gpu_report.summary("", self.results["steps"]["tune-62423x384"]))

    def test_sums_beyond_the_bound_invalidate_proofs(self):
        self.assertIn("the assumption holds", self.text)
        for worst, expected in ((1.01, "**proofs are invalid on this card**"), (None, "the assumption holds")):
            self.results["steps"]["tensor-sums"]["data"]["fp16_seen_over_bound"] = worst
            self.assertIn(expected, gpu_report.render(self.results))

    def test_shows_the_errors_of_single_cases(self):
        cases = self.results["steps"]["bench-62423x384"]["data"]["cases"]
        for case in cases[:2]:
            del case["device_us"], case["host_us"], case["answered_by"]
            case |= {"device_error": "17 of 32 answers are unproven", "host_error": "late"}
        cases[2]["unproven"] = 1
        text = gpu_report.render(self.results)
        self.assertIn("| **failed**: 17 of 32 answers are unproven |", text)
        self.assertIn("| **failed**: late |", text)
        self.assertIn("| 41.0 (36.9 .. 45.1) (1 unproven) |", text)
        self.assertEqual(gpu_report.progress(self.results["steps"]["bench-62423x384"]["data"]), "2 of 4 cases")

    def test_says_what_was_running_when_a_step_ended(self):
        data = {"tests": [{"test": "Strategies/Gemm", "passed": True}], "running": "Gemm, seed 3000017"}
        self.assertEqual(gpu_report.progress(data), "1 tests, 0 failed, while running Gemm, seed 3000017")
        data["tests"] = [{"test": "Strategies/Gemm", "passed": True, "cases": "9", "queries": "8", "by_strategy": "7"},
                         {"test": "Large/Gemm_384", "passed": True, "queries": "6", "by_strategy": "5"}]
        self.assertEqual(gpu_report.measured(data), "2 tests, 0 failed; Gemm 9 cases, 7 of 8 queries by it; "
                         "Gemm_384 5 of 6 queries by it")
        data["tests"] = data["tests"][:1]
        data["so_far"] = {"cases": 17, "queries": 90, "by_strategy": 40}
        self.assertEqual(gpu_report.progress(data), "1 tests, 0 failed; Gemm 9 cases, 7 of 8 queries by it, "
                         "while running Gemm, seed 3000017, after 17 cases, 40 of 90 queries by it")

    def test_shows_a_bench_without_products(self):
        bench = self.results["steps"]["bench-62423x384"]["data"]
        bench["ceilings"]["gemm"] = []
        bench["skipped"] = {"products": "cuBLAS cannot be loaded: why"}
        text = gpu_report.render(self.results)
        self.assertIn("products skipped (cuBLAS cannot be loaded: why)", text)

    def test_shows_the_server(self):
        run = {"in_flight": 16, "rate": 12345.6, "latency_us": [900.4, 2000, 3000], "engine": "cuda: fp16-scan-sm90", "wrong": 0,
               "cores_by_thread": {"simile-io": 0.986, "simile-batch": 0.51, "simile-log": 0.004}}
        self.results["steps"]["server"] = {"status": "passed", "seconds": 30, "message": "", "data": {
            "rows": 62423, "dim": 384, "runs": [run], "a100": "the report\n"}}
        text = gpu_report.render(self.results)
        self.assertIn("| 16 | 12,346 | 900 | 2,000 | 3,000 | cuda: fp16-scan-sm90 | 0 | simile-io 0.99, simile-batch 0.51 |", text)
        self.assertIn("```\nthe report\n```", text)

    def test_shows_the_kinds_of_calls_beside_the_cpus(self):
        self.assertIn("**films**, 5,000 x 384, 500 users.", self.text)
        self.assertIn("| recommend | 130 | 2,000 | 210 | 650 | 5.0 | 5,500 | 0 |", self.text)
        self.assertIn("| filter of 5.00% | 140 | 2,100 | 230 | 420 | 3.0 | 5,500 | 0 |", self.text)
        self.assertIn("| cold start, newest | 90.0 |  | 120 |  |  | 500 | 0 |", self.text)
        self.assertIn("```\nthe report of the films\n```", self.text)
        self.assertIn("7 kinds of calls, 11,500 answers compared, 0 differ", gpu_report.summary("", self.results["steps"]["server-films"]))

    def test_every_table_row_has_as_many_cells_as_its_head(self):
        width = 0
        for line in self.text.splitlines():
            if not line.startswith("| "):
                width = 0
                continue
            width = width or line.count("|")
            self.assertEqual(line.count("|"), width, line)

    def test_keeps_the_page_around_the_markers_and_is_the_same_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "gpu.md"
            page.write_text("# Before\n\n" + gpu_report.BEGIN + "stale\n" + gpu_report.END + "\nafter\n", encoding="utf-8")
            gpu_report.write_page(page, self.text, [pathlib.Path("gpu-62423x384.png")])
            once = page.read_text(encoding="utf-8")
            gpu_report.write_page(page, self.text, [pathlib.Path("gpu-62423x384.png")])
            self.assertEqual(once, page.read_text(encoding="utf-8"))
        self.assertTrue(once.startswith("# Before\n"))
        self.assertTrue(once.endswith("after\n"))
        self.assertNotIn("stale", once)
        self.assertIn("![gpu-62423x384](gpu-62423x384.png)", once)

    def test_renders_a_run_without_benches(self):
        bare = {"about": {"date": "2026-01-02", "command": "c"}, "steps": {"conformance": {"status": "failed", "seconds": 3.2,
                                                                                        "message": "error: a | b"}}}
        self.assertIn("| conformance | failed | 3 | error: a / b |", gpu_report.render(bare))

    def test_shows_no_targets_for_another_card(self):
        for name in ("bench-62423x384", "bench-1000000x768"):
            self.results["steps"][name]["data"]["card"]["name"] = "NVIDIA A100"
        self.assertNotIn("or less, aim", gpu_report.render(self.results))


class MergeTest(unittest.TestCase):
    def run_of(self, command: str, **statuses: str) -> dict:
        return {"about": {"card": "A card", "command": command, "date": "2026-01-02"},
                "steps": {name: {"status": status, "message": command, "seconds": 1} for name, status in statuses.items()}}

    def test_keeps_of_each_step_the_latest_that_passed(self):
        merged = gpu_report.merge([self.run_of("a", one="passed", two="killed", three="passed"),
                                   self.run_of("b", one="timed out", two="failed", three="passed", four="skipped")])
        self.assertEqual({name: (step["message"], step["status"]) for name, step in merged["steps"].items()},
                         {"one": ("a", "passed"), "two": ("b", "failed"), "three": ("b", "passed"), "four": ("b", "skipped")})
        self.assertEqual([run["command"] for run in merged["about"]["runs"]], ["a", "b"])

    def test_takes_ours_and_torch_of_one_run(self):
        both = {"bench-9x8": "passed", "torch-9x8": "passed"}
        for other in ({"bench-9x8": "passed", "torch-9x8": "killed"}, {"bench-9x8": "passed"}):
            for runs in ((both, other), (other, both)):
                merged = gpu_report.merge([self.run_of(str(index), **statuses) for index, statuses in enumerate(runs)])
                self.assertEqual({name: step["message"] for name, step in merged["steps"].items()},
                                 dict.fromkeys(both, str(runs.index(both))))
        merged = gpu_report.merge([self.run_of("a", **other), self.run_of("b", **{"torch-9x8": "passed"})])
        self.assertEqual({name: step["message"] for name, step in merged["steps"].items()}, {"torch-9x8": "b"})

    def test_names_date_driver_and_clocks_of_each_run(self):
        runs = [self.run_of(name, one="passed") for name in "ab"]
        runs[0]["about"] |= {"driver": "580.1", "clocks": "clocks 345 MHz"}
        text = gpu_report.render(gpu_report.merge(runs))
        self.assertIn("2026-01-02, A card, driver 580.1, clocks 345 MHz.\n\n```\na\n```", text)
        self.assertIn("2026-01-02, A card, driver unknown.\n\n```\nb\n```", text)

    def test_refuses_results_of_two_cards(self):
        other = self.run_of("b", one="passed")
        other["about"]["card"] = "Another"
        with self.assertRaisesRegex(SystemExit, "different cards: A card, Another"):
            gpu_report.merge([self.run_of("a", one="passed"), other])


if __name__ == "__main__":
    unittest.main()
