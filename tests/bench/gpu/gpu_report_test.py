#!/usr/bin/env python3
"""The GPU report from a small results file with invented figures: tables, targets, decisions, failures."""

import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gpu_decisions
import gpu_report
import kernel_table
import plan_passes

def sample_results() -> dict:
    """Invented figures that produce every kind of sentence."""
    return json.loads((HERE / "sample_results.json").read_text(encoding="utf-8"))


class PlanPassesTest(unittest.TestCase):
    def test_takes_whole_passes_of_the_collections_that_a_plan_knows(self):
        lines = plan_passes.passes_of([sample_results()])
        self.assertIn('    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 1, 10, 15, 36},', lines)

    def test_takes_variants_of_a_card_whose_whole_passes_were_not_measured(self):
        found = {"shape": "62423x384", "batch": 64, "k": 10, "us": 53.6, "same_answers": True}
        wrong = found | {"batch": 32, "same_answers": False}
        results = {"about": {"card": "Tesla T4"},
                   "steps": {"kernels-variants-row_scan_registers": {"data": {"lines": [found, wrong]}}}}
        self.assertEqual(plan_passes.passes_of([results]),
                         ['    MeasuredPass{"T4", PassKind::kRegisterScan, 62423, 384, 64, 10, 53.6, 0},'])


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

    def test_shows_every_variant_by_batch(self):
        self.assertIn("| variant | 32 | 64 | 65 | 100 |", self.text)
        self.assertIn("| `row_scan_ring` | **18.0*** | **21.0*** | 38.0* | 42.0 |", self.text)
        self.assertNotIn("unproven", self.text)
        self.assertIn("| `gemm_topk_fp16` | 30.0 | 33.0 | **36.0** | **41.0*** |", self.text)

    def test_a_variant_that_failed_or_proves_nothing_is_never_the_fastest(self):
        lines = [line for line in self.results["steps"]["kernels-finish"]["data"]["lines"]
                 if line["step"] == "variants" and line["variant"] == "gemm_topk_fp16"]
        lines[0] |= {"us": 2.0, "unproven": 32}
        lines[1] |= {"us": 2.0, "same_answers": False}
        lines[2] |= {"us": 2.0, "unproven": 1}
        for name in ("us", "passes", "unproven", "same_answers"):
            del lines[3][name]
        lines[3]["error"] = "late | twice"
        text = gpu_report.render(self.results)
        self.assertIn("| `gemm_topk_fp16` | 2.0 32 unproven | 2.0 other answers | **2.0** 1 unproven | * failed |", text)
        self.assertIn("| `row_scan_ring` | **18.0*** | **21.0*** | 38.0* | **42.0** |", text)
        self.assertIn("late / twice", text)

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
        self.results["steps"]["tensor-sums"]["data"]["sums"] = 9
        text = gpu_report.render(self.results)
        self.assertIn("products skipped (cuBLAS cannot be loaded: why)", text)
        self.assertIn("9 sums by each of two methods, without cuBLAS", text)

    def test_shows_the_server(self):
        run = {"in_flight": 16, "rate": 12345.6, "latency_us": [900.4, 2000, 3000], "engine": "cuda: fp16-scan-sm90", "wrong": 0}
        self.results["steps"]["server"] = {"status": "passed", "seconds": 30, "message": "", "data": {
            "rows": 62423, "dim": 384, "runs": [run], "a100": "the report\n"}}
        text = gpu_report.render(self.results)
        self.assertIn("| 16 | 12,346 | 900 | 2,000 | 3,000 | cuda: fp16-scan-sm90 | 0 |", text)
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


