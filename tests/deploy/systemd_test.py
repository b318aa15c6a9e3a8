#!/usr/bin/env python3
"""Checks deploy/systemd.

    systemd_test.py SIMILE

What needs systemd-analyze is skipped without it.
"""

import configparser
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import manifests
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}; it is Debian's python3-yaml")
    sys.exit(77)

SIMILE = sys.argv.pop() if __name__ == "__main__" else ""
UNIT = manifests.ROOT / "deploy/systemd/simile.service"
INSTALLED = "/usr/local/bin/simile"
ANALYZE = shutil.which("systemd-analyze")
# Of the scale of `systemd-analyze security`, times ten: up to 4.9 it says OK.
EXPOSURE_MAX = 20


def service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read(UNIT)
    return parser["Service"]


class SystemdTest(unittest.TestCase):
    def setUp(self):
        self.settings = manifests.load_settings(manifests.settings_text("systemd"))

    def analyze(self, *words: str):
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / UNIT.name
            unit.write_text(UNIT.read_text().replace(INSTALLED, SIMILE))
            result = subprocess.run([ANALYZE, *words, unit], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    @unittest.skipIf(ANALYZE is None, "needs systemd-analyze")
    def test_systemd_finds_nothing_wrong(self):
        self.assertEqual(self.analyze("verify").stderr, "")

    @unittest.skipIf(ANALYZE is None, "needs systemd-analyze")
    def test_the_service_is_exposed_little(self):
        self.analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX}")

    def test_a_stop_is_given_longer_than_it_takes(self):
        self.assertGreater(int(service()["TimeoutStopSec"]) * 1_000, manifests.stop_ms(self.settings))

    def test_a_lost_gpu_starts_it_again_and_a_mistake_does_not(self):
        self.assertEqual(self.settings["gpu"]["on_fault"], "restart")
        self.assertEqual(service()["Restart"], "on-failure")
        self.assertEqual(service()["RestartForceExitStatus"], "75")
        self.assertEqual(service()["RestartPreventExitStatus"], "64")

    def test_it_is_told_when_the_server_serves_however_long_that_takes(self):
        self.assertEqual(service()["Type"], "notify")
        self.assertEqual(service()["TimeoutStartSec"], "infinity")

    def test_all_that_is_written_is_in_its_folders(self):
        folders = {pathlib.PurePath("/var/lib") / service()["StateDirectory"],
                   pathlib.PurePath("/var/cache") / service()["CacheDirectory"]}
        for path in manifests.written_paths(self.settings):
            self.assertIn(path.parent, folders)

    def test_the_server_takes_the_settings_it_is_started_with(self):
        self.assertEqual(service()["ExecStart"], f"{INSTALLED} serve --config /etc/simile/simile.json")
        manifests.check_settings(SIMILE, manifests.settings_text("systemd"), "/srv/simile")


if __name__ == "__main__":
    unittest.main()
