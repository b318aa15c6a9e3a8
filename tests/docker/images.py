"""Builds the images of docker/Dockerfile in an engine, from a base image and a CUDA image that are made here.

Variables: BASE and CUDA name images that the engine can pull instead; ARCHITECTURES is the Dockerfile's, `75-real;80-virtual`
for machine code of a T4 alone; unset, the plug-in is built for every card, as the image that users build.
"""

import os
import pathlib
import re
import subprocess
import tarfile
import time

import cuda_image
import engine

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
BASE = "simile-test-base:bookworm"
BUILD = "simile-test-build:latest"
PLUGIN = "simile-test-plugin:latest"
FAKE_DRIVER = "simile-test-driver:latest"
SEED = "simile-test-build:seed"  # the base with what this machine has compiled already
FIRST_BUILD = "simile-test-build:first"  # compiles everything; later builds compile what has changed since
BUILD_SECONDS = 3 * 3600
SEED_BYTES_MAX = 1 << 30

# What debian:bookworm-slim leaves out; and, as there, packages are not flushed to the disk one by one.
SLIM = ["force-unsafe-io", "path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*",
        "path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright"]


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
    with docker.scratch() as folder:
        archive = pathlib.Path(folder) / "base.tar"
        subprocess.run(["mmdebstrap", "--variant=apt", "--quiet", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                        "--include=usr-is-merged", *[f"--dpkgopt={option}" for option in SLIM], "bookworm", str(archive)],
                       check=True)
        docker.docker("import", archive, BASE)
    return BASE


def compiled_files() -> tuple[pathlib.Path, list[pathlib.Path]]:
    """The folder of this machine's compiler cache, and those of its files that were used last."""
    if engine.find("ccache") is None:
        return pathlib.Path(), []
    said = subprocess.run(["ccache", "--get-config", "cache_dir"], capture_output=True, text=True, check=False)
    folder = pathlib.Path(said.stdout.strip())
    files = [(path.stat(), path) for path in folder.glob("[0-9a-f]/**/*") if path.is_file()] if said.returncode == 0 else []
    taken, left = [], SEED_BYTES_MAX
    for state, path in sorted(files, key=lambda file: -file[0].st_mtime):
        left -= state.st_size
        if left < 0:
            break
        taken.append(path)
    return folder, taken


