#!/usr/bin/env python3
"""Compares the metrics that a server exports with the table of them in the documents.

    metrics_documented_test.py SIMILE FAKES

SIMILE is the built program, FAKES the folder of the fake driver and plug-in: the server has a GPU, so that it exports every
metric.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

import monitoring_files as files

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import servers

# Counted from the first event on, because their labels are not known before.
ONLY_AFTER_FAULTS = {"simile_device_errors_total"}


def exported(server: servers.Server) -> set[str]:
    with urllib.request.urlopen(f"http://{server.metrics_address}/metrics", timeout=10) as answer:
        return set(re.findall(r"^# TYPE (\w+) \w+$", answer.read().decode(), re.MULTILINE))


def main() -> int:
    program, fakes = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    documented = files.documented_metrics()
    with tempfile.TemporaryDirectory() as folder:
        machine, variables = servers.make_fake_gpu_machine(pathlib.Path(folder), program, fakes)
        films = f"films={files.ROOT / 'examples/films'}"
        with servers.running(machine, "--collection", films, **variables) as server:
            call = [program, "similar", "--id", "toy-story-1995", "--server", server.address]
            subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
            names = exported(server)
    problems = [f"{name} is exported, but in no document" for name in sorted(names) if not files.is_documented(name, documented)]
    problems += [f"{name} is documented, but not exported" for name in sorted(documented)
                 if not name.endswith("*") and name not in names | ONLY_AFTER_FAULTS]
    print("\n".join(problems) or f"{len(names)} metrics, all documented")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
