#!/usr/bin/env python3
"""Checks deploy/kubernetes without a cluster.

    kubernetes_test.py SIMILE

Skipped (77) without python3-yaml. Without kubectl the base is checked as it is written, before kustomize has put it together,
and the overlays are not.
"""

import json
import sys
import unittest

try:
    import manifests
    from manifests import KUBECTL, container, one, pod
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}; it is Debian's python3-yaml")
    sys.exit(77)
try:
    import kubernetes_types
except ModuleNotFoundError:
    kubernetes_types = None

SIMILE = sys.argv.pop() if __name__ == "__main__" else ""
SETTINGS = manifests.load_settings(manifests.settings_text("kubernetes/base"))
OVERLAYS = ("base", "gpu")


def everything() -> dict[str, list[dict]]:
    """All that can be applied, by name."""
    if KUBECTL is None:
        return {"base, as written": manifests.written()}
    return {f"{overlay}{' with monitoring' if monitored else ''}": manifests.built(overlay, monitored)
            for overlay in OVERLAYS for monitored in (False, True)}


def selects(selector: dict, labels: dict) -> bool:
    return selector != {} and selector.items() <= labels.items()


class KubernetesTest(unittest.TestCase):
    def each(self):
        for name, objects in everything().items():
            with self.subTest(name):
                yield objects

    @unittest.skipIf(kubernetes_types is None, "needs Debian's python3-kubernetes (packages/install deploy)")
    def test_every_object_is_of_its_type(self):
        for objects in self.each():
            for each in objects:
                self.assertEqual(kubernetes_types.problems(each), [])

    @unittest.skipIf(kubernetes_types is None, "needs Debian's python3-kubernetes (packages/install deploy)")
    def test_mistakes_in_an_object_are_found(self):
        deployment = one(manifests.written(), "Deployment")
        spec = deployment["spec"]["template"]["spec"]
        spec["containers"][0]["livenessProbe"]["periodSecs"] = 3
        spec["terminationGracePeriodSeconds"] = "45"
        del spec["containers"][0]["name"]
        found = "\n".join(kubernetes_types.problems(deployment))
        self.assertIn("containers[0].livenessProbe: no field periodSecs", found)
        self.assertIn("terminationGracePeriodSeconds: '45' is no int", found)
        self.assertIn("`name`, must not be `None`", found)

    @unittest.skipIf(KUBECTL is None, "needs kubectl")
    def test_every_selector_means_the_pods_and_nothing_else(self):
        for objects in self.each():
            labels = one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
            selectors = {
                "Deployment": one(objects, "Deployment")["spec"]["selector"]["matchLabels"],
                "Service": one(objects, "Service")["spec"]["selector"],
                "PodDisruptionBudget": one(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                "NetworkPolicy": one(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
            }
            for kind, selector in selectors.items():
                self.assertTrue(selects(selector, labels), f"{kind}: {selector}")
            for monitor in (each for each in objects if each["kind"] == "ServiceMonitor"):
                service = one(objects, "Service")
                self.assertTrue(selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]))
                self.assertIn(monitor["spec"]["endpoints"][0]["port"], [port["name"] for port in service["spec"]["ports"]])

    def test_the_policy_lets_in_clients_and_prometheus_and_lets_nothing_out(self):
        for objects in self.each():
            policy = one(objects, "NetworkPolicy")["spec"]
            self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
            self.assertEqual(policy["egress"], [])
            callers, prometheus = policy["ingress"]
            self.assertEqual(callers["from"], [{"podSelector": {"matchLabels": {"simile-client": "true"}}}])
            self.assertEqual([port["port"] for port in callers["ports"]], ["grpc"])
            self.assertEqual([port["port"] for port in prometheus["ports"]], ["metrics"])

    def test_ports_are_those_of_the_settings(self):
        for objects in self.each():
            ports = {port["name"]: port["containerPort"] for port in container(objects)["ports"]}
            self.assertEqual(ports, {"grpc": SETTINGS["server"]["port"], "metrics": SETTINGS["metrics"]["port"]})
            for port in one(objects, "Service")["spec"]["ports"]:
                self.assertEqual(ports[port["targetPort"]], port["port"])
        for part in ("server", "metrics"):
            self.assertEqual(SETTINGS[part]["listen"], "::", "a pod is asked at its own address, of IPv4 or IPv6")

    def test_a_pod_is_given_longer_than_a_stop_takes(self):
        for objects in self.each():
            self.assertGreater(pod(objects)["terminationGracePeriodSeconds"] * 1_000, manifests.stop_ms(SETTINGS))

    def test_a_stop_is_noticed_while_calls_are_still_taken(self):
        for objects in self.each():
            probe = container(objects)["readinessProbe"]
            self.assertEqual(probe["httpGet"], {"path": "/readyz", "port": "metrics"})
            noticed_seconds = probe["failureThreshold"] * probe["periodSeconds"] + probe["timeoutSeconds"]
            self.assertLess(noticed_seconds * 1_000, SETTINGS["limits"]["drain_delay"])

    def test_only_a_process_that_does_not_answer_is_killed(self):
        for objects in self.each():
            for name in ("startupProbe", "livenessProbe"):
                self.assertEqual(container(objects)[name]["httpGet"], {"path": "/healthz", "port": "metrics"})

    def test_a_pod_has_no_rights(self):
        for objects in self.each():
            whole = pod(objects)
            self.assertIs(whole["automountServiceAccountToken"], False)
            self.assertEqual(whole["securityContext"],
                             {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
                              "seccompProfile": {"type": "RuntimeDefault"}})
            self.assertEqual(container(objects)["securityContext"],
                             {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                              "capabilities": {"drop": ["ALL"]}})

    def test_only_the_state_is_writable_and_all_that_is_written_is_there(self):
        for objects in self.each():
            mounts = container(objects)["volumeMounts"]
            writable = [mount for mount in mounts if not mount.get("readOnly")]
            self.assertEqual([mount["name"] for mount in writable], ["state"])
            for path in manifests.written_paths(SETTINGS):
                self.assertTrue(path.is_relative_to(writable[0]["mountPath"]), path)
            data = [mount["mountPath"] for mount in mounts if mount["name"] == "data"]
            self.assertEqual(data, [SETTINGS["collections"]["data_root"]])

    def test_the_server_takes_the_settings(self):
        manifests.check_settings(SIMILE, manifests.settings_text("kubernetes/base"), "/data")

    @unittest.skipIf(KUBECTL is None, "needs kubectl")
    def test_the_pods_read_the_settings_of_their_overlay(self):
        for objects in self.each():
            settings = one(objects, "ConfigMap")
            self.assertEqual(json.loads(settings["data"]["simile.json"]), SETTINGS)
            volume = next(each for each in pod(objects)["volumes"] if each["name"] == "config")
            self.assertEqual(volume["configMap"]["name"], settings["metadata"]["name"])
            self.assertEqual(container(objects)["args"], ["serve", "--config", "/etc/simile/simile.json"])

    @unittest.skipIf(KUBECTL is None, "needs kubectl")
    def test_the_gpu_overlay_asks_for_a_gpu_and_uses_it(self):
        objects = manifests.built("gpu")
        self.assertEqual(container(objects)["resources"]["limits"]["nvidia.com/gpu"], "1")
        self.assertEqual(container(objects)["env"], [{"name": "SIMILE_BACKEND_PREFERENCE", "value": "auto"}])
        self.assertEqual(container(objects)["image"], "simile:gpu")
        self.assertEqual(SETTINGS["gpu"]["on_fault"], "restart")
        update = one(objects, "Deployment")["spec"]["strategy"]["rollingUpdate"]
        self.assertEqual(update, {"maxSurge": 0, "maxUnavailable": 1}, "there may be no second GPU")


if __name__ == "__main__":
    unittest.main()