def make_seed(docker: engine.Engine, base: str) -> None:
    """SEED: the base with this machine's compiler cache, so that a container compiles only what this machine has not."""
    folder, files = compiled_files()
    if not files:
        return
    with docker.scratch() as context:
        for path in files:
            copy = pathlib.Path(context, "ccache", path.relative_to(folder))
            copy.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "--reflink=auto", path, copy], check=True)
        # The language is a part of what ccache compares.
        pathlib.Path(context, "Dockerfile").write_text(
            f"FROM {base}\nCOPY ccache /root/.cache/ccache\n"
            f'ENV CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=true LANG="{os.environ.get("LANG", "")}"\n', encoding="utf-8")
        docker.docker("build", "--tag", SEED, context)


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(simile VERSION (\S+)", text).group(1)


def build(docker: engine.Engine, target: str, tag: str, **arguments: str) -> float:
    """Builds a stage of the Dockerfile as an image. Returns the seconds."""
    start = time.monotonic()
    words = [word for name, value in {"VERSION": version(), **arguments}.items()
             for word in ("--build-arg", f"{name}={value}")]
    docker.docker("build", "--network", "host", *words, "--file", DOCKERFILE, "--target", target, "--tag", tag, ROOT,
                  timeout=BUILD_SECONDS)
    return time.monotonic() - start


def bases(docker: engine.Engine, base: str) -> dict[str, str]:
    """The Dockerfile's arguments for what it builds upon."""
    made = [image for image in (FIRST_BUILD, SEED) if exists(docker, image)]
    return {"BASE": base, "BUILD_BASE": made[0] if made else base}


def keep_first_build(docker: engine.Engine) -> None:
    """After build_all, and build_gpu if it can: the stage `build` with the compiler cache of the stage `plugin`, so that the
    kernels, too, are compiled once."""
    if exists(docker, FIRST_BUILD):
        return
    if not exists(docker, PLUGIN):
        docker.docker("tag", BUILD, FIRST_BUILD)
        return
    with docker.scratch() as context:
        pathlib.Path(context, "Dockerfile").write_text(
            f"FROM {PLUGIN} AS plugin\nFROM {BUILD}\nCOPY --from=plugin /root/.cache/ccache /root/.cache/ccache\n",
            encoding="utf-8")
        docker.docker("build", "--tag", FIRST_BUILD, context)


def build_all(docker: engine.Engine) -> list[tuple[str, float]]:
    """simile:cpu, simile:gpu-environment and, with fakes, simile:gpu-fake. Returns what took how many seconds."""
    took = []
    start = time.monotonic()
    base = make_base(docker)
    took.append(("base image", time.monotonic() - start))
    start = time.monotonic()
    if not exists(docker, FIRST_BUILD) and not exists(docker, SEED):
        make_seed(docker, base)
        took.append(("compiler cache", time.monotonic() - start))
    used = bases(docker, base)
    took.append(("stage build", build(docker, "build", BUILD, **used)))
    took.append(("stage cpu", build(docker, "cpu", "simile:cpu", **used)))
    took.append(("stage gpu-environment", build(docker, "gpu-environment", "simile:gpu-environment", **used)))
    start = time.monotonic()
    for words in (["--target", "driver", "--tag", FAKE_DRIVER], ["--tag", "simile:gpu-fake"]):
        docker.docker("build", "--network", "host", "--build-arg", f"BUILD={BUILD}", "--build-arg",
                      "GPU=simile:gpu-environment", "--file", ROOT / "tests/docker/fake_gpu.Dockerfile", *words, ROOT / "tests",
                      timeout=BUILD_SECONDS)
    took.append(("fakes", time.monotonic() - start))
    return took


def copy_fake_driver(docker: engine.Engine, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """After build_all: copies the fake libcuda and libnvidia-ml into a folder."""
    container = docker.docker("create", "--network", "none", FAKE_DRIVER, "none").stdout.split()[-1]
    files = [folder / name for name in ("libfake_cuda_driver.so", "libfake_nvml.so")]
    for file in files:
        docker.docker("cp", f"{container}:/{file.name}", file)
    docker.docker("rm", container)
    return files[0], files[1]


def pack_root(docker: engine.Engine, image: str, archive: pathlib.Path, without: str) -> None:
    """Writes the files of an image as a compressed archive, for card_check.py.

      without  a pattern of the paths to leave out
    """
    container = docker.docker("create", "--network", "none", image, "--version").stdout.split()[-1]
    with docker.scratch() as folder:
        exported = pathlib.Path(folder, "root.tar")
        docker.docker("export", "--output", exported, container)
        with tarfile.open(exported) as whole, tarfile.open(archive, "w:xz") as left:
            for entry in whole:
                if not re.search(without, entry.name):
                    left.addfile(entry, whole.extractfile(entry) if entry.isreg() else None)
    docker.docker("rm", "--volumes", container)


def build_gpu(docker: engine.Engine) -> list[tuple[str, float]]:
    """After build_all: simile:gpu, with the real plug-in and cuBLAS. Raises cuda_image.NoToolkit."""
    took = []
    start = time.monotonic()
    base = make_base(docker)
    cuda = {**bases(docker, base), "CUDA": cuda_image.make(docker, base), "ARCHITECTURES": os.environ.get("ARCHITECTURES", "")}
    took.append(("CUDA image", time.monotonic() - start))
    took.append(("stage plugin", build(docker, "plugin", PLUGIN, **cuda)))
    took.append(("stage gpu", build(docker, "gpu", "simile:gpu", **cuda)))
    return took
