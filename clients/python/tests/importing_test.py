#!/usr/bin/python3
"""Tables as folders, which `simile inspect` must accept.

usage: importing_test.py PACKAGE_DIR SIMILE
"""
import datetime
import decimal
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout

sys.path.insert(0, sys.argv.pop(1))
SIMILE = pathlib.Path(sys.argv.pop(1)).resolve()

import numpy as np
from simile_search import command, importing

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None


class ImportTest(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder = self.place / "out"

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.place / name
        path.write_text(text, encoding="utf-8")
        return path

    def chosen(self, report) -> dict[str, str]:
        return {choice.column: choice.chosen for choice in report.choices}

    def rows(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]

    def inspect(self) -> str:
        run = subprocess.run([SIMILE, "inspect", self.folder], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def settings(self) -> dict:
        return json.loads((self.folder / "collection.json").read_text(encoding="utf-8"))

    def test_a_column_that_would_change_as_numbers_stays_text(self):
        table = self.write("a.csv", "sku,zip,phone,big,small,price,name,x_0,x_1\n"
                                    "b1,01234,+1234,1234567890123456,12,1.5,A,0.1,0.2\n"
                                    "b2,11234,+1235,1,13,2,\"B, \"\"C\"\"\",0.3,0.4\n"
                                    "b3,,+1236,2,,3,,0.5,0.6\n")
        report = importing.import_tables([table], self.folder)
        why = {choice.column: choice.why for choice in report.choices}
        self.assertEqual(self.chosen(report), {"x_0, x_1": "vectors of 2 dimensions", "sku": "ids", "zip": "text", "phone": "text",
                                               "big": "text", "small": "integer", "price": "number", "name": "text"})
        self.assertEqual(why["zip"], "row 0 has '01234': a leading zero")
        self.assertEqual(why["phone"], "row 0 has '+1234': a plus sign")
        self.assertEqual(why["big"], "row 0 has '1234567890123456': more than 15 digits")
        self.assertEqual(self.rows(), [
            {"sku": "b1", "zip": "01234", "phone": "+1234", "big": "1234567890123456", "small": 12, "price": 1.5, "name": "A"},
            {"sku": "b2", "zip": "11234", "phone": "+1235", "big": "1", "small": 13, "price": 2.0, "name": "B, \"C\""},
            {"sku": "b3", "phone": "+1236", "big": "2", "price": 3.0}])
        self.assertEqual(self.settings(), {"id_field": "sku"})
        np.testing.assert_array_equal(np.load(self.folder / "content_vectors.npy"), np.float32([[.1, .2], [.3, .4], [.5, .6]]))
        self.assertRegex(self.inspect(), r"(?s)field big +keyword.*field phone +keyword.*field price +number.*field zip +keyword")

    def test_lists_of_numbers_are_vectors_and_others_are_payload(self):
        rows = [{"id": f"i{row}", "tags": ["a", "b"][:row % 3], "embedding": [row + .5] * 50, "short": [.1, 1e300], "n": {"deep": row},
                 "other": [.25] * 40, "prices": [.1] * (34 + row % 2)} for row in range(30)]
        table = self.write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        report = importing.import_tables([table], self.folder)
        self.assertEqual(self.chosen(report), {"embedding": "vectors of 50 dimensions", "id": "ids", "tags": "list", "short": "list",
                                               "n": "object", "other": "left out", "prices": "list"})
        self.assertEqual(self.rows()[5], {"id": "i5", "tags": ["a", "b"], "short": [.1, 1e300], "n": {"deep": 5}, "prices": [.1] * 35})
        self.inspect()
        text = self.write("b.csv", "id,vec\n" + "".join(f'{row},"[{row}.5, 1.25]"\n' for row in range(5)))
        self.folder = self.place / "of_text"
        self.assertEqual(self.chosen(importing.import_tables([text], self.folder))["vec"], "vectors of 2 dimensions")
        self.inspect()

    def test_ids_repeat_nowhere_and_are_never_guessed_from_rows_with_gaps(self):
        table = self.write("a.csv", "user_id,film_id,code,v1,v2\n" + "".join(f"{row % 2},{row if row != 3 else ''},c{row},1.5,{row}\n"
                                                                             for row in range(6)))
        self.assertEqual(self.chosen(importing.import_tables([table], self.folder))["code"], "ids")
        for wanted, text in (("film_id", "row 3 has no value"), ("user_id", "rows 0 and 2 both have '0'"), ("v1", "it holds number"),
                             ("nothing", "has no column nothing; it has user_id, film_id")):
            with self.subTest(wanted), self.assertRaisesRegex(importing.ImportFailed, text):
                importing.import_tables([table], self.place / "other", id=wanted)
        self.assertEqual(sorted(path.name for path in self.place.iterdir()), ["a.csv", "out"])
        bad = self.write("b.csv", "sku,v1,v2\n1,1.5,2\n1,2.5,3\n")
        with self.assertRaisesRegex(importing.ImportFailed, "no column can hold the ids. sku: rows 0 and 1 both have '1'. Name another"):
            importing.import_tables([bad], self.place / "other")
        self.assertEqual(self.chosen(importing.import_tables(bad, self.place / "other", id="-"))["-"], "ids are row numbers")

    def test_a_name_that_only_ends_like_an_id_is_one_for_integers_and_texts(self):
        table = self.write("wine.csv", "malic_acid,x_0,x_1\n1.71,0.1,0.2\n1.78,0.3,0.4\n")
        report = importing.import_tables([table], self.folder)
        self.assertEqual(self.chosen(report)["malic_acid"], "number")
        self.assertNotIn("ids", self.chosen(report).values())
        for name in ("movieid", "movie-id", "movieId", "ID"):
            table = self.write("a.csv", f"{name},x_0,x_1\n7,0.1,0.2\n8,0.3,0.4\n")
            self.assertEqual(self.chosen(importing.import_tables([table], self.place / name))[name], "ids")
        table = self.write("b.csv", "wine_id,x_0,x_1\n1.5,0.1,0.2\n2.5,0.3,0.4\n")
        with self.assertRaisesRegex(importing.ImportFailed, "wine_id: it holds number"):
            importing.import_tables([table], self.place / "b")

    def test_arrays_tables_users_and_interactions_are_one_folder(self):
        rng = np.random.default_rng(5)
        np.save(self.place / "v.npy", rng.random((40, 8)))
        films = self.write("films.tsv", "item_id\ttitle\n" + "".join(f"f{row}\tFilm {row}\n" for row in range(40)))
        users = self.write("users.json", json.dumps([{"user_id": row, "taste": rng.random(8).tolist()} for row in range(9)]))
        clicks = self.write("clicks.csv", "user_id,item_id,when\n" + "".join(f"{row % 9},f{row % 40},2020-01-01\n" for row in range(50)))
        report = importing.import_tables([self.place / "v.npy", films, users, clicks], self.folder, user="user_id")
        self.assertEqual((report.rows, report.dim, report.users, report.interactions), (40, 8, 9, 50))
        self.assertRegex(self.inspect(), r"users +9\n")
        few = self.write("few.csv", "title\n" + "x\n" * 9)
        with self.assertRaisesRegex(importing.ImportFailed, "no table has the column 'who': v.npy has vector; few.csv has title"):
            importing.import_tables([self.place / "v.npy", few], self.place / "other", user="who")
        with self.assertRaisesRegex(importing.ImportFailed, "v.npy has 40 rows and few.csv 9.*--user COLUMN"):
            importing.import_tables([self.place / "v.npy", few], self.place / "other")
        with self.assertRaisesRegex(importing.ImportFailed, "is not empty"):
            importing.import_tables([self.place / "v.npy"], self.folder)

    def test_values_of_python_keep_their_meaning(self):
        when = datetime.datetime(2020, 1, 2, 3, 4, 5)
        payload = {"id": [7, 8], "price": [decimal.Decimal("1.10"), None], "when": [when, when.replace(tzinfo=datetime.timezone.utc)],
                   "ratio": [float("nan"), 0.5], "count": np.array([3, 4]), "ok": [True, False]}
        report = importing.write_folder(self.folder, np.eye(2, 4), payload, users={"u": [1, 0, 0, 0]}, interactions=[("u", 7), (None, 8)])
        self.assertEqual((report.users, report.interactions), (1, 2))
        self.assertEqual(self.rows(), [{"id": 7, "price": 1.1, "when": "2020-01-02T03:04:05Z", "count": 3, "ok": True},
                                       {"id": 8, "when": "2020-01-02T03:04:05Z", "ratio": 0.5, "count": 4, "ok": False}])
        self.inspect()
        with self.assertRaisesRegex(importing.ImportFailed, "raw: row 0 holds a bytes"):
            importing.write_folder(self.place / "other", np.eye(1, 4), {"raw": [b"x"]})
        with self.assertRaisesRegex(importing.ImportFailed, "2 vectors and 3 values of id"):
            importing.write_folder(self.place / "other", np.eye(2, 4), ids=[1, 2, 3])
        with self.assertRaisesRegex(importing.ImportFailed, "the payload has a column id"):
            importing.write_folder(self.place / "other", np.eye(2, 4), {"id": [1, 2]}, ids=[1, 2])

    def test_decimals_are_numbers_where_no_digit_is_lost(self):
        def decimals(*texts):
            return [None if text is None else decimal.Decimal(text) for text in texts]
        payload = {"id": decimals("7", "8"), "price": decimals("20.50", None), "large": decimals("12345678901234567.25", "1.00"),
                   "none": decimals("NaN", "2.5"), "vector": [decimals("0.5", "1.25")] * 2}
        report = importing.write_folder(self.folder, np.eye(2, 4), payload)
        self.assertEqual(self.chosen(report), {"vectors": "vectors of 4 dimensions", "id": "ids", "price": "number", "large": "text",
                                               "none": "number", "vector": "list"})
        self.assertEqual(self.rows(), [{"id": 7, "price": 20.5, "large": "12345678901234567.25", "vector": [0.5, 1.25]},
                                       {"id": 8, "large": "1.00", "none": 2.5, "vector": [0.5, 1.25]}])
        why = {choice.column: choice.why for choice in report.choices}
        self.assertEqual(why["large"], "row 0 has 12345678901234567.25: more digits than a number keeps")
        self.inspect()
        with self.assertRaisesRegex(importing.ImportFailed, "n: row 1 holds Infinity"):
            importing.write_folder(self.place / "other", np.eye(2), {"n": decimals("1", "Infinity")})

    def test_a_column_of_numbers_with_a_few_words_is_told_and_read_as_asked(self):
        prices = ["1.5"] * 18 + ["call us", ""]
        table = self.write("a.csv", "id,price,zip,v_0,v_1\n" + "".join(f"a{row},{price},{'01234' if row else 'none'},{row}.5,1\n"
                                                                       for row, price in enumerate(prices)))
        why = {choice.column: choice.why for choice in importing.import_tables([table], self.folder).choices}
        self.assertEqual(why["price"], "row 18 has 'call us', which is no number; 18 of 19 values are numbers: --number price leaves the "
                                       "others out")
        self.assertNotIn("--number", why["zip"])
        self.folder = self.place / "asked"
        report = importing.import_tables([table], self.folder, numbers=["price"])
        self.assertEqual((report.choices[2].chosen, report.choices[2].why),
                         ("number", "asked for; 1 values are no numbers and left out, the first in row 18: 'call us'; 1 rows have no value"))
        self.assertEqual([row.get("price") for row in self.rows()], [1.5] * 18 + [None] * 2)
        self.assertRegex(self.inspect(), "field price +number")
        mixed = self.write("m.jsonl", "".join(json.dumps({"id": row, "n": row if row else "x", "digits": "007", "v": [row + .5, 1]}) + "\n"
                                              for row in range(20)))
        report = importing.import_tables([mixed], self.place / "mixed", numbers=["digits"])
        why = {choice.column: choice.why for choice in report.choices}
        self.assertIn("19 of 20 values are numbers: --number n", why["n"])
        self.assertEqual(self.chosen(report)["digits"], "integer")
        for name, message in (("no", "has no column no; it has"), ("title", "no value of title is a number; row 0 has 'x'"),
                              ("vector", "holds vectors")):
            words = self.write("w.csv", "id,title,vector\n" + "".join(f'{row},x,"[{row}.5, 1]"\n' for row in range(2)))
            with self.subTest(name), self.assertRaisesRegex(importing.ImportFailed, message):
                importing.import_tables([words], self.place / "other", numbers=[name])

    def test_words_and_numbers_of_a_csv_stay_what_they_are(self):
        table = self.write("a.csv", "iso,score,full,huge,tiny,flag,v_0,v_1\n"
                                    "NA,NA,0.5488135039273248,1e400,1e-400,true,0.5488135039273248,1\n"
                                    "DE,1.5,0.1,1,1,NA,0.123456789012345678901,2\n")
        report = importing.import_tables([table], self.folder, vector="v_0,v_1")
        self.assertEqual(self.chosen(report), {"v_0, v_1": "vectors of 2 dimensions", "iso": "ids", "score": "number", "full": "number",
                                               "huge": "text", "tiny": "text", "flag": "boolean"})
        self.assertEqual(self.rows(), [{"iso": "NA", "full": 0.5488135039273248, "huge": "1e400", "tiny": "1e-400", "flag": True},
                                       {"iso": "DE", "score": 1.5, "full": 0.1, "huge": "1", "tiny": "1"}])
        self.inspect()
        for text, message in (('a,b\n1,"2\n3,4\n', "line 3: unexpected end of data"), ('a,b\n1,"2"x\n', "line 2: ',' expected")):
            with self.subTest(text), self.assertRaisesRegex(importing.ImportFailed, message):
                importing.import_tables([self.write("b.csv", text)], self.place / "other")
        long = self.write("c.csv", 'v,id\n' + "".join(f'"[{row}.5{", 1.25" * 40_000}]",{row}\n' for row in range(2)))
        with self.assertRaisesRegex(importing.ImportFailed, "40,001 dimensions; a collection may have 4,096"):
            importing.import_tables([long], self.place / "other")

    def test_values_that_no_row_can_hold_are_refused_or_text(self):
        one = np.eye(3, 4)
        table = {"id": [1, 2, 3], "n": [2**63, 1, None], "when": np.array(["2020-01-01T00:00:00.5", "NaT", "2021-01-01"], "M8[ns]")}
        report = importing.write_folder(self.folder, one, table)
        self.assertEqual(self.chosen(report)["n"], "text")
        self.assertEqual(self.rows(), [{"id": 1, "n": "9223372036854775808", "when": "2020-01-01T00:00:00.5Z"}, {"id": 2, "n": "1"},
                                       {"id": 3, "when": "2021-01-01T00:00:00Z"}])
        self.inspect()
        cases = (({"id": ["a", "b", "x" * 513]}, None, "no column can hold the ids. id: row 2 has 'xxx"),
                 ({"long": ["x" * 70_000, "", ""]}, None, "row 0 takes 70,0.. bytes.*--leave-out long"),
                 ({"n": [float("inf"), 1, 2]}, None, "n: row 0 holds inf"), ({"n": [1, 2]}, None, "3 vectors and 2 values of n"),
                 ({"d": np.zeros(3, "m8[s]")}, None, "d: row 0 holds a timedelta64"), ({"s": [{1}, {2}, {3}]}, None, "row 0 holds a set"),
                 ({"id": [1, 2, 3]}, {"u": [0, 0, 0, 0]}, "the vector in row 0 is zero"))
        for payload, users, message in cases:
            with self.subTest(message), self.assertRaisesRegex(importing.ImportFailed, message):
                importing.write_folder(self.place / "other", one, payload, users=users)
        with self.assertRaisesRegex(importing.ImportFailed, "every vector is zero"):
            importing.write_folder(self.place / "other", 0 * one)
        with self.assertRaisesRegex(importing.ImportFailed, "line 1: an object has two members named 'a'"):
            importing.import_tables([self.write("a.jsonl", '{"a": 1, "a": 2}\n')], self.place / "other")
        self.assertEqual(sorted(path.name for path in self.place.iterdir()), ["a.jsonl", "out"])

    def test_interactions_name_users_and_items_as_the_folder_does(self):
        report = importing.write_folder(self.folder, np.eye(2), {"id": [7, 8]}, users={1: [1, 0]},
                                        interactions={"user_id": [1.0, float("nan"), 1.0], "id": [7, 8, 8.0]})
        lines = [json.loads(line) for line in (self.folder / "interactions.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual(lines, [{"user_id": "1", "media_id": "7"}, {"media_id": "8"}, {"user_id": "1", "media_id": "8"}])
        self.assertEqual(report.interactions, 3)
        self.inspect()
        some = importing.write_folder(self.place / "some", np.eye(2), {"id": [7, 8]}, interactions=[("u", 7), ("u", 9)])
        self.assertEqual((some.interactions, some.choices[-1].why), (1, "user and item; 1 rows of unknown items are left out, the first '9'"))
        with self.assertRaisesRegex(importing.ImportFailed, "none of its 1 rows names an item; id has '07', and the items' ids are like '7'"):
            importing.write_folder(self.place / "other", np.eye(2), {"id": [7, 8]}, interactions=[("u", "07")])
        with self.assertRaisesRegex(importing.ImportFailed, "interactions: row 0: 1.5 is no id"):
            importing.write_folder(self.place / "other", np.eye(2), {"id": [7, 8]}, interactions=[("u", 1.5)])

    def test_rows_of_zeros_are_kept_and_said(self):
        report = importing.write_folder(self.folder, [[0, 0], [1, 2]], ids=["a", "b"])
        self.assertEqual((self.settings(), report.choices[-1].chosen), ({"on_zero_row": "skip"}, "skip"))
        self.inspect()

    def test_what_cannot_be_a_folder_is_said_with_its_place(self):
        cases = (("a.csv", "a,b\n1,x\n", "a.csv has no vectors: no column holds lists of numbers of one length. Name a file"),
                 ("b.csv", "a,b\n1\n", "b.csv: line 2 has 1 fields, and the header 2"),
                 ("c.csv", "a,a\n1,2\n", "two columns are named 'a'"),
                 ("d.jsonl", '{"a": 1}\n{"a": }\n', "d.jsonl: line 2, column 7"),
                 ("e.json", '"text"', "holds a str; give a list of objects"),
                 ("f.json", "[1]", "row 0 is a int, and no object"),
                 ("g.bin", "", "files are .parquet"),
                 ("h.csv", "a,b,c\n", "has no vectors"))
        cases = (*cases, ("j.jsonl", '{"v": [1.5, 2]}\n{"v": [1.5, 2]}\n{"v": [1.5]}\n', "v holds no vectors: row 2 has 1 numbers, and row 0 has 2"),
                 ("k.jsonl", '{"v": [1.5, 2]}\n{"v": [1.5, NaN]}\n', "row 1 has no number at place 1"),
                 ("l.jsonl", '{"v": [1.5, 2]}\n{}\n{"v": [1.5, 2]}\n', "row 1 has no value"),
                 ("m.csv", 'v\n[0.1 0.2]\n[0.1 0.3]\n', "which is no list of JSON"),
                 ("n.csv", "price,stock\n1.5,2\n", "or columns of numbers: --vector price,stock"),
                 ("w.csv", "unit price,stock\n1.5,2\n", "or columns of numbers: --vector 'unit price,stock'"),
                 ("o.json", '{"a": 1}\n{"a": 2}\n', "Extra data; objects on lines of their own are .jsonl"))
        for name, text, message in cases:
            with self.subTest(name), self.assertRaisesRegex(importing.ImportFailed, message):
                importing.import_tables([self.write(name, text)], self.folder)
        self.assertFalse(self.folder.exists())
        with self.assertRaisesRegex(importing.ImportFailed, "is no file"):
            importing.import_tables([self.place / "no"], self.folder)
        gap = self.write("i.csv", "a,b\n1,2\n,3\n")
        with self.assertRaisesRegex(importing.ImportFailed, "a has no value in row 1"):
            importing.import_tables([gap], self.folder, vector="a,b")

    @unittest.skipIf(pyarrow is None, "pyarrow is not installed")
    def test_parquet_keeps_types(self):
        table = pyarrow.table({"id": ["00" + str(row) for row in range(20)],
                               "v": pyarrow.array(np.random.default_rng(1).random((20, 6), "f4").tolist(), pyarrow.list_(pyarrow.float32())),
                               "when": [datetime.datetime(2020, 1, 1)] * 20, "n": list(range(19)) + [None]})
        pyarrow.parquet.write_table(table, self.place / "t.parquet")
        report = importing.import_tables([self.place / "t.parquet"], self.folder)
        self.assertEqual(self.chosen(report), {"v": "vectors of 6 dimensions", "id": "ids", "when": "text", "n": "integer"})
        self.assertEqual(self.rows()[19], {"id": "0019", "when": "2020-01-01T00:00:00Z"})
        self.inspect()

    def test_the_payloads_column_of_ids_can_be_named(self):
        payload = {"name": ["a", "b"], "id": [1, 1]}
        importing.write_folder(self.folder, np.eye(2), payload, id="name")
        self.assertEqual(self.settings(), {"id_field": "name"})
        with self.assertRaisesRegex(importing.ImportFailed, "give one"):
            importing.write_folder(self.place / "other", np.eye(2), payload, ids=["x", "y"], id="name")

    def test_write_folder_reads_numbers_as_asked(self):
        payload = {"id": [1, 2], "price": [decimal.Decimal("1.5"), "call"]}
        importing.write_folder(self.folder, np.eye(2), payload, numbers=["price"])
        self.assertEqual(self.rows(), [{"id": 1, "price": 1.5}, {"id": 2}])
        with self.assertRaisesRegex(importing.ImportFailed, "payload has no column no"):
            importing.write_folder(self.place / "other", np.eye(2), payload, numbers=["no"])

    def test_the_command_prints_its_choices(self):
        table = self.write("a.csv", "id,x1,x2,bad\n1,2.5,3,1\n2,3.5,4,2\n")
        out, wrong = io.StringIO(), io.StringIO()
        with redirect_stdout(out):
            self.assertEqual(command.main(["import", str(table), str(self.folder)]), 0)
        self.assertIn("vectors of 2 dimensions", out.getvalue())
        self.assertIn("bad", out.getvalue())
        self.assertIn(f"simile serve --collection out={self.folder}", out.getvalue())
        with redirect_stderr(wrong):
            self.assertEqual(command.main(["import", str(table), str(self.folder)]), 1)
            with self.assertRaises(SystemExit) as ended:
                command.main(["import", str(table)])
        self.assertEqual(ended.exception.code, 64)
        other = self.place / "without"
        with redirect_stdout(io.StringIO()):
            self.assertEqual(command.main(["import", str(table), str(other), "--leave-out", "bad"]), 0)
        self.assertNotIn("bad", (other / "metadata.jsonl").read_text(encoding="utf-8"))
        self.assertIn("is not empty", wrong.getvalue())
        self.assertRegex(command.why_no_program("serve"), "simile serve needs the server's program.*pip install simile-server")


if __name__ == "__main__":
    unittest.main(verbosity=2)
