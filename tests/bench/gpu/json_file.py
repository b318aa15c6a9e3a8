"""Files of figures."""

import json
import pathlib


def write(path: pathlib.Path | None, results: dict) -> None:
    """In one step, so that a program that is stopped leaves what it wrote before. None: no file."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