class GpuDecisionsTest(unittest.TestCase):
    def setUp(self):
        results = sample_results()
        self.steps, self.sums = gpu_report.kernel_data(results), results["steps"]["tensor-sums"]["data"]

    def conclusion(self, subject: str) -> str:
        found = [one.conclusion for one in gpu_decisions.decide(self.steps, self.sums) if one.subject.startswith(subject)]
        self.assertEqual(len(found), 1, subject)
        return found[0]

    def change(self, step: str, fields: dict, **where) -> None:
        for line in gpu_decisions.lines_of(self.steps, step, **where):
            line.update(fields)

    def test_tensor_sums_beyond_the_bound_invalidate_proofs(self):
        self.assertIn("holds", self.conclusion("rounding of sums"))
        self.sums["fp16_seen_over_bound"] = 1.01
        self.assertIn("proofs are invalid", self.conclusion("rounding of sums"))

    def test_each_scan_is_decided_by_its_own_figures(self):
        lines = [line for line in self.steps["lines"] if line["step"] in ("finish", "exchange")]
        self.steps["lines"] += [line | {"variant": "int8_scan"} for line in lines]
        self.change("exchange", {"mapped_us": 45.0}, variant="int8_scan")
        self.assertIn("copies always", self.conclusion("queries and answers copied or mapped, int8_scan"))
        self.assertIn("mapped up to 1 queries", self.conclusion("queries and answers copied or mapped, row_scan_ring"))
        self.change("finish", {"us": 40.0}, variant="int8_scan", batch=32, one_block=False)
        self.assertEqual(self.conclusion("finish, int8_scan, 62423x384, 32 queries, k 100"), "planned as is")
        self.assertIn("several launches", self.conclusion("finish, row_scan_ring, 62423x384, 32 queries, k 100"))

    def test_names_each_batch_whose_planned_variant_is_not_the_fastest(self):
        decided = [one for one in gpu_decisions.decide(self.steps, self.sums) if one.subject.startswith("the variant of a batch")]
        self.assertEqual([one.figure for one in decided], ["65: gemm_topk_fp16 36 us, not 38 by row_scan_ring"])
        self.assertIn("change the order", decided[0].conclusion)
        self.change("variants", {"us": 50.0}, batch=65, variant="gemm_topk_fp16")
        self.assertEqual(self.conclusion("the variant of a batch"), "planned as is")

    def test_a_batch_that_no_variant_answers_is_named(self):
        self.change("variants", {"unproven": 9}, batch=64)
        self.assertIn("do not serve", self.conclusion("answers of all variants"))
        decided = [one for one in gpu_decisions.decide(self.steps, self.sums) if one.subject.startswith("the variant of a batch")]
        self.assertIn("64: none gives the answers", decided[0].figure)

    def test_a_variant_with_other_answers_is_not_served(self):
        self.change("variants", {"same_answers": False}, batch=64, variant="gemm_topk_fp16")
        self.assertIn("do not serve", self.conclusion("answers of all variants"))

    def test_finish_tile_gather_and_exchange_decide(self):
        self.assertEqual(self.conclusion("finish, row_scan_ring, 62423x384, 1 queries, k 10"), "planned as is")
        self.assertIn("plan several launches here", self.conclusion("finish, row_scan_ring, 62423x384, 32 queries, k 100"))
        self.assertIn("tiles of 16896 rows, 33 MiB", self.conclusion("tile"))
        self.assertIn("one row in 64", self.conclusion("list of rows or pass"))
        self.change("gather", {"gather_us": 40.0}, one_row_in=8)  # a pass is faster at 1 in 32
        self.assertIn("one row in 64", self.conclusion("list of rows or pass"))
        self.assertIn("mapped up to 1 queries", self.conclusion("queries and answers copied or mapped"))

    def test_a_pass_with_other_answers_decides_nothing(self):
        self.change("tile", {"same_answers": False}, tile_rows=16896)
        self.assertEqual(self.conclusion("tile"), "the planned tile stays")
        self.change("finish", {"unproven": 9}, batch=32, one_block=False)
        self.assertNotIn("32 queries", " ".join(one.subject for one in gpu_decisions.decide(self.steps, self.sums)
                                                if one.subject.startswith("finish")))

    def test_a_second_gate_is_planned_where_it_is_faster(self):
        subject = "second gate, row_scan_ring"  # none of the shape whose rows are too few for one
        self.assertEqual(self.conclusion(subject), "gpu tuning second_gate_share 8")
        self.change("second-gate", {"us": 410.0}, one_row_in=16)
        self.assertEqual(self.conclusion(subject), "planned as is")
        self.change("second-gate", {"us": 350.0}, shape="1000000x768", one_row_in=0)
        self.assertIn("a greater kHitsSavedMin", self.conclusion(subject))
        self.change("second-gate", {"planned": False}, one_row_in=16)
        self.change("second-gate", {"us": 500.0, "planned": True}, shape="1000000x768", one_row_in=0)
        self.assertIn("a smaller kHitsSavedMin", self.conclusion(subject))

    def test_canonical_scores_answer_segments_of_which_a_pass_takes_longer(self):
        subject = "canonical scores of all rows or pass, rows of 62423x384, 1 queries"
        self.assertIn("up to 2,048 rows", self.conclusion(subject))  # not 8,192: a pass is faster at 4,096
        self.change("small-segments", {"pass_us": 18.0}, rows=4096)
        self.assertIn("up to 8,192 rows", self.conclusion(subject))
        self.change("small-segments", {"pass_us": 11.0}, rows=2048)
        self.assertIn("always faster", self.conclusion(subject))  # 1,024 rows have no pass, which decides nothing
        self.change("small-segments", {"pass_us": 0})
        self.assertNotIn(subject, [decision.subject for decision in gpu_decisions.decide(self.steps, self.sums)])

    def test_a_figure_that_was_not_measured_affects_no_other(self):
        self.change("exchange", {"mapped_us": None})
        self.assertEqual(self.conclusion("exchange"), "measure it again")
        self.assertIn("tiles of 16896 rows", self.conclusion("tile"))

    def test_decides_nothing_without_figures(self):
        self.assertEqual(gpu_decisions.decide({}, {}), [])


