#!/usr/bin/env python3
"""Asks a real Prometheus, which scrapes real servers under load, every query of the dashboard, and compares its alerts.

    live.py SIMILE FAKES [--plot FILE]

SIMILE is the built program, FAKES the folder of the fake driver and plug-in. Three servers run: on the CPU, on a (fake) GPU, and
one that is to have a GPU and has none; DCGM's exporter is played by an answer with its fields. Everything listens on loopback
and ends after about two minutes. Fails for a query without numbers, and for an alert that should not be, or is missing.
Needs Prometheus and python3-yaml; --plot, which draws the dashboard's numbers, needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import contextlib
import http.server
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import monitoring_files as files

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import servers

SCRAPE_SECONDS = 1
RATE_SECONDS = 8  # $__rate_interval
# Calls a second, queries in each; what the GPU says of itself meanwhile (servers.describe_card).
PHASES = [(100, 1, (12, 48, 130)), (300, 1, (37, 61, 240)), (60, 16, (21, 54, 180))]
PHASE_SECONDS = 25
LARGE_SECONDS = 8
FILMS = files.ROOT / "examples/films"
# What a server without its GPU has to raise; everything else is healthy.
EXPECTED_ALERTS = {("CpuFallback", "no-gpu")}

FIXED_FIELDS = {"DCGM_FI_DEV_GPU_UTIL": 37, "DCGM_FI_DEV_MEM_COPY_UTIL": 21, "DCGM_FI_DEV_FB_USED": 14336,
                "DCGM_FI_DEV_FB_FREE": 129024, "DCGM_FI_DEV_GPU_TEMP": 54, "DCGM_FI_DEV_POWER_USAGE": 221,
                "DCGM_FI_DEV_SM_CLOCK": 1980, "DCGM_FI_PROF_SM_ACTIVE": 0.34, "DCGM_FI_PROF_PCIE_TX_BYTES": 4.2e7,
                "DCGM_FI_PROF_PCIE_RX_BYTES": 9.6e7}  # the others are 0


def exporter_answer() -> bytes:
    """What dcgm-exporter answers with the fields of deploy/dcgm: of a card with performance counters, and of a P4."""
    lines = []
    for gpu, path in enumerate((files.DCGM_PROFILING, files.DCGM_PASCAL)):
        for name, kind, what in files.dcgm_fields(path):
            lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}"] if gpu == 0 else []
            lines.append(f'{name}{{gpu="{gpu}",UUID="GPU-{gpu}"}} {FIXED_FIELDS.get(name, 0)}')
    return "\n".join([*lines, ""]).encode()


class Exporter(http.server.ThreadingHTTPServer):
    """Plays dcgm-exporter; counts how often it is asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ExporterHandler)
        self.asked = threading.Semaphore(0)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def await_scrapes(self, count: int) -> None:
        """Until Prometheus has asked so many times more: the same time for all of its targets."""
        while self.asked.acquire(blocking=False):
            pass
        for _ in range(count):
            if not self.asked.acquire(timeout=30):
                raise RuntimeError("Prometheus does not scrape")


class ExporterHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(exporter_answer())
        self.server.asked.release()

    def log_message(self, *_):
        pass


def prometheus_config(folder: pathlib.Path, targets: dict[str, str], exporter: str) -> pathlib.Path:
    """The configuration of deploy/prometheus with these targets, by the name each is shown under."""
    config = files.load_yaml(files.PROMETHEUS)
    config["global"] = {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"}
    config["rule_files"] = [str(files.RULES)]
    simile, dcgm = config["scrape_configs"]
    simile["static_configs"] = [{"targets": [address], "labels": {"instance": name}} for name, address in targets.items()]
    (folder / "targets.json").write_text(json.dumps([{"targets": [exporter], "labels": {"instance": "dcgm-exporter"}}]))
    dcgm["file_sd_configs"] = [{"files": [str(folder / "targets.json")]}]
    path = folder / "prometheus.yml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return path


class Prometheus:
    def __init__(self, folder: pathlib.Path, config: pathlib.Path):
        self.address = f"127.0.0.1:{servers.steady_port()}"
        self.process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
                                         f"--web.listen-address={self.address}", "--log.level=error"])

    def get(self, path: str, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]


def change_films(folder: pathlib.Path, year: int) -> None:
    """Gives the first film another year, so that the folder is new content."""
    path = folder / "metadata.jsonl"
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    path.write_text(json.dumps(json.loads(first) | {"year": year}) + "\n" + rest, encoding="utf-8")


