#!/usr/bin/env python3
"""Writes what is inside an image as an SPDX 2.3 document: Simile, every Debian package and, with --cuda, CUDA's libraries.

SOURCE_DATE_EPOCH dates the document; without it, the current time.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess

FIELDS = ["Package", "Version", "Architecture", "Maintainer", "source:Package", "source:Version"]


def spdx_id(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words))


def package(identifier, name, version, supplier, license_text, purl=None, **more):
    entry = {
        "SPDXID": identifier,
        "name": name,
        "versionInfo": version,
        "supplier": supplier,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": license_text,
        "copyrightText": "NOASSERTION",
        **more,
    }
    if purl:
        entry["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
        ]
    return entry


def debian_packages(admin_folder):
    """Every installed package of a dpkg database, by name."""
    text = "${db:Status-Status}\\t" + "\\t".join("${%s}" % field for field in FIELDS) + "\\n"
    rows = subprocess.run(
        ["dpkg-query", f"--admindir={admin_folder}", "--show", f"--showformat={text}"],
        check=True, capture_output=True, text=True).stdout.splitlines()
    for row in sorted(rows):
        status, name, version, architecture, maintainer, source, source_version = row.split("\t")
        if status != "installed":
            continue
        # In a package's URL ':' and '+' are escaped.
        escaped = version.replace("+", "%2B").replace(":", "%3A")
        yield package(
            spdx_id("deb", name), name, version, "Organization: " + re.sub(r"<(.*)>", r"(\1)", maintainer), "NOASSERTION",
            f"pkg:deb/debian/{name.replace('+', '%2B')}@{escaped}?arch={architecture}",
            sourceInfo=f"built from {source} {source_version}; licences in /usr/share/doc/{name}/copyright")


def program_package(program):
    """Simile itself: its version, as "simile 0.1.0 (v0.1.0-12-g0123456789ab)", and the program's digest."""
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    return package(
        "SPDXRef-simile", "simile", version.split()[1], "Organization: Simile", "Apache-2.0",
        primaryPackagePurpose="APPLICATION", comment=version.strip(),
        checksums=[{"algorithm": "SHA256", "checksumValue": hashlib.sha256(program.read_bytes()).hexdigest()}])


def cuda_packages(toolkit):
    """What the GPU image has of CUDA: cuBLAS, and the runtime, which the plug-in is linked with."""
    for name, header, pattern in [("cuBLAS", "cublas_api.h", r"#define CUBLAS_VER_(?:MAJOR|MINOR|PATCH) (\d+)"),
                                  ("CUDA runtime", "cuda_runtime_api.h", r"#define CUDART_VERSION +(\d+)(\d\d)0\n")]:
        found = re.findall(pattern, (toolkit / "include" / header).read_text(encoding="utf-8"))
        numbers = [str(int(number)) for number in (found[0] if isinstance(found[0], tuple) else found)]
        yield package(spdx_id("cuda", name), name, ".".join(numbers), "Organization: NVIDIA Corporation", "NOASSERTION")


def document(packages, created):
    identity = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    root = packages[0]["SPDXID"]
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", root)]
    relationships += [(root, "DEPENDS_ON", each["SPDXID"]) for each in packages[1:]]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "simile",
        # A name, not an address: SPDX wants a unique URI.
        "documentNamespace": f"https://spdx.org/spdxdocs/simile-{identity}",
        "creationInfo": {"created": created, "creators": ["Tool: simile-docker-sbom"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in relationships
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the program, which says its version")
    parser.add_argument("--dpkg", required=True, type=pathlib.Path, help="a folder with dpkg's `status` of the image")
    parser.add_argument("--cuda", type=pathlib.Path, help="the CUDA toolkit that the plug-in was built with")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()

    packages = [program_package(arguments.program)]
    packages += debian_packages(arguments.dpkg)
    if arguments.cuda is not None:
        packages += cuda_packages(arguments.cuda)
    moment = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp())), datetime.timezone.utc)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(
        json.dumps(document(packages, moment.strftime("%Y-%m-%dT%H:%M:%SZ")), indent=1) + "\n", encoding="utf-8")
    print(f"{arguments.out}: {len(packages)} packages")


if __name__ == "__main__":
    main()
