#!/usr/bin/python3
"""The client against a real server of the films.

usage: client_test.py PACKAGE_DIR SIMILE SOURCE_DIR
"""
import decimal
import json
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import unittest
import uuid
import warnings

PACKAGE = sys.argv.pop(1)
sys.path.insert(0, PACKAGE)
SIMILE, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path.append(str(SOURCE / "tests" / "python"))

import grpc
import numpy as np
import servers
import simile_search as simile
from simile_search import client as client_module

FILMS = SOURCE / "examples" / "films"


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(servers.running(SIMILE, "--collection", f"films={FILMS}"))
        cls.vectors = np.load(FILMS / "content_vectors.npy")
        cls.films = [json.loads(line) for line in (FILMS / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]

    def setUp(self):
        warnings.simplefilter("error")
        self.client = self.enterContext(simile.connect(self.server.address))
        self.collection = self.client.collection("films")

    def test_searches_by_vector(self):
        answer = self.collection.search(self.vectors[:50], k=7, with_rows=True, with_vectors=True)
        self.assertEqual((answer.ids.shape, answer.scores.shape, answer.rows.shape), ((50, 7),) * 3)
        unit = self.vectors.astype("f8") / np.linalg.norm(self.vectors.astype("f8"), axis=1, keepdims=True)
        exact = unit[:50] @ unit.T
        np.testing.assert_allclose(answer.scores, -np.sort(-exact, axis=1)[:, :7], atol=2e-6)
        np.testing.assert_allclose(np.take_along_axis(exact, answer.rows, 1), answer.scores, atol=2e-6)
        self.assertEqual(answer.ids[3].tolist(), [self.films[row]["media_id"] for row in answer.rows[3]])
        np.testing.assert_allclose(answer.vectors, unit[answer.rows.ravel()], atol=1e-6)
        self.assertEqual(answer.hits(3)[0], (answer.ids[3, 0], answer.scores[3, 0]))
        self.assertTrue(answer.receipt.exact)

    def test_answers_as_expected_json_says(self):
        expected = json.loads((FILMS / "expected.json").read_text(encoding="utf-8"))
        similar = expected["similar_films"][0]
        answer = self.collection.similar(similar["query_media_id"], k=20, with_rows=True)
        self.assertEqual(answer.rows[0].tolist(), [row for row, _ in similar["top_20_excluding_self"]])
        user = expected["user_recommendations"][0]
        answer = self.collection.recommend([user["user_id"]], k=20, exclude_seen=True, with_rows=True)
        self.assertEqual(answer.rows[0].tolist(), [row for row, _ in user["top_20_excluding_liked"]])

    def test_returns_payload_and_fills_up_short_lists(self):
        answer = self.collection.search(self.vectors[:2], k=5, payload=["title", "genres"], with_rows=True,
                                        allow_ids=[film["media_id"] for film in self.films[:3]])
        self.assertEqual(answer.counts.tolist(), [3, 3])
        rows = answer.rows[answer.rows >= 0]
        self.assertEqual(len(rows), 6)
        self.assertEqual(answer.payload["title"], [self.films[row]["title"] for row in rows])
        self.assertEqual(answer.payload["genres"], [self.films[row]["genres"] for row in rows])
        answer = self.collection.search(self.vectors[:2], k=5, score_threshold=0.999)
        self.assertEqual(answer.counts.tolist(), [1, 1])
        two = self.collection.similar(["toy-story-1995", "heat-1995"], k=3, filter='title = "Toy Story 2" OR title = "Heat"')
        self.assertEqual(two.counts.tolist(), [2, 1])
        self.assertIsNone(two.ids[1, 1])
        self.assertTrue(np.isnan(two.scores[1, 1]))

    def test_joins_the_calls_of_many_queries(self):
        many = self.collection.search(self.vectors[:2500], k=2, with_rows=True, payload=True)
        self.assertEqual((len(many), len(many.receipts)), (2500, 3))
        self.assertEqual((many.rows[:, 0] == np.arange(2500)).mean(), 1)
        self.assertEqual(many.payload["title"][::2], [film["title"] for film in self.films[:2500]])
        one = self.collection.search(self.vectors[2000:2001], k=2)
        self.assertEqual(many.ids[2000].tolist(), one.ids[0].tolist())
        ids = [film["media_id"] for film in self.films[:1500]]
        self.assertEqual([item["id"] for item in self.collection.fetch(ids)], ids)
        few = self.collection.search(self.vectors[:100], k=2, queries_per_call=30)
        self.assertEqual((len(few.receipts), few.ids.tolist()), (4, many.ids[:100].tolist()))
        copy = pickle.loads(pickle.dumps(few))
        self.assertEqual((copy.ids.tolist(), copy.hits(-1)), (few.ids.tolist(), few.hits(99)))
        with self.assertRaises(IndexError):
            few.hits(100)
        self.assertEqual(len(self.collection.search(self.vectors[:0])), 0)
        self.assertEqual(self.collection.search(self.vectors[:0]).ids.shape, (0, 10))

    def test_pages_are_one_ranking(self):
        pages = [page for page, _ in zip(self.collection.pages(self.vectors[0], k=4), range(3))]
        whole = self.collection.search(self.vectors[0], k=12)
        self.assertEqual(np.concatenate([page.ids[0] for page in pages]).tolist(), whole.ids[0].tolist())

    def test_a_partial_answer_has_errors_by_query(self):
        answer = self.collection.similar(["toy-story-1995", "no such film"], k=2, partial=True)
        self.assertIsNone(answer.errors[0])
        self.assertIsInstance(answer.errors[1], simile.NotFound)
        self.assertEqual(answer.errors[1].reason, "ITEM_NOT_FOUND")
        self.assertEqual(answer.counts.tolist(), [2, 0])
        names = ["toy-story-1995"] * 3 + ["no such film"]
        answer = self.collection.similar(names, k=2, partial=True, queries_per_call=2)
        self.assertEqual(answer.errors[3].field, "queries[3].id")
        with self.assertRaises(simile.NotFound) as raised:
            self.collection.similar(names, k=2, queries_per_call=3)
        self.assertEqual(raised.exception.field, "queries[3].id")

    def test_errors_are_exceptions_with_reason_and_field(self):
        cases = ((simile.InvalidRequest, "DIMENSION_MISMATCH", "queries[0].packed_vector", lambda: self.collection.search([[1, 2]])),
                 (simile.InvalidRequest, "INVALID_FILTER", "options.filter", lambda: self.collection.similar("heat-1995", filter="a >")),
                 (simile.InvalidRequest, "INVALID_FIELD", "options.k", lambda: self.collection.similar("heat-1995", k=0)),
                 (simile.NotFound, "ITEM_NOT_FOUND", "queries[0].id", lambda: self.collection.similar("heat")),
                 (simile.NotFound, "USER_NOT_FOUND", "user_ids[0]", lambda: self.collection.recommend("nobody")),
                 (simile.NotFound, "COLLECTION_NOT_FOUND", "collection", lambda: self.client.collection("film").similar("x")))
        for kind, reason, field, call in cases:
            with self.subTest(reason), self.assertRaises(kind) as raised:
                call()
            self.assertEqual((raised.exception.reason, raised.exception.field), (reason, field))
            self.assertTrue(raised.exception.request_id)
            copied = pickle.loads(pickle.dumps(raised.exception))
            self.assertEqual((type(copied), str(copied)), (kind, str(raised.exception)))
        with self.assertRaisesRegex(TypeError, "no such option: kk"):
            self.collection.search(self.vectors[0], kk=3)

    def test_takes_ids_in_the_forms_that_people_hold_them_in_and_changes_none(self):
        ids_of = client_module._ids_of
        number = uuid.UUID(int=5)
        self.assertEqual(ids_of([7, np.int64(8), "x", np.str_("y"), 9.0, np.float64(10), number]),
                         ["7", "8", "x", "y", "9", "10", str(number)])
        self.assertEqual((ids_of(7), ids_of(np.int32(8)), ids_of("x"), ids_of(np.array([0])), ids_of(number)),
                         (["7"], ["8"], ["x"], ["0"], [str(number)]))
        for wrong in (None, b"abc", True, 1.5, np.float32(1.5), decimal.Decimal("1.5"), 2.0**53, float("nan")):
            with self.subTest(wrong), self.assertRaisesRegex(simile.InvalidRequest, "is no id"):
                ids_of([wrong])
        for wrong in (b"abc", None, 1.5):
            with self.subTest(wrong), self.assertRaisesRegex(simile.InvalidRequest, "is no id"):
                ids_of(wrong)
        first = self.collection.similar("heat-1995", k=3)
        left_out = self.collection.similar("heat-1995", k=3, exclude_ids=first.ids[0], payload=[], filter=None)
        self.assertFalse(set(first.ids[0]) & set(left_out.ids[0]))
        self.assertEqual(left_out.payload, {})

    def test_recommends_to_users_without_a_profile(self):
        answer = self.collection.recommend("nobody", k=2, cold_start="newest")
        self.assertEqual(answer.results[0].score_kind, 5)  # SCORE_KIND_NONE
        with self.assertRaisesRegex(simile.InvalidRequest, "cold_start"):
            self.collection.recommend("nobody", cold_start="hot")

    def test_a_closed_client_says_so(self):
        self.client.close()
        with self.assertRaisesRegex(simile.SimileError, "the client is closed"):
            self.collection.similar("heat-1995")

    def test_says_how_long_it_waited(self):
        with self.assertRaisesRegex(simile.DeadlineExceeded, r"the client waited 0\.2\d* s \(timeout=\)"):
            simile.connect("127.0.0.1:1", timeout=0.2).collection("films").similar("x")

    def test_threads_and_copies_use_it(self):
        expected = self.collection.similar("heat-1995", k=3).ids.tolist()
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.collection.similar("heat-1995", k=3).ids.tolist()))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 8)
        copy = pickle.loads(pickle.dumps(self.collection))
        self.assertEqual(copy.similar("heat-1995", k=3).ids.tolist(), expected)
        copy._client.close()
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(simile.connect(credentials=grpc.ssl_channel_credentials()))

    def test_a_forked_process_opens_a_channel_or_says_what_to_do(self):
        script = """if True:
            import os, sys
            sys.path.insert(0, sys.argv[1])
            import simile_search as simile
            films = simile.connect(sys.argv[2]).collection("films")
            if sys.argv[3] != "unused":
                films.similar("heat-1995", k=1)
            if sys.argv[3] == "another":
                films = simile.connect(sys.argv[2]).collection("films")
            if os.fork():
                os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
            try:
                print(films.similar("heat-1995", k=1).counts, flush=True)
            except simile.SimileError as error:
                print(error, flush=True)
            os._exit(0)"""
        for used, text in (("unused", "[1]"), ("used", "make the first call after the fork"), ("another", "make the first call")):
            run = subprocess.run([sys.executable, "-B", "-c", script, PACKAGE, self.server.address, used], capture_output=True,
                                 text=True, timeout=60, check=False, env=dict(os.environ, GRPC_ENABLE_FORK_SUPPORT="0"))
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(text, run.stdout)

    def test_lists_collections(self):
        self.assertEqual([(each.name, each.rows) for each in self.client.collections()], [("films", 5000)])


