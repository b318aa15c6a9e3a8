#!/usr/bin/env python3
"""Checks the files of deploy/ for Prometheus, Grafana and DCGM against each other, the documents and the compose files."""

import itertools
import json
import pathlib
import re
import sys
import unittest

import monitoring_files as files

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import compose_files

# Series that Prometheus itself makes.
OF_PROMETHEUS = {"up", "ALERTS"}


def unknown_metrics(expression: str) -> set[str]:
    recorded = {rule["record"] for rule in files.rules() if "record" in rule}
    known = OF_PROMETHEUS | recorded | files.dcgm_names()
    documented = files.documented_metrics()
    return {name for name in files.metric_names(expression) - known if not files.is_documented(name, documented)}


class MetricNamesTest(unittest.TestCase):
    def test_finds_metrics_and_nothing_else(self):
        expression = 'sum by (a, b) (rate(x_total{c="d", e=~"f|g"}[5m])) / on (a) (y > bool 1e18) or 0 * r:z:s unless w'
        self.assertEqual(files.metric_names(expression), {"x_total", "y", "r:z:s", "w"})

    def test_knows_documented_metrics_only(self):
        self.assertEqual(unknown_metrics("simile_queue_depth / simile_queue_length + simile_batch_size_bucket + simile_rows_count"),
                         {"simile_queue_length", "simile_rows_count"})


