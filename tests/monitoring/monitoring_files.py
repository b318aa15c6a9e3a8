"""Reads what deploy/ holds for Prometheus, Grafana and DCGM, and which metrics the documents name.

Exits 77, which ctest takes for skipped, where Python has no yaml.
"""

import csv
import json
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("skipped: Python has no yaml (Debian: python3-yaml)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/rules.yml"
RULE_TESTS = sorted((ROOT / "tests/monitoring").glob("*_rules_test.yml"))
PROMETHEUS = ROOT / "deploy/prometheus/prometheus.yml"
DASHBOARD = ROOT / "deploy/grafana/dashboards/simile.json"
DCGM_FIELDS = ROOT / "deploy/dcgm/fields.csv"
DCGM_PROFILING = ROOT / "deploy/dcgm/fields-profiling.csv"
DCGM_PASCAL = ROOT / "deploy/dcgm/fields-pascal.csv"
OPERATIONS = ROOT / "docs/operations.md"
DOCUMENTS = [OPERATIONS, ROOT / "docs/configuration.md"]

WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}


def load_yaml(path: pathlib.Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def rules() -> list[dict]:
    return [rule for group in load_yaml(RULES)["groups"] for rule in group["rules"]]


def panels() -> list[dict]:
    """Of the dashboard; those with queries, not the titles of its rows."""
    return [panel for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"]


def metric_names(expression: str) -> set[str]:
    """The metrics that a PromQL expression reads."""
    for what in (r'"(\\.|[^"\\])*"', r"\{[^}]*\}", r"\[[^]]*\]", r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)"):
        expression = re.sub(what, "", expression)
    names = re.findall(r"(?<![\w.:])([a-zA-Z_:][\w:]*)(?![\w:])(?!\s*\()", expression)
    return {name for name in names if name.lower() not in WORDS}


def documented_metrics() -> dict[str, str]:
    """What each metric is, by its name, from the table that begins with `| metric |`. A name may end with `*`."""
    metrics = {}
    for document in DOCUMENTS:
        in_table = False
        for line in document.read_text(encoding="utf-8").splitlines():
            in_table = line.startswith("| metric |") or (in_table and line.startswith("|"))
            if in_table and "`" in line:
                first, _, what = (cell.strip() for cell in line.strip("|").split("|", 2))
                metrics |= dict.fromkeys(re.findall(r"`([^`]*)`", first), what)
    return metrics


def is_documented(name: str, metrics: dict[str, str]) -> bool:
    if any(name == known or (known.endswith("*") and name.startswith(known[:-1])) for known in metrics):
        return True
    part = re.fullmatch(r"(.*)_(bucket|sum|count)", name)
    return part is not None and metrics.get(part[1], "").startswith("histogram")


def dcgm_fields(path: pathlib.Path = DCGM_FIELDS) -> list[list[str]]:
    """Name, Prometheus type and help of each field in one of the files."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [[cell.strip() for cell in row] for row in csv.reader(lines)]


def dcgm_names() -> set[str]:
    """The fields of all three files."""
    return {row[0] for path in (DCGM_FIELDS, DCGM_PROFILING, DCGM_PASCAL) for row in dcgm_fields(path)}