class RetryTest(unittest.TestCase):
    """A busy server, by a channel that refuses twice."""

    class Refusals:
        def __init__(self, retry_after_s: float):
            delay = client_module.messages.RetryInfo()
            delay.retry_delay.FromMilliseconds(int(retry_after_s * 1e3))
            status = client_module.messages.Status(code=8, message="the queue is full")
            status.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=delay.SerializeToString())
            self.details, self.calls = status.SerializeToString(), 0

        def unary_unary(self, *_, response_deserializer, **__):
            def call(*_, **__):
                self.calls += 1
                if self.calls < 3:
                    raise self.error()
                return response_deserializer(b"")
            return call

        def error(self):
            class Refused(grpc.RpcError):
                code = staticmethod(lambda: grpc.StatusCode.RESOURCE_EXHAUSTED)
                details = staticmethod(lambda: "the queue is full")
                trailing_metadata = staticmethod(lambda: (("grpc-status-details-bin", self.details),))
            return Refused()

    def ask(self, retry_after_s: float, timeout: float):
        client, channel = simile.connect(timeout=timeout), self.Refusals(retry_after_s)
        client._open = lambda: channel
        return client.call("X/Y", b"", client_module.messages.SearchResponse, client.ends_at(None)), channel.calls

    def test_asks_again_after_retry_info(self):
        self.assertEqual(self.ask(0.01, 5)[1], 3)

    def test_gives_up_where_the_time_is_too_short(self):
        with self.assertRaises(simile.Busy) as raised:
            self.ask(3, 1)
        self.assertEqual(raised.exception.retry_after, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
