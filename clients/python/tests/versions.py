#!/usr/bin/python3
"""The client's tests under the oldest and the newest of what it needs, and beside other clients (`make python-versions`).

usage: versions.py PACKAGE_DIR SIMILE SOURCE_DIR VENVS

VENVS is the folder of the virtual environments, which are kept. Needs a package index. Prints a table; exits with 1 where a test
fails. Every warning is an error, but those that other clients make.
"""

import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
SETS = {
    "protobuf 4.21, grpcio 1.49": ["protobuf==4.21.*", "grpcio==1.49.1", "numpy<2"],
    "protobuf 4.25": ["protobuf==4.25.*", "grpcio", "numpy"],
    "protobuf 5": ["protobuf==5.*", "grpcio", "numpy"],
    "protobuf 6": ["protobuf==6.*", "grpcio", "numpy"],
    "newest, with others": ["protobuf", "grpcio", "numpy", "pandas", "pyarrow", "joblib", "gunicorn"],
}
BESIDE = ["simile", "qdrant-client", "pymilvus", "googleapis-common-protos", "grpcio-status", "grpcio-health-checking"]
ONE_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
order = [("simile", "qdrant_client", "pymilvus", "google.rpc.status_pb2", "grpc_health.v1.health_pb2", "simile_search"),
         ("simile_search", "google.rpc.status_pb2", "grpc_health.v1.health_pb2", "pymilvus", "qdrant_client", "simile")][int(sys.argv[3])]
for name in order:
    __import__(name)
import simile_search
from simile_search import testing
with testing.serve(program=sys.argv[2], films=sys.argv[4]) as client:
    assert len(client.collection("films").similar("heat-1995", k=3).hits(0)) == 3
    try:
        client.collection("films").similar("no such film")
    except simile_search.NotFound as error:
        assert error.reason == "ITEM_NOT_FOUND"
"""


def venv(folder: pathlib.Path, requirements: list[str]) -> pathlib.Path:
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
    return python


def run(command: list) -> tuple[bool, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
    count, skipped = re.search(r"Ran (\d+) tests", done.stderr), re.search(r"skipped=(\d+)", done.stderr)
    ran = int(count[1]) - int(skipped[1] if skipped else 0) if count else 0
    return done.returncode == 0, f"{ran} tests" if count else "one process"


def main() -> int:
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    package, program, source, venvs = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    passed = True
    for name, requirements in SETS.items():
        python = venv(venvs / re.sub(r"\W+", "-", name), requirements)
        versions = run_versions(python)
        for script, arguments in (("vectors_test.py", [package]), ("importing_test.py", [package, program]),
                                  ("client_test.py", [package, program, source]), ("exporting_test.py", [package, program, source]),
                                  ("workers_test.py", [package, program, source]), ("examples_test.py", [package, program, source])):
            good, what = run([python, "-W", "error", "-B", TESTS / script, *arguments])
            passed = passed and good
            print(f"{name:30} {versions:60} {script:20} {what:12} {'pass' if good else 'FAIL'}", flush=True)
    python = venv(venvs / "beside", [*BESIDE, "numpy"])
    for order in range(2):
        good, what = run([python, "-B", "-c", ONE_PROCESS, package, program, order, source / "examples/films"])
        passed = passed and good
        print(f"{'beside ' + ', '.join(BESIDE):112} {('first', 'last')[order]:6} {what:12} {'pass' if good else 'FAIL'}", flush=True)
    return 0 if passed else 1


def run_versions(python: pathlib.Path) -> str:
    script = "import google.protobuf, grpc, numpy; print('protobuf', google.protobuf.__version__, 'grpcio', grpc.__version__, 'numpy', numpy.__version__)"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
