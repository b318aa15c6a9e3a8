#!/usr/bin/env python3
"""The SBOM has what SPDX 2.3 requires, and lists what the loader really takes: sbom_test.py SBOM PROGRAM [PLUGIN]."""

import hashlib
import json
import pathlib
import re
import subprocess
import sys
import unittest

DOCUMENT_FIELDS = {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages", "relationships"}
PACKAGE_FIELDS = {"SPDXID", "name", "versionInfo", "supplier", "downloadLocation", "filesAnalyzed", "licenseConcluded",
                  "licenseDeclared", "copyrightText"}
ID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
SUPPLIER = re.compile(r"(Organization|Person): .+")
# Of these a licence is an expression: `A`, `A AND B`, `A WITH exception`.
LICENSE = re.compile(r"[A-Za-z0-9.-]+( (AND|OR|WITH) [A-Za-z0-9.-]+)*")
PURL = re.compile(r"pkg:deb/debian/[a-z0-9.%B-]+@[^ :+]+\?arch=\w+")
SBOM, *BINARIES = [pathlib.Path(each) for each in sys.argv[1:]]


def linked() -> dict[str, pathlib.Path]:
    """The shared libraries by the name they are asked by, as `ldd` finds them."""
    found = {}
    for binary in BINARIES:
        text = subprocess.run(["ldd", str(binary)], check=True, capture_output=True, text=True).stdout
        for path in re.findall(r"(/\S+) \(0x", text):
            found[pathlib.Path(path).name] = pathlib.Path(path).resolve()
    return found


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class SbomTest(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(SBOM.read_text(encoding="utf-8"))
        self.packages = {each["SPDXID"]: each for each in self.document["packages"]}

    def related(self, kind: str) -> list[dict]:
        return [self.packages[each["relatedSpdxElement"]] for each in self.document["relationships"]
                if each["relationshipType"] == kind and each["spdxElementId"] == "SPDXRef-simile"]

    def test_has_the_required_fields_of_a_document(self):
        self.assertEqual(DOCUMENT_FIELDS - self.document.keys(), set())
        self.assertEqual(self.document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(self.document["dataLicense"], "CC0-1.0")
        self.assertEqual(self.document["SPDXID"], "SPDXRef-DOCUMENT")
        self.assertRegex(self.document["documentNamespace"], r"^https://[^#]+$")
        self.assertRegex(self.document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(all(re.match("(Tool|Person|Organization): ", each) for each in self.document["creationInfo"]["creators"]))

    def test_has_the_required_fields_of_each_package(self):
        self.assertEqual(len(self.packages), len(self.document["packages"]), "an id is used twice")
        for each in self.document["packages"]:
            with self.subTest(each["name"]):
                self.assertEqual(PACKAGE_FIELDS - each.keys(), set())
                self.assertRegex(each["SPDXID"], ID)
                self.assertEqual(ID.fullmatch(each["SPDXID"])[0], each["SPDXID"])
                self.assertTrue(each["versionInfo"])
                self.assertTrue(SUPPLIER.fullmatch(each["supplier"]))
                self.assertTrue(LICENSE.fullmatch(each["licenseDeclared"]), each["licenseDeclared"])
                for checksum in each.get("checksums", []):
                    self.assertRegex(checksum["checksumValue"], r"^[0-9a-f]{64}$")
                for reference in each.get("externalRefs", []):
                    self.assertTrue(PURL.fullmatch(reference["referenceLocator"]), reference["referenceLocator"])

    def test_relates_only_what_it_lists(self):
        known = self.packages.keys() | {"SPDXRef-DOCUMENT"}
        for each in self.document["relationships"]:
            self.assertLessEqual({each["spdxElementId"], each["relatedSpdxElement"]}, known)
        described = [each for each in self.document["relationships"] if each["relationshipType"] == "DESCRIBES"]
        self.assertEqual([each["relatedSpdxElement"] for each in described], ["SPDXRef-simile"])

    def test_lists_each_linked_library_and_no_other(self):
        listed = {each["name"]: each for each in self.related("DYNAMIC_LINK")}
        expected = linked()
        self.assertGreater(len(expected), 10)
        self.assertEqual(listed.keys(), expected.keys())
        for name, path in expected.items():
            self.assertEqual(listed[name]["packageFileName"], path.name)
            self.assertEqual(listed[name]["checksums"][0]["checksumValue"], sha256(path), name)
            self.assertNotEqual(listed[name]["licenseDeclared"], "NOASSERTION", name)

    def test_names_the_installed_package_of_each_library(self):
        owners = {each["spdxElementId"]: self.packages[each["relatedSpdxElement"]]
                  for each in self.document["relationships"] if each["relationshipType"] == "PACKAGE_OF"}
        libraries = self.related("DYNAMIC_LINK")
        self.assertEqual(owners.keys(), {each["SPDXID"] for each in libraries})
        for each in libraries:
            owner = owners[each["SPDXID"]]
            version, files = self.installed(owner)
            self.assertEqual((each["versionInfo"], owner["versionInfo"]), (version, version))
            self.assertIn(each["packageFileName"], files, owner["name"])

    @staticmethod
    def installed(package: dict) -> tuple[str, set[str]]:
        architecture = package["externalRefs"][0]["referenceLocator"].partition("?arch=")[2]
        name = f"{package['name']}:{architecture}"
        version = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}\n", name], check=True, capture_output=True, text=True)
        files = subprocess.run(["dpkg-query", "--listfiles", name], check=True, capture_output=True, text=True)
        return version.stdout.splitlines()[0], {pathlib.Path(each).name for each in files.stdout.splitlines()}

    def test_lists_what_is_compiled_in(self):
        compiled_in = [each["name"] for each in self.related("STATIC_LINK")]
        self.assertEqual(compiled_in, ["nlohmann-json3-dev"] + ["CUDA runtime"] * (len(BINARIES) > 1))

    def test_has_the_hashes_of_our_own_files(self):
        ours = [self.packages["SPDXRef-simile"], *self.related("CONTAINS")]
        self.assertEqual([(each["packageFileName"], each["checksums"][0]["checksumValue"]) for each in ours],
                         [(each.name, sha256(each)) for each in BINARIES])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
