#!/usr/bin/env python3
"""Users, filters, groups and more through a server on a GPU, beside one on the CPU: times of each kind of call, and every answer
compared with the CPU's.

    server_kinds.py --simile build/bin/simile --collection films --json films.json    5,000 films, 500 users with interactions
    server_kinds.py --simile build/bin/simile --collection made --json made.json      62,423 rows made of films, and 119,808 users who have
                                                                                      seen three of them

Calls of all kinds at once, drawn from a fixed set: one under way, then 64, then one on the CPU's server. Then the five-part report
with the CPU's column. The figures are written after each load. Exits with 1 when a server does not start, or an answer differs.
"""

import argparse
import ast
import json
import pathlib
import random
import shutil
import struct
import sys
import tempfile

import json_file
from server_bench import Failed, asked, report_failure, serving

HERE = pathlib.Path(__file__).resolve().parent
SHARES = (0.001, 0.05, 0.6)  # of the rows that pass a filter
MADE_ROWS = 62_423
SEEN_OF_USER = 3
NOBODY = 50  # users that the collection does not have
# The guide's prices: docs/bench.md.
CARD_PRICE, CPU_PRICE = 3.67, 1.96


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simile", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--collection", choices=("films", "made"), required=True)
    parser.add_argument("--films", type=pathlib.Path, default=HERE.parents[2] / "examples/films", help="folder of the films")
    parser.add_argument("--rows", type=int, help="films: the first ones only; made: how many, default 62,423")
    parser.add_argument("--dim", type=int, help="take the first dimensions only")
    parser.add_argument("--users", type=int, default=119_808, help="of --collection made; default 119,808")
    parser.add_argument("--requests", type=int, default=60, help="different calls of each kind; default 60")
    parser.add_argument("--duration", type=float, default=2, help="seconds of a load; default 2")
    parser.add_argument("--one-by-one", action="store_true", help="a load of each kind, without a warm-up: for a device on which a call "
                        "takes seconds")
    parser.add_argument("--timeout", type=int, default=10, help="seconds of a call; default 10")
    parser.add_argument("--in-flight", default="1,64", help="loads on the GPU; default 1,64")
    parser.add_argument("--backend", default="gpu", help="of the first server; default gpu, so that it says why there is none")
    parser.add_argument("--no-report", action="store_true", help="no five-part report")
    parser.add_argument("--json", type=pathlib.Path, help="file to write all figures to")
    parser.add_argument("--work", type=pathlib.Path, help="folder for the collection; default a temporary one")
    return parser.parse_args()


def read_npy(path: pathlib.Path) -> tuple[str, int, int, bytes]:
    """Type, rows, dimensions and bytes of a matrix."""
    data = path.read_bytes()
    major = data[6]
    length = struct.unpack_from("<H" if major == 1 else "<I", data, 8)[0]
    begin = (10 if major == 1 else 12) + length
    head = ast.literal_eval(data[begin - length:begin].decode("latin-1"))
    rows, dim = head["shape"]
    return head["descr"], rows, dim, data[begin:]


