"""The GPU image as users get it: the real plug-in and the real cuBLAS, with a driver that is a fake or is missing."""

import dataclasses
import json
import pathlib
import re
import sys
import tempfile
import unittest

import images
import served
from engine import DRIVER_VERSION
from served import COMPOSE, EXPLAINS, GPU, NO_DRIVER, RESERVATIONS, ROOT, Project, ServedTest, figures, inspect

IMAGE = "simile:gpu"
LAYERS = ("Debian", "the list of packages", "Debian's packages that the program links", "the program", "cuBLAS", "the plug-in")
OWN_MEGABYTES = 200  # of all but cuBLAS
ROOT_MEGABYTES = 40  # compressed
CARD_CHECK = pathlib.Path(__file__).resolve().parent / "card_check.py"
MISMATCH = "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"
NODES = ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"]
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
NVML_FILE = "fake_nvml.txt"  # what the fake management library reads, mounted beside it
# The lines of doctor that are no reason against a GPU.
PLUGIN = r"^ ok    plug-in             libsimile_cuda(?:12)?\.so of CUDA \d+\.\d+"
BLAS = r"^ ok    cuBLAS, memory      cuBLAS (\d+\.\d+\.\d+), cuBLASLt \1;"


@dataclasses.dataclass(frozen=True)
class Case:
    """A reason why no card answers, as compose meets it."""
    name: str
    reason: str  # of the server's first line and of receipts
    symptom: str  # that doctor names, for programs
    says: str  # and for people
    container: dict[str, str] = dataclasses.field(default_factory=dict)  # the container's own variables
    compose: dict[str, str] = dataclasses.field(default_factory=dict)  # those of the compose files
    nvml: str = ""  # what the fake management library says
    asks: bool = True  # for the runtime "nvidia"; else compose.yaml alone
    driver: str = DRIVER_VERSION  # the host's; empty for none


def no_device(text: str) -> str:
    return f"the NVIDIA driver reports no usable device ({text})"


CASES = (
    Case("no GPU asked for", NO_DRIVER, "container_without_gpu", "this container was started without a GPU", asks=False,
         compose={"BACKEND": "auto"}),
    Case("no driver on the host", NO_DRIVER, "container_without_gpu", "this container was started without a GPU", driver=""),
    Case("cards withheld: void", NO_DRIVER, "hidden_from_container", 'this container gets no GPU: NVIDIA_VISIBLE_DEVICES is "void"',
         compose={"NVIDIA_VISIBLE_DEVICES": "void"}),
    Case("cards withheld: none", no_device("cudaErrorNoDevice: no CUDA-capable device is detected"), "hidden_from_container",
         'this container gets no GPU: NVIDIA_VISIBLE_DEVICES is "none"', compose={"NVIDIA_VISIBLE_DEVICES": "none"}),
    Case("cards hidden", no_device("cudaErrorNoDevice: no CUDA-capable device is detected"), "hidden",
         'the cards are hidden: CUDA_VISIBLE_DEVICES is "-1"', compose={"GPU_IN_CONTAINER": "-1"}),
    Case("capabilities without compute", NO_DRIVER, "no_driver_library",
         "libcuda.so.1, the driver's library for programs, is not found", {"NVIDIA_DRIVER_CAPABILITIES": "utility"}),
    Case("driver too old", "the NVIDIA driver runs CUDA 11.4, the plug-in needs CUDA {toolkit} (driver {oldest} or later)",
         "driver_too_old", "driver 470.57.02 is too old for this build's GPU plug-in",
         {"FAKE_CUDA_VERSION": "11040", "FAKE_CUDA_ERROR": "0"}, driver="470.57.02"),
    Case("driver mismatched", no_device("cudaErrorSystemDriverMismatch: system has unsupported display driver / cuda driver "
                                        "combination"),
         "version_mismatch", "kernel module", {"FAKE_CUDA_ERROR": "803"}, nvml="init=18\n"),
    Case("driver not ready", no_device("cudaErrorSystemNotReady: system not yet initialized"), "fabric_manager",
         "the machine's NVLink fabric is not ready", {"FAKE_CUDA_ERROR": "802"}),
)


