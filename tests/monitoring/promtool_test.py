#!/usr/bin/env python3
"""Runs Prometheus' own checks: the configuration with its rules, and the cases of *_rules_test.yml. Exits 77 without promtool."""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = [["check", "config", HERE.parents[1] / "deploy/prometheus/prometheus.yml"],
          ["test", "rules", *sorted(HERE.glob("*_rules_test.yml"))]]

if shutil.which("promtool") is None:
    print("skipped: promtool is not installed (Debian: prometheus)")
    sys.exit(77)
sys.exit(max(subprocess.run(["promtool", *check], check=False).returncode for check in CHECKS))
