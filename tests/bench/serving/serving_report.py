"""docs/benchmarks/serving.md and its plots, from what run.py measured."""

import pathlib

BEGIN = "<!-- measured: written by tests/bench/serving/run.py -->\n"
END = "<!-- end of measured -->\n"
TITLES = {"faiss": "Python + FAISS", "torch": "Python + torch", "numpy": "Python + NumPy"}
COLOURS = {"Simile": "#c0392b", "Simile, streamed": "#e59866", "echo": "#7f8c8d", "callback echo": "#b2babb",
           "faiss": "#2980b9", "torch": "#e67e22", "numpy": "#27ae60"}


def library_of(server: str) -> str:
    """Of `faiss 1x2`: faiss. A library's configurations count as one rival, by the better of them in each case."""
    return server.split()[0] if server.split()[0] in TITLES else server


def cases_of(entries: list[dict]) -> list[tuple[int, int]]:
    return list(dict.fromkeys((entry["batch"], entry["in_flight"]) for entry in entries))


def best_runs(entries: list[dict], case: tuple[int, int]) -> dict[str, dict]:
    """Of each server the run with the most queries a second."""
    best = {}
    for entry in entries:
        name = library_of(entry["server"])
        if (entry["batch"], entry["in_flight"]) != case or name.startswith("client"):
            continue
        if name not in best or entry["run"]["queries_per_s"] > best[name]["queries_per_s"]:
            best[name] = entry["run"] | {"configuration": entry["server"]}
    return best


