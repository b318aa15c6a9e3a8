#!/usr/bin/env python3
"""The check of hardening finds each protection that a small program was built without."""

import pathlib
import subprocess
import tempfile
import unittest

import hardening

SOURCE = r"""
#include <stdio.h>
#include <string.h>
int main(int count, char** texts) {
  char text[64];
  strcpy(text, texts[0]);
  printf("%s %d\n", text, count);
  return 0;
}
"""
HARDENED = ["-O2", "-fPIE", "-pie", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2",
            "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack", "-fcf-protection" if hardening.IS_X86 else "-O2"]


class HardeningTest(unittest.TestCase):
    def findings(self, *more: str) -> list[str]:
        """Of the program built hardened, then with these flags in place of what they undo."""
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "sample"
            subprocess.run(["cc", "-x", "c", "-", *HARDENED, *more, "-o", str(program)], input=SOURCE, text=True, check=True)
            return hardening.file_findings(program, "main")

    def test_finds_nothing_when_all_is_there(self):
        self.assertEqual(self.findings(), [])

    def test_finds_what_is_left_out(self):
        cases = {
            "-pie": ["-no-pie", "-fno-pie"],
            "-z relro": ["-Wl,-z,norelro"],
            "-z now": ["-Wl,-z,lazy"],
            "-z noexecstack": ["-Wl,-z,execstack"],
            "-fstack-protector-strong": ["-fno-stack-protector"],
            "-D_FORTIFY_SOURCE=2": ["-U_FORTIFY_SOURCE"],
        }
        if hardening.IS_X86:
            cases["-fcf-protection"] = ["-fcf-protection=none"]
        for missing, flags in cases.items():
            with self.subTest(missing):
                findings = self.findings(*flags)
                self.assertTrue(any(f"({missing})" in each for each in findings), findings)

    def test_finds_a_source_without_a_flag(self):
        command = {"file": "/x/src/net/server.cpp", "command": f"g++ {' '.join(hardening.FLAGS)} -o src/net/server.o"}
        self.assertEqual(hardening.source_findings([command]), [])
        for flag in hardening.FLAGS:
            without = {**command, "command": command["command"].replace(flag, "")}
            self.assertEqual(hardening.source_findings([without]), [f"/x/src/net/server.cpp: compiled without {flag}"])
        self.assertEqual(len(hardening.source_findings([])), 1)


if __name__ == "__main__":
    unittest.main()
