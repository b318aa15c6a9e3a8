"""What the command lines of the long runs share."""

import argparse
import pathlib
import sys


def path(text: str) -> pathlib.Path:
    """A path that means the same in every folder."""
    return pathlib.Path(text).resolve()


def parser_of(doc: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("simile", "films", "stubs"):
        parser.add_argument(name, type=path)
    parser.add_argument("--json", type=path, help="file to write all figures to")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Makes the messages of simile.v1 and tests/python importable, too."""
    arguments = parser.parse_args()
    sys.path[:0] = [str(arguments.stubs), str(pathlib.Path(__file__).resolve().parents[1] / "python")]
    return arguments
