"""Builds the images of docker/Dockerfile in an engine, from a base image made here."""

import os
import pathlib
import re
import subprocess
import tempfile
import time

import engine

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
BASE = "simile-test-base:bookworm"
BUILD = "simile-test-build:latest"
FIRST_BUILD = "simile-test-build:first"  # compiles everything; later builds compile what has changed since
BUILD_SECONDS = 3 * 3600

# What debian:bookworm-slim leaves out.
SLIM = ["path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/doc/*",
        "path-include=/usr/share/doc/*/copyright"]


def exists(docker: engine.Engine, image: str) -> bool:
    return docker.docker("image", "inspect", image, check=False).returncode == 0


def make_base(docker: engine.Engine) -> str:
    """The image to build upon: BASE of the environment, which the engine may pull, or Debian's packages put together."""
    if given := os.environ.get("BASE"):
        return given
    if exists(docker, BASE):
        return BASE
    if engine.find("mmdebstrap") is None:
        raise engine.CannotStart("no base image: install mmdebstrap, or set BASE to an image that can be pulled")
    with tempfile.TemporaryDirectory() as folder:
        archive = pathlib.Path(folder) / "base.tar"
        subprocess.run(["mmdebstrap", "--variant=apt", "--quiet", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                        "--include=usr-is-merged", *[f"--dpkgopt={option}" for option in SLIM], "bookworm", str(archive)],
                       check=True)
        docker.docker("import", archive, BASE)
    return BASE


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(simile VERSION (\S+)", text).group(1)


def build(docker: engine.Engine, base: str, target: str, tag: str) -> float:
    """Builds a stage of the Dockerfile as an image. Returns the seconds."""
    start = time.monotonic()
    arguments = ["--build-arg", f"BASE={base}", "--build-arg", f"VERSION={version()}"]
    if exists(docker, FIRST_BUILD):
        arguments += ["--build-arg", f"BUILD_BASE={FIRST_BUILD}"]
    docker.docker("build", "--network", "host", *arguments, "--file", DOCKERFILE, "--target", target, "--tag", tag, ROOT,
                  timeout=BUILD_SECONDS)
    return time.monotonic() - start


def build_all(docker: engine.Engine) -> list[tuple[str, float]]:
    """simile:cpu, simile:gpu-environment and, with fakes, simile:gpu-fake. Returns what took how many seconds."""
    took = []
    start = time.monotonic()
    base = make_base(docker)
    took.append(("base image", time.monotonic() - start))
    took.append(("stage build", build(docker, base, "build", BUILD)))
    took.append(("stage cpu", build(docker, base, "cpu", "simile:cpu")))
    took.append(("stage gpu-environment", build(docker, base, "gpu-environment", "simile:gpu-environment")))
    start = time.monotonic()
    docker.docker("build", "--network", "host", "--build-arg", f"BUILD={BUILD}", "--build-arg",
                  "GPU=simile:gpu-environment", "--file", ROOT / "tests/docker/fake_gpu.Dockerfile", "--tag",
                  "simile:gpu-fake", ROOT / "tests", timeout=BUILD_SECONDS)
    took.append(("fakes", time.monotonic() - start))
    if not exists(docker, FIRST_BUILD):
        docker.docker("tag", BUILD, FIRST_BUILD)
    return took
