#!/usr/bin/python3
"""Provokes every error that the wire can give with a stock Python client, and decodes its details.

usage: error_details_test.py SIMILE SOURCE_DIR STUBS_DIR
"""
import array
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

SIMILE, SOURCE, STUBS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
FILMS = SOURCE / "examples" / "films"
sys.path[:0] = [str(STUBS), str(SOURCE / "tests" / "tidy"), str(SOURCE / "tests" / "python")]

from google.protobuf import text_format
from google.rpc import error_details_pb2
from simile.v1 import admin_pb2 as admin
from simile.v1 import collections_pb2 as collections
from simile.v1 import lookup_pb2 as lookup
from simile.v1 import search_pb2 as search
from simile.v1.admin_pb2_grpc import AdminServiceStub
from simile.v1.collections_pb2_grpc import CollectionServiceStub
from simile.v1.lookup_pb2_grpc import LookupServiceStub
from simile.v1.search_pb2_grpc import SearchServiceStub

import error_reasons
import servers
from call_errors import details_of, reason_of, unpack
from made_up_collections import npy_header, write_collection

try:
    from grpc_status import rpc_status
except ImportError:  # not in Debian
    rpc_status = None

# What cannot be provoked from outside, and why. tests/service/error_encoding_test.cpp encodes these too.
UNIT_TESTS_ONLY = {
    "CANCELLED": "who cancels has left before the answer",
    "OUT_OF_MEMORY": "needs an allocation that fails",
    "INTERNAL": "needs a fault of the server",
}
WITH_RETRY = {"QUEUE_FULL", "COLLECTION_LOADING", "CALLER_LIMIT"}
ATTEMPTS_MAX = 20  # of what must happen while a load runs


