#!/usr/bin/python3
"""Writes the wheels of what is built in build/: simile-search, the client, and simile-server, the program.

usage: build.py [FOLDER]      default build/packages

simile-server holds the program, the GPU plug-in where it was built, and every shared library that they link but those of
glibc and GCC, so it runs on a Linux of this machine's glibc or a later one. The plug-in looks for the cuBLAS that pip
installs (nvidia-cublas) beside the package. Needs Debian's patchelf, python3-pip, python3-setuptools and python3-wheel.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
# What every Linux with this glibc has, in a version that must fit the machine's own.
SYSTEM = re.compile(r"(ld-linux-|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so)")
INIT = '"""The program of Simile for Linux: bin/simile. simile_search starts it as `simile`."""\n'


def run(*command) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def version() -> str:
    return re.search(r"project\(simile VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


def linked(binary: pathlib.Path) -> dict[str, pathlib.Path]:
    """By name: the shared libraries that a binary needs, directly or through others."""
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", binary), re.MULTILINE))
    return {name: pathlib.Path(path).resolve() for name, path in found.items() if not SYSTEM.match(name)}


def licences_of(libraries: dict[str, pathlib.Path], folder: pathlib.Path) -> None:
    """Copies the licences of the Debian packages that the libraries are from."""
    folder.mkdir(parents=True)
    for path in libraries.values():
        owner = subprocess.run(["dpkg-query", "--search", f"*/{path.name}"], capture_output=True, text=True, check=True).stdout
        package = owner.split(":")[0]
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / f"{package}.txt")
    for name in ("LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, folder / name)


def pack_server(scratch: pathlib.Path, out: pathlib.Path) -> None:
    package = scratch / "simile_server"
    for component in ("program", "plugin"):
        run("cmake", "--install", BUILD, "--prefix", package, "--component", component, "--strip")
    folder = package / "lib"
    folder.mkdir(exist_ok=True)
    libraries = {name: path for binary in [package / "bin/simile", *folder.glob("simile/*.so")] for name, path in linked(binary).items()}
    for name, path in libraries.items():
        shutil.copyfile(path, folder / name)
        # Old tags: they hold for the libraries of a library, too, and come before LD_LIBRARY_PATH.
        run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", folder / name)
    run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", package / "bin/simile")
    for plugin in folder.glob("simile/*.so"):
        # Where pip puts cuBLAS of CUDA 13, and of CUDA 12, from here.
        site = "$ORIGIN/../../../nvidia"
        run("patchelf", "--force-rpath", "--set-rpath", f"{site}/cu13/lib:{site}/cublas/lib:{site}/cu12/lib", plugin)
    (package / "__init__.py").write_text(INIT, encoding="utf-8")

    info = scratch / f"simile_server-{version()}.dist-info"
    licences_of(libraries, info / "licenses")
    glibc = platform.libc_ver()[1].replace(".", "_")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: simile\nRoot-Is-Purelib: false\n"
                                f"Tag: py3-none-manylinux_{glibc}_{platform.machine()}\n", encoding="utf-8")
    (info / "METADATA").write_text(f"""Metadata-Version: 2.1
Name: simile-server
Version: {version()}
Summary: Server of exact top-k similarity and recommendation over embedding matrices
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: simile-search=={version()}
Provides-Extra: gpu
Requires-Dist: nvidia-cublas>=13; extra == "gpu"
Description-Content-Type: text/markdown

`simile serve --collection films=films/` serves a folder of vectors over gRPC, exactly, on an NVIDIA GPU where there is one. The package
`simile-search` has the clients. With `pip install 'simile-server[gpu]'` large batches on the GPU use cuBLAS.
""", encoding="utf-8")
    run(sys.executable, "-m", "wheel", "pack", "--dest-dir", out, scratch)


def main() -> None:
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else BUILD / "packages"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        client = pathlib.Path(scratch) / "client"
        shutil.copytree(BUILD / "clients/python", client, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "*ake*"))
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", out, client)
        server = pathlib.Path(scratch) / "server"
        server.mkdir()
        pack_server(server, out)
    for wheel in sorted(out.glob(f"simile_*-{version()}-*.whl")):
        print(wheel)


if __name__ == "__main__":
    main()
