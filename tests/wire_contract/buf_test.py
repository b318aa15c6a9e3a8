#!/usr/bin/env python3
"""The wire contract by the rules of proto/buf.yaml, of lint and against each version that released/ keeps.

Takes buf from PyPI into build/buf, unless it is there. Ends with 75 when PyPI cannot be reached.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROTO = ROOT / "proto"
FOLDER = ROOT / "build/buf"
BUF = FOLDER / "bin/buf"


def fetch_buf() -> None:
    wanted, installed = HERE / "requirements.txt", FOLDER / "requirements.txt"
    if installed.exists() and installed.read_bytes() == wanted.read_bytes():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes",
                          "--timeout", "10", "--retries", "1", "--target", FOLDER, "--requirement", wanted],
                         stderr=subprocess.PIPE, text=True, check=False)
    if pip.returncode != 0:
        sys.stderr.write(pip.stderr)
        if "Retrying (Retry" not in pip.stderr:
            sys.exit(1)
        print("buf's rules are skipped: PyPI cannot be reached. Set PIP_INDEX_URL to a mirror, or PIP_NO_INDEX=1 and PIP_FIND_LINKS to "
              "a folder with the wheel that tests/wire_contract/requirements.txt names", file=sys.stderr)
        sys.exit(75)
    shutil.copy(wanted, FOLDER)  # last: it says that all is there


class BufTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def found(self, *arguments) -> str:
        """What buf prints, with the name of each rule that finds something."""
        done = subprocess.run([BUF, *arguments, "--error-format", "json"], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 100 if done.stdout else 0)
        return done.stdout

    def test_finds_nothing_in_the_wire_contract(self):
        self.assertEqual(self.found("lint", PROTO), "")

    def test_finds_no_break_since_any_version(self):
        versions = list((HERE / "released").iterdir())
        self.assertTrue(versions)
        for version in versions:
            with self.subTest(version.name):
                base = self.folder / version.name
                shutil.copytree(PROTO / "google", base / "google")  # which the contract imports
                shutil.copytree(version, base / "simile/v1")
                self.assertEqual(self.found("breaking", PROTO, "--against", base), "")

    def test_finds_a_method_that_is_renamed(self):
        changed = pathlib.Path(shutil.copytree(PROTO, self.folder / "proto"))
        lookup = changed / "simile/v1/lookup.proto"
        before = lookup.read_text()
        self.assertEqual(before.count("rpc Lookup("), 1)
        lookup.write_text(before.replace("rpc Lookup(", "rpc lookup("))
        self.assertIn('"RPC_PASCAL_CASE"', self.found("lint", changed))
        self.assertIn('"RPC_NO_DELETE"', self.found("breaking", changed, "--against", PROTO))


if __name__ == "__main__":
    fetch_buf()
    unittest.main()
