"""A CUDA image for the stages `plugin` and `gpu`, from the toolkit of this machine: NVIDIA's own cannot be pulled everywhere.

It is laid out as NVIDIA's is: lib64 and include are links into targets/x86_64-linux, the file of a library has the whole
version in its name, and links lead there. Of NVIDIA's libraries it has those alone that the Dockerfile takes: cudart,
cudadevrt, cublas and cublasLt. A toolkit from PyPI has more libraries, each as files without a version.
"""

import os
import pathlib
import re
import tarfile

import engine

IMAGE = "simile-test-cuda:latest"
TARGET = "targets/x86_64-linux"
ARCHIVES = ("libcudart_static.a", "libcudadevrt.a")


class NoToolkit(Exception):
    """What is missing here."""


def numbers(folder: pathlib.Path, header: str, pattern: str) -> list[str]:
    try:
        text = (folder / "include" / header).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NoToolkit(f"the CUDA toolkit {folder} has no include/{header}") from None
    found = re.findall(pattern, text)
    return [str(int(number)) for number in (found[0] if isinstance(found[0], tuple) else found)]


def cuda_version(folder: pathlib.Path) -> str:
    """"13.0" """
    return ".".join(numbers(folder, "cuda_runtime_api.h", r"#define CUDART_VERSION +(\d+)(\d\d)0\n"))


def blas_version(folder: pathlib.Path) -> str:
    """"13.1.0.3" """
    return ".".join(numbers(folder, "cublas_api.h", r"#define CUBLAS_VER_(?:MAJOR|MINOR|PATCH|BUILD) (\d+)"))


def find_toolkit() -> pathlib.Path:
    nvcc = pathlib.Path(engine.find("nvcc") or "/usr/local/cuda/bin/nvcc")
    if not nvcc.exists():
        raise NoToolkit("no CUDA toolkit: put its nvcc on PATH, or set CUDA to an image that can be pulled")
    return nvcc.resolve().parents[1]


def library(folder: pathlib.Path, name: str) -> pathlib.Path:
    for below in ("lib64", "lib", f"{TARGET}/lib"):
        if (found := folder / below / name).exists():
            return found.resolve()
    raise NoToolkit(f"the CUDA toolkit {folder} has no {name}")


def libraries(folder: pathlib.Path) -> dict[str, pathlib.Path | str]:
    """By name in the image: the file to copy, or where a link leads."""
    found: dict[str, pathlib.Path | str] = {name: library(folder, name) for name in ARCHIVES}
    cuda, blas = cuda_version(folder), blas_version(folder)
    for name, version in (("libcudart", cuda), ("libcublas", blas), ("libcublasLt", blas)):
        soname = f"{name}.so.{version.split('.')[0]}"
        found[f"{name}.so.{version}"] = library(folder, soname)
        found[soname] = f"{name}.so.{version}"
        found[f"{name}.so"] = soname
    return found


def write_archive(folder: pathlib.Path, archive: pathlib.Path) -> None:
    root = f"usr/local/cuda-{cuda_version(folder)}"
    with tarfile.open(archive, "w") as tar:
        def link(name: str, target: str) -> None:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)

        for part in ("bin", "nvvm"):
            tar.add((folder / part).resolve(), f"{root}/{part}")
        tar.add((folder / "include").resolve(), f"{root}/{TARGET}/include")
        for name, source in libraries(folder).items():
            if isinstance(source, str):
                link(f"{root}/{TARGET}/lib/{name}", source)
            else:
                tar.add(source, f"{root}/{TARGET}/lib/{name}")
        link(f"{root}/include", f"{TARGET}/include")
        link(f"{root}/lib64", f"{TARGET}/lib")
        link("usr/local/cuda", f"/{root}")


def make(docker: engine.Engine, base: str) -> str:
    """The image to build with: CUDA of the environment, which the engine may pull, or the toolkit of this machine."""
    if given := os.environ.get("CUDA"):
        return given
    folder = find_toolkit()
    with docker.scratch() as context:
        write_archive(folder, pathlib.Path(context, "cuda.tar"))
        pathlib.Path(context, "Dockerfile").write_text(f"FROM {base}\nADD cuda.tar /\n", encoding="utf-8")
        docker.docker("build", "--tag", IMAGE, context)
    return IMAGE
