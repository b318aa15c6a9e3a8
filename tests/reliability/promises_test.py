#!/usr/bin/env python3
"""Every promise names tests that exist, and docs/reliability.md is what promises.py makes, but for the figures."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from unittest import mock

import promises


class PromisesTest(unittest.TestCase):
    def test_every_promise_names_tests_that_exist(self):
        known = promises.known_tests()
        for row in promises.rows():
            self.assertTrue(row["tests"], row["promise"])
            for test in row["tests"]:
                self.assertIn(test, known, f"{row['promise']}: no such test")

    def test_the_page_has_the_table(self):
        page = promises.PAGE.read_text(encoding="utf-8")
        self.assertEqual(promises.without_figures(page[promises.place_of(page)]), promises.without_figures(promises.table({})),
                         "renew docs/reliability.md: make promises")

    def test_the_long_runs_that_are_kept_passed_and_were_as_long_as_asked(self):
        for row in promises.rows():
            if "record" in row:
                record = promises.record_of(row)
                self.assertTrue(record["passed"], row["record"])
                self.assertTrue(row["at_least"], row["record"])
                self.assertEqual(promises.faults_of(record, row["at_least"]), [], row["record"])

    def test_a_record_that_failed_or_is_too_short_is_refused(self):
        figures = [{"what": "stops", "value": 6, "unit": "", "at_most": 6, "at_least": 6}]
        record = {"failures": [], "figures": figures}
        self.assertEqual(promises.faults_of(record, {"stops": 6}), [])
        self.assertEqual(promises.faults_of(record, {"stops": 200, "kills": 500}),
                         ["stops: 6, 200 at least are asked", "kills: no figure, 500 at least are asked"])
        figures[0]["value"] = 5
        self.assertEqual(promises.faults_of(record | {"failures": ["cycle 3"]}, {}), ["cycle 3", "stops: not as it must be"])

    def test_the_page_has_the_figures_of_the_long_runs(self):
        page = promises.PAGE.read_text(encoding="utf-8")
        for row in promises.rows():
            self.assertIn(promises.record_text(row), page, "renew docs/reliability.md: make promises")

    def runs(self, *cases: str) -> dict[str, promises.Run]:
        """Of a report with these elements."""
        with tempfile.TemporaryDirectory() as folder:
            junit = pathlib.Path(folder) / "tests.xml"
            junit.write_text(f"<testsuite>{''.join(cases)}</testsuite>", encoding="utf-8")
            return promises.runs(junit)

    def test_seconds_and_figures_are_those_of_all_cases_of_the_tests(self):
        ran = self.runs(
            '<testcase name="All/ATest.Does/3  # GetParam() = a-b 3" time="1.5" status="run"><system-out>[ RUN ]\n7 of 9 done\n'
            '</system-out></testcase><testcase name="ATest.Other" time="2" status="run"/>'
            '<testcase name="ATestOther.Does" time="9" status="run"><system-out>8 of 9 done</system-out></testcase>'
            '<testcase name="BTest.Does" time="4" status="fail"/>')
        self.assertEqual(promises.seconds_of({"tests": ["ATest"]}, ran), "3.5")
        self.assertEqual(promises.seconds_of({"tests": ["ATest.Does"]}, ran), "1.5")
        self.assertEqual(promises.seconds_of({"tests": ["BTest"]}, ran), "")
        self.assertEqual(promises.figures_of({"tests": ["ATest"], "printed": [r"\d of \d done"]}, ran), "2 tests passed; 7 of 9 done")
        numbers = [{"pattern": r"(\d)", "of": "sum", "text": "{} in all"}, {"pattern": r"(\d)", "of": "greatest", "text": "{} at most"}]
        self.assertEqual(promises.figures_of({"tests": ["ATest.Does"], "numbers": numbers}, ran), "1 test passed; 16 in all; 9 at most")

    def test_a_promise_is_proven_only_by_tests_that_passed(self):
        skip = '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
        ran = self.runs('<testcase name="ATest.Does" time="1" status="run"/>', '<testcase name="ATest.Fails" time="1" status="fail"/>',
                        '<testcase name="ATest.Disabled" time="0" status="disabled"/>',
                        f'<testcase name="BTest.Does" time="1" status="notrun">{skip}</testcase>',
                        '<testcase name="CTest.Does" time="1" status="notrun"><skipped message="Unable to find executable"/></testcase>',
                        '<testcase name="All/DTest.Does/avx2" time="1" status="run"/>',
                        f'<testcase name="All/DTest.Does/amx" time="1" status="notrun">{skip}</testcase>',
                        '<testcase name="All/ETest.Does/1" time="1" status="run"/>',
                        '<testcase name="All/ETest.Does/2" time="1" status="notrun"><skipped message="Fixture"/></testcase>')
        for tests, faults in {"ATest.Does": [], "ATest": ["ATest.Fails: failed", "ATest.Disabled: disabled"],
                              "BTest": ["BTest.Does: skipped"], "CTest.Does": ["CTest.Does: did not run"], "DTest": [],
                              "ETest": ["All/ETest.Does/2: did not run"], "FTest": ["FTest: not in the report"]}.items():
            self.assertEqual(promises.unproven_by({"tests": [tests]}, ran), faults)
        self.assertEqual(promises.figures_of({"tests": ["DTest"]}, ran), "1 test passed, 1 skipped")
        self.assertEqual(promises.unproven_by({"tests": ["ATest.Does", "FTest"]}, {}),
                         ["ATest.Does: not in the report", "FTest: not in the report"])

    def test_the_table_is_not_written_from_a_report_that_does_not_prove_it(self):
        page = promises.PAGE.read_text(encoding="utf-8")
        errors = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(promises, "JUNIT", pathlib.Path(folder) / "tests.xml"), \
             mock.patch("sys.argv", ["promises.py", "--write"]), contextlib.redirect_stderr(errors):
            self.assertEqual(promises.main(), 1)
        self.assertIn("HostilePeersTest.HarmsNobody: not in the report", errors.getvalue())
        self.assertEqual(promises.PAGE.read_text(encoding="utf-8"), page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
