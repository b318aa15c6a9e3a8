"""The plots beside the tables: time per batch over its size, one per data set."""

import pathlib

from gpu_report import data_of, median_of, rival_case


def draw(results: dict, folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes gpu-ROWSxDIM.png for each measured data set and returns their paths. Needs matplotlib."""
    import matplotlib
    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for step in results["steps"]:
        name = step.removeprefix("bench-")
        bench = data_of(results, step)
        if step.startswith("bench-") and bench:
            paths.append(folder / f"gpu-{name}.png")
            draw_one(bench, data_of(results, f"torch-{name}"), paths[-1])
    return paths


def draw_one(bench: dict, torch: dict, path: pathlib.Path) -> None:
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator
    ks = list(dict.fromkeys(case["k"] for case in bench["cases"]))
    figure, all_axes = pyplot.subplots(1, len(ks), figsize=(4.2 * len(ks), 4.0), dpi=110, sharey=True, squeeze=False)
    for axes, k in zip(all_axes[0], ks):
        cases = sorted((case for case in bench["cases"] if case["k"] == k), key=lambda case: case["batch"])
        draw_lines(axes, bench, torch, cases)
        axes.set_title(f"k {k}")
        axes.set_xlabel("queries a batch")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([case["batch"] for case in cases], [f'{case["batch"]:,}' for case in cases])
        axes.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(True, alpha=0.3)
    all_axes[0][0].set_ylabel("us a batch, on the device")
    all_axes[0][-1].legend(fontsize=8)
    figure.suptitle(f'{bench["rows"]:,} x {bench["dim"]}, {bench["card"]["name"]}')
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)


def draw_lines(axes, bench: dict, torch: dict, cases: list[dict]) -> None:
    values = bench["rows"] * bench["padded_dim"]
    rate = {gemm["batch"]: gemm["tflops"] for gemm in bench["ceilings"]["gemm"]}
    floor = [max(2 * values / bench["ceilings"]["copy_gb_s"] / 1e3,
                 2 * values * case["batch"] / rate[case["batch"]] / 1e6 if rate.get(case["batch"]) else 0) for case in cases]
    lines = {"Simile": ([median_of(case, "device_us") for case in cases], "#c0392b", "-"),
             "torch eager": ([median_of(rival_case(torch, case), "eager_us") for case in cases], "#e67e22", "-"),
             "torch graphed": ([median_of(rival_case(torch, case), "graphed_us") for case in cases], "#d4ac0d", "-"),
             "at copy bandwidth and GEMM rate": (floor, "#7f8c8d", ":")}
    for name, (times, colour, style) in lines.items():
        points = [(case["batch"], us) for case, us in zip(cases, times) if us is not None]
        if points:
            axes.plot(*zip(*points), marker="o" if style == "-" else None, color=colour, linestyle=style, label=name)
