#!/usr/bin/env python3
"""What encryption and tokens cost: the server's CPU for a call and for a new connection, the rate and the median latency,
plain, with tokens, with TLS and with client certificates. The servers take turns; prints a table of medians.

    tests/bench/serving/encryption.py --simile build/bin/simile

Needs the built program and the openssl command. Client and server share the machine. Standard library only.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from credentials import new_token, write_access_file, write_certificates

ROOT = pathlib.Path(__file__).resolve().parents[3]
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simile", type=pathlib.Path, default=ROOT / "build/bin/simile")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "examples/films", help="the collection; default the films")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each run of load")
    parser.add_argument("--handshakes", type=int, default=400, help="connections of each round")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures to this file")
    return parser.parse_args()


def access_file(simile: pathlib.Path, folder: pathlib.Path) -> None:
    token, by_token = new_token(simile, "bench")
    (folder / "token").write_text(token, encoding="utf-8")
    write_access_file(folder / "access.json", by_token, {"name": "client", "role": "read", "certificates": ["client"]})


class Kind:
    """A way to connect: flags of the server and of its clients."""

    def __init__(self, name: str, server: list, client: list):
        self.name, self.server, self.client = name, list(map(str, server)), list(map(str, client))
        self.figures: dict[str, list[float]] = {}
        self.process: subprocess.Popen = None
        self.port = 0

    def add(self, figure: str, value: float) -> None:
        self.figures.setdefault(figure, []).append(value)


def kinds(folder: pathlib.Path) -> list[Kind]:
    access = ["--access-file", folder / "access.json"]
    tls = ["--tls-certificate", folder / "server.pem", "--tls-key", folder / "server.key"]
    ca, token = ["--ca", folder / "ca.pem"], ["--token-file", folder / "token"]
    own = ["--cert", folder / "client.pem", "--key", folder / "client.key"]
    return [Kind("plain", [], []), Kind("plain, token", access, token), Kind("TLS", tls, ca),
            Kind("TLS, token", tls + access, ca + token),
            Kind("TLS, client certificate", tls + access + ["--tls-client-ca", folder / "ca.pem"], ca + own)]


@contextlib.contextmanager
def serving(arguments: argparse.Namespace, kind: Kind):
    command = [arguments.simile, "serve", "--port", "0", "--no-metrics", "--collection", f"bench={arguments.folder}", *kind.server]
    kind.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    try:
        for line in kind.process.stdout:
            if found := re.search(r"listening on 127\.0\.0\.1:(\d+)", line):
                kind.port = int(found.group(1))
                break
        yield
    finally:
        kind.process.terminate()
        kind.process.wait()


def cpu_s(process: subprocess.Popen) -> float:
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def load(arguments: argparse.Namespace, kind: Kind, calls: int) -> dict:
    command = [arguments.simile, "bench", "bench", "--server", f"127.0.0.1:{kind.port}", "--in-flight", calls, "--connections",
               min(calls, 16), "--duration", f"{arguments.seconds}s", "--warm-up", "0.5s", "--server-pid", kind.process.pid, "--json",
               *kind.client]
    run = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return json.loads(run.stdout)["runs"][0]


def context(folder: pathlib.Path, kind: Kind) -> ssl.SSLContext | None:
    if "--ca" not in kind.client:
        return None
    made = ssl.create_default_context(cafile=folder / "ca.pem")
    made.set_alpn_protocols(["h2"])
    if "--cert" in kind.client:
        made.load_cert_chain(folder / "client.pem", folder / "client.key")
    return made


def handshakes(arguments: argparse.Namespace, kind: Kind, folder: pathlib.Path) -> float:
    """The server's CPU for each connection, seconds: a handshake, and the settings frame that ends it."""
    tls = context(folder, kind)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    before = cpu_s(kind.process)
    for _ in range(arguments.handshakes):
        with socket.create_connection(("127.0.0.1", kind.port), timeout=10) as plain:
            connection = tls.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain
            connection.sendall(preface)
            connection.recv(64)
            connection.close()
    return (cpu_s(kind.process) - before) / arguments.handshakes


def measure(arguments: argparse.Namespace, tried: list[Kind], folder: pathlib.Path) -> None:
    for kind in [kind for _ in range(arguments.rounds) for kind in tried]:
        many = load(arguments, kind, 64)
        kind.add("calls_per_s", many["calls_per_s"])
        kind.add("server_us_per_call", many["server_cpu_us_per_call"])
        kind.add("p50_us_alone", load(arguments, kind, 1)["latency"]["p50_us"])
        kind.add("server_us_per_connection", handshakes(arguments, kind, folder) * 1e6)


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        write_certificates(folder)
        access_file(arguments.simile, folder)
        tried = kinds(folder)
        for kind in tried:
            stack.enter_context(serving(arguments, kind))
        measure(arguments, tried, folder)
    medians = {kind.name: {figure: statistics.median(values) for figure, values in kind.figures.items()} for kind in tried}
    plain = medians["plain"]
    print("| connection | calls/s, 64 in flight | of plain | server CPU a call, us | one call in flight, p50 us "
          "| server CPU a connection, us |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind, figures in medians.items():
        print(f'| {kind} | {figures["calls_per_s"]:,.0f} | {figures["calls_per_s"] / plain["calls_per_s"]:.2f} '
              f'| {figures["server_us_per_call"]:.1f} | {figures["p50_us_alone"]:.0f} | {figures["server_us_per_connection"]:.0f} |')
    if arguments.json:
        arguments.json.write_text(json.dumps({kind.name: kind.figures for kind in tried}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
