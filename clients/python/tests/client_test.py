#!/usr/bin/python3
"""The client against a real server of the films.

usage: client_test.py PACKAGE_DIR SIMILE SOURCE_DIR
"""
import asyncio
import decimal
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
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
from simile_search import aio, calls, messages, queries, testing

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
        self.assertEqual(answer[3][0], (answer.ids[3, 0], answer.scores[3, 0], {}))
        self.assertTrue(answer.receipt.exact)

    def test_answers_as_expected_json_says(self):
        expected = json.loads((FILMS / "expected.json").read_text(encoding="utf-8"))
        similar = expected["similar_films"][0]
        answer = self.collection.similar(similar["query_media_id"], k=20, with_rows=True)
        self.assertEqual(answer.rows[0].tolist(), [row for row, _ in similar["top_20_excluding_self"]])
        user = expected["user_recommendations"][0]
        answer = self.collection.recommend([user["user_id"]], k=20, exclude_seen=True, with_rows=True)
        self.assertEqual(answer.rows[0].tolist(), [row for row, _ in user["top_20_excluding_liked"]])

    def test_ids_and_texts_are_those_of_the_folder_whatever_they_hold(self):
        names = ["a", "ab", "Amélie", "七人の侍", "Aa ß\u0301", "🎬", "with a space"]
        rows = [{"media_id": f"{name}/{i}", "title": (name + "\t\0") * (i % 3)} for i, name in enumerate(names)]
        vectors = np.eye(len(rows), dtype="f4")
        # Answers of one item, whose title is empty, or has zeros or not, and of all items.
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/content_vectors.npy", vectors)
            pathlib.Path(folder, "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            with testing.serve(program=SIMILE, items=folder) as client:
                for k in (1, len(rows)):
                    for vector, row in zip(vectors, rows):
                        answer = client.collection("items").search(vector, k=k, payload=True)
                        self.assertEqual(answer[0][0][::2], (row["media_id"], row))
                        self.assertEqual(sorted(answer.ids[0].tolist()),
                                         sorted(row["media_id"] for row in rows) if k > 1 else [row["media_id"]])

    def test_returns_payload_and_fills_up_short_lists(self):
        answer = self.collection.search(self.vectors[:2], k=5, payload=["title", "genres"], with_rows=True,
                                        allow_ids=[film["media_id"] for film in self.films[:3]])
        self.assertEqual(answer.counts.tolist(), [3, 3])
        rows = answer.rows[answer.rows >= 0]
        self.assertEqual(len(rows), 6)
        self.assertEqual(answer.payload["title"], [self.films[row]["title"] for row in rows])
        self.assertEqual(answer.payload["genres"], [self.films[row]["genres"] for row in rows])
        titles = {film["media_id"]: film["title"] for film in self.films[:3]}
        self.assertEqual([hit.payload["title"] for hits in answer for hit in hits], [titles[hit.id] for hits in answer for hit in hits])
        self.assertEqual(repr(answer), "<Answer: 2 queries, 6 hits; note: 3 hits, not 5: no other row is in options.allow_ids>")
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
        self.assertEqual([item.id for item in self.collection.fetch(ids)], ids)
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
        for wrong, text in (({"exclude_id": 1}, "exclude_id; did you mean exclude_ids"), ({"zzz": 1}, "zzz; help\\(")):
            with self.subTest(text), self.assertRaisesRegex(TypeError, f"no such option: {text}"):
                self.collection.search(self.vectors[0], **wrong)
        for wrong, text in (({"timeout": 0}, "timeout is 0; give seconds"), ({"timeout": "1"}, "timeout is '1'"), ({"k": -1}, "k is -1; give a whole"),
                            ({"filter": {}}, "filter is {}; give a text"), ({"offset": 1.5}, "offset is 1.5; give a whole number")):
            with self.subTest(text), self.assertRaisesRegex(simile.InvalidRequest, text):
                self.collection.search(self.vectors[0], **wrong)
        for wrong in ("localhost", "http://localhost:50051", "", 50051, None):
            with self.subTest(wrong), self.assertRaisesRegex(simile.InvalidRequest, "give HOST:PORT"):
                simile.connect(wrong)

    def test_takes_ids_in_the_forms_that_people_hold_them_in_and_changes_none(self):
        ids_of = queries.ids_of
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
        with self.assertRaisesRegex(simile.Unavailable, r"refused.*the client waited 0\.\d* s of timeout=0\.3\. Is the server running"):
            simile.connect("127.0.0.1:1", timeout=0.3).collection("films").similar("x")

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
            used = films  # kept: gRPC 1.51 aborts a process that forks while a channel ends
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

    def test_lists_and_describes_collections(self):
        self.assertEqual([(each.name, each.rows) for each in self.client.collections()], [("films", 5000)])
        self.assertEqual(self.collection.describe().dim, 384)
        fields = {each.field.name: each for each in self.collection.fields(values=3)}
        self.assertEqual(len(fields["genres"].values), 3)
        found = self.collection.lookup("toy story", limit=2)
        self.assertEqual([(item.id, item.match) for item in found], [("toy-story-1995", "whole"), ("toy-story-2-1999", "prefix")])
        with self.assertRaisesRegex(simile.NotAllowed, "allow-changes"):
            self.collection.reload()

    def test_queries_have_options_of_their_own(self):
        row = self.vectors[7]
        answer = self.collection.search([
            simile.Query("heat-1995", k=2, filter="year < 1990"),
            simile.Query(row, exclude_ids=["toy-story-1995"], offset=1),
            simile.Query(simile.Examples(["heat-1995", simile.Weighted(row, 2)], [simile.Item("films", "toy-story-1995")])),
            simile.Query(simile.Blend("heat-1995", "user_00001", 0.25), k=12),
            simile.Query(user="user_00001", exclude_seen=True),
        ], k=5, payload=["year"])
        self.assertEqual(answer.counts.tolist(), [2, 5, 5, 12, 5])
        self.assertEqual([len(each.hits(0)) for each in (self.collection.search(simile.Query("heat-1995", k=3)),
                                                         self.collection.search(simile.Examples(["heat-1995"]), k=4),
                                                         self.collection.search([simile.Item("films", "heat-1995")], k=5))], [3, 4, 5])
        self.assertEqual(self.collection.search([simile.Query("heat-1995", k=3)]).ids.shape, (1, 3))
        self.assertEqual(answer.ids.shape, (5, 12))
        self.assertTrue(all(year < 1990 for year in answer.payload["year"][:2]))
        self.assertEqual(answer.ids[1, :5].tolist(), self.collection.search(row, k=6).ids[0, 1:].tolist())
        recommended = self.collection.recommend("user_00001", k=5, exclude_seen=True)
        self.assertEqual([hit[:2] for hit in answer[4]], [hit[:2] for hit in recommended[0]])
        self.assertEqual(set(recommended._lines()["user"]), {"user_00001"})
        for query, text in ((simile.Query(), "query 0: a query needs a target or a user"),
                            (simile.Query("a", user="b"), "query 0: a query needs"),
                            (simile.Query(simile.Examples("heat-1995")), "query 0: positive is 'heat-1995'; give a list"),
                            (simile.Query(simile.Examples(["a"], strategy="best")), "strategy is 'best'; give one of average_vector"),
                            (simile.Query("a", k=-1), "query 0: k is -1"),
                            (simile.Query(self.vectors[:2]), "query 0: 2 vectors as one target")):
            with self.subTest(text), self.assertRaisesRegex(simile.SimileError, text):
                self.collection.search([query])
        with self.assertRaisesRegex(simile.InvalidRequest, "query 1 is a str among others of type Query"):
            self.collection.search([simile.Query("a"), "b"])

    def test_explains_items_as_all_scores_say(self):
        unit = self.vectors.astype("f8") / np.linalg.norm(self.vectors.astype("f8"), axis=1, keepdims=True)
        random = np.random.default_rng(7)
        years = np.asarray([film["year"] or 0 for film in self.films])
        for _ in range(10):
            vector, rows, k = random.normal(size=384), random.choice(5000, 100, replace=False), int(random.integers(1, 2000))
            scores = unit @ (vector / np.linalg.norm(vector))
            passes = years >= 1990
            found = self.collection.explain(vector, [self.films[row]["media_id"] for row in rows], k, filter="year >= 1990")
            near = self.collection.search(vector, k, filter="year >= 1990", with_rows=True)
            returned = set(near.rows[near.rows >= 0].tolist())
            for row, item in zip(rows.tolist(), found):
                self.assertEqual(item.returned, row in returned, item)
                self.assertAlmostEqual(item.score, scores[row], delta=2e-6)
                self.assertLessEqual(abs(item.rank - 1 - (passes & (scores > scores[row])).sum()), 2, item)
                self.assertEqual("filter" in item.reasons, not passes[row], item)
                self.assertEqual("rank" in item.reasons, item.rank > k, item)
                self.assertEqual([clause.passes for clause in item.message.clauses], [passes[row]])

    def test_shows_the_first_note(self):
        self.assertEqual(repr(self.collection.similar("heat-1995", k=3)), "<Answer: 1 queries, 3 hits>")
        mistyped = self.collection.similar(["heat-1995", "alien-1979"], filter='genres:"Dramma"')
        self.assertRegex(repr(mistyped), r"<Answer: 2 queries, 0 hits; note: no row has genres .*did you mean .*>")

    def test_explains_each_kind_of_reason(self):
        def reasons(query, item, k=10, **options):
            explanation, = self.collection.explain(query, item, k, **options)
            self.assertEqual(explanation.returned, not explanation.reasons)
            self.assertEqual(explanation.text.startswith("returned"), explanation.returned, explanation.text)
            self.assertIn(f"returned={explanation.returned}", repr(explanation))
            self.assertNotIn("\n", repr(explanation))
            return explanation.reasons

        near = self.collection.similar("toy-story-1995", k=30).ids[0].tolist()
        self.assertEqual(reasons("toy-story-1995", near[3]), [])
        self.assertEqual(reasons("toy-story-1995", near[20]), ["rank"])
        self.assertEqual(reasons("toy-story-1995", near[3], offset=5), ["offset"])
        self.assertEqual(reasons("toy-story-1995", "toy-story-1995"), ["in_query"])
        self.assertEqual(reasons("toy-story-1995", "no-such-film"), ["not_found"])
        film = next(film for film in self.films if film["media_id"] == near[3])
        self.assertEqual(reasons(simile.Query(self.vectors[0]), near[3], required_filter=f"year != {film['year']}"), ["not_found"])
        self.assertEqual(reasons("toy-story-1995", near[3], exclude_ids=[near[3]]), ["excluded"])
        self.assertEqual(reasons("toy-story-1995", near[3], allow_ids=[near[2]]), ["not_allowed"])
        self.assertEqual(reasons("toy-story-1995", near[3], score_threshold=0.99), ["threshold"])
        diverse = self.collection.search(simile.Query("toy-story-1995"), k=5, diversity=0.1).ids[0].tolist()
        left_out = next(film for film in near[:20] if film not in diverse)
        self.assertEqual(reasons("toy-story-1995", left_out, 5, diversity=0.1), ["diversity"])
        self.assertEqual(reasons("toy-story-1995", diverse[4], 5, diversity=0.1), [])
        groups = self.collection.search(simile.Query("toy-story-1995"), k=3, group_by="year")
        self.assertEqual(reasons("toy-story-1995", groups.ids[0, 0], 3, group_by="year"), [])
        self.assertIn(reasons("toy-story-1995", near[29], 3, group_by="year")[0], ("group_rank", "rank_in_group"))
        user = json.loads((FILMS / "user_ids.json").read_text(encoding="utf-8"))["user_ids"][0]
        taken = self.collection.recommend(user, k=5).ids[0, 0]
        self.assertEqual(reasons(simile.Query(user=user), taken, 5), [])
        with self.assertRaisesRegex(simile.InvalidRequest, "2 queries"):
            self.collection.explain(self.vectors[:2], "heat-1995")
        self.assertEqual(len(self.collection.explain("toy-story-1995", [film["media_id"] for film in self.films[:250]])), 250)

    def test_exports_every_item_and_user_and_goes_on_at_a_cursor(self):
        parts = list(self.collection.export(k=3, with_rows=True))
        ids = [film["media_id"] for film in self.films]
        self.assertEqual([name for part in parts for name in part.source_ids], ids)
        rows = np.concatenate([part.answer.rows for part in parts])
        some = self.collection.similar(ids[1000:1100], k=3, with_rows=True)
        self.assertEqual(rows[1000:1100].tolist(), some.rows.tolist())
        self.assertEqual((parts[-1].cursor, parts[-1].exported, parts[-1].total), ("", 5000, 5000))
        rest = list(self.collection.export(k=3, with_rows=True, cursor=parts[2].cursor))
        self.assertEqual([name for part in rest for name in part.source_ids], ids[parts[2].exported:])
        self.assertEqual(rest[0].total, 5000)

        users = json.loads((FILMS / "user_ids.json").read_text(encoding="utf-8"))["user_ids"]
        parts = list(self.collection.export(k=2, sources="users", exclude_seen=True))
        self.assertEqual([name for part in parts for name in part.source_ids], users)
        self.assertEqual(parts[0].answer.ids[:5].tolist(), self.collection.recommend(users[:5], 2, exclude_seen=True).ids.tolist())

        few = list(self.collection.export(k=2, source_filter="year = 1995", filter="year = 1996"))
        of_1995 = [film["media_id"] for film in self.films if film["year"] == 1995]
        self.assertEqual([name for part in few for name in part.source_ids], of_1995)
        self.assertEqual(few[0].answer.results[0].rows_passing, sum(film["year"] == 1996 for film in self.films))
        self.assertEqual(list(self.collection.export(source_filter="year = 1895 AND year = 1896")), [])

        async def first_of_asyncio():
            async with aio.connect(self.server.address) as client:
                async for part in client.collection("films").export(k=3, with_rows=True):
                    return part

        self.assertEqual(asyncio.run(first_of_asyncio()).answer.rows.tolist(), rows[:64].tolist())

    def test_exports_that_cannot_be(self):
        for options, words in (({"sources": "films"}, "sources is 'films'"), ({"source_filter": "yeer = 3"}, "source_filter"),
                               ({"source_filter": "year = 1", "sources": "users"}, "the sources are users"),
                               ({"cursor": "xyz"}, "cursor: not the cursor"), ({"partial": True}, "options.partial"),
                               ({"k": 20_000}, "options.k"), ({"filter": "yeer = 3"}, "filter")):
            with self.assertRaisesRegex(simile.InvalidRequest, words):
                list(self.collection.export(**{"k": 5, **options}))
        cursor = next(self.collection.export(k=3)).cursor
        with self.assertRaisesRegex(simile.InvalidRequest, "belongs to another request"):
            next(self.collection.export(k=4, cursor=cursor))
        # As many as the exclusions of a call allow, and as an answer has space for.
        excluded = [film["media_id"] for film in self.films[:4000]]
        part = next(self.collection.export(k=3, exclude_ids=excluded, cursor=""))
        self.assertLessEqual(len(part.source_ids), 64)
        whole = list(self.collection.export(k=500, with_vectors=True, source_filter="year = 1995"))
        self.assertEqual(sum(len(part.source_ids) for part in whole), sum(film["year"] == 1995 for film in self.films))

    def test_groups_hits_by_a_field(self):
        answer = self.collection.search(self.vectors[:3], k=4, group_by=simile.GroupBy("genres", 2))
        for query in range(3):
            groups = answer.groups(query)
            self.assertEqual(len(groups), 4)
            self.assertEqual([hit for _, hits in groups for hit in hits], answer.hits(query))
            self.assertEqual(sorted((hits[0][1] for _, hits in groups), reverse=True), [hits[0][1] for _, hits in groups])
        self.assertEqual(self.collection.search(self.vectors[0], k=2).groups(0), [])
        self.assertEqual(len(self.collection.search(self.vectors[:300], k=100, group_by=simile.GroupBy("year", 10)).receipts), 2)
        spread = self.collection.search(self.vectors[:30], k=100, diversity=simile.Diversity(0.7, 1000))
        self.assertEqual((len(spread.receipts), spread.counts.tolist()), (2, [100] * 30))

    def test_stored_vectors_are_searched_bit_for_bit(self):
        stored = self.collection.similar("heat-1995", k=20, with_vectors=True).vectors
        again = self.collection.search(stored, k=1, as_stored=True, with_vectors=True)
        np.testing.assert_array_equal(again.vectors, stored)
        own = self.collection.search([simile.Query(stored[0]), simile.Query(2 * stored[1], as_stored=False)], k=1, as_stored=True)
        self.assertEqual(own.ids[:, 0].tolist(), again.ids[:2, 0].tolist())
        with self.assertRaisesRegex(simile.InvalidRequest, "as_stored"):
            self.collection.search(2 * stored, as_stored=True)
        for wrong in (stored.tobytes(), {1.0, 2.0}):
            with self.subTest(type(wrong)), self.assertRaises(simile.InvalidVectors):
                self.collection.search(wrong)

    def test_streams_batches_in_order(self):
        batches = [self.vectors[begin:begin + 40] for begin in range(0, 400, 40)]
        whole = self.collection.search(self.vectors[:400], k=3)
        streamed = list(self.collection.stream(iter(batches), k=3, in_flight=3, bulk=True))
        self.assertEqual(np.concatenate([answer.ids for answer in streamed]).tolist(), whole.ids.tolist())
        first = next(self.collection.stream(iter(batches), k=3))  # the rest is dropped
        self.assertEqual(first.ids.tolist(), whole.ids[:40].tolist())
        with self.assertRaises(simile.InvalidVectors):
            list(self.collection.stream([batches[0], [[float("nan")]]]))
        empty = self.vectors[:0]
        self.assertEqual([len(answer) for answer in self.collection.stream([empty, batches[0], empty, batches[1]], k=3)], [0, 40, 0, 40])

    def test_asyncio_has_the_same_answers(self):
        async def ask():
            async with aio.connect(self.server.address) as client:
                films = client.collection("films")
                many = await asyncio.gather(*(films.search(vector, k=3) for vector in self.vectors[:64]))
                pages = []
                async for page in films.pages(self.vectors[0], k=2):
                    pages.append(page)
                    if len(pages) == 2:
                        break
                batches = [self.vectors[begin:begin + 10] for begin in range(0, 50, 10)]
                streamed = [answer async for answer in films.stream(batches, k=3, in_flight=2)]
                with self.assertRaises(simile.NotFound):
                    await films.similar("no such film")
                with self.assertRaisesRegex(simile.NotAllowed, "allow-changes"):
                    await films.reload()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(aio.connect("127.0.0.1:1").collection("films").similar("x"), 0.05)
                return many, pages, streamed, await films.recommend("user_00001", k=4), await films.lookup("heat"), await client.collections()

        expected = self.collection.search(self.vectors[:64], k=3)
        for client_of_two_loops in range(2):
            many, pages, streamed, user, found, collections = asyncio.run(ask())
            self.assertEqual([answer.hits(0) for answer in many], [expected.hits(query) for query in range(64)])
            self.assertEqual([page.ids.shape for page in pages], [(1, 2)] * 2)
            self.assertEqual(np.concatenate([answer.ids for answer in streamed]).tolist(), expected.ids[:50].tolist())
            self.assertEqual(user.hits(0), self.collection.recommend("user_00001", k=4).hits(0))
            self.assertEqual((found[0].id, collections[0].name), (self.collection.lookup("heat")[0].id, "films"))
        client = aio.connect(self.server.address)
        for _ in range(2):  # an event loop each
            answer = asyncio.run(client.collection("films").search(self.vectors[0], k=3))
            self.assertEqual(answer.hits(0), expected.hits(0))

    def test_becomes_tables(self):
        answer = self.collection.search(self.vectors[:2], k=3, payload=["title"], offset=2)
        lines = answer._lines()
        self.assertEqual(lines["rank"].tolist(), [3, 4, 5] * 2)
        self.assertEqual(lines["query"].tolist(), [0, 0, 0, 1, 1, 1])
        grouped = self.collection.search(self.vectors[:2], k=2, group_by=simile.GroupBy("genres", 2))._lines()
        self.assertEqual(list(grouped), ["query", "group", "rank", "id", "score"])
        self.assertTrue(set(grouped["rank"].tolist()) <= {1, 2})
        self.assertEqual(grouped["id"].tolist(), self.collection.search(self.vectors[:2], k=2, group_by=simile.GroupBy("genres", 2)).hit_ids.tolist())

    def test_a_close_ends_the_calls_of_asyncio_with_an_error(self):
        async def close_under_way():
            async with aio.connect("127.0.0.1:1") as unreachable:
                call = asyncio.create_task(unreachable.collection("films").similar("x"))
                await asyncio.sleep(0)
            return await call

        with self.assertRaises(simile.SimileError):
            asyncio.run(close_under_way())

    def test_a_server_for_tests_starts_and_ends(self):
        with testing.serve(program=SIMILE, films=FILMS) as client:
            self.assertEqual(client.collection("films").describe().rows, 5000)
        with self.assertRaises(simile.SimileError):
            client.collections()
        with self.assertRaisesRegex(RuntimeError, r"(?s)the server does not start:.*no-such-folder"):
            with testing.serve(program=SIMILE, films="no-such-folder"):
                pass


class RetryTest(unittest.TestCase):
    """A busy server, by a channel that refuses twice."""

    class Refusals:
        def __init__(self, retry_after_s: float):
            delay = messages.RetryInfo()
            delay.retry_delay.FromMilliseconds(int(retry_after_s * 1e3))
            status = messages.Status(code=8, message="the queue is full")
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

        def steps():
            return (yield calls.Clock(timeout).call("X/Y", b"", messages.SearchResponse))

        return client.run(steps()), channel.calls

    def test_asks_again_after_retry_info(self):
        self.assertEqual(self.ask(0.01, 5)[1], 3)

    def test_gives_up_where_the_time_is_too_short(self):
        with self.assertRaises(simile.Busy) as raised:
            self.ask(3, 1)
        self.assertEqual(raised.exception.retry_after, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
