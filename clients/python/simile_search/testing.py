"""A server for tests: it runs on this machine, on ports of its own, until the `with` block ends.

    with simile_search.testing.serve(films="examples/films") as client:
        client.collection("films").similar("heat-1995")
"""

import contextlib
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import Union

from . import client, command

_ADDRESS = re.compile(r"\Alistening on ([^ ,;]+)")
_STOP_S = 60  # a server drains before it stops
# What says where a server listens, who may call and what it serves, and the variable of `serve`, which no server knows.
_NOT_INHERITED = ("SIMILE_PROGRAM", "SIMILE_SERVER_", "SIMILE_COLLECTION", "SIMILE_CONFIG", "SIMILE_ACCESS")


@contextlib.contextmanager
def serve(*, program: Union[str, os.PathLike[str], None] = None, arguments: Sequence[str] = (), start_timeout: float = 60,
          **collections: Union[str, os.PathLike[str]]) -> Iterator[client.Client]:
    """A client of a server that has started and serves the collections, by name the folder of each.

    program        of the server; default SIMILE_PROGRAM, else that of the package simile-server, else `simile` on the PATH
    arguments      further flags of `simile serve`
    start_timeout  seconds until the collections are served
    Raises RuntimeError with the server's last lines where it does not start.
    """
    found = program or os.environ.get("SIMILE_PROGRAM") or command.find_program()
    if found is None:
        raise RuntimeError(f"{command.why_no_program('serve')} Or name it: program=, or the variable SIMILE_PROGRAM")
    words = [os.fspath(found), "serve", "--listen", "127.0.0.1", "--port", "0", "--no-metrics", "--log-format", "text",
               "--die-with-parent"]
    for name, folder in collections.items():
        words += ["--collection", f"{name}={os.path.abspath(folder)}"]
    with tempfile.TemporaryDirectory(prefix="simile-") as home:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
        environment.update(XDG_CACHE_HOME=home, XDG_STATE_HOME=home)
        process = subprocess.Popen([*words, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", env=environment)
        output = _Output(process)
        try:
            with client.connect(output.address(start_timeout)) as connected:
                yield connected
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            output.join()


class _Output(threading.Thread):
    """Reads what a server prints, so that it never waits for a reader."""

    def __init__(self, process: "subprocess.Popen[str]"):
        super().__init__(daemon=True)
        self._process, self._lines, self._address = process, [""], ""
        self._known = threading.Event()
        self.start()

    def run(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines = [*self._lines[-20:], line.rstrip()]
                if not self._address and (found := _ADDRESS.match(line)):
                    self._address = found[1]
                    self._known.set()
        self._known.set()

    def address(self, timeout: float) -> str:
        self._known.wait(timeout)
        if not self._address:
            raise RuntimeError("the server does not start:\n" + "\n".join(self._lines))
        return self._address
