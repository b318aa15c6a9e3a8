"""NVIDIA's container runtime and its hook, with a test's driver in place of a host's.

  nvidia_runtime.py HOST runtime [runc's arguments]   the runtime `nvidia`: adds the hook to the container's configuration,
                                                      then is runc
  nvidia_runtime.py HOST hook                         the hook: what the container asks for comes into its root

HOST stands for the host's driver. Without any of its parts the hook adds nothing.
  HOST/compute, HOST/utility   libraries by capability, for /usr/lib/x86_64-linux-gnu
  HOST/dev                     nvidiactl, nvidia-uvm and the cards' nvidia0, nvidia1
  HOST/refusal                 the words with which NVIDIA's hook fails here, if it does

The hook obeys the container's two variables as NVIDIA's does ("Environment variables (OCI spec)" in the documentation of the
container toolkit): NVIDIA_VISIBLE_DEVICES unset, empty or `void` adds nothing; `none` adds libraries and no card; `all`, numbers
and UUIDs choose cards. NVIDIA_DRIVER_CAPABILITIES chooses libraries; unset or empty it is `utility,compute`.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

LIBRARIES = "usr/lib/x86_64-linux-gnu"
CAPABILITIES = ("compute", "utility")
UUID = "GPU-00000000-0000-0000-0000-{:012}"  # as fake_nvml.c numbers its cards


def add_hook(bundle: pathlib.Path, host: pathlib.Path) -> None:
    file = bundle / "config.json"
    configuration = json.loads(file.read_text(encoding="utf-8"))
    hook = {"path": sys.executable, "args": [sys.executable, "-B", str(pathlib.Path(__file__).resolve()), str(host), "hook"]}
    configuration.setdefault("hooks", {}).setdefault("prestart", []).append(hook)
    file.write_text(json.dumps(configuration), encoding="utf-8")


def run_as_runtime(host: pathlib.Path, arguments: list[str]) -> None:
    if "create" in arguments:
        add_hook(pathlib.Path(arguments[arguments.index("--bundle") + 1]), host)
    os.execv(runc := shutil.which("runc", path="/usr/sbin:/usr/bin:/sbin:/bin"), [runc, *arguments])


def chosen_libraries(host: pathlib.Path, capabilities: str) -> list[pathlib.Path]:
    names = (capabilities or "utility,compute").split(",")
    return [file for each in CAPABILITIES if each in names or "all" in names for file in sorted((host / each).glob("*"))]


def chosen_nodes(host: pathlib.Path, devices: str) -> list[pathlib.Path]:
    """The shared nodes, and those of the cards that are named."""
    named = devices.split(",")
    nodes = []
    for node in sorted((host / "dev").glob("nvidia*")):
        card = re.fullmatch(r"nvidia(\d+)", node.name)
        if card is None or "all" in named or card[1] in named or UUID.format(int(card[1])) in named:
            nodes.append(node)
    return nodes


def run_as_hook(host: pathlib.Path) -> None:
    state = json.load(sys.stdin)
    bundle = pathlib.Path(state["bundle"])
    configuration = json.loads((bundle / "config.json").read_text(encoding="utf-8"))
    variables = dict(word.split("=", 1) for word in configuration["process"]["env"] if "=" in word)
    devices = variables.get("NVIDIA_VISIBLE_DEVICES", "")
    if devices in ("", "void"):
        return
    if (refusal := host / "refusal").exists():
        sys.exit(refusal.read_text(encoding="utf-8"))
    root = bundle / configuration["root"]["path"]
    commands = []
    for file in chosen_libraries(host, variables.get("NVIDIA_DRIVER_CAPABILITIES", "")):
        place = root / LIBRARIES / file.name
        if file.is_symlink():
            commands.append(f"ln -sfn '{os.readlink(file)}' '{place}'")
        else:
            commands.append(f"touch '{place}' && mount --bind '{file}' '{place}'")
    commands += [f"cp -a '{node}' '{root / 'dev' / node.name}'" for node in chosen_nodes(host, devices)]
    # In the container's own mounts, whose root is not yet turned.
    subprocess.run(["nsenter", f"--mount=/proc/{state['pid']}/ns/mnt", "sh", "-ec", "\n".join(commands)], check=True)


def main() -> None:
    host, role, *arguments = sys.argv[1:]
    if role == "runtime":
        run_as_runtime(pathlib.Path(host), arguments)
    else:
        run_as_hook(pathlib.Path(host))


if __name__ == "__main__":
    main()
