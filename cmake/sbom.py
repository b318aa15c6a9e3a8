#!/usr/bin/env python3
"""Writes what Simile is made of as an SPDX 2.3 document.

Simile itself; each shared library that the program and the GPU plug-in link, by file and hash; the Debian packages that
these belong to, or, with --image, every package of an image; what is compiled in: header-only libraries and, with --cuda,
CUDA's runtime. A linked library whose licence LICENSES does not have is an error.
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
import sys

FIELDS = ["binary:Package", "Package", "Version", "Architecture", "Maintainer", "source:Package", "source:Version"]
HEADER_ONLY = ["nlohmann-json3-dev"]

# What upstream's licence is, by Debian's source package, of every library that may be linked.
LICENSES = {
    "abseil": "Apache-2.0",
    "c-ares": "MIT",
    "croaring": "Apache-2.0",
    "fmtlib": "MIT",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "grpc": "Apache-2.0",
    "nghttp2": "MIT",
    "nlohmann-json3": "MIT",
    "openssl": "Apache-2.0",
    "prometheus-cpp": "MIT",
    "protobuf": "BSD-3-Clause",
    "re2": "BSD-3-Clause",
    "spdlog": "MIT",
    "utf8proc": "MIT AND Unicode-DFS-2015",
    "xxhash": "BSD-2-Clause",
    "zlib": "Zlib",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def spdx_id(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words).replace("+", "plus"))


def sha256(path):
    return [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}]


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


def debian_packages(names=(), admin_folder=None):
    """The installed packages of these names, of all without any, by the name that dpkg gives them: with the architecture where
    there may be several. admin_folder has dpkg's database."""
    found = {}
    text = "${db:Status-Status}\\t" + "\\t".join("${%s}" % field for field in FIELDS) + "\\n"
    folder = [f"--admindir={admin_folder}"] if admin_folder else []
    for row in sorted(run("dpkg-query", *folder, "--show", f"--showformat={text}", *names).splitlines()):
        status, known_as, name, version, architecture, maintainer, source, source_version = row.split("\t")
        if status != "installed":
            continue
        # In a package's URL ':' and '+' are escaped.
        escaped = version.replace("+", "%2B").replace(":", "%3A")
        found[known_as] = package(
            spdx_id("deb", known_as), name, version, "Organization: " + re.sub(r"<(.*)>", r"(\1)", maintainer),
            LICENSES.get(source, "NOASSERTION"),
            f"pkg:deb/debian/{name.replace('+', '%2B')}@{escaped}?arch={architecture}",
            sourceInfo=f"built from {source} {source_version}; licences in /usr/share/doc/{name}/copyright")
    return found


def linked_files(*binaries):
    """The shared libraries that the loader takes for these binaries: the names they are asked by, with their files."""
    lines = [line for binary in binaries for line in run("ldd", str(binary)).splitlines()]
    if missing := [line.strip() for line in lines if "not found" in line]:
        raise SystemExit(f"sbom.py: {'; '.join(missing)}")
    paths = {match[1] for line in lines if (match := re.search(r"(/\S+) \(0x", line))}
    return {pathlib.Path(path).name: pathlib.Path(path) for path in sorted(paths)}


def owners_of(files):
    """The Debian package of each file, which dpkg may know by its place before /lib became a link to /usr/lib."""
    places = {}
    for soname, path in files.items():
        for place in (path, path.resolve(), pathlib.Path("/" + str(path.resolve()).removeprefix("/usr/"))):
            places[str(place)] = soname
    # Ends with 1 where one of the places is not known, which is so for most libraries.
    found = subprocess.run(["dpkg-query", "--search", *places], check=False, capture_output=True, text=True).stdout
    lines = [line.rsplit(": ", 1) for line in found.splitlines() if ": /" in line]
    owners = {places[place]: names for names, place in lines if place in places}
    if foreign := files.keys() - owners.keys():
        raise SystemExit(f"sbom.py: {', '.join(sorted(foreign))}: linked, but of no Debian package")
    return owners


