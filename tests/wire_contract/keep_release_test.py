#!/usr/bin/env python3
"""keep_release.py keeps a contract, renews an unreleased one, and leaves a released one alone."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("keep_release.py")
PROTO = """// What it is.
syntax = "proto3";

package music.v1;  // twice
/* Over
   lines. */
message Song {
  string title = 1 [json_name = "a//b"];
}
"""
API = "| `NOT_PARSED` | `INVALID_ARGUMENT` | when | |\n| `search_stream` | 0.1.0 | what |\n| `other` | `code` |\n"


class KeepReleaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("CMakeLists.txt", "project(simile VERSION 0.2.0 LANGUAGES CXX)\n")
        self.write("CHANGELOG.md", "# Changelog\n\n## 0.2.0, unreleased\n\n## 0.1.0, 2026-01-01\n")
        self.write("proto/simile/v1/types.proto", PROTO)
        self.write("docs/api.md", API)
        self.kept = self.root / "tests/wire_contract/released/0.2.0"

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_script(self):
        return subprocess.run([sys.executable, "-B", SCRIPT, "--root", self.root], capture_output=True, text=True,
                              check=False)

    def test_keeps_what_a_compiler_sees_and_what_programs_compare(self):
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual((self.kept / "types.proto").read_text(),
                         'syntax = "proto3";\npackage music.v1;\nmessage Song {\n'
                         '  string title = 1 [json_name = "a//b"];\n}\n')
        self.assertEqual((self.kept / "names.tsv").read_text(),
                         "reason\tNOT_PARSED\tINVALID_ARGUMENT\ncapability\tsearch_stream\n")

    def test_renews_an_unreleased_version(self):
        self.run_script()
        self.write("proto/simile/v1/types.proto", PROTO.replace("Song", "Tune"))
        self.assertEqual(self.run_script().returncode, 0)
        self.assertIn("message Tune", (self.kept / "types.proto").read_text())

    def test_never_changes_a_released_version(self):
        self.run_script()
        self.write("CHANGELOG.md", "# Changelog\n\n## 0.2.0, 2026-02-02\n")
        self.write("proto/simile/v1/types.proto", PROTO.replace("Song", "Tune"))
        refused = self.run_script()
        self.assertEqual(refused.returncode, 1)
        self.assertIn("0.2.0 is released", refused.stderr)
        self.assertIn("message Song", (self.kept / "types.proto").read_text())

    def test_keeps_a_version_that_is_released_without_having_been_kept(self):
        self.write("CHANGELOG.md", "# Changelog\n\n## 0.2.0, 2026-02-02\n")
        self.assertEqual(self.run_script().returncode, 0)
        self.assertTrue((self.kept / "types.proto").exists())


if __name__ == "__main__":
    unittest.main()
