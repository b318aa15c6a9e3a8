#!/usr/bin/env python3
"""The table of targets.py from invented figures."""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import targets
from targets import Figure


def entry(row: str, figure: Figure) -> dict:
    """As it is read from a file."""
    return json.loads(json.dumps({"row": row} | dataclasses.asdict(figure)))


class TargetsTest(unittest.TestCase):
    def test_decides_by_the_median(self):
        self.assertTrue(Figure("p99", [90, 10, 12], 12, "ms").is_met())
        self.assertFalse(Figure("p99", [13, 10, 90], 12, "ms").is_met())
        self.assertTrue(Figure("rate", [0.1, 0.6, 0.7], 0.6, at_least=True).is_met())
        self.assertFalse(Figure("rate", [0.1, 0.5, 0.7], 0.6, at_least=True).is_met())

    def test_shows_targets_beside_measured(self):
        text = targets.table([entry("health", Figure("p99", [1234.5], 50, "ms")),
                            entry("rate", Figure("share", [0.5, 0.7, 0.6], 0.55, at_least=True))], [])
        self.assertIn("| health | p99 | 1,234 ms | <= 50 ms | **no** |", text)
        self.assertIn("| rate | share | 0.6 (0.5 to 0.7) | >= 0.55 | yes |", text)

    def test_shows_the_figures_of_another_server_where_it_has_them(self):
        health, rate = entry("health", Figure("p99", [12], 50, "ms")), entry("rate", Figure("share", [1], 0.5, at_least=True))
        text = targets.table([health, rate], [entry("health", Figure("p99", [2000], 50, "ms"))])
        self.assertIn("| health | p99 | 2,000 ms | 12 ms | <= 50 ms | yes |", text)
        self.assertIn("| rate | share |  | 1 | >= 0.5 | yes |", text)

    def test_refuses_a_row_that_does_not_exist(self):
        rows = {"health": lambda machine: iter(()), "large": lambda machine: iter(())}
        self.assertEqual(list(targets.chosen(rows, "large")), ["large"])
        with self.assertRaisesRegex(ValueError, "no such row: larg; there are health, large"):
            targets.chosen(rows, "health,larg")

    def test_keeps_figures_when_a_row_breaks(self):
        def breaks(machine):
            yield Figure("first", [1], 2)
            raise OSError("the server is gone")

        with tempfile.TemporaryDirectory() as folder:
            machine = targets.Machine(argparse.Namespace(), pathlib.Path(folder), [])
            entries = list(targets.entries_of("row", breaks, machine))
        self.assertEqual([entry["what"] for entry in entries], ["first"])
        self.assertEqual(machine.notes, ["row was not measured to its end: OSError: the server is gone"])


if __name__ == "__main__":
    unittest.main()
