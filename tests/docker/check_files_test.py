#!/usr/bin/env python3
"""Breaks each rule of check_files.py in turn, and sees it found."""

import copy
import os
import unittest
import unittest.mock

import check_files

DOCKERFILE = check_files.DOCKERFILE.read_text(encoding="utf-8")
SERVICE = {
    "cap_drop": ["ALL"], "read_only": True, "restart": "unless-stopped", "user": check_files.USER,
    "security_opt": ["no-new-privileges:true"], "mem_limit": "4g", "pids_limit": 512,
    "volumes": ["/films:/data/films:ro", "state:/var/lib/simile"], "ports": ["127.0.0.1:50051:50051"],
}


class DockerfileTest(unittest.TestCase):
    def expect(self, finding: str, before: str, after: str):
        self.assertIn(before, DOCKERFILE)
        found = check_files.dockerfile_findings(DOCKERFILE.replace(before, after))
        self.assertTrue(any(finding in each for each in found), found)

    def test_accepts_ours(self):
        self.assertEqual(check_files.dockerfile_findings(DOCKERFILE), [])

    def test_finds_what_breaks_a_rule(self):
        self.expect("no fixed version", "debian:bookworm-slim", "debian:latest")
        self.expect("no fixed version", "debian:bookworm-slim", "debian")
        self.expect("neither a stage nor a build argument", "FROM ${CUDA} AS", "FROM nvidia/cuda:12 AS")
        self.expect("runs as root", "USER 10001:10001\n", "")
        self.expect("no HEALTHCHECK", 'CMD ["simile", "health"]', "NONE")
        self.expect("packages come from packages/install", "RUN packages/install build", "RUN apt-get install -y g++")
        self.expect("packages/install build is not used", "RUN packages/install build", "RUN true")
        self.expect("ADD", "COPY . .", "ADD . .")


class ServiceTest(unittest.TestCase):
    def test_accepts_a_service_that_keeps_the_rules(self):
        self.assertEqual(check_files.service_findings(SERVICE), [])

    def test_finds_each_missing_key(self):
        for key in SERVICE:
            if key == "ports":  # none published is no mistake
                continue
            service = copy.deepcopy(SERVICE)
            del service[key]
            self.assertNotEqual(check_files.service_findings(service), [], key)

    def test_finds_what_is_open(self):
        for key, value in [("volumes", ["/films:/data/films:rw", "state:/var/lib/simile"]), ("ports", ["50051:50051"]),
                           ("privileged", True), ("network_mode", "host"), ("healthcheck", {"disable": True})]:
            self.assertNotEqual(check_files.service_findings({**SERVICE, key: value}), [], key)

    @unittest.skipUnless(check_files.compose_files and check_files.compose_files.CAN_MERGE, "needs docker-compose and yaml")
    def test_compose_serves_any_folder_under_any_name(self):
        with unittest.mock.patch.dict(os.environ, {"DATA": "/srv/songs", "COLLECTION": "songs"}):
            service = check_files.compose_files.merged(("compose.yaml",))["simile"]
        self.assertIn("songs=/data/songs", service["command"])
        self.assertIn("/srv/songs:/data/songs:ro", service["volumes"])

    def test_wants_one_way_to_the_gpu(self):
        build = {"build": {"target": "gpu"}}
        runtime = {"runtime": "nvidia", "environment": {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0"}}
        device = {"driver": "nvidia", "capabilities": ["gpu"]}
        reserved = {"deploy": {"resources": {"reservations": {"devices": [device]}}}}
        self.assertEqual(check_files.gpu_findings({**build, **runtime}), [])
        self.assertEqual(check_files.gpu_findings({**build, **reserved}), [])
        self.assertNotEqual(check_files.gpu_findings(build), [])
        self.assertNotEqual(check_files.gpu_findings({**build, **runtime, **reserved}), [])


if __name__ == "__main__":
    unittest.main()
