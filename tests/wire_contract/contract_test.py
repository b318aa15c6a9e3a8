#!/usr/bin/env python3
"""What buf does not say of the wire contract: contract_test.py PROTOC.

This version is kept, no name is gone that programs compare with, and our own rules find nothing. Runs without buf.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Iterable, Iterator

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MethodOptions

import keep_release

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto"
RELEASED = ROOT / "tests/wire_contract/released"
REMEDY = "tests/wire_contract/keep_release.py keeps it; a version that is released needs the next number"
PROTOC = sys.argv[1]

# Proxies and clients repeat a call with NO_SIDE_EFFECTS as they like, so every method says it but for these.
CHANGES = {"LoadCollection", "ReloadCollection", "RollbackCollection", "UnloadCollection"}
# Generated code has one namespace for the whole package, so a name in it says what it belongs to.
BARE_NAMES = {"Bytes", "Field", "Value", "Backend"}

# Breaks each rule.
PLANT = """
syntax = "proto2";
package simile.v1;
message Value { message Part { optional string title = 1; optional bytes title_bytes = 2; } }
message FetchRequest { optional string name = 1; }
message LoadCollectionRequest {}
service PlantService {
  rpc Fetch(FetchRequest) returns (Value);
  rpc LoadCollection(LoadCollectionRequest) returns (Value) { option idempotency_level = NO_SIDE_EFFECTS; }
}
"""


def compiled(folder: pathlib.Path) -> list[FileDescriptorProto]:
    """The files of folder/simile/v1."""
    with tempfile.NamedTemporaryFile() as output:
        protos = sorted(folder.glob("simile/v1/*.proto"))
        subprocess.run([PROTOC, "-I", folder, f"--descriptor_set_out={output.name}", *protos], check=True)
        return list(FileDescriptorSet.FromString(output.read()).file)


def with_nested(messages: Iterable[DescriptorProto]) -> Iterator[DescriptorProto]:
    for message in messages:
        yield message
        yield from with_nested(message.nested_type)


def findings(files: list[FileDescriptorProto]) -> Iterator[str]:
    methods = [method for file in files for service in file.service for method in service.method]
    for method in methods:
        reads = method.options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS
        if reads == (method.name in CHANGES):
            yield f"{method.name} {'changes what is served' if reads else 'only reads'}: idempotency_level says otherwise"
    requests = {method.input_type for method in methods}
    for file in files:
        if file.syntax != "proto3":
            yield f"{file.name} is not proto3"
        for described in [*file.message_type, *file.enum_type]:
            if described.name in BARE_NAMES:
                yield f"{described.name} of what?"
        for message in file.message_type:
            if f".{file.package}.{message.name}" in requests and any(field.name == "name" for field in message.field):
                yield f"{message.name}.name should be called collection"
        # Java has a method getXBytes for the UTF-8 of a text x, and one for a field x_bytes.
        for message in with_nested(file.message_type):
            texts = {f"{field.name}_bytes" for field in message.field if field.type == FieldDescriptorProto.TYPE_STRING}
            for field in message.field:
                if field.name in texts:
                    yield f"{message.name}.{field.name}: Java has a method of this name for the text"


class KeptTest(unittest.TestCase):
    def setUp(self):
        # tests/tidy/error_reasons.py compares the document with the sources.
        self.names = set(keep_release.names((ROOT / "docs/api.md").read_text()).splitlines())

    def test_keeps_the_contract_of_this_version(self):
        # Otherwise an addition of this version would not be promised once the version is released.
        kept = RELEASED / keep_release.VERSION.search((ROOT / "CMakeLists.txt").read_text())[1]
        current = {path.name: keep_release.without_comments(path.read_text()).split() for path in PROTO.glob("simile/v1/*.proto")}
        self.assertGreaterEqual(len(current), 5)
        self.assertEqual({path.name: path.read_text().split() for path in kept.glob("*.proto")}, current, REMEDY)
        self.assertEqual(set((kept / "names.tsv").read_text().splitlines()), self.names, REMEDY)

    def test_has_every_name_of_every_version(self):
        for version in RELEASED.iterdir():
            kept = set((version / "names.tsv").read_text().splitlines())
            self.assertTrue(kept, version.name)
            self.assertEqual(kept - self.names, set(), version.name)


class OwnRulesTest(unittest.TestCase):
    def test_find_nothing_in_the_wire_contract(self):
        self.assertEqual(list(findings(compiled(PROTO))), [])

    def test_find_what_breaks_them(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root)
            (folder / "simile/v1").mkdir(parents=True)
            (folder / "simile/v1/plant.proto").write_text(PLANT)
            self.assertEqual(list(findings(compiled(folder))),
                             ["Fetch only reads: idempotency_level says otherwise",
                              "LoadCollection changes what is served: idempotency_level says otherwise",
                              "simile/v1/plant.proto is not proto3", "Value of what?", "FetchRequest.name should be called collection",
                              "Part.title_bytes: Java has a method of this name for the text"])

    def test_every_file_is_compiled_into_the_server(self):
        listed = (PROTO / "CMakeLists.txt").read_text().split()
        for path in PROTO.glob("simile/v1/*.proto"):
            self.assertIn(f"simile/v1/{path.stem}", [name.rstrip(")") for name in listed])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
