"""What deploy/ would run: the objects of an overlay as kustomize builds them, and the settings in them."""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
KUBECTL = shutil.which("kubectl")


@functools.cache
def built(overlay: str, monitored: bool = False) -> list[dict]:
    """The objects of an overlay, with the component `monitoring` if wanted. Needs kubectl, no cluster."""
    with tempfile.TemporaryDirectory() as folder:
        place = KUBERNETES / overlay
        if monitored:
            path = os.path.relpath(KUBERNETES, os.path.realpath(folder))
            place = pathlib.Path(folder)
            (place / "kustomization.yaml").write_text(
                yaml.safe_dump({"resources": [f"{path}/{overlay}"], "components": [f"{path}/monitoring"]}))
        result = subprocess.run([KUBECTL, "kustomize", place], capture_output=True, text=True, check=False)
    if result.returncode != 0 or result.stderr:
        raise RuntimeError(f"kubectl kustomize {place}:\n{result.stderr}")
    return [document for document in yaml.safe_load_all(result.stdout) if document]


def written() -> list[dict]:
    """The objects of the base as they are written, for machines without kubectl."""
    kustomization = yaml.safe_load((KUBERNETES / "base/kustomization.yaml").read_text())
    return [yaml.safe_load((KUBERNETES / "base" / name).read_text()) for name in kustomization["resources"]]


def one(objects: list[dict], kind: str) -> dict:
    found = [each for each in objects if each["kind"] == kind]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects of kind {kind}, not one")
    return found[0]


def pod(objects: list[dict]) -> dict:
    return one(objects, "Deployment")["spec"]["template"]["spec"]


def container(objects: list[dict]) -> dict:
    (only,) = pod(objects)["containers"]
    return only


def settings_text(place: str) -> str:
    """The configuration file of "kubernetes/base" or "systemd"."""
    return (ROOT / "deploy" / place / "simile.json").read_text()


def stop_ms(settings: dict) -> int:
    """How long a stop may take."""
    return settings["limits"]["drain_delay"] + settings["limits"]["drain_timeout"]


def written_paths(settings: dict) -> list[pathlib.PurePath]:
    """The files that the server writes."""
    return [pathlib.PurePath(settings["backend"]["tuning_cache"]), pathlib.PurePath(settings["gpu"]["fault_journal"])]


def moved(text: str, data: str, folder: pathlib.Path) -> str:
    """A configuration whose data and own files are below a folder of this machine instead: DATA becomes its data/, where
    examples/films are films."""
    (folder / "data").mkdir()
    (folder / "data/films").symlink_to(ROOT / "examples/films")
    text = text.replace(f'"{data}', f'"{folder}/data')
    return re.sub(r'"/var/(lib|cache)/simile/', f'"{folder}/', text)


def check_settings(simile: str, text: str, data: str) -> None:
    """Raises what `simile config` finds wrong in a configuration."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "simile.json").write_text(moved(text, data, folder))
        result = subprocess.run([simile, "config", "--config", folder / "simile.json"], capture_output=True, text=True,
                                env=servers.environment(folder), check=False)
    if result.returncode != 0:
        raise AssertionError(result.stderr)


def load_settings(text: str) -> dict:
    return json.loads(text)
