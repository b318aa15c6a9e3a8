#!/usr/bin/python3
"""The client in the worker processes of joblib and gunicorn, which pickle it or are forked with it. Skips what is not installed.

usage: workers_test.py PACKAGE_DIR SIMILE SOURCE_DIR
"""
import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

PACKAGE = str(pathlib.Path(sys.argv.pop(1)).resolve())  # workers run elsewhere
sys.path.insert(0, PACKAGE)
SIMILE, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))

from simile_search import testing

FILMS = SOURCE / "examples" / "films"
IDS = ["toy-story-1995", "heat-1995"]
APPLICATION = """
import simile_search
films = simile_search.connect("{address}").collection("films")
{at_import}

def application(environ, start_response):
    try:
        text, status = " ".join(films.similar("heat-1995", k=2).ids[0]), "200 OK"
    except simile_search.SimileError as error:
        text, status = str(error), "500 Error"
    start_response(status, [("Content-Type", "text/plain")])
    return [text.encode()]
"""


def best_of(collection, item: str) -> str:
    return str(collection.similar(item, k=1).ids[0, 0])


class WorkersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(testing.serve(program=SIMILE, films=FILMS))

    @unittest.skipUnless(importlib.util.find_spec("joblib"), "needs joblib")
    def test_joblib_pickles_a_collection(self):
        import joblib
        collection = self.client.collection("films")
        expected = [best_of(collection, item) for item in IDS]
        os.environ["PYTHONPATH"] = PACKAGE  # of the workers
        for backend in ("loky", "threading"):
            found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(best_of)(collection, item) for item in IDS)
            self.assertEqual(found, expected, backend)

    def answer_of_gunicorn(self, at_import: str, *flags: str, **variables: str) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "wsgi.py").write_text(APPLICATION.format(address=self.client._target, at_import=at_import))
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            words = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "2", *flags, "wsgi"]
            process = subprocess.Popen(words, cwd=folder, env={**os.environ, "PYTHONPATH": PACKAGE, **variables},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                return self.ask(f"http://127.0.0.1:{port}/")
            finally:
                process.terminate()
                process.wait(60)

    def ask(self, address: str) -> tuple[int, str]:
        end = time.monotonic() + 60
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while True:
            try:
                with direct.open(address, timeout=30) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()
            except (urllib.error.URLError, ConnectionError):  # it starts
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    @unittest.skipUnless(importlib.util.find_spec("gunicorn"), "needs gunicorn")
    def test_gunicorn_forks_a_client(self):
        expected = 200, " ".join(self.client.collection("films").similar("heat-1995", k=2).ids[0])
        call = "films.similar('heat-1995')"
        self.assertEqual(self.answer_of_gunicorn(call), expected)
        self.assertEqual(self.answer_of_gunicorn("", "--preload"), expected)
        status, text = self.answer_of_gunicorn(call, "--preload")
        self.assertEqual(status, 500)
        self.assertIn("make the first call after the fork (gunicorn: without --preload", text)
        self.assertEqual(self.answer_of_gunicorn(call, "--preload", GRPC_ENABLE_FORK_SUPPORT="1"), expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
