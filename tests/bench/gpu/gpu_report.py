"""The measured part of docs/benchmarks/gpu.md: tables of the results that run.py collects, of one run or of several."""

import pathlib

BEGIN = "<!-- measured: written by tests/bench/gpu/run.py -->\n"
END = "<!-- end of measured -->\n"

# (rows, dim, k, batch): microseconds on the device of an H200: limit and aim.
TARGET_CARD = "H200"
TARGETS = {(62423, 384, 10, 1): (25, 15), (62423, 384, 10, 32): (30, 18), (62423, 384, 10, 100): (40, 25),
           (62423, 384, 10, 1000): (150, 110), (1000000, 768, 100, 1): (450, 400), (1000000, 768, 100, 32): (480, 430),
           (1000000, 768, 100, 100): (560, 480), (1000000, 768, 100, 1000): (3000, 2600)}
HOST_TARGETS = {(62423, 384, 10, 1): (35, 25)}


def speedup_wanted(batch: int) -> float:
    """The required speedup of a batch over torch."""
    return 2.0 if batch >= 32 else 1.2


def table(heads: list[str], rows: list[list[str]], right: set[int] = frozenset()) -> str:
    marks = ["---:" if column in right else "---" for column in range(len(heads))]
    clean = [[" ".join(cell.replace("|", "/").split()) for cell in cells] for cells in rows]  # messages of programs
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, marks, *clean]) + "\n"


def us_text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def spread(times: dict | None) -> str:
    if not times:
        return ""
    return f'{us_text(times["median"])} ({us_text(times["min"])} .. {us_text(times["max"])})'


def against_target(us: float | None, target: tuple[float, float] | None) -> str:
    """How the figure compares with its target."""
    if us is None or target is None:
        return ""
    limit, aim = target
    if us <= aim:
        return f"aim of {aim:,} reached"
    return f"pass: {limit:,} or less, aim {aim:,}" if us <= limit else f"**miss**: {limit:,} or less"


def data_of(results: dict, step: str) -> dict:
    return results["steps"].get(step, {}).get("data") or {}


def median_of(case: dict | None, name: str) -> float | None:
    times = (case or {}).get(name)
    return times["median"] if times else None


def rival_case(torch: dict, case: dict) -> dict:
    return next((other for other in torch.get("cases", [])
                 if (other["batch"], other["k"]) == (case["batch"], case["k"])), {})