class GpuImageTest(ServedTest):
    why_not_built = ""

    @classmethod
    def setUpClass(cls):
        if cls.why_not_built:
            raise unittest.SkipTest(f"no GPU image: {cls.why_not_built}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.driver = images.copy_fake_driver(served.docker, pathlib.Path(folder.name))

    def setUp(self):
        served.docker.install_driver(*self.driver)
        self.addCleanup(served.docker.remove_driver)

    def run_image(self, *words: str, runtime: str = "nvidia", check: bool = True, **variables: str) -> str:
        environment = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
        return served.docker.docker("run", "--rm", "--network", "none", "--runtime", runtime, *environment, *words,
                                    check=check).stdout

    def sh(self, command: str, **options: str) -> str:
        return self.run_image("--entrypoint", "sh", IMAGE, "-c", command, **options)

    def bring_up_case(self, case: Case) -> Project:
        """With a compose file of the case's own behind the project's."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        own = pathlib.Path(folder, "compose.case.yaml")
        variables = {"FAKE_NVML_FILE": f"{LIBRARIES}/{NVML_FILE}", **case.container}
        own.write_text(json.dumps({"services": {"simile": {"environment": variables}}}), encoding="utf-8")
        if case.driver:
            served.docker.install_driver(*self.driver, version=case.driver)
            said = f"driver={case.driver}\nlibrary={case.driver}\n{case.nvml}"
            (served.docker.host / "utility" / NVML_FILE).write_text(said, encoding="utf-8")
        else:
            served.docker.remove_driver()
        name = re.sub(r"\W+", "-", f"real-{case.name}")
        return self.bring_up(name, COMPOSE, *([GPU] if case.asks else []), own, tag="gpu", **case.compose)

    def expect_case(self, case: Case) -> None:
        project = self.bring_up_case(case)
        toolkit, oldest = self.built_for()
        reason = case.reason.format(toolkit=toolkit, oldest=oldest)
        self.expect_the_cpu(project, reason, EXPLAINS)
        self.expect_no_rights(project)
        asked = project.execute("simile", "doctor", "--json", check=False)
        self.assertEqual(asked.returncode, 1)
        findings = json.loads(asked.stdout)["findings"]
        failed = [finding for finding in findings if finding["state"] == "failed"]
        self.assertEqual(failed[0]["symptom"], case.symptom, failed)
        self.assertIn(case.says, failed[0]["text"])
        figures.append((f"{project.name}: doctor", f"{failed[0]['text']}. {failed[0]['fix']}"))

    def built_for(self) -> tuple[str, str]:
        """The CUDA of the plug-in, and the oldest driver that runs it."""
        said = re.search(r"libsimile_cuda\S*: built with CUDA (\d+\.\d+)", self.run_image(IMAGE, "--version", "--verbose"))
        self.assertIsNotNone(said)
        return said[1], "580" if said[1].startswith("13.") else "525"

    def test_holds_nothing_that_it_does_not_need(self):
        history = served.docker.docker("history", "--human=false", "--format", "{{.Size}}", IMAGE).stdout
        sizes = [int(size) for size in history.split() if int(size) > 0]
        self.assertEqual(len(sizes), len(LAYERS))
        figures.extend((f"real image, layer: {layer}", f"{size / 1e6:.1f} MB") for layer, size in zip(LAYERS, reversed(sizes)))
        total = sum(sizes)
        figures.append(("real image, uncompressed", f"{total / 1e6:.1f} MB"))
        found = self.sh("find / -xdev -type f -name 'libcu*.so.*' -printf '%s %p\\n' 2>/dev/null; true", runtime="runc")
        blas = re.findall(r"(\d+) .*/(lib\w+)\.so\.", found)
        self.assertEqual(sorted(name for _, name in blas), ["libcublas", "libcublasLt"])
        self.assertLessEqual(total - sum(int(size) for size, _ in blas), OWN_MEGABYTES * 1_000_000)
        tools = "nvcc ptxas cicc cuobjdump cc g++ cmake python3 git"
        self.assertEqual(self.sh(f"for tool in {tools}; do command -v $tool; done; true"), "")
        left = "find / -xdev \\( -name '*.h' -o -name '*.a' -o -name 'libnv*' -o -path '/usr/local/cuda*' \\) 2>/dev/null; true"
        self.assertEqual(self.sh(left, runtime="runc"), "")

    def test_lists_the_plugin_and_cublas(self):
        document = json.loads(self.sh("cat /var/lib/db/sbom/simile.spdx.json"))
        packages = {each["name"]: each for each in document["packages"]}
        plugin = next(name for name in packages if name.startswith("libsimile_cuda"))
        self.assertEqual(packages[plugin]["checksums"][0]["checksumValue"],
                         self.sh(f"sha256sum /usr/local/bin/{plugin}").split()[0])
        self.assertTrue(packages["cuBLAS"]["versionInfo"].startswith(self.built_for()[0].split(".")[0]))

    def test_doctor_finds_the_plugin_and_cublas(self):
        for variables in ({}, {"FAKE_CUDA_ERROR": "803"}, {"NVIDIA_VISIBLE_DEVICES": "void"}):
            said = self.run_image(IMAGE, "doctor", check=False, **variables)
            self.assertRegex(said, re.compile(PLUGIN, re.MULTILINE))
            self.assertRegex(said, re.compile(BLAS, re.MULTILINE))
        for line in said.splitlines():
            if re.search(f"{PLUGIN}|{BLAS}", line):
                figures.append(("real image: doctor", line.strip()))

    def test_the_runtime_obeys_both_variables(self):
        served.docker.install_driver(*self.driver, cards=2)
        shows = f"ls /dev/nvidia* {LIBRARIES}/libcuda.so.1 {LIBRARIES}/libnvidia-ml.so.1 2>/dev/null; true"

        def found(**variables: str) -> list[str]:
            return sorted(path.removeprefix(f"{LIBRARIES}/") for path in self.sh(shows, **variables).split())

        libraries = ["libcuda.so.1", "libnvidia-ml.so.1"]
        shared = ["/dev/nvidia-uvm", "/dev/nvidiactl"]
        second = "GPU-00000000-0000-0000-0000-000000000001"
        self.assertEqual(found(), sorted([*shared, "/dev/nvidia0", "/dev/nvidia1", *libraries]))
        self.assertEqual(found(NVIDIA_VISIBLE_DEVICES="1"), sorted([*shared, "/dev/nvidia1", *libraries]))
        self.assertEqual(found(NVIDIA_VISIBLE_DEVICES=second), sorted([*shared, "/dev/nvidia1", *libraries]))
        self.assertEqual(found(NVIDIA_VISIBLE_DEVICES="none"), sorted([*shared, *libraries]))
        self.assertEqual(found(NVIDIA_VISIBLE_DEVICES="void"), [])
        self.assertEqual(found(NVIDIA_VISIBLE_DEVICES=""), [])
        self.assertEqual(found(NVIDIA_VISIBLE_DEVICES="0", NVIDIA_DRIVER_CAPABILITIES="utility"),
                         sorted([*shared, "/dev/nvidia0", libraries[1]]))
        self.assertEqual(found(NVIDIA_VISIBLE_DEVICES="0", NVIDIA_DRIVER_CAPABILITIES="compute"),
                         sorted([*shared, "/dev/nvidia0", libraries[0]]))
        self.assertEqual(self.sh(shows, runtime="runc"), "")

    def expect_the_fake_is_called(self, project: Project) -> None:
        """The server has the real plug-in and the fake driver in its memory, and its reason is the fake's error."""
        self.assertEqual(project.execute("sh", "-c", "ls /dev/nvidia*").stdout.split(), NODES)
        maps = project.execute("cat", "/proc/1/maps").stdout
        self.assertRegex(maps, r"/usr/local/bin/libsimile_cuda(12)?\.so\n")
        self.assertIn(f"{LIBRARIES}/libcuda.so.{DRIVER_VERSION}\n", maps)
        self.expect_the_cpu(project, no_device("cudaErrorNoDevice: no CUDA-capable device is detected"), EXPLAINS)

    def test_calls_the_driver_that_the_runtime_brings(self):
        project = self.bring_up("real-runtime", COMPOSE, GPU, tag="gpu")
        self.assertEqual(inspect(project.container)["HostConfig"]["Runtime"], "nvidia")
        self.expect_the_fake_is_called(project)
        self.expect_back_after_a_kill(project)

    def test_calls_the_driver_of_a_reserved_card(self):
        self.addCleanup(served.docker.restart, with_toolkit=False)
        served.docker.restart(with_toolkit=True)
        project = self.bring_up("real-reservations", COMPOSE, RESERVATIONS, tag="gpu")
        self.assertEqual(inspect(project.container)["HostConfig"]["Runtime"], "runc")
        self.expect_the_fake_is_called(project)

    def test_does_not_start_where_the_toolkit_finds_two_versions(self):
        (served.docker.host / "refusal").write_text(MISMATCH, encoding="utf-8")
        project = Project("real-refused", COMPOSE, GPU, tag="gpu")
        self.addCleanup(project.down)
        refused = project.compose("up", "--detach", "--no-build", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(MISMATCH, refused.stdout)
        figures.append((f"{project.name}: Docker says", MISMATCH))

    def test_serves_from_a_root_without_an_engine(self):
        archive = ROOT / "build" / "gpu-image-root.tar.xz"
        images.pack_root(served.docker, IMAGE, archive, r"/libcublas(Lt)?\.so")
        megabytes = archive.stat().st_size / 1e6
        figures.append(("real image, its root without cuBLAS, compressed", f"{megabytes:.1f} MB"))
        self.assertLess(megabytes, ROOT_MEGABYTES)
        with tempfile.TemporaryDirectory() as folder:
            for name, file in zip(("libcuda.so.1", "libnvidia-ml.so.1"), self.driver):
                pathlib.Path(folder, name).write_bytes(file.read_bytes())
            for words in ([], ["--no-mount"]):
                said = served.docker.run(sys.executable, "-B", CARD_CHECK, archive, "--driver", folder, "--engine", "cpu",
                                         "--reason", "cudaErrorNoDevice", *words).stdout
                self.assertEqual(len(re.findall(r"^\w+ +passed", said, re.MULTILINE)), 9, said)
                seconds = sum(float(each) for each in re.findall(r"^\w+ +passed +([\d.]+) s", said, re.MULTILINE))
                figures.append((f"real image under chroot {' '.join(words)}".strip(), f"9 steps passed in {seconds:.0f} s"))
            # With a fake plug-in the steps end as on a card: the receipt says gpu.
            fake = pathlib.Path(folder, "fake-root.tar.xz")
            images.pack_root(served.docker, "simile:gpu-fake", fake, "^$")
            said = served.docker.run(sys.executable, "-B", CARD_CHECK, fake, "--driver", folder,
                                     environment={"FAKE_CUDA_ERROR": "0"}).stdout
            self.assertEqual(len(re.findall(r"^\w+ +passed", said, re.MULTILINE)), 9, said)
            missing = served.docker.run(sys.executable, "-B", CARD_CHECK, archive, "--driver", folder, check=False)
            self.assertEqual(missing.returncode, 1)
            self.assertRegex(missing.stdout, r"doctor +FAILED")

    def test_says_why_no_card_answers(self):
        for case in CASES:
            with self.subTest(case.name):
                self.expect_case(case)
                self.doCleanups()
                self.setUp()
