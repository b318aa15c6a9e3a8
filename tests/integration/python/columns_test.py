#!/usr/bin/python3
"""Runs examples/python/columns.py against a real server, and reads with its functions what the files hold.

usage: columns_test.py SIMILE SOURCE_DIR STUBS_DIR
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

SIMILE, SOURCE, STUBS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
FILMS = SOURCE / "examples" / "films"
sys.path += [str(SOURCE / "tests/python"), str(SOURCE / "examples/python"), str(STUBS)]
import columns
import grpc
import numpy as np
import servers
from simile.v1.search_pb2 import LAYOUT_COLUMNS, Query, SearchOptions, SearchRequest
from simile.v1.search_pb2_grpc import SearchServiceStub


def films_server():
    return servers.running(SIMILE, "--collection", f"films={FILMS}")


class ColumnsTest(unittest.TestCase):
    def test_prints_both_layouts_of_the_same_answers(self):
        with films_server() as server:
            run = subprocess.run([sys.executable, SOURCE / "examples/python/columns.py", server.address, "films", "200", "50"],
                                 env=dict(os.environ, PYTHONPATH=str(STUBS)), capture_output=True, text=True, timeout=60,
                                 check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        bytes_of = {name: int(count.replace(",", "")) for name, count in re.findall(r"(\w+) +([\d,]+) bytes", run.stdout)}
        self.assertLess(bytes_of["columns"], bytes_of["hits"] * 0.7)  # 10,000 hits of 5,000 films

    def test_reads_payload_and_vectors_as_the_files_have_them(self):
        films = [json.loads(line) for line in (FILMS / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]
        vectors = np.load(FILMS / "content_vectors.npy")
        request = SearchRequest(collection="films", queries=[Query(id="toy-story-1995"), Query(id="toy-story-2-1999")],
                                options=SearchOptions(k=50, with_rows=True, with_vectors=True, layout=LAYOUT_COLUMNS))
        with films_server() as server:
            channel = grpc.insecure_channel(server.address, options=[("grpc.enable_http_proxy", 0)])
            answer = SearchServiceStub(channel).Search(request, timeout=10).columns
        rows = np.frombuffer(answer.rows, "<u4")
        self.assertLess(len(rows), 100)  # two similar queries share hits
        payload = {column.field: column for column in answer.payload}
        self.assertEqual(columns.values_of(payload["title"]).tolist(), [films[row]["title"] for row in rows])
        self.assertEqual(columns.values_of(payload["year"]).tolist(), [films[row]["year"] for row in rows])
        offsets, genres = columns.values_of(payload["genres"])
        self.assertEqual([genres[begin:end].tolist() for begin, end in zip(offsets, offsets[1:])],
                         [films[row]["genres"] for row in rows])
        expected = vectors[rows] / np.linalg.norm(vectors[rows].astype("f8"), axis=1, keepdims=True)
        np.testing.assert_allclose(np.frombuffer(answer.vectors, "<f4").reshape(expected.shape), expected, atol=1e-6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