def start_bench(program: pathlib.Path, server: servers.Server, seconds: int, batch: int, *load: str) -> subprocess.Popen:
    command = [program, "bench", "films", "--server", server.address, "--batch", str(batch), "--duration", f"{seconds}s",
               "--warm-up", "0s", "--threads", "1", *load, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answered_queries(bench: subprocess.Popen, timeout: float | None = None) -> float:
    """Waits for its end. Raises TimeoutExpired after so many seconds, and may be called again then."""
    report, _ = bench.communicate(timeout=timeout)
    if bench.returncode != 0:
        raise RuntimeError("simile bench failed")
    run = json.loads(report)["runs"][0]
    return run["queries_per_s"] * run["duration_s"]


def make_load(program: pathlib.Path, cpu: servers.Server, gpu: servers.Server, films: pathlib.Path, card: pathlib.Path) -> float:
    """Calls at several rates, some of them wrong, and reloads in between. Returns the queries that were answered."""
    def call(*command):
        return subprocess.run([program, *command, "--server", cpu.address], check=False, capture_output=True)

    answered = 0.0
    for number, (rate, batch, state) in enumerate(PHASES):
        servers.describe_card(card, *state)
        # The fake GPU scores rows one after the other, so it gets a tenth, without batches.
        benches = [start_bench(program, cpu, PHASE_SECONDS, batch, "--rate", str(rate)),
                   start_bench(program, gpu, PHASE_SECONDS, 1, "--rate", str(rate / 10))]
        while benches[0].returncode is None:
            call("similar", "--id", "no-such-film")
            call("similar", "--id", "toy-story-1995", "--filter", "no_such_field = 1")
            with contextlib.suppress(subprocess.TimeoutExpired):
                answered += answered_queries(benches[0], timeout=1)
        answered += answered_queries(benches[1])
        change_films(films, 1980 + number)
        call("reload", "films").check_returncode()
    # One of two large calls always waits beside the queue.
    return answered + answered_queries(start_bench(program, cpu, LARGE_SECONDS, 1000, "--in-flight", "2"))


def substituted(expression: str) -> str:
    """A query as Grafana sends it for all servers."""
    return expression.replace("$__rate_interval", f"{RATE_SECONDS}s").replace("$instance", ".*")


def ask(prometheus: Prometheus, start: float, end: float) -> tuple[list, list[str]]:
    """The numbers of each panel, [(panel, [(target, result)])], and the queries without any."""
    answers, problems = [], []
    for panel in files.panels():
        results = []
        for target in panel["targets"]:
            query = substituted(target["expr"])
            found = prometheus.get("query_range", query=query, start=start, end=end, step=SCRAPE_SECONDS)["result"]
            if not any(math.isfinite(float(value)) for series in found for _, value in series["values"]):
                problems.append(f"{panel['title']}: no numbers from {query}")
            results.append((target, found))
        answers.append((panel, results))
    return answers, problems


def check_alerts(prometheus: Prometheus) -> list[str]:
    """An alert counts from the moment its condition holds, however long it has to hold before it is sent."""
    alerts = {(alert["labels"]["alertname"], alert["labels"].get("instance")): alert["annotations"]["summary"]
              for alert in prometheus.get("alerts")["alerts"]}
    problems = [f"{alert[0]} should not be: {summary}" for alert, summary in alerts.items() if alert not in EXPECTED_ALERTS]
    problems += [f"{name} of {where} is missing" for name, where in EXPECTED_ALERTS - alerts.keys()]
    for group in prometheus.get("rules")["groups"]:
        problems += [f"{rule['name']}: {rule['lastError']}" for rule in group["rules"] if rule["health"] != "ok"]
    return problems


def check_rate(answers: list, answered: float) -> list[str]:
    """The dashboard counts as many queries as the clients."""
    series = next(results[0][1][0]["values"] for panel, results in answers if panel["title"] == "Queries per second")
    counted = sum(float(value) for _, value in series) * SCRAPE_SECONDS
    print(f"queries: {answered:,.0f} answered to the clients, {counted:,.0f} on the dashboard")
    return [] if abs(counted - answered) <= 0.1 * answered else ["the dashboard's rate is not the clients'"]


def watch(program: pathlib.Path, fakes: pathlib.Path, folder: pathlib.Path, stack: contextlib.ExitStack) -> tuple[list, list]:
    changing = shutil.copytree(FILMS, folder / "films")
    films = ("--collection", f"films={FILMS}")
    (folder / "machine").mkdir()
    machine, with_gpu = servers.make_fake_gpu_machine(folder / "machine", program, fakes)
    cpu = stack.enter_context(servers.running(program, "--collection", f"films={changing}", "--backend", "cpu", "--allow-changes"))
    gpu = stack.enter_context(servers.running(machine, *films, **with_gpu))
    no_gpu = stack.enter_context(servers.running(program, *films, SIMILE_GPU_FAULT_JOURNAL=""))
    exporter = stack.enter_context(Exporter())
    stack.callback(exporter.shutdown)
    targets = {"cpu": cpu.metrics_address, "gpu": gpu.metrics_address, "no-gpu": no_gpu.metrics_address}
    prometheus = Prometheus(folder, prometheus_config(folder, targets, f"127.0.0.1:{exporter.server_port}"))
    stack.callback(prometheus.process.wait)
    stack.callback(prometheus.process.terminate)
    exporter.await_scrapes(3)

    start = time.time()
    answered = make_load(program, cpu, gpu, changing, folder / "machine/card")
    exporter.await_scrapes(RATE_SECONDS // SCRAPE_SECONDS)  # so that the last calls are gone from the rates
    answers, problems = ask(prometheus, start, time.time())
    offered = prometheus.get("label/instance/values", **{"match[]": "simile_build_info"})
    if set(offered) != targets.keys():
        problems.append(f"the dashboard offers the servers {offered}")
    return answers, problems + check_alerts(prometheus) + check_rate(answers, answered)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("fakes", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path, help="draw the numbers into this file (.svg or .png)")
    options = parser.parse_args()
    if shutil.which("prometheus") is None:
        print("skipped: prometheus is not installed (Debian: prometheus)")
        return 0
    if options.plot:
        import live_plot  # before the load, because it may lack matplotlib
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        answers, problems = watch(options.program.resolve(), options.fakes.resolve(), pathlib.Path(folder), stack)
    queries = sum(len(results) for _, results in answers)
    if options.plot:
        live_plot.draw(answers, options.plot)
    print("\n".join(problems) or f"{queries} queries of {len(answers)} panels have numbers; "
                                  "the only alert is CpuFallback of the server without its GPU")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