def best(values: list[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def shares(bench: dict, case: dict) -> tuple[str, str]:
    """Of the copy bandwidth and of the GEMM rate, both measured in the same run."""
    us = median_of(case, "device_us")
    if us is None:
        return "", ""
    values = bench["rows"] * bench["padded_dim"]
    of_copy = 2 * values * case.get("passes", 1) / us / 1e3 / bench["ceilings"]["copy_gb_s"]
    rates = [gemm["tflops"] for gemm in bench["ceilings"]["gemm"] if gemm["batch"] == case["batch"]]
    of_gemm = f'{2 * values * case["batch"] / us / 1e6 / rates[0]:.0%}' if rates and rates[0] > 0 else ""
    return f"{of_copy:.0%}", of_gemm


def faster(ours: float | None, theirs: float | None, batch: int) -> str:
    if ours is None or theirs is None:
        return ""
    wanted = speedup_wanted(batch)
    ratio = theirs / ours
    return f"{ratio:.1f}x" if ratio >= wanted else f"{ratio:.1f}x, **miss**: {wanted:g}x"


def is_measured(case: dict) -> bool:
    return "host_us" in case and ("device_us" in case or "device_note" in case)


def three(value: float | None) -> str:
    """To three places; a number that JSON cannot hold is null."""
    return "not a number" if value is None else f"{value:.3f}"


def progress(data: dict) -> str:
    """How much of a step was measured, what not and why, and what was running when it ended."""
    so_far = data.get("so_far") or {}
    parts = [measured(data), *(f"without {part}, {why}" for part, why in data.get("skipped", {}).items()),
             f'while running {data["running"]}' if "running" in data else "",
             f'after {so_far["cases"]} cases, {so_far["by_strategy"]} of {so_far["queries"]} queries by it' if so_far else ""]
    return ", ".join(part for part in parts if part)


def why_skipped(data: dict) -> str:
    """Why a step that measured nothing did not; empty where it measured something."""
    found = any(data.get(part) for part in ("lines", "cases", "tests"))
    return "" if found else "; ".join(dict.fromkeys(data.get("skipped", {}).values()))


def measured(data: dict) -> str:
    if "tests" in data:
        failed = sum(not test["passed"] for test in data["tests"])
        cases = [f'{test["test"].split("/")[-1]} {test["cases"] + " cases, " if "cases" in test else ""}'
                 f'{test["by_strategy"]} of {test["queries"]} queries by it' for test in data["tests"] if "by_strategy" in test]
        return "; ".join([f'{len(data["tests"])} tests, {failed} failed', *cases])
    if "seen_over_bound" in data:
        stored = f', {three(data["fp16_seen_over_bound"])} once stored as fp16' if "fp16_seen_over_bound" in data else ""
        return f'{data["sums"]:,} sums per method, worst {three(data["seen_over_bound"])} of the bound{stored}'
    if "gpu" in data:  # of simile tune
        gpu = data["gpu"]
        collections = [f'{len(each["rates"])} batches, {len(each["passes"])} passes chosen' + (f', {each["why_not"]}' if each["why_not"] else "")
                       for each in gpu["collections"]]
        return "; ".join(collections) or gpu["why_not"]
    if "profile" in data:
        return f'{data["profile"].count(chr(10))} lines of text'
    if "engines" in data:  # of engine_bench, whose cases are complete
        return f'{len(data["cases"])} cases, {min(case["rounds"] for case in data["cases"])} rounds of each'
    if "loads" in data:  # of server_kinds.py
        kinds = [kind for load in data["loads"] for kind in load["kinds"].values()]
        return f'{len(kinds)} kinds of calls, {sum(kind["compared"] for kind in kinds):,} answers compared, {sum(kind["wrong"] for kind in kinds)} differ'
    if "cases" in data:
        cases = data["cases"]
        return f'{sum(is_measured(case) or "eager_us" in case or "note" in case for case in cases)} of {len(cases)} cases'
    return ""


def summary(description: str, result: dict) -> str:
    """What the step did, and why it did no more."""
    parts = [result["message"] or description, progress(result.get("data") or {})]
    return ": ".join(part for part in parts if part)


def merge(all_results: list[dict]) -> dict:
    """The results of several runs as those of one: of a step that ran twice the later, unless only the earlier passed. Ours
    and torch on the same vectors are of one run, else they would not be compared on the same clocks."""
    cards = {results["about"].get("card") for results in all_results}
    if len(cards) > 1:
        raise SystemExit(f'error: results of different cards: {", ".join(sorted(map(str, cards)))}; give those of one')
    steps: dict[str, dict] = {}
    for results in all_results:
        for name in results["steps"]:
            kind, _, rest = name.partition("-")
            names = {f"{one}-{rest}" for one in ("bench", "torch")} if kind in ("bench", "torch") else {name}
            ours = {one: results["steps"][one] for one in names if one in results["steps"]}
            had = {one: steps[one] for one in names if one in steps}
            if not had or passed(ours) >= passed(had):
                steps = {one: step for one, step in steps.items() if one not in names or one in ours} | ours
    return {"about": {"card": all_results[-1]["about"].get("card"), "runs": [results["about"] for results in all_results]}, "steps": steps}


def passed(steps: dict[str, dict]) -> int:
    return sum(step["status"] == "passed" for step in steps.values())


def bench_rows(bench: dict, torch: dict) -> list[list[str]]:
    is_target_card = TARGET_CARD in bench["card"]["name"]
    rows = []
    for case in bench["cases"]:
        key = (bench["rows"], bench["dim"], case["k"], case["batch"])
        rival = rival_case(torch, case)
        eager, graphed = median_of(rival, "eager_us"), median_of(rival, "graphed_us")
        host = median_of(case, "host_us")
        host_rival = best([median_of(rival, "host_eager_us"), median_of(rival, "host_graphed_us")])
        device = median_of(case, "device_us")
        of_copy, of_gemm = shares(bench, case)
        targets = [against_target(device, TARGETS.get(key)), against_target(host, HOST_TARGETS.get(key))] if is_target_card else []
        named = [f"{what} {text}" for what, text in zip(("device", "host"), targets) if text]
        by = f'`{case["answered_by"]}`' if "answered_by" in case else "**not measured**"
        failed = {side: f'**failed**: {case[f"{side}_error"]}' if f"{side}_error" in case else "" for side in ("device", "host")}
        device_text = spread(case.get("device_us")) + (f' ({case["unproven"]} unproven)' if case.get("unproven") else "")
        rows.append([str(case["k"]), str(case["batch"]), by,
                     device_text or failed["device"] or case.get("device_note", ""), of_copy, of_gemm,
                     us_text(median_of(case, "with_copies_us")), spread(case.get("host_us")) or failed["host"],
                     us_text(eager) or rival.get("note", ""), us_text(graphed) or rival.get("graph_note", ""),
                     faster(device, best([eager, graphed]), case["batch"]), us_text(host_rival),
                     faster(host, host_rival, case["batch"]), "; ".join(named)])
    return rows


def bench_section(name: str, results: dict) -> str:
    bench, torch = data_of(results, f"bench-{name}"), data_of(results, f"torch-{name}")
    if not bench:
        return ""
    ceilings = bench["ceilings"]
    heads = ["k", "batch", "answered by", "device us", "of copy", "of GEMM", "+ copies", "host to host us", "torch eager",
             "torch graphed", "faster", "torch host", "faster", "target"]
    verified = min((case[name] for case in bench["cases"] for name in ("verified", "device_verified") if name in case), default=0)
    rescans, queries = (sum(case.get(what, 0) for case in bench["cases"]) for what in ("rescans", "queries"))
    recalls = [case["recall"] for case in torch.get("cases", []) if case.get("recall") is not None]
    text = f'\n### {bench["rows"]:,} x {bench["dim"]}, {bench["data"].split(",")[0]}\n\n'
    for step in (f"bench-{name}", f"torch-{name}"):
        outcome = results["steps"].get(step, {"status": "passed"})
        if outcome["status"] != "passed":
            text += f'**`{step}` was not completed** ({outcome["status"]}: {outcome["message"]}).\n\n'
    text += (f'{bench["data"]}. Measured in the same run: copy {ceilings["copy_gb_s"]:,.0f} GB/s (read and write counted), read '
             f'{ceilings["read_gb_s"]:,.0f} GB/s, '
             + (", ".join(f'{gemm["tflops"]:.0f} TFLOP/s of products at {gemm["batch"]}' for gemm in ceilings["gemm"])
                or f'products skipped ({bench.get("skipped", {}).get("products", "not measured")})')
             + f'. At least {verified:,} {"answer" if verified == 1 else "answers"} of each case '
             + f'{"was" if verified == 1 else "were"} compared with the plain scan\'s, bit for '
             f'bit; {rescans:,} of {queries:,} queries were rescanned.')
    if torch:
        text += f' torch {torch["torch"]}, {torch["data"]}'
        text += f'; it finds {min(recalls):.1%} .. {max(recalls):.1%} of the exact rows.' if recalls else "."
    else:
        text += " torch was not measured."
    return text + "\n\n" + table(heads, bench_rows(bench, torch), set(range(14)) - {2, 3, 7, 13})


def steps_section(results: dict) -> str:
    rows = [[name, step["status"], f'{step["seconds"]:.0f}', step.get("message", "")]
            for name, step in results["steps"].items()]
    return "\n### What was run\n\n" + table(["step", "outcome", "s", ""], rows, {2})


def sums_section(results: dict) -> str:
    """What the certificate assumes of this card; empty where it was not checked."""
    data = data_of(results, "tensor-sums")
    if "seen_over_bound" not in data:
        return ""
    worst = [value for name in ("seen_over_bound", "fp16_seen_over_bound") if (value := data.get(name)) is not None]
    outcome = "the assumption holds" if worst and max(worst) <= 1 else "**proofs are invalid on this card**"
    return f"\n### Sums on tensor cores\n\n{measured(data)}: {outcome}.\n"


def tune_section(results: dict) -> str:
    """What `simile tune` found: the rate of each batch, and the passes that the card chose in place of the rules'."""
    text = ""
    for step in results["steps"]:
        for each in data_of(results, step).get("gpu", {}).get("collections", []) if step.startswith("tune-") else []:
            text += f'\n**{step.removeprefix("tune-")}**' + (f': {each["why_not"]}' if each["why_not"] else "") + "\n\n"
            text += table(["queries", "us", "queries/s", "engine"],
                          [[f'{rate["queries"]:,}', us_text(1e6 * rate["seconds"]), f'{rate["queries"] / rate["seconds"]:,.0f}', f'`{rate["engine"]}`']
                           for rate in each["rates"]], {0, 1, 2})
            chosen = [[f'{one["queries_max"]:,}', f'{one["hits_max"]:,}', one["pass"], us_text(1e6 * one["seconds"]),
                       us_text(1e6 * one["rules_seconds"])] for one in each["passes"]]
            heads = ["queries, at most", "hits, at most", "pass that the card chose", "us", "the rules' us"]
            text += "\n" + (table(heads, chosen, {0, 1, 3, 4}) if chosen else "The rules' passes were the fastest.\n")
    if not text:
        return ""
    return "\n### What the card chooses at a load\n\n`simile tune`: host to host, k 10.\n" + text


def profile_section(results: dict) -> str:
    profile = data_of(results, "profile").get("profile", "")
    return f"\n### The two slowest kernels, by Nsight Compute\n\n```\n{profile.strip()}\n```\n" if profile else ""


def server_section(results: dict) -> str:
    data = data_of(results, "server")
    if not data:
        return ""
    rows = [[str(run["in_flight"]), f'{run["rate"]:,.0f}', *(f"{us:,.0f}" for us in run["latency_us"]), run["engine"], str(run["wrong"]),
             cores_text(run)] for run in data["runs"]]
    text = f'\n### Through a server, {data["rows"]:,} x {data["dim"]}\n\n`simile bench` on this machine, one query a call, k 10.\n\n'
    text += table(["calls in flight", "queries/s", "p50 us", "p99 us", "p99.9 us", "engine", "wrong", "CPU cores by thread"], rows,
                  {0, 1, 2, 3, 4, 6})
    if data.get("a100"):
        text += "\n```\n" + data["a100"].strip() + "\n```\n"
    return text


def cores_text(run: dict) -> str:
    """CPU cores that the threads of each name take; names below 0.02 are left out."""
    return ", ".join(f"{name} {share:.2f}" for name, share in run.get("cores_by_thread", {}).items() if share >= 0.02)


def against_cpu_table(data: dict) -> str:
    rows = [[f'{case["batch"]:,}', *(f"{case[name]:,.3f}" if name in case else "" for name in ("scan_single_ms", "cpu_ms", "gpu_ms")),
             f'{case["times_faster"]:,.1f}', case["gpu_engine"]] for case in data["gpu_against_cpu"]]
    return table(["batch", "plain fp32 scan, one at a time, ms", f'CPU engine, {data["threads"]} threads, ms', "GPU, ms",
                  "times faster than the CPU engine", "GPU answered by"], rows, {0, 1, 2, 3, 4})


def against_cpu_section(results: dict) -> str:
    """Empty without a step that compared the GPU with the CPU."""
    text = ""
    for step in results["steps"]:
        data = data_of(results, step)
        if not step.startswith("against-cpu-") or not data.get("gpu_against_cpu"):
            continue
        text += (f'\n**{data["rows"]:,} x {data["dim"]}**, {data["data"]}, k {data["gpu_against_cpu"][0]["k"]}, on {data["cpu"]}:\n\n'
                 + against_cpu_table(data))
    if not text:
        return ""
    return ("\n### The GPU against the CPU of the same server\n\nA batch from host to host, medians of rounds in which the three "
            "take turns, the same queries and the same answers. *Times faster* is against the CPU engine on all cores.\n" + text)


def kinds_table(data: dict) -> str:
    """Each kind of call: its times on the GPU with one call under way and with more, and on the CPU with one."""
    loads = [load for load in data["loads"] if not load["beside"]]
    on_cpu = next((load["kinds"] for load in data["loads"] if load["beside"]), {})
    flights = list(dict.fromkeys(load["in_flight"] for load in loads))
    rows = []
    for label in dict.fromkeys(label for load in loads for label in load["kinds"]):
        found = {load["in_flight"]: load["kinds"][label] for load in loads if label in load["kinds"]}
        one, cpu = found.get(1), on_cpu.get(label)
        rows.append([label, *(us_text(found[flight]["p50_us"]) if flight in found else "" for flight in flights),
                     us_text(one["p99_us"]) if one else "", us_text(cpu["p50_us"]) if cpu else "",
                     f'{cpu["p50_us"] / one["p50_us"]:.1f}' if cpu and one else "",
                     f'{sum(kind["compared"] for kind in found.values()):,}', f'{sum(kind["wrong"] for kind in found.values()):,}'])
    heads = ["call", *(f"p50 us, {flight} under way" for flight in flights), "p99 us, 1 under way", "CPU p50 us, 1 under way",
             "times faster", "compared", "differ"]
    return table(heads, rows, set(range(1, len(heads))))


def kinds_section(results: dict) -> str:
    """Empty without a step that asked for users, filters and groups."""
    text = ""
    for step in ("server-films", "server-made"):
        data = data_of(results, step)
        if not data.get("loads"):
            continue
        text += (f'\n**{data["collection"]}**, {data["rows"]:,} x {data["dim"]}, {data["users"]:,} users. All kinds at once, k 10.\n\n'
                 + kinds_table(data))
        if data.get("a100"):
            text += "\n```\n" + data["a100"].strip() + "\n```\n"
    if not text:
        return ""
    return ("\n### Users, filters and groups through a server\n\n`simile bench` on this machine; every answer is compared with that "
            "of a server on the CPU beside it, to the bit.\n" + text)


def preface(about: dict) -> str:
    text = ""
    for run in about.get("runs", [about]):
        facts = [run.get("card", "unknown card"), f'driver {run.get("driver", "unknown")}', run.get("clocks", ""),
                 f'CUDA {run["cuda"]}' if run.get("cuda") else ""]
        text += f'{run["date"]}, ' + ", ".join(fact for fact in facts if fact) + f'.\n\n```\n{run["command"]}\n```\n\n'
    return text[:-1]


def render(results: dict) -> str:
    """The section between the markers, without pictures."""
    names = [step.removeprefix("bench-") for step in results["steps"] if step.startswith("bench-")]
    text = preface(results["about"]) + steps_section(results)
    if names:
        text += (f'\n### How to read the times\n\nMedians (least .. most) in microseconds of a batch. *device*: queries on the '
                 f'card to answers on the card; *+ copies*: from and to pinned memory; *host to host*: the call that the server '
                 f'makes. *of copy* and *of GEMM*: the rows\' bytes and the products over the time, as shares of the card\'s '
                 f'highest rates. *faster*: the better of torch eager and graphed over ours; required are 1.2x at batch 1 and 2x '
                 f'from 32 on. Targets are for an {TARGET_CARD}.\n')
    text += "".join(bench_section(name, results) for name in names)
    return (text + against_cpu_section(results) + server_section(results) + kinds_section(results) + tune_section(results)
            + profile_section(results) + sums_section(results))


def write_page(path: pathlib.Path, text: str, plots: list[pathlib.Path]) -> None:
    """Puts the text between the page's markers, or at its end."""
    pictures = "".join(f"\n![{plot.stem}]({plot.name})\n" for plot in plots)
    section = BEGIN + text + pictures + END
    path.parent.mkdir(parents=True, exist_ok=True)
    page = path.read_text(encoding="utf-8") if path.exists() else "# Exact search on a GPU\n\n" + BEGIN + END
    if BEGIN not in page:
        page += "\n" + BEGIN + END
    before, rest = page.split(BEGIN)
    path.write_text(before + section + rest.split(END)[1], encoding="utf-8")