def rate_text(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def ms_text(us: float) -> str:
    ms = us / 1e3
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"


def row(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |\n"


def rates_table(entries: list[dict]) -> str:
    names = list(dict.fromkeys(library_of(entry["server"]) for entry in entries))
    names = [name for name in names if not name.startswith("client")]
    rivals = [name for name in names if name in TITLES]
    text = row(["batch", "in flight", *[TITLES.get(name, name) for name in names], "Simile / best rival", "Simile / echo"])
    text += row(["---:"] * (len(names) + 4))
    for case in cases_of(entries):
        runs = best_runs(entries, case)
        cells = [f"{rate_text(runs[name]['queries_per_s'])}"
                 + (f" `{runs[name]['configuration'].split()[1]}`" if name in TITLES else "") for name in names]
        ours = runs["Simile"]["queries_per_s"]
        best = max((runs[name]["queries_per_s"] for name in rivals), default=0)
        cells += [f"**{ours / best:.1f}x**" if best else "", f"{ours / runs['echo']['queries_per_s']:.2f}"]
        text += row([str(case[0]), str(case[1]), *cells])
    return text


def latency_table(entries: list[dict]) -> str:
    names = [name for name in dict.fromkeys(library_of(entry["server"]) for entry in entries)
             if not name.startswith("client")]
    text = row(["batch", "in flight", *[TITLES.get(name, name) for name in names]]) + row(["---:"] * (len(names) + 2))
    for case in cases_of(entries):
        runs = best_runs(entries, case)
        text += row([str(case[0]), str(case[1]),
                     *[" / ".join(ms_text(runs[name]["latency"][key]) for key in ("p50_us", "p99_us", "p99_9_us"))
                       for name in names]])
    return text


def cpu_table(entries: list[dict]) -> str:
    text = row(["batch", "in flight", "answer, bytes", "Simile", "client, against it", "echo", "client, against it",
                "callback echo", "client, against it", "client / echo", "client / callback echo"]) + row(["---:"] * 11)
    for case in cases_of(entries):
        runs = best_runs(entries, case)
        cells = [str(case[0]), str(case[1]), f"{runs['Simile']['answer_bytes_mean']:,.0f}"]
        ratios = []
        for name in ("Simile", "echo", "callback echo"):
            server, client = (runs[name][f"{side}_cpu_us_per_call"] for side in ("server", "client"))
            cells += [f"{server:,.1f}", f"{client:,.1f}"]
            ratios.append(f"{client / server:.2f}")
        text += row(cells + ratios[1:])
    return text


def client_text(entries: list[dict]) -> str:
    runs = {entry["server"].split()[-1]: entry["run"] for entry in entries if entry["server"].startswith("client threads")}
    if not runs:
        return ""
    return ("Against the echo at 64 in flight, by client threads: "
            + "; ".join(f"{threads}: {run['calls_per_s']:,.0f} calls/s, {run['client_cpu_us_per_call']:.1f} us of the client's CPU "
                        f"a call ({run['client_cpu_cores']:.2f} cores)" for threads, run in sorted(runs.items())) + ".\n\n")


def load_table(runs: list[dict]) -> str:
    text = row(["calls/s wanted", "answered", "p50", "p99", "p99.9", "never sent", "failed"]) + row(["---:"] * 7)
    for run in runs:
        text += row([rate_text(run["rate"]), rate_text(run["calls_per_s"]),
                     *[ms_text(run["latency"][key]) for key in ("p50_us", "p99_us", "p99_9_us")], f"{run['unsent']:,}",
                     f"{sum(error['count'] for error in run['errors'].values()):,}"])
    return text


def draw(result: dict, payload: str, path: pathlib.Path, about: dict) -> None:
    """Queries a second and the 99th percentile against the calls in flight, single queries."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "simile"  # the same picture for the same figures
    from matplotlib import pyplot
    entries = result["parts"][payload]
    cases = [case for case in cases_of(entries) if case[0] == 1]
    figure, (rates, latencies) = pyplot.subplots(1, 2, figsize=(10, 4.2))
    for name in dict.fromkeys(library_of(entry["server"]) for entry in entries):
        if name.startswith("client"):
            continue
        runs = [best_runs(entries, case)[name] for case in cases]
        style = {"color": COLOURS[name], "marker": "o", "label": TITLES.get(name, name),
                 "linewidth": 2.5 if name == "Simile" else 1.3, "linestyle": "--" if name.endswith("echo") else "-"}
        in_flight = [case[1] for case in cases]
        rates.plot(in_flight, [run["queries_per_s"] for run in runs], **style)
        latencies.plot(in_flight, [run["latency"]["p99_us"] / 1e3 for run in runs], **style)
    for axes, label in ((rates, "queries/s"), (latencies, "p99, ms")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([case[1] for case in cases], [str(case[1]) for case in cases])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.set_xlabel("calls in flight")
        axes.set_ylabel(label)
        axes.grid(True, alpha=0.3)
    latencies.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(f"{result['collection']}: {result['rows']:,} x {result['dim']}, k 10, payload {payload}, single queries, "
                    f"{about['processors']} processors for client and server")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def failures_text(entries: list[dict]) -> str:
    failed = [f"{entry['server']}, batch {entry['batch']}, {entry['in_flight']} in flight: {reason} {error['count']:,}"
              for entry in entries for reason, error in entry["run"]["errors"].items()]
    return f"Failed calls, which count for no rate: {'; '.join(failed)}.\n\n" if failed else ""


def section(result: dict, payload: str, about: dict, out: pathlib.Path) -> str:
    entries = result["parts"][payload]
    kind = "with payload" if payload == "all" else "without payload"
    path = out / f"serving-{result['collection']}-{payload}.svg"
    draw(result, payload, path, about)
    return (f"### {result['collection']}, {result['rows']:,} x {result['dim']}, {kind}\n\n"
            f"Queries a second:\n\n{rates_table(entries)}\n{failures_text(entries)}"
            f"Latency of a call, p50 / p99 / p99.9 in ms:\n\n{latency_table(entries)}\n"
            f"CPU time of a call in us, user and system:\n\n{cpu_table(entries)}\n{client_text(entries)}"
            f"![{path.stem}]({path.name})\n\n")


def measured_text(about: dict, results: list[dict], out: pathlib.Path) -> str:
    text = (f"{about['date']}, {about['cpu']}, {about['processors']} processors that client and server share. "
            f"{', '.join(about['versions'])}. k 10, {about['duration']} a case, all servers in one run, taking turns case by "
            "case under `simile bench`; their answers were compared with double precision first. `1x2`: one process with two "
            "threads for the search, `2x1`: two processes with one; the better one counts in each case.\n\n"
            f"```\n{about['command']}\n```\n\n")
    for result in results:
        for payload in result["parts"]:
            text += section(result, payload, about, out)
        text += (f"### {result['collection']}: latency against load\n\nOpen loop, Poisson arrivals, single queries, ms:\n\n"
                 f"{load_table(result['load'])}\n![load](serving-load-{result['collection']}.svg)\n\n")
    return text


def write(out: pathlib.Path, about: dict, results: list[dict]) -> None:
    """Replaces what was measured before and leaves the rest of the page."""
    page = out / "serving.md"
    text = page.read_text(encoding="utf-8") if page.exists() else f"# Serving\n\n{BEGIN}{END}"
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    page.write_text(before + BEGIN + measured_text(about, results, out).rstrip("\n") + "\n" + END + after, encoding="utf-8")
