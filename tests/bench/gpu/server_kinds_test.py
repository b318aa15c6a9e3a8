#!/usr/bin/env python3
"""The collections that server_kinds.py makes, and what it makes of the figures of `simile bench`."""

import json
import pathlib
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import server_kinds

FILMS = HERE.parents[2] / "examples/films"


def lengths(path: pathlib.Path) -> list[int]:
    return [len(server_kinds.read_lines(path / name)) for name in ("metadata.jsonl", "interactions.jsonl")]


class CollectionsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_all_films_are_the_films_to_the_byte(self):
        server_kinds.make_films(FILMS, self.folder, None)
        for name in ("content_vectors.npy", "preference_vectors.npy"):
            self.assertEqual(server_kinds.read_npy(self.folder / name), server_kinds.read_npy(FILMS / name))
        self.assertEqual(lengths(self.folder), lengths(FILMS))

    def test_a_part_of_the_films_names_no_film_outside(self):
        server_kinds.make_films(FILMS, self.folder, 300)
        self.assertEqual(server_kinds.read_npy(self.folder / "content_vectors.npy")[1:3], (300, 384))
        known = {film["media_id"] for film in server_kinds.read_lines(self.folder / "metadata.jsonl")}
        seen = server_kinds.read_lines(self.folder / "interactions.jsonl")
        self.assertEqual(len(known), 300)
        self.assertGreater(len(seen), 50)
        self.assertLessEqual({line["media_id"] for line in seen}, known)

    def test_made_rows_are_unlike_each_other_and_users_unlike_rows(self):
        server_kinds.make_collection(FILMS, self.folder, 700, 90)
        kind, rows, dim, data = server_kinds.read_npy(self.folder / "content_vectors.npy")
        self.assertEqual((kind, rows, dim, len(data)), ("<f2", 700, 384, 700 * 384 * 2))
        vectors = {data[row * 768:(row + 1) * 768] for row in range(rows)}
        self.assertEqual(len(vectors), 700)
        _, users, _, tastes = server_kinds.read_npy(self.folder / "preference_vectors.npy")
        self.assertEqual(users, 90)
        self.assertFalse(vectors & {tastes[user * 768:(user + 1) * 768] for user in range(users)})
        for row in (0, 699):  # about unit length, as rows are
            values = struct.unpack("<384e", data[row * 768:(row + 1) * 768])
            self.assertAlmostEqual(sum(value * value for value in values), 1, delta=0.3)
        self.assertEqual(len(json.loads((self.folder / "user_ids.json").read_text(encoding="utf-8"))), 90)
        self.assertGreater(lengths(self.folder)[1], 2 * 90)

    def test_filters_keep_about_the_shares_asked_for(self):
        server_kinds.make_collection(FILMS, self.folder, 5_000, 3)
        shares = [share for share, _ in server_kinds.filters_of(self.folder)]
        for share, wanted in zip(shares, server_kinds.SHARES):
            self.assertAlmostEqual(share, wanted, delta=0.001)

    def test_names_kinds_as_the_bench_does(self):
        calls = [("a", {"kind": "user"}), ("b", {"kind": "id"}), ("c", {"kind": "user"}), ("d", {"kind": "user"})]
        self.assertEqual(server_kinds.names_of(calls), ["user", "id", "user 2", "user 3"])


class FaultsTest(unittest.TestCase):
    LOAD = {"in_flight": 64, "findings": [], "unchecked": {}, "engines": {"gpu: gather-sm90": 1}, "kinds": {"groups": {"compared": 7, "wrong": 0}}}

    def test_finds_none_where_all_was_compared(self):
        self.assertEqual(server_kinds.faults_of(self.LOAD, "gpu"), [])

    def test_names_what_differs_and_what_was_not_compared(self):
        faults = server_kinds.faults_of(self.LOAD | {"findings": ["groups: query 0: rank 1 is a"], "unchecked": {"other content": 3},
                                                     "kinds": {"groups": {"compared": 0, "wrong": 0}},
                                                     "engines": {"gpu: gather-sm90": 1, "cpu: int8-amx": 1}}, "gpu")
        self.assertEqual(faults, ["64 in flight: groups: query 0: rank 1 is a", "64 in flight: answered by cpu: int8-amx", "64 in flight: groups: no answer was compared",
                                  "64 in flight: 3 not compared: other content"])


if __name__ == "__main__":
    unittest.main()