class Stubs:
    """The services of a server."""

    def __init__(self, server):
        self.channel = grpc.insecure_channel(server.address, options=[
            ("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 64 << 20)])
        self.search = SearchServiceStub(self.channel)
        self.lookup = LookupServiceStub(self.channel)
        self.collections = CollectionServiceStub(self.channel)
        self.admin = AdminServiceStub(self.channel)


def error_of(call):
    """The error of a call or, when the function returns a stream, of reading it to the end."""
    try:
        answer = call()
        for _ in answer if hasattr(answer, "__next__") else ():
            pass
    except grpc.RpcError as error:
        return error
    return None


def query(text, collection="films"):
    """A request with one query, as text."""
    return text_format.Parse(f"collection: '{collection}' queries {{ {text} }}", search.SearchRequest())


def heavy_query():
    """Compares a million pairs of rows: some tens of milliseconds on one thread."""
    return query("id: 'toy-story-1995' k: 1000 diversity { candidates: 1000 }")


class ErrorDetailsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        root = tempfile.TemporaryDirectory()
        cls.addClassCleanup(root.cleanup)
        cls.root = pathlib.Path(root.name)
        for name, row_count, dim in (("small", 100, 8), ("other", 100, 8), ("wider", 100, 16), ("large", 400_000, 64)):
            write_collection(cls.root / name, row_count, dim, seed=name)
        write_collection(cls.root / "equal", 100, 8, seed="equal")
        (cls.root / "equal" / "vectors.npy").write_bytes(npy_header(100, 8) + array.array("f", [1] * 800).tobytes())
        (cls.root / "bad").mkdir()
        (cls.root / "bad" / "vectors.npy").write_bytes(b"no matrix")
        (cls.root / "huge").mkdir()
        with open(cls.root / "huge" / "vectors.npy", "wb") as file:  # sparse: takes no disk
            file.write(npy_header(10_000_000, 1_024))
            file.truncate(file.tell() + 10_000_000 * 1_024 * 4)
        cls.films = cls.start("--allow-changes", "--data-root", cls.root,
                              SIMILE_COLLECTIONS_MEMORY_BYTES_MAX=str(8 << 30))
        # Every request but the one under way and one more is too many for its queue.
        cls.narrow = cls.start(SIMILE_LIMITS_QUEUE_QUERIES_MAX="1", SIMILE_LIMITS_QUERIES_PER_CALL_MAX="1")
        cls.lenient = cls.start("--collection", f'bad={cls.root / "bad"}', "--skip-failed-collections")
        made = json.loads(subprocess.run([SIMILE, "token", "--name", "reader", "--json"], check=True, capture_output=True).stdout)
        cls.token = [("authorization", f'Bearer {made["token"]}')]
        principal = made["principal"] | {"limits": {"calls_per_second": 1}}
        (cls.root / "access.json").write_text(json.dumps({"principals": [principal]}), encoding="utf-8")
        cls.private = cls.start("--access-file", cls.root / "access.json")

    @classmethod
    def start(cls, *arguments, **settings):
        server = cls.enterClassContext(servers.running(SIMILE, "--collection", f"films={FILMS}", *arguments, **settings))
        stubs = Stubs(server)
        cls.addClassCleanup(stubs.channel.close)
        stubs.server = server
        return stubs

    # Changes of collections.

    def load(self, collection, folder):
        return self.films.collections.LoadCollection(
            collections.LoadCollectionRequest(collection=collection, folder=folder), timeout=60)

    def load_to_end(self, collection, folder):
        for event in self.load(collection, folder):
            last = event
        return last.collection

    def unload(self, collection):
        self.films.collections.UnloadCollection(
            collections.UnloadCollectionRequest(collection=collection), timeout=60)

    def reload(self, collection, **fields):
        return self.films.collections.ReloadCollection(
            collections.ReloadCollectionRequest(collection=collection, **fields), timeout=60)

    def during_a_load(self, provoke, reason):
        """The error of provoke(), called when the files of a load are being read. The load may be over before, so again."""
        for _ in range(ATTEMPTS_MAX):
            events = self.load("large", "large")
            for event in events:
                if event.progress.bytes_read > 0:
                    break
            error = provoke()
            own_error = error_of(lambda: events)
            if own_error is None:
                self.unload("large")
            for each in (error, own_error):
                if each is not None and reason_of(each) == reason:
                    return each
        return self.fail(f"{reason} in none of {ATTEMPTS_MAX} loads")

    # One function for each reason, which returns the error and the path of the field that is wrong.

    def request_not_parsed(self):
        call = self.films.channel.unary_unary("/simile.v1.SearchService/Search")
        return error_of(lambda: call(b"\xff\xff\xff", timeout=10)), ""

    def search(self, request):
        return error_of(lambda: self.films.search.Search(request, timeout=10))

    def invalid_field(self):
        return self.search(query("id: 'toy-story-1995' k: 0")), "queries[0].k"

    def invalid_filter(self):
        return self.search(query("id: 'toy-story-1995' filter: 'yeer > 1990'")), "queries[0].filter"

    def unknown_payload_field(self):
        request = query("id: 'toy-story-1995'")
        request.options.payload.fields[:] = ["title", "titel"]
        return self.search(request), "options.payload.fields[1]"

    def dimension_mismatch(self):
        return self.search(query("vector { values: [1, 2, 3] }")), "queries[0].vector"

    def invalid_page_token(self):
        request = query("id: 'toy-story-1995'")
        request.options.page_token = "nonsense"
        return self.search(request), "options.page_token"

    def reply_too_large(self):
        request = query("id: 'toy-story-1995' k: 1000")
        request.options.reply_bytes_max = 1_000
        return self.search(request), ""

    def invalid_files(self):
        return error_of(lambda: self.load("bad", "bad")), ""

    def outside_data_root(self):
        return error_of(lambda: self.load("secrets", "../secrets")), "folder"

    def collection_not_found(self):
        return self.search(query("id: 'toy-story-1995'", "film")), "collection"

    def item_not_found(self):
        return self.search(query("id: 'toy-story'")), "queries[0].id"

    def user_not_found(self):
        request = search.RecommendRequest(collection="films", user_ids=["user_00042", "user_x"])
        return error_of(lambda: self.films.search.Recommend(request, timeout=10)), "user_ids[1]"

    def collection_exists(self):
        return error_of(lambda: self.load("films", "small")), "collection"

    def collection_loading(self):
        request = query("id: '7'", "large")
        return self.during_a_load(lambda: self.search(request), "COLLECTION_LOADING"), ""

    def collection_not_loaded(self):
        request = query("id: '7'", "bad")
        return error_of(lambda: self.lenient.search.Search(request, timeout=60)), ""

    def snapshot_mismatch(self):
        request = query("id: 'toy-story-1995'")
        request.options.expected_snapshot_id = "0" * 32
        return self.search(request), "options.expected_snapshot_id"

    def shape_change(self):
        self.load_to_end("shape", "small")
        return error_of(lambda: self.reload("shape", folder="wider")), "allow_shape_change"

    def overlap_too_low(self):
        self.load_to_end("overlap", "small")
        return error_of(lambda: self.reload("overlap", folder="other", min_overlap=0.9)), "min_overlap"

    def all_scores_equal(self):
        self.load_to_end("equal", "small")
        return error_of(lambda: self.reload("equal", folder="equal")), "collection"

    def nothing_to_roll_back(self):
        self.load_to_end("first", "small")
        request = collections.RollbackCollectionRequest(collection="first")
        return error_of(lambda: self.films.collections.RollbackCollection(request, timeout=60)), "collection"

    def page_snapshot_gone(self):
        self.load_to_end("paged", "small")
        request = query("id: '7' k: 5", "paged")
        request.options.paged = True
        request.options.page_token = self.films.search.Search(request, timeout=10).next_page_token
        self.unload("paged")
        self.load_to_end("paged", "other")
        return self.search(request), ""

    def change_in_progress(self):
        error = self.during_a_load(lambda: error_of(lambda: self.load("large", "small")), "CHANGE_IN_PROGRESS")
        return error, "collection"

    def files_changed(self):
        ended = threading.Event()

        def touch_until_it_ends():
            while not ended.wait(0.001):
                (self.root / "large" / "vectors.npy").touch()

        toucher = threading.Thread(target=touch_until_it_ends)
        toucher.start()
        try:
            return error_of(lambda: self.load_to_end("large", "large")), ""
        finally:
            ended.set()
            toucher.join()

    def changes_not_allowed(self):
        request = collections.UnloadCollectionRequest(collection="films")
        return error_of(lambda: self.narrow.collections.UnloadCollection(request, timeout=10)), ""

    def admin_not_allowed(self):
        return error_of(lambda: self.narrow.admin.GetStats(admin.GetStatsRequest(), timeout=10)), ""

    def unauthenticated(self):
        return error_of(lambda: self.private.search.Search(query("id: 'toy-story-1995'"), timeout=10)), ""

    def permission_denied(self):
        request = collections.UnloadCollectionRequest(collection="films")
        return error_of(lambda: self.private.collections.UnloadCollection(request, timeout=10, metadata=self.token)), ""

    def caller_limit(self):
        request = query("id: 'toy-story-1995'")
        for _ in range(ATTEMPTS_MAX):  # a slow machine may take a second between two calls
            error = error_of(lambda: self.private.search.Search(request, timeout=10, metadata=self.token))
            if error is not None:
                return error, ""
        return None, ""

    def queue_full(self):
        calls = [self.narrow.search.Search.future(heavy_query(), timeout=10) for _ in range(16)]
        errors = [error for error in (error_of(call.result) for call in calls) if error is not None]
        return errors[0], ""

    def change_queue_full(self):
        def load_many():
            loads = {name: self.load(name, "small") for name in (f"waiting-{number}" for number in range(30))}
            errors = []
            for name, events in loads.items():
                error = error_of(lambda events=events: events)
                if error is None:
                    self.unload(name)
                else:
                    errors.append(error)
            return errors[0] if errors else None

        return self.during_a_load(load_many, "CHANGE_QUEUE_FULL"), ""

    def does_not_fit(self):
        return error_of(lambda: self.load("huge", "huge")), ""

    def deadline_exceeded(self):
        """The client sees a call's deadline itself; the timeout of a stream's request only the server."""
        request = search.SearchStreamRequest(tag=7, search=heavy_query())
        request.timeout.FromMilliseconds(1)
        answers = list(self.films.search.SearchStream(iter([request]), timeout=60))
        self.assertEqual([answer.tag for answer in answers], [7])
        return answers[0].error, ""

    def stopping(self):
        stubs = self.start()
        ended = threading.Event()

        def requests():
            yield search.SearchStreamRequest(tag=1, search=query("id: 'toy-story-1995'"))
            ended.wait()

        answers = stubs.search.SearchStream(requests(), timeout=60)
        self.assertEqual(next(answers).tag, 1)
        stubs.server.process.terminate()
        error = error_of(lambda: answers)
        ended.set()
        return error, ""

    def check(self, reason, error, field):
        """Compares an error, of a call or of a stream's request, with its row of the table."""
        status = error
        if isinstance(error, grpc.RpcError):
            status = details_of(error)
            trailers = dict(error.trailing_metadata())
            self.assertIn("x-request-id", trailers)
            self.assertEqual(error.code().value[0], status.code)
            self.assertEqual(error.details(), status.message)
            if rpc_status is not None:
                decoded = rpc_status.from_call(error).SerializeToString()
                self.assertEqual(decoded, trailers["grpc-status-details-bin"])
        self.assertEqual(grpc_code(status.code), reason["code"])
        self.assertNotEqual(status.message, "")

        info, = unpack(status, error_details_pb2.ErrorInfo)
        self.assertEqual((info.reason, info.domain), (reason["name"], "simile"))
        violations = [each for request in unpack(status, error_details_pb2.BadRequest)
                      for each in request.field_violations]
        self.assertEqual([each.field for each in violations], [field] if field else [])
        retries = unpack(status, error_details_pb2.RetryInfo)
        self.assertEqual(len(retries), reason["name"] in WITH_RETRY)
        if retries:
            milliseconds = str(retries[0].retry_delay.ToMilliseconds())
            self.assertEqual(trailers["retry-after-ms"], milliseconds)
            self.assertEqual(trailers["grpc-retry-pushback-ms"], milliseconds)
            self.assertTrue(10 <= int(milliseconds) <= 2_000, milliseconds)

    def test_excuses_only_reasons_of_the_table(self):
        names = {reason["name"] for reason in error_reasons.reasons()}
        self.assertLess(set(UNIT_TESTS_ONLY), names)

    def test_gives_every_reason_of_the_table_with_its_details(self):
        for reason in error_reasons.reasons():
            name = reason["name"]
            with self.subTest(name):
                provoke = getattr(self, name.lower(), None)
                if name in UNIT_TESTS_ONLY:
                    self.assertIsNone(provoke)
                    continue
                self.assertIsNotNone(provoke, "nothing provokes it")
                error, field = provoke()
                self.assertIsNotNone(error, "the call succeeded")
                self.check(reason, error, field)
                print(f"{name}: {details_of(error).message if isinstance(error, grpc.RpcError) else error.message}")


def grpc_code(number):
    return next(code.name for code in grpc.StatusCode if code.value[0] == number)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
