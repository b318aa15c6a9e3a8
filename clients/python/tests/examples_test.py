#!/usr/bin/python3
"""Runs the examples of README.md and of the modules' docstrings. Every public name has a docstring that pydoc can render.

usage: examples_test.py PACKAGE_DIR SIMILE SOURCE_DIR
"""
import ast
import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import io
import os
import pathlib
import pydoc
import re
import sys
import tempfile
import textwrap
import unittest

PACKAGE = sys.argv.pop(1)
sys.path.insert(0, PACKAGE)
SIMILE, SOURCE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))

import numpy as np
import simile_search
from simile_search import testing

FILMS = SOURCE / "examples" / "films"
MODULES = ["simile_search", *(f"simile_search.{name}" for name in ("aio", "exporting", "importing", "testing"))]
HAS_TABLES = all(importlib.util.find_spec(name) for name in ("pandas", "pyarrow"))


def examples_in(docstring: str) -> list[str]:
    """The indented paragraphs of Python."""
    return [textwrap.dedent(text) for text in docstring.split("\n\n")
            if text.startswith("    ") and not text.lstrip().startswith("simile ")]


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(testing.serve(program=SIMILE, films=FILMS))
        cls.vectors = np.load(FILMS / "content_vectors.npy")

    def setUp(self):
        # What the examples speak of and do not make.
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(contextlib.chdir(folder))
        (folder / "examples").symlink_to(SOURCE / "examples")
        pathlib.Path("films.csv").write_text("film_code,title\n001,Heat\n002,Alien\n", encoding="utf-8")
        np.save("vectors.npy", self.vectors[:2])
        os.environ["SIMILE_PROGRAM"] = str(SIMILE)
        self.names = {"simile_search": simile_search, "exporting": simile_search.exporting, "matrix": self.vectors[:3], "vector": self.vectors[0], "vectors": self.vectors[:2],
                      "users": ["user_00001", "user_00002"], "films": self.client.collection("films")}

    def run_example(self, text: str) -> None:
        code = compile(text.replace("localhost:50051", self.client._target), "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with contextlib.redirect_stdout(io.StringIO()):
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, self.names))
            else:
                exec(code, self.names)

    @unittest.skipUnless(HAS_TABLES, "needs pandas and pyarrow")
    def test_of_the_readme_run(self):
        import pandas
        self.names["data_frame"] = pandas.DataFrame({"id": ["a", "b"]})
        blocks = re.findall(r"```python\n(.*?)```", (SOURCE / "clients/python/README.md").read_text(encoding="utf-8"), re.DOTALL)
        self.assertGreater(len(blocks), 2)
        for block in blocks:
            with self.subTest(block):
                self.run_example(block)

    @unittest.skipUnless(HAS_TABLES, "needs pandas and pyarrow")
    def test_of_the_docstrings_run(self):
        count = 0
        given = dict(self.names)
        for name in MODULES:
            self.names = dict(given)
            for example in examples_in(importlib.import_module(name).__doc__):
                with self.subTest(name):
                    self.run_example(example)
                    count += 1
        self.assertGreaterEqual(count, 4)

    def test_of_the_readme_name_what_exists(self):
        text = (SOURCE / "clients/python/README.md").read_text(encoding="utf-8")
        for name in re.findall(r"\bfilms\.(\w+)\(", text):
            self.assertTrue(hasattr(simile_search.Collection, name), name)
            self.assertTrue(hasattr(simile_search.aio.Collection, name), name)

    def test_public_names_are_documented(self):
        for module in map(importlib.import_module, MODULES):
            self.assertIn(module.__doc__.splitlines()[0].strip(), pydoc.render_doc(module, renderer=pydoc.plaintext))
            for name in getattr(module, "__all__", [name for name, value in vars(module).items() if not name.startswith("_")
                                                     and getattr(value, "__module__", "") == module.__name__]):
                value = getattr(module, name)
                if not (inspect.isclass(value) or inspect.isfunction(value)):
                    continue
                self.assertTrue(inspect.getdoc(value), f"{module.__name__}.{name}")
                for method, function in vars(value).items() if inspect.isclass(value) else ():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        self.assertTrue(inspect.getdoc(function), f"{module.__name__}.{name}.{method}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
