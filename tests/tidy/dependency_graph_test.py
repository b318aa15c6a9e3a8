#!/usr/bin/env python3
"""Draws a small tree and sees that the drawing follows its #include lines."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("dependency_graph.py")
DRAWING = "docs/dependency-graph.svg"


class DependencyGraphTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "docs").mkdir()
        self.write("src/data/npy.cpp", '#include "base/utf8.h"\n#include "base/pages.h"\n#include "simile/row.h"\n')
        self.write("src/base/utf8.h", '#include "simile/row.h"\n')
        self.write("src/engine/queue/executor.cpp", '#include "engine/search/batch.h"\n')

    def write(self, path: str, text: str):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *arguments], capture_output=True, text=True,
                              check=False)

    def drawing(self) -> str:
        return (self.root / DRAWING).read_text(encoding="utf-8")

    def test_passes_when_just_written(self):
        self.assertEqual(self.run_script("--write").returncode, 0)
        self.assertEqual(self.run_script().returncode, 0)

    def test_fails_when_there_is_no_drawing(self):
        self.assertEqual(self.run_script().returncode, 1)

    def test_fails_and_says_how_to_renew_when_an_include_is_added(self):
        self.run_script("--write")
        self.write("src/data/jsonl.cpp", '#include "base/utf8.h"\n')
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("dependency_graph.py --write", result.stdout)
        self.run_script("--write")
        self.assertEqual(self.run_script().returncode, 0)

    def test_counts_includes_and_leaves_out_the_implied_arrow(self):
        self.run_script("--write")
        self.assertEqual(self.drawing().count('class="count'), 3)  # data > base > contracts; inside engine one
        self.assertIn(">2</text>", self.drawing())
        self.assertIn("<title>data includes: base 2, include/simile 1</title>", self.drawing())

    def test_draws_the_arrow_when_nothing_implies_it(self):
        self.write("src/base/utf8.h", "int base;\n")
        self.run_script("--write")
        self.assertIn("<title>base includes: nothing of the project</title>", self.drawing())
        self.assertEqual(self.drawing().count('class="count'), 3)  # data > base, data > contracts; inside engine one

    def test_draws_every_arrow_downwards_when_one_is_forbidden(self):
        self.write("src/base/utf8.h", '#include "data/npy.h"\n')
        self.assertEqual(self.run_script("--write").returncode, 0)
        self.assertIn("<title>base includes: data 1</title>", self.drawing())


if __name__ == "__main__":
    unittest.main()
