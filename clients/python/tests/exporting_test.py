#!/usr/bin/python3
"""Exports to files, and to files that were begun before.

usage: exporting_test.py PACKAGE_DIR SIMILE SOURCE_DIR
"""
import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

PACKAGE = sys.argv.pop(1)
sys.path.insert(0, PACKAGE)
SIMILE, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path.append(str(SOURCE / "tests" / "python"))

import servers
import simile_search as simile
from simile_search import exporting

FILMS = SOURCE / "examples" / "films"
HAS_ARROW = importlib.util.find_spec("pyarrow") is not None


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class ExportingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(servers.running(SIMILE, "--collection", f"films={FILMS}"))
        cls.films = lines_of(FILMS / "metadata.jsonl")

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.client = self.enterContext(simile.connect(self.server.address))
        self.collection = self.client.collection("films")

    def command(self, *arguments):
        return subprocess.Popen([sys.executable, "-B", "-m", "simile_search", "export", "--server", self.server.address, *arguments],
                                env={**os.environ, "PYTHONPATH": PACKAGE}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_writes_a_line_for_each_source(self):
        seen = []
        report = exporting.write_export(self.collection, self.folder / "near.jsonl", 3, payload=["title"],
                                        progress=lambda done, total: seen.append((done, total)))
        lines = lines_of(self.folder / "near.jsonl")
        self.assertEqual([line["source"] for line in lines], [film["media_id"] for film in self.films])
        answer = self.collection.similar(lines[7]["source"], 3, payload=["title"])
        self.assertEqual([(hit["id"], hit["payload"]["title"]) for hit in lines[7]["hits"]],
                         [(hit.id, hit.payload["title"]) for hit in answer[0]])
        self.assertEqual([hit["score"] for hit in lines[7]["hits"]], [float(str(score)) for score in answer.scores[0]])
        self.assertEqual((report.sources, report.hits, report.resumed, seen[-1]), (5000, 15000, 0, (5000, 5000)))
        self.assertEqual(sorted(os.listdir(self.folder)), ["near.jsonl"])
        with self.assertRaisesRegex(exporting.ExportFailed, "exists"):
            exporting.write_export(self.collection, self.folder / "near.jsonl", 3)
        with self.assertRaisesRegex(exporting.ExportFailed, "name a .jsonl or a .parquet file"):
            exporting.write_export(self.collection, self.folder / "near.csv", 3)

    def stop_at(self, path, done, **options):
        """An export that ends once so many sources are answered."""
        class Stop(Exception):
            pass

        def progress(now, _):
            if now >= done:
                raise Stop

        with contextlib.suppress(Stop):
            exporting.write_export(self.collection, path, 3, progress=progress, **options)

    def test_goes_on_where_it_was_stopped(self):
        whole, cut = self.folder / "whole.jsonl", self.folder / "cut.jsonl"
        exporting.write_export(self.collection, whole, 3)
        self.stop_at(cut, 1000)
        self.assertFalse(cut.exists())
        with open(self.folder / "cut.jsonl.part", "ab") as file:
            file.write(b'{"source": "half a li')  # as a process that was killed leaves it
        report = exporting.write_export(self.collection, cut, 3)
        self.assertEqual(cut.read_bytes(), whole.read_bytes())
        self.assertGreaterEqual(report.resumed, 1000)
        self.assertEqual(report.sources, 5000)
        self.assertEqual(sorted(os.listdir(self.folder)), ["cut.jsonl", "whole.jsonl"])

    def test_refuses_to_go_on_with_another_export(self):
        path = self.folder / "near.jsonl"
        self.stop_at(path, 1000)
        with self.assertRaisesRegex(exporting.ExportFailed, "has k 3, this one 4"):
            exporting.write_export(self.collection, path, 4)
        (self.folder / "near.jsonl.part").unlink()
        with self.assertRaisesRegex(exporting.ExportFailed, "gone or shorter"):
            exporting.write_export(self.collection, path, 3)
        self.assertEqual(exporting.write_export(self.collection, path, 4, restart=True).resumed, 0)

    def test_a_command_that_is_killed_goes_on(self):
        path = self.folder / "recommended.jsonl"
        arguments = ["films", str(path), "-k", "200", "--filter", "year > 1980"]
        killed = 0
        while not path.exists():
            process = self.command(*arguments)
            try:
                process.wait(0.6 if killed < 3 else 120)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
            output, error = process.communicate()
            self.assertIn(process.returncode, (0, -signal.SIGKILL), error)
        self.assertIn("answers of 5,000 items", output)
        sources = [line["source"] for line in lines_of(path)]
        self.assertEqual(sources, [film["media_id"] for film in self.films])

    def test_goes_on_when_the_server_comes_back(self):
        port = servers.steady_port()
        with servers.running(SIMILE, "--collection", f"films={FILMS}", port=port) as first:
            with simile.connect(first.address, timeout=60) as client:
                export = client.collection("films").export(k=3)
                sources = list(next(export).source_ids)
                first.process.kill()
                first.process.wait()
                with servers.running(SIMILE, "--collection", f"films={FILMS}", port=port):
                    for part in export:
                        sources.extend(part.source_ids)
        self.assertEqual(sources, [film["media_id"] for film in self.films])

    def test_the_command_says_what_is_wrong(self):
        file = str(self.folder / "x.jsonl")
        for arguments, words in ((["films", file, "--filter", "yeer = 3"], "error: filter, column 1"),
                                 (["filmes", file], "films"), (["films"], "FILE")):
            process = self.command(*arguments)
            _, error = process.communicate(timeout=60)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn(words, error)
        self.assertEqual(os.listdir(self.folder), [])

    def test_writes_an_empty_file_where_there_is_no_source(self):
        report = exporting.write_export(self.collection, self.folder / "none.jsonl", source_filter="year = 1895 AND year = 1896")
        self.assertEqual((report.sources, (self.folder / "none.jsonl").read_bytes()), (0, b""))

    @unittest.skipUnless(HAS_ARROW, "needs pyarrow")
    def test_writes_parquet_and_goes_on(self):
        import pyarrow.parquet
        whole, cut = self.folder / "whole.parquet", self.folder / "cut.parquet"
        exporting.write_export(self.collection, whole, 30, payload=True)
        self.addCleanup(setattr, exporting, "_HITS_PER_FILE", exporting._HITS_PER_FILE)
        exporting._HITS_PER_FILE = 10_000

        class Stop(Exception):
            pass

        def progress(now, _):
            if now >= 2000:
                raise Stop

        with contextlib.suppress(Stop):
            exporting.write_export(self.collection, cut, 30, payload=True, progress=progress)
        self.assertGreater(exporting.write_export(self.collection, cut, 30, payload=True).resumed, 0)
        tables = [pyarrow.parquet.read_table(path) for path in (whole, cut)]
        self.assertEqual(len(tables[0]), 150_000)
        self.assertTrue(tables[0].equals(tables[1]))
        self.assertEqual(tables[0].column_names[:4], ["source", "rank", "id", "score"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
