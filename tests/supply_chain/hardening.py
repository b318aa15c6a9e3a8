#!/usr/bin/env python3
"""Checks that what ships is hardened, from the files themselves: their ELF headers, symbols and code.

hardening.py COMPILE_COMMANDS FILE:SYMBOL..., where SYMBOL is a function of the file. Exits 1 and prints what is missing.
"""

import json
import pathlib
import platform
import re
import subprocess
import sys

ENDBR64 = bytes.fromhex("f30f1efa")
IS_X86 = platform.machine() in ("x86_64", "AMD64")
# What each source that ships is compiled with, because not every function shows it.
FLAGS = ["-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=2"] + ["-fcf-protection"] * IS_X86
# By where their object files go: tests compile some of the sources for themselves.
SHIPPED = re.compile(r" -o (src|proto|kernels)/")


def readelf(path: pathlib.Path, *options: str) -> str:
    return subprocess.run(["readelf", "--wide", *options, str(path)], check=True, capture_output=True, text=True).stdout


def segments(path: pathlib.Path) -> list[tuple[str, list[int], str]]:
    """Type, [offset, address, physical address, bytes in the file, bytes in memory] and rights of each segment."""
    row = re.compile(r"^  (\w+) +((?:0x[0-9a-f]+ +){5})([R ][W ][E ]) ", re.MULTILINE)
    return [(kind, [int(each, 16) for each in numbers.split()], rights)
            for kind, numbers, rights in row.findall(readelf(path, "--segments"))]


def code_at(path: pathlib.Path, symbol: str, count: int) -> bytes:
    """The first bytes of a function; empty where the file has none of this name."""
    found = re.search(rf"^ +\d+: ([0-9a-f]+) +\d+ FUNC +\w+ +\w+ +\d+ {re.escape(symbol)}$", readelf(path, "--symbols"), re.MULTILINE)
    if not found:
        return b""
    address = int(found[1], 16)
    for kind, (offset, start, _, in_file, _), _ in segments(path):
        if kind == "LOAD" and start <= address < start + in_file:
            begin = offset + address - start
            return path.read_bytes()[begin:begin + count]
    return b""


def file_findings(path: pathlib.Path, symbol: str) -> list[str]:
    dynamic = readelf(path, "--dynamic")
    symbols = readelf(path, "--dyn-syms")
    parts = segments(path)
    stack = [rights for kind, _, rights in parts if kind == "GNU_STACK"]
    is_shared = path.suffix == ".so"
    checks = {
        "not position-independent (-pie)": is_shared or re.search(r"\(FLAGS_1\).*\bPIE\b", dynamic),
        "no read-only relocations (-z relro)": any(kind == "GNU_RELRO" for kind, _, _ in parts),
        "functions are bound when first called (-z now)": re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*\bNOW\b", dynamic),
        "the stack can be executed (-z noexecstack)": stack and all("E" not in rights for rights in stack),
        "a segment can be written and executed": not any(kind == "LOAD" and "W" in rights and "E" in rights for kind, _, rights in parts),
        "relocations in code (-fPIC)": "(TEXTREL)" not in dynamic,
        "no stack protector (-fstack-protector-strong)": "__stack_chk_fail" in symbols,
        "no checked function of glibc (-D_FORTIFY_SOURCE=2)": re.search(r" __(?!stack)\w+_chk(@|$)", symbols, re.MULTILINE),
    }
    if IS_X86:
        checks[f"{symbol} does not begin with endbr64 (-fcf-protection)"] = code_at(path, symbol, 4) == ENDBR64
    return [f"{path.name}: {finding}" for finding, passed in checks.items() if not passed]


def source_findings(commands: list[dict[str, str]]) -> list[str]:
    """Which sources of what ships are compiled without one of the flags."""
    shipped = [each for each in commands if SHIPPED.search(each["command"])]
    findings = [f"{each['file']}: compiled without {flag}" for each in shipped for flag in FLAGS if flag not in each["command"]]
    return findings if shipped else ["no source of what ships in the compile commands"]


def main() -> int:
    commands = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    findings = source_findings(commands)
    for argument in sys.argv[2:]:
        path, symbol = argument.split(":")
        findings += file_findings(pathlib.Path(path), symbol)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
