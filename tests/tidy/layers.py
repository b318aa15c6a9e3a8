"""Who may include whom. Every rule here is about one #include line."""

import re
from typing import Callable, Iterator

from tree import Finding, SourceFile

# A folder may include itself and the folders it is listed with: all that is strictly lower, and for cli also app.
LEVELS = {"contracts": 0, "observe": 1, "kernels": 2, "certificate": 3, "data": 3, "filter": 4, "backend": 4,
          "engine": 5, "recommend": 6, "service": 7, "app": 8, "cli": 9}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA_HEADER = re.compile(r"^(cuda|cublas|cusparse|curand|nvml|nvtx|cub/|thrust/|cute/|cutlass/|mma\.h$|device_launch)")
PROTOBUF_HEADER = re.compile(r"^google/|(?<!\.grpc)\.pb\.h$")
GRPC_HEADER = re.compile(r"^(grpc|grpcpp)/|\.grpc\.pb\.h$")


def includes(file: SourceFile) -> Iterator[tuple[int, str, str]]:
    """Line number, opening mark and name of every #include."""
    if file.is_cpp:
        for number, line in enumerate(file.lines, 1):
            if match := INCLUDE.match(line):
                yield number, match[1], match[2]


def target_layer(name: str) -> str:
    """The layer that an #include of ours reaches; empty for anything that is not ours."""
    folder = name.split("/")[0]
    if folder == "simile":
        return "" if name.startswith("simile/v1/") else "contracts"
    return folder if folder in LEVELS and "/" in name else ""


def is_below(lower: str, upper: str) -> bool:
    return lower == upper or LEVELS[lower] < LEVELS[upper]


def layer_order(file: SourceFile) -> Iterator[Finding]:
    """A file includes only its own folder or lower ones."""
    if not file.layer:
        return
    for number, _, name in includes(file):
        target = target_layer(name)
        if target and file.layer in LEVELS and not is_below(target, file.layer):
            yield file.find("layer-order", number)


def unknown_layer(file: SourceFile) -> Iterator[Finding]:
    """Every folder under src/ has a place in the order of the layers."""
    if file.parts[0] == "src" and file.layer and file.layer not in LEVELS:
        yield file.find("unknown-layer", 1)


def include_form(file: SourceFile) -> Iterator[Finding]:
    """Ours in quotes with their folder ("data/npy.h"), everybody else's in angle brackets."""
    for number, mark, name in includes(file):
        ours = bool(target_layer(name)) or name.endswith(".pb.h") or (file.is_test and mark == '"' and "/" in name)
        if (mark == '"') != ours:
            yield file.find("include-form", number)


def contracts_are_pure(file: SourceFile) -> Iterator[Finding]:
    """include/simile uses the standard library and absl::Status, nothing else."""
    if file.layer != "contracts":
        return
    for number, mark, name in includes(file):
        standard = mark == "<" and re.fullmatch(r"[a-z_]+", name)
        ours = mark == '"' and target_layer(name) == "contracts"
        if not (standard or ours or name.startswith("absl/status/")):
            yield file.find("contract-include", number)


def engine_sees_contracts(file: SourceFile) -> Iterator[Finding]:
    """The engine knows backends only through include/simile/backend.h."""
    if file.layer == "engine":
        for number, _, name in includes(file):
            if target_layer(name) == "backend":
                yield file.find("engine-backend", number)


def only_in(rule: str, header: re.Pattern[str], sentence: str, *places: str) -> Callable[[SourceFile], Iterator[Finding]]:
    """A rule that keeps a family of headers in a few places."""
    def check(file: SourceFile) -> Iterator[Finding]:
        if file.path.startswith(places):
            return
        for number, _, name in includes(file):
            if header.search(name):
                yield file.find(rule, number)
    check.__doc__ = sentence
    return check


RULES = {
    "layer-order": layer_order,
    "unknown-layer": unknown_layer,
    "include-form": include_form,
    "contract-include": contracts_are_pure,
    "engine-backend": engine_sees_contracts,
    "cuda-header": only_in("cuda-header", CUDA_HEADER,
                           "CUDA headers only in kernels/ and src/backend/cuda/, and in the tests and benchmarks of both.",
                           "kernels/", "src/backend/cuda/", "tests/emulated_cuda/", "tests/backend/cuda/", "tests/bench/gpu/"),
    "protobuf-header": only_in("protobuf-header", PROTOBUF_HEADER, "Protobuf headers only in service, cli and tests.",
                               "src/service/", "src/cli/", "tests/"),
    "grpc-header": only_in("grpc-header", GRPC_HEADER, "gRPC headers only in service, cli and tests.",
                           "src/service/", "src/cli/", "tests/"),
    "json-header": only_in("json-header", re.compile(r"^nlohmann/"), "nlohmann/json only in app, cli and tests; data reads its own.",
                           "src/app/", "src/cli/", "tests/"),
    "log-header": only_in("log-header", re.compile(r"^spdlog/"), "spdlog only in observe.",
                          "src/observe/", "tests/observe/"),
    "metrics-header": only_in("metrics-header", re.compile(r"^prometheus/"), "prometheus-cpp only in observe.",
                              "src/observe/", "tests/observe/"),
}
