#!/usr/bin/env python3
"""The GPU report from a small results file with invented figures: tables, targets, decisions, failures."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gpu_decisions
import gpu_report
import kernel_table
import run

def sample_results() -> dict:
    """Invented figures that produce every kind of sentence."""
    return json.loads((HERE / "sample_results.json").read_text(encoding="utf-8"))


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
        self.assertIn("torch was not measured", self.text)

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


class GpuDecisionsTest(unittest.TestCase):
    def setUp(self):
        steps = sample_results()["steps"]
        self.steps, self.sums = steps["steps"]["data"], steps["tensor-sums"]["data"]

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

    def test_a_better_ring_is_named(self):
        self.assertIn("16 rows x 256 bytes", self.conclusion("fused scan, reading alone, 1000000x768, 16"))
        self.change("scan-shape", {"us": 350.0}, batch=16, stages=6)
        self.assertIn("plan 8 warps x 6 stages instead", self.conclusion("fused scan, reading alone, 1000000x768, 16"))

    def test_reading_at_the_ceiling_is_done(self):
        self.change("scan-shape", {"us": 362.0, "gb_s": 4240.0}, batch=16, planned=True)
        self.assertIn("done", self.conclusion("fused scan, reading alone, 1000000x768, 16"))

    def test_overhead_above_a_tenth_asks_for_the_fused_path(self):
        self.assertIn("fused wgmma", self.conclusion("GEMM pass beyond its products, 62423x384, 100"))
        self.change("gemm-pass", {"overhead": 0.08})
        self.assertIn("tune it", self.conclusion("GEMM pass beyond its products, 62423x384, 100"))

    def test_strategies_say_where_they_cross(self):
        self.assertEqual(self.conclusion("scan or GEMM, 62423x384"), "scan in several passes up to 80, GEMM above")
        self.change("strategies", {"scan_us": 99.0}, batch=65)
        self.change("strategies", {"scan_us": 99.0}, batch=80)
        self.assertEqual(self.conclusion("scan or GEMM, 62423x384"), "scan up to 64 (gpu tuning scan_queries_max), GEMM above")

    def test_select_sample_finish_gate_rescore_tile_and_gather_decide(self):
        self.assertIn("tighter gate", self.conclusion("topk_fp16 at 5 hits"))
        self.assertIn("tune the loads", self.conclusion("topk_fp16 without a hit"))
        self.assertIn("do without a sample", self.conclusion("sample and barrier"))
        self.assertIn("the L2 keeps rows", self.conclusion("L2 between passes"))
        self.assertIn("plan three launches here", self.conclusion("finish, 62423x384, 32 queries, k 100"))
        self.assertIn("too long", self.conclusion("gate and finish, 62423x384, 1000"))
        self.assertIn("four rows a warp", self.conclusion("canonical scores of random rows"))
        self.assertIn("tiles of 33 MiB", self.conclusion("tile, products alone"))
        self.assertIn("fp32 scores: half the bound", self.conclusion("scores in fp32"))
        self.assertIn("not worth it", self.conclusion("L2 set aside"))
        self.assertIn("one row in 64", self.conclusion("list of rows or pass"))
        self.assertIn("two streams stay", self.conclusion("two streams"))

    def test_a_figure_that_was_not_measured_affects_no_other(self):
        self.change("select", {"tb_s": None})
        self.assertEqual(self.conclusion("select"), "measure it again")
        self.assertIn("four rows a warp", self.conclusion("canonical scores of random rows"))

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


class RunTest(unittest.TestCase):
    def call(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-B", str(HERE / "run.py"), *arguments], capture_output=True, text=True, check=False)

    def test_lists_its_steps(self):
        done = self.call("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(names[:4], ["conformance", "tensor-sums", "bench-62423x384", "torch-62423x384"])
        self.assertIn("sanitizer-racecheck", names)

    def test_says_what_is_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.call("--bin", folder, "--out", folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "error: gpu_steps is not built: target gpu_bench_all\n")

    def test_ends_with_two_and_one_sentence_where_there_is_no_card(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "gpu_steps"
            program.write_text("#!/bin/sh\necho 'error: no GPU to measure: none (cudaErrorNoDevice)' >&2\nexit 2\n", encoding="utf-8")
            program.chmod(0o755)
            done = self.call("--bin", folder, "--out", folder)
        self.assertEqual((done.returncode, done.stderr), (2, "error: no GPU to measure: none (cudaErrorNoDevice)\n"))

    def test_continues_after_a_failed_step_and_reports_it(self):
        with tempfile.TemporaryDirectory() as folder:
            bodies = {"gpu_steps": """echo '{"name": "A card"}'""", "tensor_sums": "echo 'error: it broke' >&2; exit 1",
                      "device_conformance": "exit 0"}
            for name, body in bodies.items():
                program = pathlib.Path(folder) / name
                program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
                program.chmod(0o755)
            done = self.call("--bin", folder, "--out", folder, "--steps", "tensor-sums,conformance,bench-62423x384")
            results = json.loads((pathlib.Path(folder) / "gpu-results.json").read_text(encoding="utf-8"))
            page = (pathlib.Path(folder) / "gpu.md").read_text(encoding="utf-8")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual({name: step["status"] for name, step in results["steps"].items()},
                         {"conformance": "passed", "tensor-sums": "failed", "bench-62423x384": "skipped"})
        self.assertIn("| tensor-sums | failed | 0 | error: it broke |", page)
        self.assertIn("gpu_bench is not built", page)

    def test_writes_the_page_from_results_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.call("--report", str(HERE / "sample_results.json"), "--out", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("What the figures decide", (pathlib.Path(folder) / "gpu.md").read_text(encoding="utf-8"))

    def test_names_the_line_of_the_error(self):
        self.assertEqual(run.error_line("a\nerror: why\nbye\n"), "error: why")
        self.assertEqual(run.error_line(""), "it printed nothing")


if __name__ == "__main__":
    unittest.main()
