#!/usr/bin/python3
"""Runs examples/python/client.py against a real server and checks what it prints.

usage: client_test.py SIMILE SOURCE_DIR STUBS_DIR
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SIMILE, SOURCE, STUBS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
FILMS = SOURCE / "examples" / "films"


class Server:
    """A server of the films on a free port, stopped by SIGTERM on exit."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        port_file = pathlib.Path(self._folder.name) / "port"
        self._process = subprocess.Popen(
            [SIMILE, "serve", "--collection", f"films={FILMS}", "--port", "0", "--port-file",
             port_file, "--no-metrics"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=dict(os.environ, SIMILE_BACKEND_TUNING="defaults"))
        printed = []
        for line in self._process.stdout:  # waits for each line, and ends when the server does
            printed.append(line)
            if "listening on" in line:
                break
        else:
            raise RuntimeError("the server ended before it listened:\n" + "".join(printed))
        self.address = "127.0.0.1:" + port_file.read_text().strip()
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.communicate()
        self._folder.cleanup()


def run_client(*arguments):
    return subprocess.run([sys.executable, SOURCE / "examples/python/client.py", *arguments],
                          env=dict(os.environ, PYTHONPATH=str(STUBS)), capture_output=True,
                          text=True, timeout=60, check=False)


def read_films():
    with open(FILMS / "metadata.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class ClientTest(unittest.TestCase):
    def check_hits(self, lines, expected, films):
        """Lines `  rank  score  title` and the exact answer of expected.json, as [row, score] pairs."""
        self.assertEqual(len(lines), len(expected))
        for rank, (line, (row, score)) in enumerate(zip(lines, expected), start=1):
            printed_rank, printed_score, title = line.split(maxsplit=2)
            self.assertEqual(int(printed_rank), rank)
            self.assertAlmostEqual(float(printed_score), score, delta=6e-5)  # printed with 4 digits
            self.assertEqual(title, films[row]["title"])

    def test_prints_exact_answers_and_the_receipt(self):
        films = read_films()
        expected = json.loads((FILMS / "expected.json").read_text(encoding="utf-8"))
        similar = expected["similar_films"][0]
        user = expected["user_recommendations"][0]
        with Server() as server:
            run = run_client(server.address, similar["query_media_id"], user["user_id"])
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), 13, run.stdout)
        self.assertEqual(lines[0], f"like {similar['query_media_id']}:")
        self.check_hits(lines[1:6], similar["top_20_excluding_self"][:5], films)
        self.assertEqual(lines[6], f"for {user['user_id']}:")
        self.check_hits(lines[7:12], user["top_20_excluding_liked"][:5], films)
        self.assertRegex(lines[12], r"^exact: True, \d+ us, cpu: .+$")

    def test_prints_the_servers_message_for_an_unknown_user(self):
        with Server() as server:
            run = run_client(server.address, "toy-story-1995", "user_42")
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith("error: "), run.stderr)
        self.assertIn("user_42", run.stderr)

    def test_says_what_is_wrong_without_a_server(self):
        # Port 1 is reserved; nothing listens there.
        run = run_client("127.0.0.1:1")
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith("error: "), run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