def write_npy(path: pathlib.Path, kind: str, rows: int, dim: int, data: bytes) -> None:
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def first_part(source: pathlib.Path, rows: int | None, dim: int | None) -> tuple[str, int, int, bytes]:
    """The first rows and columns of a matrix; None for all."""
    kind, count, width, data = read_npy(source)
    rows, dim = min(rows or count, count), min(dim or width, width)
    of_row = len(data) // count
    return kind, rows, dim, b"".join(data[row * of_row:row * of_row + of_row // width * dim] for row in range(rows))


def write_lines(path: pathlib.Path, lines) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def read_lines(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def make_films(source: pathlib.Path, folder: pathlib.Path, rows: int | None, dim: int | None = None) -> None:
    """The films, or the first of them, with all users."""
    write_npy(folder / "content_vectors.npy", *first_part(source / "content_vectors.npy", rows, dim))
    write_npy(folder / "preference_vectors.npy", *first_part(source / "preference_vectors.npy", None, dim))
    metadata = read_lines(source / "metadata.jsonl")[:rows]
    write_lines(folder / "metadata.jsonl", metadata)
    known = {film["media_id"] for film in metadata}
    write_lines(folder / "interactions.jsonl", (line for line in read_lines(source / "interactions.jsonl") if line["media_id"] in known))
    shutil.copyfile(source / "user_ids.json", folder / "user_ids.json")


def mixture(data: bytes, rows: int, dim: int, draw: random.Random) -> tuple[tuple[int, int], bytes]:
    """A vector whose first columns, half of them at least, are one row's and whose other ones are another's: like real ones, and no
    row's duplicate. And the two rows, the greater part first."""
    row_bytes = len(data) // rows
    first, second = draw.randrange(rows), draw.randrange(rows)
    cut = row_bytes // dim * draw.randrange(dim // 2, dim - dim // 4)
    return (first, second), (data[first * row_bytes:first * row_bytes + cut]
                             + data[second * row_bytes + cut:(second + 1) * row_bytes])


def made_payload(film: dict, draw: random.Random) -> dict:
    """That of the film which a row is most of. `share` is what the filters of known shares ask for; ids are row numbers."""
    return {name: film[name] for name in ("title", "year", "genres")} | {"maker": f"Studio {draw.randrange(400)}",
                                                                         "share": draw.randrange(10_000)}


def make_collection(films: pathlib.Path, folder: pathlib.Path, rows: int, users: int, dim: int | None = None) -> None:
    """Rows made of films, users made of rows, what they have seen, and payload."""
    draw = random.Random(1)
    kind, count, dim, data = first_part(films / "content_vectors.npy", None, dim)
    mixtures = [mixture(data, count, dim, draw) for _ in range(rows)]
    made = b"".join(vector for _, vector in mixtures)
    write_npy(folder / "content_vectors.npy", kind, rows, dim, made)
    metadata = read_lines(films / "metadata.jsonl")
    write_lines(folder / "metadata.jsonl", (made_payload(metadata[first], draw) for (first, _), _ in mixtures))
    tastes = [mixture(made, rows, dim, draw) for _ in range(users)]
    write_npy(folder / "preference_vectors.npy", kind, users, dim, b"".join(vector for _, vector in tastes))
    (folder / "user_ids.json").write_text(json.dumps([f"user_{user:06}" for user in range(users)]), encoding="utf-8")
    write_lines(folder / "interactions.jsonl",
                ({"user_id": f"user_{user:06}", "media_id": str(row)} for user, (liked, _) in enumerate(tastes)
                 for row in dict.fromkeys((*liked, *(draw.randrange(rows) for _ in range(SEEN_OF_USER - 2))))))


def filters_of(folder: pathlib.Path) -> list[tuple[float, str]]:
    """The share of rows that pass, and the filter: by `share` where rows have one, else by year."""
    metadata = read_lines(folder / "metadata.jsonl")
    field = "share" if "share" in metadata[0] else "year"
    values = sorted(line[field] for line in metadata)
    found = []
    for share in SHARES:
        least = values[-max(1, round(share * len(values)))]
        found.append((sum(value >= least for value in values) / len(values), f"{field} >= {least}"))
    return found


def kinds_of(folder: pathlib.Path) -> list[tuple[str, dict]]:
    """A name for people, and the call as in a mix file."""
    groups = "maker" if "maker" in read_lines(folder / "metadata.jsonl")[0] else "genres"
    filters = filters_of(folder)
    return [("vector", {"kind": "vector"}),
            ("item", {"kind": "id"}),
            ("recommend", {"kind": "recommend"}),
            ("recommend, without what was seen", {"kind": "recommend", "exclude_seen": True}),
            ("user, without what was seen, filter", {"kind": "user", "exclude_seen": True, "filter": filters[1][1]}),
            *((f"filter of {share:.2%}", {"kind": "filter", "filter": text}) for share, text in filters),
            ("groups", {"kind": "groups", "field": groups}),
            ("groups of 3", {"kind": "groups", "field": groups, "group_size": 3}),
            ("diversity", {"kind": "diversity"}),
            ("examples, their mean", {"kind": "examples", "positive": 3}),
            ("examples, the best one", {"kind": "examples", "positive": 2, "negative": 1, "strategy": "best_score"}),
            ("examples, their sum", {"kind": "examples", "positive": 2, "negative": 1, "strategy": "sum_scores"}),
            ("vector towards a user", {"kind": "blend"})]


def names_of(kinds: list[tuple[str, dict]]) -> list[str]:
    """As `simile bench` names them: the second of a kind has a number."""
    names: list[str] = []
    for _, call in kinds:
        number = sum(name.split(" ")[0] == call["kind"] for name in names) + 1
        names.append(call["kind"] if number == 1 else f'{call["kind"]} {number}')
    return names


class Servers:
    """Two servers of the same content, and what to ask them."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path, gpu: str, cpu: str):
        self.arguments, self.folder, self.gpu, self.cpu = arguments, folder, gpu, cpu

    def load(self, kinds: list[tuple[str, dict]], in_flight: int, users: pathlib.Path, seconds: float, on_cpu: bool = False) -> dict:
        """Times of each kind; on the GPU's server every answer is compared with the CPU's."""
        if not self.arguments.one_by_one:
            return self.load_of(kinds, in_flight, users, seconds, seconds / 4, on_cpu)
        loads = [self.load_of([kind], in_flight, users, seconds, 0, on_cpu) for kind in kinds]
        whole = loads[0]
        for load in loads[1:]:
            for part in ("kinds", "engines", "unchecked"):
                whole[part] |= load[part]
            whole["findings"] += load["findings"]
        return whole | {"rate": sum(load["rate"] for load in loads) / len(loads)}

    def load_of(self, kinds: list[tuple[str, dict]], in_flight: int, users: pathlib.Path, seconds: float, warm_up: float,
                on_cpu: bool) -> dict:
        mix = self.folder.parent / "mix.json"
        mix.write_text(json.dumps({"calls": [call for _, call in kinds]}), encoding="utf-8")
        compared = [] if on_cpu else ["--verify", "1", "--cpu-server", self.cpu]
        done = asked(self.arguments.simile, self.cpu if on_cpu else self.gpu, "--mix", str(mix), "--users", str(users), "--in-flight",
                     str(in_flight), "--duration", f"{seconds}s", "--warm-up", f"{warm_up}s", "--requests",
                     str(self.arguments.requests), "--timeout", str(self.arguments.timeout), "--json", *compared)
        if not done.stdout.startswith("{"):
            raise Failed(f"simile bench: {done.stderr.strip() or done.stdout.strip()}")
        run = json.loads(done.stdout)["runs"][0]
        if run["errors"]:
            raise Failed(f'simile bench: {json.dumps(run["errors"])}')
        checks = run.get("verify") or {"kinds": {}, "findings": [], "unchecked": {}}
        found = {}
        for (label, _), name in zip(kinds, names_of(kinds)):
            times = run["kinds"][name]
            found[label] = {"calls": times["count"], "p50_us": times["p50_us"], "p99_us": times["p99_us"],
                            **checks["kinds"].get(name, {"compared": 0, "wrong": 0})}
        return {"in_flight": in_flight, "beside": on_cpu, "rate": run["queries_per_s"], "kinds": found,
                "engines": (run["receipts"] or {}).get("backends", {}), "findings": checks["findings"], "unchecked": checks["unchecked"]}

    def report(self) -> dict:
        """The five-part report, for programs and for people."""
        out = self.folder.parent / "report.json"
        few = ["--requests", str(self.arguments.requests)] if self.arguments.one_by_one else []
        done = asked(self.arguments.simile, self.gpu, "--report", "a100", "--folder", str(self.folder), "--cpu-server", self.cpu,
                     "--hourly-price", str(CARD_PRICE), "--cpu-hourly-price", str(CPU_PRICE), "--timeout", str(self.arguments.timeout), "--out", str(out), *few)
        if done.returncode != 0:
            raise Failed(f"simile bench --report a100: {done.stderr.strip()}")
        return {"report": json.loads(out.read_text(encoding="utf-8")), "a100": done.stdout}


def faults_of(load: dict, backend: str) -> list[str]:
    """Why a load on the first server is not as it should be."""
    where = f'{load["in_flight"]} in flight'
    found = [f"{where}: {finding}" for finding in load["findings"]]
    if backend == "gpu":  # by `auto` the CPU may answer
        found += [f"{where}: answered by {engine}" for engine in load["engines"] if not engine.startswith("gpu")]
    for label, kind in load["kinds"].items():
        if kind["compared"] == 0:
            found.append(f"{where}: {label}: no answer was compared")
    found += [f"{where}: {count} not compared: {why}" for why, count in load["unchecked"].items()]
    return found


def line_of(load: dict) -> str:
    kinds = load["kinds"]
    return (f'{", ".join(load["engines"])}, {load["in_flight"]} in flight: {load["rate"]:,.0f} queries/s, '
            f'{sum(kind["compared"] for kind in kinds.values()):,} answers compared, {sum(kind["wrong"] for kind in kinds.values())} wrong')


def measure(arguments: argparse.Namespace, temporary: pathlib.Path) -> None:
    folder = temporary / "collection"
    folder.mkdir()
    if arguments.collection == "films":
        make_films(arguments.films, folder, arguments.rows, arguments.dim)
    else:
        make_collection(arguments.films, folder, arguments.rows or MADE_ROWS, arguments.users, arguments.dim)
    nobody = temporary / "nobody.json"
    nobody.write_text(json.dumps([f"nobody_{number}" for number in range(NOBODY)]), encoding="utf-8")
    _, rows, dim, _ = read_npy(folder / "content_vectors.npy")
    _, users, _, _ = read_npy(folder / "preference_vectors.npy")
    results = {"collection": arguments.collection, "rows": rows, "dim": dim, "users": users, "loads": [], "a100": ""}
    faults = []

    def add(load: dict) -> None:
        results["loads"].append(load)
        print(line_of(load), flush=True)
        json_file.write(arguments.json, results)
        if not load["beside"]:
            faults.extend(faults_of(load, arguments.backend))

    with serving(arguments.simile, folder, arguments.backend) as (_, gpu, lines), \
            serving(arguments.simile, folder, "cpu") as (_, cpu, _):
        print(lines, end="", flush=True)
        servers = Servers(arguments, folder, gpu, cpu)
        kinds = kinds_of(folder)
        known = folder / "user_ids.json"
        for in_flight in map(int, arguments.in_flight.split(",")):
            add(servers.load(kinds, in_flight, known, arguments.duration))
        cold = [(f"cold start, {order}", {"kind": "recommend", "cold_start": order}) for order in ("newest", "most_popular")]
        add(servers.load(cold, 1, nobody, arguments.duration / 3))
        add(servers.load(kinds, 1, known, arguments.duration, on_cpu=True))
        if not arguments.no_report:
            results |= servers.report()
            print(results["a100"])
            json_file.write(arguments.json, results)
    if faults:
        raise Failed("; ".join(faults[:10]))


def main() -> int:
    arguments = parse()
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        return report_failure(lambda: measure(arguments, pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
