"""Who may include whom. Every rule here is about one #include line."""

import re
from typing import Callable, Iterator, Sequence

from tree import Finding, SourceFile

# From the top. A folder may include itself and the folders of every lower row, not its neighbours in its own row.
ROWS = (("cli",), ("app",), ("service",), ("net", "engine", "doctor"), ("backend", "filter"), ("data", "certificate"),
        ("observe",), ("base",), ("contracts",))
LEVELS = {folder: len(ROWS) - row for row, folders in enumerate(ROWS) for folder in folders}
# The rooms of a folder, from the top; "" is the folder itself. A room may include itself and the rooms after it.
ROOMS = {"app": ("", "tuning", "gpu", "config"), "data": ("load", "payload", "formats", ""),
         "engine": ("query", "queue", "search", "snapshots"),
         "service": ("grpc", "", "replies", "changes", "requests", "calls", "access")}

# What is called `contracts` here is include/simile.
ORDER = (" > ".join(" | ".join(row) if len(row) == 1 else "{ " + " | ".join(row) + " }" for row in ROWS)
         .replace("contracts", "include/simile"),
         *(" > ".join(f"{folder}/{room}" if room else folder for room in rooms) for folder, rooms in ROOMS.items()),
         "backend/cuda > kernels > include/simile")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA_HEADER = re.compile(r"^(cuda|cublas|cusparse|curand|nvml|nvtx|cub/|thrust/|cute/|cutlass/|mma\.h$|device_launch)")
CUDA_WORD = re.compile(r"cuda|cublas", re.IGNORECASE)
QUOTED = re.compile(r'"[^"]*"|`[^`]*`')
CUDA_WORD_FILES = ("src/backend/cuda/", "src/backend/accelerator_kinds.", "src/doctor/", "src/app/config/foreign_variables.",
                   "src/cli/plan/known_cards.")
PROTOBUF_HEADER = re.compile(r"^google/|(?<!\.grpc)\.pb\.h$")
GRPC_HEADER = re.compile(r"^(grpc|grpcpp)/|\.grpc\.pb\.h$")


def includes(file: SourceFile) -> Iterator[tuple[int, str, str]]:
    """Line number, opening mark and name of every #include."""
    if file.is_cpp:
        for number, line in enumerate(file.lines, 1):
            if match := INCLUDE.match(line):
                yield number, match[1], match[2]


def target_layer(name: str) -> str:
    """The layer of an included header of the project; empty for any other header."""
    folder = name.split("/")[0]
    if folder == "simile":
        return "" if name.startswith("simile/v1/") else "contracts"
    return folder if "/" in name and (folder in LEVELS or folder == "kernels") else ""


def may_include(upper: str, lower: str) -> bool:
    """Whether the order of the folders lets `upper` include `lower`."""
    if upper == "kernels":
        return lower in {"kernels", "contracts"}
    return lower in {upper, "kernels"} or LEVELS[lower] < LEVELS[upper]  # gpu_include says who includes kernels


def layer_order(file: SourceFile) -> Iterator[Finding]:
    """A file includes only its own folder or lower ones; kernels include only kernels and include/simile."""
    if file.layer not in LEVELS and file.layer != "kernels":
        return
    for number, _, name in includes(file):
        target = target_layer(name)
        if target and not may_include(file.layer, target):
            yield file.find("layer-order", number)


def room_of(parts: Sequence[str]) -> str:
    """The room of a file of a folder with rooms, by the parts of its path from that folder on."""
    return parts[1] if len(parts) > 2 else ""


def room_order(file: SourceFile) -> Iterator[Finding]:
    """Inside src/app, src/data, src/engine and src/service, a room includes itself and the rooms after it in ROOMS."""
    rooms = ROOMS.get(file.layer, ()) if file.parts[0] == "src" else ()
    room = room_of(file.parts[1:])
    if room not in rooms:
        return
    for number, _, name in includes(file):
        target = name.split("/")
        if target[0] == file.layer and room_of(target) in rooms[:rooms.index(room)]:
            yield file.find("room-order", number)


def gpu_include(file: SourceFile) -> Iterator[Finding]:
    """Only src/backend/cuda and tests include backend/cuda/ (it is a plug-in), and only these and kernels include kernels/."""
    if file.path.startswith(("src/backend/cuda/", "tests/")):
        return
    for number, _, name in includes(file):
        if name.startswith("backend/cuda/") or (target_layer(name) == "kernels" and file.layer != "kernels"):
            yield file.find("gpu-include", number)


def cuda_word(file: SourceFile) -> Iterator[Finding]:
    """No word of CUDA or cuBLAS in src outside src/backend/cuda, except in the tables src/backend/accelerator_kinds and
    src/cli/plan/known_cards, in src/doctor, which explains NVIDIA's errors, in the names of src/app/config/foreign_variables, and where a comment
    quotes a message."""
    if not file.is_cpp or file.parts[0] != "src" or file.path.startswith(CUDA_WORD_FILES):
        return
    for number, line in enumerate(file.lines, 1):
        code, _, comment = line.partition("//")
        if CUDA_WORD.search(code) or CUDA_WORD.search(QUOTED.sub("", comment)):
            yield file.find("cuda-word", number)


def unknown_layer(file: SourceFile) -> Iterator[Finding]:
    """Every folder below src/, and every room of a folder with rooms, has a place in the order."""
    known = file.layer in LEVELS
    if file.layer in ROOMS and file.is_cpp:
        known = room_of(file.parts[1:]) in ROOMS[file.layer]
    if file.parts[0] == "src" and file.layer and not known:
        yield file.find("unknown-layer", 1)


def include_form(file: SourceFile) -> Iterator[Finding]:
    """The project's headers in quotes with their folder ("data/npy.h"), all others in angle brackets."""
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


def check_apart(file: SourceFile) -> Iterator[Finding]:
    """src/cli/verify and src/cli/bench include nothing of src/filter: they check its answers."""
    if file.path.startswith(("src/cli/verify/", "src/cli/bench/")):
        for number, _, name in includes(file):
            if target_layer(name) == "filter":
                yield file.find("check-apart", number)


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
    "room-order": room_order,
    "gpu-include": gpu_include,
    "cuda-word": cuda_word,
    "unknown-layer": unknown_layer,
    "include-form": include_form,
    "contract-include": contracts_are_pure,
    "engine-backend": engine_sees_contracts,
    "check-apart": check_apart,
    "cuda-header": only_in("cuda-header", CUDA_HEADER,
                           "CUDA headers only in kernels/ and src/backend/cuda/, and in the tests and benchmarks of both.",
                           "kernels/", "src/backend/cuda/", "tests/emulated_cuda/", "tests/backend/cuda/", "tests/bench/gpu/"),
    "protobuf-header": only_in("protobuf-header", PROTOBUF_HEADER, "Protobuf headers only in service, cli and tests.",
                               "src/service/", "src/cli/", "tests/"),
    "grpc-header": only_in("grpc-header", GRPC_HEADER, "gRPC headers only in net, service, cli and tests.",
                           "src/net/", "src/service/", "src/cli/", "tests/"),
    "json-header": only_in("json-header", re.compile(r"^nlohmann/"), "nlohmann/json only in app, cli and tests; data has a JSON reader of its own.",
                           "src/app/", "src/cli/", "tests/"),
    "log-header": only_in("log-header", re.compile(r"^spdlog/"), "spdlog only in observe.",
                          "src/observe/", "tests/observe/"),
    "metrics-header": only_in("metrics-header", re.compile(r"^prometheus/"), "prometheus-cpp only in observe.",
                              "src/observe/", "tests/observe/"),
}
