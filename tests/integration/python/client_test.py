#!/usr/bin/python3
"""Runs examples/python/client.py against a real server and checks what it prints.

usage: client_test.py SIMILE SOURCE_DIR STUBS_DIR
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import servers

SIMILE, SOURCE, STUBS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
FILMS = SOURCE / "examples" / "films"


def films_server():
    return servers.running(SIMILE, "--collection", f"films={FILMS}")


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
        with films_server() as server:
            run = run_client(server.address, "films", similar["query_media_id"], user["user_id"])
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.splitlines()
        self.assertEqual(len(lines), 13, run.stdout)
        self.assertEqual(lines[0], f"like {similar['query_media_id']}:")
        self.check_hits(lines[1:6], similar["top_20_excluding_self"][:5], films)
        self.assertEqual(lines[6], f"for {user['user_id']}:")
        self.check_hits(lines[7:12], user["top_20_excluding_liked"][:5], films)
        self.assertRegex(lines[12], r"^exact: True, \d+ us, cpu: .+$")

    def test_prints_the_servers_message_for_an_unknown_user(self):
        with films_server() as server:
            run = run_client(server.address, "films", "toy-story-1995", "user_42")
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith("error: "), run.stderr)
        self.assertIn("user_42", run.stderr)
        self.assertTrue(run.stderr.endswith(" (USER_NOT_FOUND)\n"), run.stderr)

    def test_says_what_is_wrong_without_a_server(self):
        # Port 1 is reserved; nothing listens there.
        run = run_client("127.0.0.1:1")
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith("error: "), run.stderr)
        self.assertTrue(run.stderr.endswith(" (DEADLINE_EXCEEDED)\n"), run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
