#!/usr/bin/env python3
"""Each setting of `simile serve` moved, and every command run against that server and its files.

    moved_settings_test.py SIMILE

The settings are those that `simile config --print --json` lists: a new one is moved too, or named in NOT_MOVED with the reason.
Commands get the settings as the server does, by variables, and neither --server nor a limit of their own. Part of the settings by
turns (TEST_ROTATION), all with `all`.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from servers import await_true, environment, steady_port

SIMILE = pathlib.Path(sys.argv[1]).resolve()
ROWS, DIM, TURNS = 60, 16, 4
LONG_LINE = 100_000  # bytes: more than a line may have by default, less than twice as many
PATIENCE_SECONDS = 60

# What another test moves, or what this machine cannot serve with.
NOT_MOVED = {
    "collections.serve": "is what is served",
    "server.port": "is moved for every server here",
    "server.tls_certificate": "tls_test", "server.tls_key": "tls_test", "server.tls_client_ca": "tls_test",
    "server.tls_client_certificates": "tls_test", "server.access_file": "access_test",
    "backend.isa": "a machine has few of them; the tests of the engine select each",
    "metrics.port": "is any free one for every server here",
}
# Values in place of the computed ones.
MOVED = {
    "server.listen": ["127.0.0.9", "::"], "metrics.listen": ["127.0.0.9", "::"], "backend.preference": ["cpu"],
    # Below this the vectors of the collection are refused, rightly.
    "limits.dim_max": [DIM],
    # Half and twice of 0 are no values of these.
    "collections.memory_bytes_max": [1 << 30], "limits.connection_age_max": [60_000],
}
READ_FILES = [["inspect", "FOLDER"], ["inspect", "FOLDER", "--quick"], ["plan", "c=FOLDER"], ["config", "--collection", "c=FOLDER"]]
ASK_SERVER = [
    ["health"], ["health", "--liveness"], ["list"], ["list", "c"], ["info"], ["info", "--limits"], ["fields", "c"],
    ["similar", "c", "--id", "i3"], ["similar", "c", "--id", "i3", "--filter", "year > 1990"], ["recommend", "c", "--user", "u1"],
    ["lookup", "c", "film 7"], ["fetch", "c", "--id", "i1,i2"], ["verify", "c", "--folder", "FOLDER", "--samples", "5"],
    ["bench", "c", "--folder", "FOLDER", "--duration", "200ms", "--warm-up", "100ms"], ["plan", "--server", "ADDRESS"],
]


@dataclasses.dataclass
class Setting:
    key: str
    environment: str
    range: str
    default: object


def write_collection(folder: pathlib.Path, longest_line: int = 0) -> None:
    def npy(rows: int, first: int) -> bytes:
        numbers = [((row * 37 + column * 11 + first) % 97) / 97 - 0.5 for row in range(rows) for column in range(DIM)]
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {DIM}), }}"
        header += " " * (117 - len(header)) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}f", *numbers)

    folder.mkdir()
    (folder / "content_vectors.npy").write_bytes(npy(ROWS, 1))
    (folder / "preference_vectors.npy").write_bytes(npy(3, 5))
    (folder / "user_ids.json").write_text(json.dumps([f"u{user}" for user in range(3)]))
    rows = [{"id": f"i{row}", "title": f"film {row}", "year": 1960 + row, "genres": ["a", "b"][: row % 3]} for row in range(ROWS)]
    rows[-1]["text"] = "x" * longest_line
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    seen = [{"user_id": f"u{user}", "item_id": f"i{user * 7}"} for user in range(3)]
    (folder / "interactions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in seen))


def values(setting: Setting, folder: pathlib.Path) -> list[str]:
    """Where the setting is moved to: for numbers half and twice the default, as far as the range goes."""
    if setting.key in MOVED:
        return [str(value) for value in MOVED[setting.key]]
    if setting.range == "path":
        return [str(folder / "moved.file") if setting.key != "collections.data_root" else str(folder)]
    if setting.range == "true or false":
        return ["false" if setting.default else "true"]
    if bounds := re.match(r"([\d.]+) to ([\d.]+)", setting.range):
        least, most = map(float, bounds.groups())
        default = float(setting.default)
        moved = {min(max(default / 2, least), most), min(max(default * 2, least + (default == 0)), most)} - {default}
        whole = "." not in bounds[0] and float(setting.default).is_integer()
        return [str(int(value)) if whole else str(value) for value in sorted(moved)]
    return [word for word in re.split(r", | or ", setting.range) if word != setting.default]


def run(arguments: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run([SIMILE, *arguments], env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS)


@contextlib.contextmanager
def serving(folder: pathlib.Path, home: str, variables: dict[str, str]):
    """A server of the folder that answers `simile health`; its log is in `home`."""
    log = pathlib.Path(home, "log")
    with open(log, "wb") as output:
        server = subprocess.Popen([SIMILE, "serve", "--collection", f"c={folder}", "--metrics-port", "0"], env=variables,
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        await_true(lambda: server.poll() is not None or run(["health"], variables).returncode == 0, PATIENCE_SECONDS,
                   "an answer to `simile health`")
        if server.poll() is not None:
            raise AssertionError(f"serve ended with {server.returncode}: {log.read_text()}")
        yield
    finally:
        server.terminate()
        server.wait()


class MovedSettingsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        write_collection(cls.folder / "c")
        write_collection(cls.folder / "long", LONG_LINE)
        printed = run(["config", "--print", "--json"], environment(cls.folder))
        names = {field.name for field in dataclasses.fields(Setting)}
        cls.settings = [Setting(**{name: row[name] for name in names}) for row in json.loads(printed.stdout)["settings"]]

    def test_what_is_not_moved_exists(self):
        self.assertLessEqual(NOT_MOVED.keys() | MOVED.keys(), {setting.key for setting in self.settings})

    def test_commands_agree_with_the_server(self):
        moves = [(setting, value) for setting in self.settings if setting.key not in NOT_MOVED
                 for value in values(setting, self.folder)]
        turn = os.environ.get("TEST_ROTATION", "0")
        chosen = moves if turn == "all" else [move for index, move in enumerate(moves) if index % TURNS == int(turn) % TURNS]
        self.assertGreater(len(chosen), 10)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda move: self.disagreements(*move), chosen):
                with self.subTest(found.pop(0)):
                    self.assertEqual(found, [])
        print(f"{len(chosen)} of {len(moves)} moves of {len(self.settings)} settings")

    def disagreements(self, setting: Setting, value: str) -> list[str]:
        """`SETTING=VALUE`, then what each command said that failed."""
        found = [f"{setting.environment}={value}"]
        host = value if setting.key == "server.listen" and value != "::" else "127.0.0.1"
        longer = setting.key == "limits.jsonl_line_bytes_max" and int(value) > LONG_LINE
        folder = self.folder / ("long" if longer else "c")
        with tempfile.TemporaryDirectory() as home:
            port = steady_port()
            variables = environment(home, SIMILE_SERVER_PORT=str(port), **{setting.environment: value})
            with serving(folder, home, variables):
                for command in READ_FILES + ASK_SERVER:
                    words = [word.replace("FOLDER", str(folder)).replace("ADDRESS", f"{host}:{port}") for word in command]
                    ended = run(words, variables)
                    if ended.returncode != 0:
                        found.append(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr or ended.stdout}")
        return found

    def test_commands_find_the_server_that_the_settings_describe(self):
        with tempfile.TemporaryDirectory() as home:
            file = pathlib.Path(home, "settings.json")
            file.write_text(json.dumps({"server": {"port": 0, "port_file": f"{home}/port"}}))
            for described in ({"SIMILE_CONFIG": str(file)}, {"SIMILE_SERVER_PORT": "0", "SIMILE_SERVER_PORT_FILE": f"{home}/port"}):
                with self.subTest(described), serving(self.folder / "c", home, environment(home, **described)):
                    self.assertEqual(run(["health"], environment(home, **described)).stdout, "serving\n")
                pathlib.Path(home, "port").unlink(missing_ok=True)
            lost = run(["health"], environment(home, SIMILE_CONFIG=str(file)))
            self.assertEqual(lost.returncode, 64, lost.stderr)
            self.assertIn("there is no port file; the server writes it once it listens", lost.stderr)

    def test_a_full_server_says_so(self):
        with tempfile.TemporaryDirectory() as home:
            port = steady_port()
            variables = environment(home, SIMILE_SERVER_PORT=str(port), SIMILE_LIMITS_CONNECTIONS_PER_PEER_MAX="1")
            with serving(self.folder / "c", home, variables), contextlib.ExitStack() as held:
                def is_full():
                    # While the server still counts the last client, it refuses this connection, too.
                    held.enter_context(socket.create_connection(("127.0.0.1", port)))
                    return run(["health"], variables).returncode == 2
                await_true(is_full, PATIENCE_SECONDS, "a server that is full")
                for flags in [], ["--tls"]:
                    refused = run(["health", *flags], variables)
                    self.assertEqual(refused.returncode, 2)
                    self.assertIn("takes no further connection: too many connections: this server holds at most 1 from one address "
                                  "(limits.connections_per_peer_max)", refused.stderr)
                self.assertIn("a connection is refused", pathlib.Path(home, "log").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
