"""Certificates and tokens for servers under test. Needs the openssl command."""

import json
import pathlib
import subprocess


def _openssl(*arguments) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def write_certificates(folder: pathlib.Path) -> None:
    """An authority, ca.pem, and certificates of P-256 that it signed for 127.0.0.1: server.pem, client.pem, each with its .key."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    _openssl("req", "-x509", *key, "-keyout", folder / "ca.key", "-out", folder / "ca.pem", "-subj", "/CN=Authority", "-days", "1")
    for name in ("server", "client"):
        _openssl("req", *key, "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "names").write_text("subjectAltName=IP:127.0.0.1", encoding="utf-8")
        _openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
                 "-CAcreateserial", "-days", "1", "-extfile", folder / "names", "-out", folder / f"{name}.pem")


def new_token(simile: pathlib.Path, name: str, role: str = "read") -> tuple[str, dict]:
    """A token, and the entry of an access file that lets its bearer in."""
    made = json.loads(subprocess.run([simile, "token", "--name", name, "--role", role, "--json"], check=True,
                                     capture_output=True).stdout)
    return made["token"], made["principal"]


def write_access_file(file: pathlib.Path, *principals: dict) -> None:
    """Replaces the file as a whole."""
    written = file.with_suffix(".new")
    written.write_text(json.dumps({"principals": principals}), encoding="utf-8")
    written.replace(file)
