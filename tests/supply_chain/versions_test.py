#!/usr/bin/env python3
"""`simile --version --verbose` against what the loader takes and Debian has installed: versions_test.py PROGRAM [PLUGIN]."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, *PLUGINS = [pathlib.Path(each) for each in sys.argv[1:]]
# The Debian package that has each library's version; of libstdc++, libgcc and RE2 the file only says the interface's.
PACKAGES = {"gRPC": "libgrpc++1.51", "nghttp2": "libnghttp2-14", "OpenSSL": "libssl3", "protobuf": "libprotobuf32", "abseil": "libabsl20220623", "fmt": "libfmt9",
            "spdlog": "libspdlog1.10", "prometheus-cpp": "libprometheus-cpp-core1.0", "nlohmann/json": "nlohmann-json3-dev",
            "utf8proc": "libutf8proc2", "xxHash": "libxxhash0", "CRoaring": "libroaring0", "zlib": "zlib1g", "c-ares": "libc-ares2",
            "glibc": "libc6"}
SAID_BY_LIBRARY = {"gRPC", "nghttp2", "OpenSSL", "utf8proc", "xxHash", "zlib", "c-ares", "glibc"}


def run(*command: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    return subprocess.run([str(each) for each in command], check=True, capture_output=True, text=True, env=environment).stdout


class VersionsTest(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(run(PROGRAM, "--version", "--verbose", "--json"))
        self.libraries = {each["name"]: each for each in self.document["libraries"]}

    def test_names_every_linked_file(self):
        linked = {pathlib.Path(each).resolve().name for each in re.findall(r"(/\S+) \(0x", run("ldd", PROGRAM))}
        named = [file for each in self.document["libraries"] for file in each["files"]]
        self.assertEqual(len(named), len(set(named)))
        # The plug-in, which is opened to ask it, may bring libraries of its own.
        self.assertLessEqual(linked, set(named))
        self.assertEqual([each for each in self.libraries if ".so" in each and "simile" not in each], [])

    def test_says_the_versions_that_are_installed(self):
        self.assertLessEqual(PACKAGES.keys(), self.libraries.keys())
        for name, package in PACKAGES.items():
            with self.subTest(name):
                installed = run("dpkg-query", "--show", "--showformat=${Version}\n", package).splitlines()[0]
                upstream = re.sub(r"^\d+:|[+-].*$", "", installed).removesuffix(".dfsg")
                said = self.libraries[name]["version"]
                if name == "abseil":  # whose files do not count the patches of a release
                    said, upstream = said.split(".")[0], upstream.split(".")[0]
                self.assertEqual(said, upstream, f"installed {installed}")

    def test_asks_the_libraries_that_can_say(self):
        said = {name for name, each in self.libraries.items() if each["version_from"] == "library"}
        self.assertEqual(said, SAID_BY_LIBRARY)
        self.assertEqual([name for name, each in self.libraries.items() if not each["version"]], [])

    def test_asks_the_plugin(self):
        plugins = {each["file"]: each for each in self.document["gpu_plugins"]}
        self.assertEqual(plugins.keys(), {each.name for each in PLUGINS})
        for each in plugins.values():
            self.assertRegex(each["built_with"], r"^CUDA \d+\.\d$")
            self.assertEqual(each["refusal"], "")

    def test_says_why_a_plugin_is_not_used(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(shutil.copy(PROGRAM, folder))
            (pathlib.Path(folder) / "libsimile_cuda.so").write_text("no library", encoding="utf-8")
            (plugin,) = json.loads(run(program, "version", "--verbose", "--json"))["gpu_plugins"]
        self.assertEqual((plugin["file"], plugin["built_with"]), ("libsimile_cuda.so", ""))
        self.assertEqual(plugin["refusal"], "the GPU plug-in cannot be loaded: libsimile_cuda.so: file too short")

    def test_names_what_is_preloaded(self):
        preloaded = "libutil.so.1"  # of glibc, and linked by nothing
        document = json.loads(run(PROGRAM, "version", "--verbose", "--json", LD_PRELOAD=preloaded))
        self.assertNotIn(preloaded, self.libraries)
        self.assertIn({"name": preloaded, "version": "1", "version_from": "file", "built_with": "", "files": [preloaded]},
                      document["libraries"])

    def test_prints_the_same_for_people(self):
        text = run(PROGRAM, "version", "--verbose")
        self.assertEqual(text.splitlines()[0], run(PROGRAM, "--version").strip())
        self.assertIn(self.document["compiler"], text)
        for name, each in self.libraries.items():
            self.assertRegex(text, rf"(?m)^  {re.escape(name)} +{re.escape(each['version'])} +{each['version_from']} ")
        for each in PLUGINS:
            self.assertIn(f"  {each.name}: built with CUDA ", text)

    def test_leaves_the_libraries_out_unless_asked(self):
        self.assertEqual(list(json.loads(run(PROGRAM, "version", "--json"))),
                         ["version", "build", "commit", "compiler", "build_type"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