class KernelTableTest(unittest.TestCase):
    LOG = """ptxas info    : Compiling entry function '_ZN6simile7kernels13RowScanKernelILj4ELj6ENS0_7RowRingILj6EEEEEvNS0_4PassE' for 'sm_90'
ptxas info    : Function properties for _ZN6simile7kernels13RowScanKernelILj4ELj6ENS0_7RowRingILj6EEEEEvNS0_4PassE
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 174 registers, used 1 barriers, 12560 bytes smem
ptxas info    : Compiling entry function '_ZN6simile7kernels14TopkFp16KernelENS0_4PassENS0_9ScoreTileE' for 'sm_90'
ptxas info    : Function properties for _ZN6simile7kernels14TopkFp16KernelENS0_4PassENS0_9ScoreTileE
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
"""

    def test_reads_names_registers_memory_and_spills(self):
        self.assertEqual(kernel_table.table(kernel_table.parse(self.LOG)).splitlines()[2:],
                         ["| row_scan, 64 queries, 6 stages | 174 | 12560 | 0 | 0 |", "| topk_fp16 | 32 | 0 | 16 | 12 |"])

    def test_counts_loads_until_one_is_needed(self):
        sass = """	code for sm_90
		Function : _ZN6simile7kernels14TopkFp16KernelENS0_4PassENS0_9ScoreTileE
        /*0000*/                   LDG.E.128 R4, desc[UR4][R2.64] ;   /* 0x0000000402047981 */
        /*0010*/              @!P0 LDG.E.CONSTANT R8, desc[UR4][R2.64+0x10] ;
        /*0020*/                   FADD R9, R1, R7 ;
        /*0030*/                   LDG.E R10, desc[UR4][R2.64] ;
        /*0040*/                   FADD R9, R8, R10 ;
        /*0050*/                   LDG.E R11, desc[UR4][R2.64] ;
        /*0060*/                   EXIT ;
        /*0070*/                   LDG.E R12, desc[UR4][R2.64] ;
        /*0080*/                   LDG.E R13, desc[UR4][R2.64] ;
"""
        kernels = kernel_table.parse(self.LOG)
        kernel_table.count_loads(sass, kernels)
        self.assertEqual([kernel.loads for kernel in kernels], [None, 2])
        self.assertIn("| topk_fp16 | 32 | 2 | 0 | 16 | 12 |", kernel_table.table(kernels))


if __name__ == "__main__":
    unittest.main()
