"""What the kubelet does to a container, by the probes of a manifest, against a process on this machine."""

import dataclasses
import http.client
import threading


@dataclasses.dataclass
class Answer:
    probe: str
    passed: bool
    text: str


def ask(address: str, path: str, timeout_seconds: float) -> tuple[bool, str]:
    """Whether a GET is answered by a status from 200 to 399, and the text of the answer."""
    connection = http.client.HTTPConnection(address, timeout=timeout_seconds)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return 200 <= response.status < 400, response.read().decode().strip()
    except OSError as error:
        return False, str(error)
    finally:
        connection.close()


class Prober:
    """Asks the probes of a container, each at its period, until it is stopped.

    speed  how many of the manifest's seconds pass in one of the clock; the time to answer stays as it is
    """

    def __init__(self, container: dict, address: str, speed: float):
        self._probes = {name: container[f"{name}Probe"] for name in ("startup", "readiness", "liveness")}
        self._address = address
        self._speed = speed
        self._stopped = threading.Event()
        self._started = threading.Event()
        self.answers: list[Answer] = []
        self.killed_by: str | None = None  # the probe for which the kubelet would have killed the container
        self.ready = False
        self._threads = [threading.Thread(target=self._run, args=(name,)) for name in self._probes]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self._stopped.set()
        self._started.set()
        for thread in self._threads:
            thread.join()

    def of(self, probe: str) -> list[Answer]:
        return [answer for answer in self.answers if answer.probe == probe]

    def _run(self, name: str) -> None:
        probe = self._probes[name]
        if name != "startup":
            self._started.wait()
        failures = 0
        while not self._stopped.wait(probe["periodSeconds"] / self._speed):
            passed, text = ask(self._address, probe["httpGet"]["path"], probe["timeoutSeconds"])
            self.answers.append(Answer(name, passed, text))
            failures = 0 if passed else failures + 1
            failed = failures >= probe["failureThreshold"]
            if name == "readiness" and (passed or failed):
                self.ready = passed
            elif failed:
                self.killed_by = self.killed_by or name
            if name == "startup" and passed:
                self._started.set()
                return
