"""A running server, and small collections for it to load."""
import array
import os
import pathlib
import random
import subprocess
import tempfile


class ServerProcess:
    """`simile serve` on a free port, stopped by SIGTERM on exit.

    settings: of the configuration, by their environment variables.
    """

    def __init__(self, simile, *arguments, **settings):
        self._command = [simile, "serve", "--port", "0", "--no-metrics", *arguments]
        # The same strategies in every run; measures nothing and writes nothing to the home folder.
        self._environment = dict(os.environ, SIMILE_BACKEND_TUNING="defaults", **settings)

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        port_file = pathlib.Path(self._folder.name) / "port"
        self._process = subprocess.Popen(
            [*self._command, "--port-file", port_file], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=self._environment)
        printed = []
        for line in self._process.stdout:  # waits for each line, and ends when the server does
            printed.append(line)
            if "listening on" in line:
                break
        else:
            raise RuntimeError("the server ended before it listened:\n" + "".join(printed))
        self.address = "127.0.0.1:" + port_file.read_text().strip()
        return self

    def terminate(self):
        self._process.terminate()

    def __exit__(self, *error):
        self.terminate()
        self._process.communicate()
        self._folder.cleanup()


def npy_header(row_count, dim):
    """The first bytes of a .npy file of fp32 rows."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({row_count}, {dim}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def write_collection(folder, row_count, dim, seed):
    """A collection whose ids are its row numbers. Its rows repeat after the first 1,000."""
    folder.mkdir(parents=True)
    numbers = random.Random(seed)
    distinct = min(row_count, 1_000)
    rows = array.array("f", (numbers.uniform(-1, 1) for _ in range(distinct * dim))).tobytes()
    with open(folder / "vectors.npy", "wb") as file:
        file.write(npy_header(row_count, dim))
        for _ in range(row_count // distinct):
            file.write(rows)
