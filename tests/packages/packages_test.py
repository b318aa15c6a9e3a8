#!/usr/bin/python3
"""The wheels and the Debian package in bare roots of Debian 12 and 13: install, import, serve, ask, remove (`make package-test`).

usage: packages_test.py PACKAGES [unittest's arguments]

PACKAGES is the folder of `make wheel deb`. Needs root, mmdebstrap, and a package index for pip. Each root is made anew.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(sys.argv.pop(1)).resolve() if __name__ == "__main__" else pathlib.Path()
ANSWER = r"\b0\.\d{3}"  # a score
ASK = """
import numpy as np
import simile_search as simile
from simile_search import testing
with testing.serve(films="/films") as client:
    films = client.collection("films")
    vectors = np.load("/films/content_vectors.npy")
    answer = films.search(vectors[:100], k=5, with_rows=True)
    assert answer.rows[:, 0].tolist() == list(range(100)), answer.rows
    print("asked", answer.receipt.device)
"""


class BareRoot:
    """A root of a Debian release with a minimum of packages, entered by chroot."""

    def __init__(self, release: str, *packages: str):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"bare-{release}-"))
        subprocess.run(["mmdebstrap", "--variant=apt", "--quiet", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                        f"--include={','.join(['ca-certificates', 'usr-is-merged', *packages])}", release, str(self.folder)], check=True,
                       stdout=subprocess.DEVNULL)
        for file in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):  # that of a company's proxy among the latter
            shutil.copyfile(file, self.folder / file[1:])
        if pathlib.Path("/etc/pip.conf").exists():
            shutil.copyfile("/etc/pip.conf", self.folder / "etc/pip.conf")
        shutil.copytree(ROOT / "examples/films", self.folder / "films")
        shutil.copytree(PACKAGES, self.folder / "packages")
        subprocess.run(["mount", "-t", "proc", "proc", self.folder / "proc"], check=True)
        subprocess.run(["mount", "--bind", "/dev", self.folder / "dev"], check=True)

    def remove(self) -> None:
        for mounted in ("proc", "dev"):
            subprocess.run(["umount", "--lazy", self.folder / mounted], check=True)
        shutil.rmtree(self.folder)

    def command(self, script: str) -> list[str]:
        return ["chroot", str(self.folder), "/bin/sh", "-c", script]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.lower().startswith(("pip_", "http", "no_proxy", "ssl_"))}
        return {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}

    def run(self, script: str, check: bool = True) -> str:
        done = subprocess.run(self.command(script), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env=self.environment())
        if check and done.returncode:
            raise AssertionError(f"{script}: {done.returncode}\n{done.stdout}")
        return done.stdout

    def serve_and_ask(self, program: str) -> str:
        """Serves the films in the background, asks for films like one, and ends the server. Returns the answer."""
        server = subprocess.Popen(self.command(f"exec {program} serve --collection films=/films --no-metrics"), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=self.environment())
        try:
            until = time.monotonic() + 60
            while "serves" not in (said := self.run(f"{program} health && echo serves", check=False)):
                if time.monotonic() > until or server.poll() is not None:
                    raise AssertionError(f"the server does not serve: {said}")
            return self.run(f"{program} similar films heat-1995 -k 3")
        finally:
            server.terminate()
            server.wait()


class WheelTest(unittest.TestCase):
    def check(self, release: str):
        root = BareRoot(release, "python3-venv")
        self.addCleanup(root.remove)
        root.run("python3 -m venv /v && /v/bin/pip install --quiet --find-links /packages simile-search")
        said = root.run("/v/bin/simile serve", check=False)
        self.assertIn("pip install simile-server", said)
        root.run("printf 'id,v1,v2\\n1,1.5,2\\n2,2.5,1\\n' > /t.csv")
        self.assertIn("wrote /t: 2 rows of 2 dimensions", root.run("/v/bin/simile import /t.csv /t"))
        self.assertIn("simile-server", root.run("/v/bin/pip install --find-links /packages simile-server"))
        self.assertRegex(root.run("/v/bin/simile --version"), r"simile \d+\.\d+")
        self.assertIn("would load", root.run("/v/bin/simile inspect /t"))
        self.assertRegex(root.serve_and_ask("/v/bin/simile"), ANSWER)
        (root.folder / "ask.py").write_text(ASK, encoding="utf-8")
        self.assertIn("asked", root.run("/v/bin/python -W error /ask.py"))
        libraries = root.run("ldd $(/v/bin/python -c 'import simile_search.command as c; print(c.find_program())')")
        self.assertNotIn("not found", libraries)
        for line in libraries.splitlines():
            if not re.search(r"linux-vdso|ld-linux|lib(c|m|gcc_s|stdc\+\+)\.so", line):
                self.assertIn("/v/lib/python3", line)
        root.run("/v/bin/pip uninstall --quiet --yes simile-server simile-search")
        self.assertEqual(root.run("find /v -iname '*simile*'"), "")

    def test_debian_12(self):
        self.check("bookworm")

    def test_debian_13(self):
        self.check("trixie")


class DebTest(unittest.TestCase):
    def test_installs_serves_and_leaves_data(self):
        root = BareRoot("bookworm")
        self.addCleanup(root.remove)
        said = root.run("apt-get update -qq && apt-get install --quiet --yes /packages/simile_*.deb")
        self.assertIn("name your collections in /etc/simile/simile.json", said)
        self.assertRegex(root.run("simile --version"), r"simile \d+\.\d+")
        self.assertRegex(root.serve_and_ask("simile"), ANSWER)
        self.assertIn("exact top", root.run("zcat /usr/share/man/man1/simile.1.gz"))
        root.run("test -s /usr/share/bash-completion/completions/simile && test -s /lib/systemd/system/simile.service")
        root.run("sed -i 's,\"serve\": {},\"serve\": {\"films\": \"/films\"},' /etc/simile/simile.json")
        root.run("dpkg --install /packages/simile_*.deb")  # over itself, as an upgrade
        self.assertIn('"films": "/films"', root.run("cat /etc/simile/simile.json"))
        self.assertIn("films", root.run("simile config --config /etc/simile/simile.json --print | grep collections.serve"))
        root.run("dpkg --remove simile")
        root.run("test -e /etc/simile/simile.json && ! command -v simile")
        root.run("dpkg --purge simile")
        root.run("test ! -e /etc/simile/simile.json && test -e /films/content_vectors.npy")


if __name__ == "__main__":
    unittest.main(verbosity=2)