class RulesTest(unittest.TestCase):
    def test_rules_read_metrics_that_exist(self):
        for rule in files.rules():
            self.assertEqual(unknown_metrics(rule["expr"]), set(), rule.get("alert") or rule.get("record"))

    def test_alerts_say_what_where_and_what_to_do(self):
        for rule in (rule for rule in files.rules() if "alert" in rule):
            name, notes = rule["alert"], rule["annotations"]
            self.assertEqual(set(notes), {"summary", "description", "runbook"}, name)
            self.assertIn("{{", notes["summary"], f"{name}: the summary says where")
            self.assertIn(rule["labels"]["severity"], ("critical", "warning"), name)

    def test_runbooks_are_headings_of_the_document(self):
        headings = re.findall(r"^#+ (\w+)$", files.OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {heading.lower() for heading in headings}
        for rule in (rule for rule in files.rules() if "alert" in rule):
            self.assertEqual(rule["annotations"]["runbook"], f"docs/operations.md#{rule['alert'].lower()}")
            self.assertIn(rule["alert"].lower(), anchors)

    def test_every_rule_has_a_firing_and_a_quiet_case(self):
        fired, quiet = set(), set()
        cases = [case for file in files.RULE_TESTS for case in files.load_yaml(file)["tests"]]
        for case in cases:
            for check in case["alert_rule_test"]:
                if not check["exp_alerts"]:
                    quiet.add(check["alertname"])
                for alert in check["exp_alerts"]:
                    labels = alert["exp_labels"]
                    fired.add((check["alertname"], labels["severity"], labels.get("cause")))
        alerts = [rule for rule in files.rules() if "alert" in rule]
        self.assertEqual(fired, {(rule["alert"], rule["labels"]["severity"], rule["labels"].get("cause")) for rule in alerts})
        self.assertEqual(quiet, {rule["alert"] for rule in alerts})


class DashboardTest(unittest.TestCase):
    def test_queries_read_metrics_that_exist(self):
        for panel in files.panels():
            for target in panel["targets"]:
                self.assertEqual(unknown_metrics(target["expr"]), set(), panel["title"])

    def test_queries_follow_the_variables(self):
        for panel in files.panels():
            for target in panel["targets"]:
                if any(not name.startswith(("DCGM_", "ALERTS")) for name in files.metric_names(target["expr"])):
                    self.assertIn('instance=~"$instance"', target["expr"], panel["title"])
                self.assertEqual(target["datasource"]["uid"], "${datasource}", panel["title"])

    def test_alerts_that_panels_name_exist(self):
        alerts = {rule["alert"] for rule in files.rules() if "alert" in rule}
        for panel in files.panels():
            for name in re.findall(r"Alert: (\w+)", panel["description"]):
                self.assertIn(name, alerts, panel["title"])

    def test_panels_lie_side_by_side(self):
        dashboard = json.loads(files.DASHBOARD.read_text(encoding="utf-8"))
        self.assertGreaterEqual(dashboard["schemaVersion"], 36)  # Grafana 9
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        for a, b in itertools.combinations((panel["gridPos"] for panel in dashboard["panels"]), 2):
            apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"] or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
            self.assertTrue(apart, f"{a} {b}")

    def test_grafana_counts_with_the_interval_of_prometheus(self):
        source = files.load_yaml(files.ROOT / "deploy/grafana/provisioning/datasources/simile.yml")["datasources"][0]
        self.assertEqual(source["jsonData"]["timeInterval"], files.load_yaml(files.PROMETHEUS)["global"]["scrape_interval"])


class DcgmTest(unittest.TestCase):
    def test_fields_have_a_type_and_a_help(self):
        for path in (files.DCGM_FIELDS, files.DCGM_PROFILING, files.DCGM_PASCAL):
            for row in files.dcgm_fields(path):
                self.assertEqual(len(row), 3, row)  # the exporter refuses a file with any other number
                self.assertRegex(row[0], r"^DCGM_FI_(DEV|PROF)_[A-Z_]+$")
                self.assertIn(row[1], ("gauge", "counter"))

    def test_files_differ_by_what_not_every_exporter_may_watch(self):
        plain = files.dcgm_fields()
        for path, more in ((files.DCGM_PROFILING, {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"}),
                           (files.DCGM_PASCAL, {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT"})):
            rows = files.dcgm_fields(path)
            self.assertEqual([row for row in rows if row[0] not in more], plain, path.name)
            self.assertEqual({row[0] for row in rows} - {row[0] for row in plain}, more, path.name)


class ComposeTest(unittest.TestCase):
    """The profile `monitoring` of the compose files."""

    @unittest.skipUnless(compose_files.CAN_MERGE, "docker-compose is not installed (Debian: docker-compose)")
    def test_services_are_pinned_on_loopback_and_read_files_that_exist(self):
        for names in compose_files.COMBINATIONS:
            merged = compose_files.merged(names, "--profile", "monitoring")
            services = {name: service for name, service in merged.items() if service.get("profiles") == ["monitoring"]}
            expected = {"prometheus", "grafana"} | ({"dcgm-exporter"} if len(names) > 1 else set())
            self.assertEqual(set(services), expected, names)
            for name, service in services.items():
                self.assertRegex(service["image"], r":v?\d+\.\d+\.\d+", name)
                for port in service.get("ports", []):
                    self.assertTrue(port.startswith("127.0.0.1:"), f"{name}: {port}")
                for source in (volume.split(":")[0] for volume in service["volumes"] if volume.startswith("/")):
                    self.assertTrue(pathlib.Path(source).exists(), f"{name}: {source}")
            # DcgmAbsent misses the exporter where Prometheus has its target.
            expects_exporter = any(":/etc/dcgm:" in volume for volume in services["prometheus"]["volumes"])
            self.assertEqual(expects_exporter, "dcgm-exporter" in expected, names)

    @unittest.skipUnless(compose_files.CAN_MERGE, "docker-compose is not installed (Debian: docker-compose)")
    def test_profiling_grants_the_exporter_alone_a_capability(self):
        for names in compose_files.COMBINATIONS[1:]:
            plain = compose_files.merged(names, "--profile", "monitoring")
            granted = compose_files.merged((*names, "compose.gpu-profiling.yaml"), "--profile", "monitoring")
            exporter = granted["dcgm-exporter"]
            self.assertEqual((exporter["cap_drop"], exporter["cap_add"]), (["ALL"], ["SYS_ADMIN"]), names)
            self.assertEqual(exporter["security_opt"], ["no-new-privileges:true"], names)
            self.assertEqual(exporter["environment"]["DCGM_EXPORTER_COLLECTORS"], f"/etc/dcgm/{files.DCGM_PROFILING.name}", names)
            self.assertEqual({name for name, service in granted.items() if "cap_add" in service}, {"dcgm-exporter"}, names)
            for name in plain.keys() - {"dcgm-exporter"}:
                self.assertEqual(granted[name], plain[name], f"{names}: {name}")
            self.assertEqual(plain["dcgm-exporter"]["environment"]["DCGM_EXPORTER_COLLECTORS"], f"/etc/dcgm/{files.DCGM_FIELDS.name}")


if __name__ == "__main__":
    unittest.main()