def library(soname, path, owner):
    """A shared library as a package of its own, which carries the file's hash and takes the rest from its owner."""
    if owner["licenseDeclared"] == "NOASSERTION":
        raise SystemExit(f"sbom.py: {path} of {owner['name']} is linked ({owner['sourceInfo']}); add its licence to LICENSES")
    return package(
        spdx_id("library", soname), soname, owner["versionInfo"], owner["supplier"], owner["licenseDeclared"],
        primaryPackagePurpose="LIBRARY", packageFileName=path.resolve().name, checksums=sha256(path.resolve()),
        sourceInfo=f"of Debian's package {owner['name']}")


def program_packages(program, plugin):
    """Simile itself: its version, as "simile 0.1.0 (v0.1.0-12-g0123456789ab)", and the digests of its files."""
    version = run(program, "--version")
    common = (version.split()[1], "Organization: Simile", "Apache-2.0")
    yield package("SPDXRef-simile", "simile", *common, primaryPackagePurpose="APPLICATION", comment=version.strip(),
                  packageFileName=program.name, checksums=sha256(program))
    if plugin is not None:
        yield package("SPDXRef-simile-gpu-plugin", plugin.name, *common, primaryPackagePurpose="LIBRARY",
                      packageFileName=plugin.name, checksums=sha256(plugin))


def cuda_package(toolkit, name, header, pattern):
    found = re.findall(pattern, (toolkit / "include" / header).read_text(encoding="utf-8"))
    numbers = [str(int(number)) for number in (found[0] if isinstance(found[0], tuple) else found)]
    return package(spdx_id("cuda", name), name, ".".join(numbers), "Organization: NVIDIA Corporation", "NOASSERTION")


def contents(arguments):
    """The packages, Simile first, and the relationships between them."""
    ours = list(program_packages(arguments.program, arguments.plugin))
    root = ours[0]["SPDXID"]
    files = linked_files(*(each for each in (arguments.program, arguments.plugin) if each is not None))
    owners = owners_of(files)
    installed = debian_packages(admin_folder=arguments.image)
    if missing := set(owners.values()) - installed.keys():
        raise SystemExit(f"sbom.py: {', '.join(sorted(missing))}: linked, but not installed in the image")
    libraries = [library(soname, path, installed[owners[soname]]) for soname, path in files.items()]
    names = installed if arguments.image else sorted(set(owners.values()))
    depends = [installed[name] for name in names]
    compiled_in = list(debian_packages(HEADER_ONLY).values())
    if arguments.cuda is not None:
        compiled_in.append(cuda_package(arguments.cuda, "CUDA runtime", "cuda_runtime_api.h",
                                        r"#define CUDART_VERSION +(\d+)(\d\d)0\n"))
        if arguments.image:
            depends.append(cuda_package(arguments.cuda, "cuBLAS", "cublas_api.h",
                                        r"#define CUBLAS_VER_(?:MAJOR|MINOR|PATCH) (\d+)"))
    relationships = [(root, kind, each["SPDXID"])
                     for kind, packages in [("CONTAINS", ours[1:]), ("DYNAMIC_LINK", libraries),
                                            ("STATIC_LINK", compiled_in), ("DEPENDS_ON", depends)]
                     for each in packages]
    relationships += [(each["SPDXID"], "PACKAGE_OF", installed[owners[each["name"]]]["SPDXID"]) for each in libraries]
    return ours + libraries + compiled_in + depends, relationships


def document(packages, relationships, created):
    identity = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", packages[0]["SPDXID"]), *relationships]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "simile",
        # A name, not an address: SPDX wants a unique URI.
        "documentNamespace": f"https://spdx.org/spdxdocs/simile-{identity}",
        "creationInfo": {"created": created, "creators": ["Tool: simile-sbom"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in relationships
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the program, which says its version")
    parser.add_argument("--plugin", type=pathlib.Path, help="the GPU plug-in")
    parser.add_argument("--cuda", type=pathlib.Path, help="the CUDA toolkit that the plug-in was built with")
    parser.add_argument("--image", type=pathlib.Path, help="a folder with dpkg's `status` of the image, which then is described whole")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()

    packages, relationships = contents(arguments)
    moment = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp())), datetime.timezone.utc)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(packages, relationships, moment.strftime("%Y-%m-%dT%H:%M:%SZ")), indent=1)
    arguments.out.write_text(text + "\n", encoding="utf-8")
    print(f"{arguments.out}: {len(packages)} packages")


if __name__ == "__main__":
    sys.exit(main())
