#!/usr/bin/env python3
"""Asks the dashboard's queries of DCGM against exporter texts of a T4, an A100, an H100 and a P4 (dcgm/*.prom), by promtool.

Every line of a text comes after its source, or after a comment that marks it as made up. A panel may be empty only where the
card has no such field. Exits 77 without promtool.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import monitoring_files as files

TEXTS = pathlib.Path(__file__).resolve().parent / "dcgm"
TARGET = {"job": "dcgm", "instance": "dcgm-exporter:9400"}  # what Prometheus adds
SAMPLE = re.compile(r"(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)")

# What each query of a panel gives, in the order of its targets; None: nothing. Counters do not grow, so their rates are 0.
EXPECTED = {
    "t4": {"Clock": [660e6], "Memory bandwidth": [73], "Bus retries": [0], "Heat": [0], "SM activity": [14, None],
           "PCIe throughput": [4791810, 6935930, None, None]},
    "a100": {"Clock": [1215e6], "Memory bandwidth": [69], "Bus retries": [0], "Heat": [0], "SM activity": [95, None],
             "PCIe throughput": [33011804, 97863601, None, None]},
    "h100": {"Clock": [345e6], "Memory bandwidth": [0], "Bus retries": [0], "Heat": [0], "SM activity": [91.26, None],
             "PCIe throughput": [67358889, 873509672, None, None]},
    "p4": {"Clock": [1113e6], "Memory bandwidth": [61], "Bus retries": [0], "Heat": [1], "SM activity": [None, 83],
           "PCIe throughput": [None, None, 41e6, 12e6]},
}
# Of a T4 whose exporter lacks SYS_ADMIN, so that it runs with fields.csv.
WITHOUT_PROFILING = EXPECTED["t4"] | {"SM activity": [None, 91], "PCIe throughput": [None, None, None, None]}
# The fields of deploy/dcgm that a card cannot have.
LACKING = {"t4": {"DCGM_FI_DEV_ROW_REMAP_FAILURE"}, "a100": set(), "h100": set(), "p4": {"DCGM_FI_DEV_ROW_REMAP_FAILURE"}}


def samples(card: str) -> list[tuple[str, dict[str, str], str]]:
    """Name, labels and value of each line of a text."""
    found = []
    for line in (TEXTS / f"{card}.prom").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            found.append((match["name"], dict(re.findall(r'(\w+)="([^"]*)"', match["labels"])), match["value"]))
    return found


def series(name: str, labels: dict[str, str]) -> str:
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in (labels | TARGET).items()) + "}"


def dcgm_panels() -> list[dict]:
    return [panel for panel in files.panels() if any("DCGM_" in target["expr"] for target in panel["targets"])]


def promtool_case(card: str, lines: list, expected: dict[str, list]) -> dict:
    """The texts and queries as a case of `promtool test rules`."""
    checks = []
    for panel in dcgm_panels():
        for target, value in zip(panel["targets"], expected[panel["title"]], strict=True):
            query = target["expr"].replace("$__rate_interval", "5m")
            labels = "{" + f'gpu="0", instance="{TARGET["instance"]}"' + "}"
            checks.append({"expr": f"round(max by (instance, gpu) ({query}), 0.001)", "eval_time": "10m",
                           "exp_samples": [] if value is None else [{"labels": labels, "value": value}]})
    inputs = [{"series": series(name, labels), "values": f"{value}+0x10"} for name, labels, value in lines]
    return {"name": card, "interval": "1m", "input_series": inputs, "promql_expr_test": checks}


def promtool_findings(cases: list[dict]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cards.yml"
        path.write_text(json.dumps({"tests": cases}), encoding="utf-8")  # JSON is YAML
        done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


class CardsTest(unittest.TestCase):
    def test_lines_have_a_source_or_are_marked_as_made_up(self):
        for card in EXPECTED:
            origins = set()
            for line in (TEXTS / f"{card}.prom").read_text(encoding="utf-8").splitlines():
                if origin := re.match(r"# (source: https://\S+|made up: \w)", line):
                    origins.add(origin[0])
                elif not line.startswith("#"):
                    self.assertTrue(origins, f"{card}: {line}")
            self.assertTrue(any(origin.startswith("# source") for origin in origins), card)

    def test_texts_hold_every_field_that_the_card_has(self):
        for card, lacking in LACKING.items():
            path = files.DCGM_PASCAL if card == "p4" else files.DCGM_PROFILING
            wanted = {row[0] for row in files.dcgm_fields(path)} - lacking
            self.assertEqual(wanted - {name for name, _, _ in samples(card)}, set(), card)

    def test_panels_show_what_the_card_has(self):
        cases = [promtool_case(card, samples(card), expected) for card, expected in EXPECTED.items()]
        self.assertEqual(promtool_findings(cases), "")

    def test_no_panel_is_empty_that_the_card_has(self):
        for card, expected in EXPECTED.items():
            self.assertEqual(expected.keys(), {panel["title"] for panel in dcgm_panels()}, card)
            for title, values in expected.items():
                self.assertTrue(any(value is not None for value in values), f"{card}: {title}")

    def test_panels_without_profiling_show_the_driver_s_share(self):
        lines = [sample for sample in samples("t4") if not sample[0].startswith("DCGM_FI_PROF_")]
        self.assertEqual(promtool_findings([promtool_case("t4 without SYS_ADMIN", lines, WITHOUT_PROFILING)]), "")

    def test_a_wrong_value_is_found(self):
        wrong = EXPECTED["t4"] | {"Clock": [1]}
        self.assertIn("660000000", promtool_findings([promtool_case("t4", samples("t4"), wrong)]).replace("6.6E+08", "660000000"))


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("skipped: promtool is not installed (Debian: prometheus)")
        sys.exit(77)
    unittest.main()
