#!/usr/bin/env python3
"""Checks docker/Dockerfile and the compose files against the project's rules, without an engine.

The compose files are read as docker-compose reads them; without docker-compose, each by itself. Exits 1 and prints what
breaks a rule; 77 where Python has no yaml.
"""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
try:
    import compose_files
except ImportError:  # Python has no yaml
    compose_files = None

DOCKERFILE = pathlib.Path(__file__).resolve().parents[2] / "docker/Dockerfile"
SKIPPED = 77
USER = "10001:10001"


def instructions(text: str) -> list[tuple[str, str]]:
    """A Dockerfile's instructions with their arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(name, arguments) for name, arguments in lines]


def dockerfile_findings(text: str) -> list[str]:
    findings = []
    stages: dict[str, str] = {}  # of a stage, the one that it is made from
    users: dict[str, str] = {}
    defaults: dict[str, str] = {}
    checked: set[str] = set()
    stage = ""
    for name, arguments in instructions(text):
        if name == "ARG" and not stages:
            variable, _, value = arguments.partition("=")
            defaults[variable] = defaults.get(value[2:-1], value) if value.startswith("${") else value
        elif name == "FROM":
            image, _, stage = arguments.split()
            users[stage] = users.get(image, "root")
            if image in checked:
                checked.add(stage)
            if image not in stages and (not image.startswith("${") or image[2:-1] not in defaults):
                findings.append(f"FROM {image}: neither a stage nor a build argument with a default")
            stages[stage] = image
        elif name == "USER":
            users[stage] = arguments
        elif name == "HEALTHCHECK" and arguments.endswith('CMD ["simile", "health"]'):
            checked.add(stage)
        elif name == "ADD":
            findings.append(f"ADD {arguments}: COPY says what it does")
        elif name == "RUN" and re.search(r"apt-get|apt |curl|wget|pip", arguments):
            findings.append(f"RUN {arguments.split('&&')[0].strip()}: packages come from packages/install")
    for variable, image in defaults.items():
        if ":" not in image or image.endswith(":latest"):
            findings.append(f"ARG {variable}={image}: no fixed version")
    for target in ("cpu", "gpu"):
        if users.get(target) != USER:
            findings.append(f"target {target}: runs as {users.get(target)}, not as {USER}")
        if target not in checked:
            findings.append(f"target {target}: no HEALTHCHECK with simile health")
    for group in ("build", "run"):
        if f"packages/install {group}" not in text:
            findings.append(f"packages/install {group} is not used")
    return findings


def service_findings(service: dict) -> list[str]:
    """Of the service `simile` as compose understands it."""
    expected = {"cap_drop": ["ALL"], "read_only": True, "restart": "unless-stopped", "user": USER}
    findings = [f"{key}: {service.get(key)}, not {value}" for key, value in expected.items() if service.get(key) != value]
    if "no-new-privileges:true" not in service.get("security_opt", []):
        findings.append("security_opt: without no-new-privileges:true")
    findings += [f"{key}: not limited" for key in ("mem_limit", "pids_limit") if not service.get(key)]
    for volume in service.get("volumes", []):
        if ":/data/" in volume and not volume.endswith(":ro"):
            findings.append(f"volumes: {volume} is writable")
    if not any(":/var/lib/simile" in volume for volume in service.get("volumes", [])):
        findings.append("volumes: nothing at /var/lib/simile, so each start forgets")
    for port in service.get("ports", []):
        if not port.startswith(("127.0.0.1:", "${ADDRESS:-127.0.0.1}:")):
            findings.append(f"ports: {port} is not on loopback")
    if "healthcheck" in service:
        findings.append("healthcheck: the image has one")
    if any("privileged" == key or key.endswith("network_mode") for key in service):
        findings.append("privileged or network_mode")
    return findings


def gpu_findings(service: dict) -> list[str]:
    """What only one of the two GPU files has."""
    by_runtime = service.get("runtime") == "nvidia" and {"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} <= set(
        service.get("environment", {}))
    devices = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
    by_reservation = any(each.get("driver") == "nvidia" and each.get("capabilities") == ["gpu"] for each in devices)
    findings = [] if by_runtime != by_reservation else ["neither runtime: nvidia nor a reserved device, or both"]
    if service.get("build", {}).get("target") != "gpu":
        findings.append("build.target: not gpu")
    return findings


def compose_findings() -> list[str]:
    findings = []
    for files in compose_files.COMBINATIONS:
        try:
            services = compose_files.merged(files) if compose_files.CAN_MERGE else compose_files.written(files[-1])
            service = services["simile"]
        except (ValueError, KeyError, compose_files.yaml.YAMLError) as error:
            findings.append(f"{' + '.join(files)}: {error}")
            continue
        found = service_findings(service) if compose_files.CAN_MERGE or len(files) == 1 else []
        if len(files) > 1:
            found += gpu_findings(service)
        findings += [f"{' + '.join(files)}: {each}" for each in found]
    return findings


def main() -> int:
    findings = [f"docker/Dockerfile: {each}" for each in dockerfile_findings(DOCKERFILE.read_text(encoding="utf-8"))]
    if compose_files is not None:
        findings += compose_findings()
    for finding in findings:
        print(finding)
    if findings:
        return 1
    if compose_files is None:
        print("skipped: the compose files, because Python has no yaml (python3-yaml, which docker-compose brings)")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
