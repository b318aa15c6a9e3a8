#!/usr/bin/env python3
"""Writes copies of the folders of src/engine that use threads, in which threads are simulated and bugs can be planted.

    simulated_sources.py SOURCE_DIR OUTPUT_DIR DEPFILE
    simulated_sources.py SOURCE_DIR    only prints the paths of the copies, for CMake

Every use of the standard library's threads becomes one of primitives.h, and the few calls that leave the engine (files,
thread priorities, memory given back to the kernel) become those of outside_world.h. An edit whose text is not found exactly
as often as it says is an error, so that a source that changes cannot lose an edit silently.
"""

import pathlib
import re
import sys

from planted_bugs import BUGS, Edit

# engine/query starts no thread and holds no lock.
FOLDERS = ("queue", "search", "snapshots")
# A mutex is named in traces after its file and member.
MEMBER = re.compile(r"std::(mutex|condition_variable) (\w+);")
TYPES = {
    "mutex": "Mutex",
    "condition_variable": "ConditionVariable",
    "thread": "Thread",
    "atomic": "Atomic",
    "stop_token": "StopToken",
    "stop_callback": "StopCallback",
}
TYPE = re.compile(r"std::(" + "|".join(TYPES) + r")\b")
# Assertions end the schedule instead of the program, in release builds too.
ASSERTION = re.compile(r"\bassert\(")
# What else of the standard library waits or switches threads: none may be used without a simulated counterpart.
UNKNOWN = re.compile(r"std::(shared_mutex|recursive_\w*mutex|timed_mutex|jthread|this_thread|async|future|promise|barrier|"
                     r"latch|counting_semaphore|binary_semaphore|call_once|once_flag|atomic_\w+|condition_variable_any)\b")

OUTSIDE = (
    Edit("snapshots/change_queue.cpp", "base::UseBackgroundPriority();", ""),
    Edit("snapshots/publisher.cpp", "base::ReturnFreedMemory();", 'simulation::Pass("gives memory back");'),
    Edit("snapshots/snapshot_store.cpp", "base::ReturnFreedMemory();", 'simulation::Pass("gives memory back");'),
    Edit("snapshots/publisher.cpp", "data::PlanDataset(", "simulation::PlanDataset("),
    Edit("snapshots/publisher.cpp", "data::LoadDataset(", "simulation::LoadDataset("),
    Edit("snapshots/publisher.cpp", "PlanData(plan, options_.limits)", "simulation::PlanData(plan)"),
    # A dataset that counts its bytes while it lives.
    Edit("snapshots/publisher.cpp", "data::Dataset ", "simulation::CountedDataset ", 1),
    Edit("snapshots/publisher.h", "data::Dataset ", "simulation::CountedDataset ", 1),
    Edit("snapshots/publisher.cpp", "data::Dataset>", "simulation::CountedDataset>", 2),
)


def simulated(text: str, path: str) -> str:
    """The text with simulated threads in place of real ones."""
    if found := UNKNOWN.search(text):
        sys.exit(f"{path}: {found[0]} has no counterpart in tests/simulation/primitives.h")
    stem = pathlib.PurePath(path).stem
    text = MEMBER.sub(lambda m: f'simile::simulation::{TYPES[m[1]]} {m[2]}{{"{stem}.{m[2]}"}};', text)
    text = ASSERTION.sub("SIMILE_SIMULATED_ASSERT(", text)
    return TYPE.sub(lambda m: f"simile::simulation::{TYPES[m[1]]}", text)


def edited(text: str, edit: Edit) -> str:
    count = text.count(edit.text)
    if count != edit.count:
        sys.exit(f"src/engine/{edit.path}: found {count} times and not {edit.count}; correct tests/simulation/planted_bugs.py "
                 f"or simulated_sources.py:\n{edit.text}")
    return text.replace(edit.text, edit.instead)


def main() -> None:
    engine = pathlib.Path(sys.argv[1]) / "src/engine"
    files = sorted(path for folder in FOLDERS for path in (engine / folder).rglob("*") if path.suffix in {".h", ".cpp"})
    if len(sys.argv) == 2:
        print(";".join(f"engine/{path.relative_to(engine).as_posix()}" for path in files), end="")
        return
    output, depfile = map(pathlib.Path, sys.argv[2:])
    edits = [*OUTSIDE, *(edit for bug in BUGS for edit in bug.edits)]
    for path in files:
        name = path.relative_to(engine).as_posix()
        text = path.read_text(encoding="utf-8")
        for edit in edits:
            if edit.path == name:
                text = edited(text, edit)
        include = '#include "simulation/outside_world.h"\n'
        text = simulated(text, name)
        text = text.replace("#pragma once\n", "#pragma once\n" + include, 1) if path.suffix == ".h" else include + text
        copy = output / "engine" / name
        if copy.exists() and copy.read_text(encoding="utf-8") == text:
            continue  # so that only what changed is compiled anew
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    (output / "copied").touch()
    here = pathlib.Path(__file__).resolve().parent
    inputs = [*files, here / "planted_bugs.py", here / "simulated_sources.py"]
    depfile.write_text(f"{output / 'copied'}: {' '.join(map(str, inputs))}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
