"""The compose files of docker/, as docker-compose reads them. Needs python3-yaml."""

import pathlib
import shutil
import subprocess

import yaml

DOCKER = pathlib.Path(__file__).resolve().parents[2] / "docker"
COMBINATIONS = [("compose.yaml",), ("compose.yaml", "compose.gpu.yaml"), ("compose.yaml", "compose.gpu-reservations.yaml")]
CAN_MERGE = shutil.which("docker-compose") is not None


def written(name: str) -> dict:
    """The services of a file by itself."""
    return yaml.safe_load((DOCKER / name).read_text(encoding="utf-8"))["services"]


def merged(names: tuple[str, ...], *flags: str) -> dict:
    """The services of some files. Needs docker-compose; raises ValueError with what it finds wrong."""
    words = [word for name in names for word in ("--file", str(DOCKER / name))]
    done = subprocess.run(["docker-compose", *words, *flags, "config"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return yaml.safe_load(done.stdout)["services"]
