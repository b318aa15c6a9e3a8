#!/usr/bin/env python3
"""deploy/nginx/simile.conf in front of a real server: calls that stay open live on, and do not take the places of others.

    nginx_test.py SIMILE FILMS STUBS

Skipped (77) without nginx, which is in the group deploy of packages/debian.txt. The configuration's time-outs of 15 and 10 s are a
second here, and it listens on a free port without TLS; all else is as it is written.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

SIMILE, FILMS, STUBS = map(pathlib.Path, sys.argv[1:4])
sys.path += [str(STUBS), str(pathlib.Path(__file__).resolve().parents[1] / "python")]
from servers import await_true, environment, steady_port
from simile.v1 import search_pb2, search_pb2_grpc

CONFIGURATION = pathlib.Path(__file__).parents[2] / "deploy/nginx/simile.conf"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
TIMEOUT_SECONDS = 1  # of calls that are short
SILENCE_SECONDS = 3
# How long a wait may take that should take next to nothing, on a busy machine.
PATIENCE_SECONDS = 60
LONG_CALLS_MAX = 64


def configuration(folder: pathlib.Path, port: int, server_port: int) -> str:
    """A whole nginx.conf: the one of deploy/ with short time-outs, in `folder`."""
    text = CONFIGURATION.read_text()
    for line, instead in ((r"listen 8443 ssl http2;", f"listen 127.0.0.1:{port} http2;"),
                          (r"server 127\.0\.0\.1:50051;", f"server 127.0.0.1:{server_port};"),
                          (r"ssl_\w+ [^;]+;", ""), (r"\b1[05]s;", f"{TIMEOUT_SECONDS}s;")):
        text, count = re.subn(line, instead, text)
        assert count > 0, line
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"""daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
access_log off;
{temporary}
{text}
}}
"""


def watch(channel: grpc.Channel):
    """Health.Watch of the whole server: an empty request, whose replies are not decoded."""
    call = channel.unary_stream("/grpc.health.v1.Health/Watch")
    return call(b"", wait_for_ready=True, timeout=PATIENCE_SECONDS)


def end_of(call) -> threading.Event:
    """Set when the call ends."""
    ended = threading.Event()
    call.add_callback(ended.set)
    return ended


def request() -> search_pb2.SearchRequest:
    return search_pb2.SearchRequest(collection="films", queries=[search_pb2.Query(id="heat-1995")],
                                    options=search_pb2.SearchOptions(k=1))


@unittest.skipUnless(NGINX, "nginx is not installed")
class NginxTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        port, server_port = steady_port(), steady_port()
        cls.address = f"127.0.0.1:{port}"
        server = [SIMILE, "serve", "--collection", f"films={FILMS}", "--port", str(server_port), "--no-metrics"]
        limits = {"SIMILE_LIMITS_CONNECTIONS_PER_PEER_MAX": "1024"}
        cls.start(server, env=environment(cls.folder, **limits))
        (cls.folder / "nginx.conf").write_text(configuration(cls.folder, port, server_port))
        cls.start([NGINX, "-p", cls.folder, "-c", cls.folder / "nginx.conf", "-e", cls.folder / "start.log"])
        channel = cls.enterClassContext(grpc.insecure_channel(cls.address))
        await_true(lambda: cls.answers(channel), PATIENCE_SECONDS, f"an answer through nginx; see {cls.folder}")

    @classmethod
    def start(cls, command, **options):
        with open(cls.folder / "output", "ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, **options)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.terminate)

    @staticmethod
    def answers(channel) -> bool:
        try:
            return len(search_pb2_grpc.SearchServiceStub(channel).Search(request(), timeout=PATIENCE_SECONDS).results) == 1
        except grpc.RpcError:
            return False

    def channel(self) -> grpc.Channel:
        return self.enterContext(grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)]))

    def test_a_silent_watch_lives_on(self):
        replies = watch(self.channel())
        next(replies)
        self.assertFalse(end_of(replies).wait(SILENCE_SECONDS))
        replies.cancel()

    def test_a_silent_stream_of_queries_lives_on(self):
        ended = threading.Event()

        def requests():
            for tag in (1, 2):
                yield search_pb2.SearchStreamRequest(tag=tag, search=request())
                ended.wait(SILENCE_SECONDS)

        stream = search_pb2_grpc.SearchServiceStub(self.channel()).SearchStream(requests(), timeout=PATIENCE_SECONDS)
        stream.add_callback(ended.set)
        answers = list(stream)
        self.assertEqual([answer.tag for answer in answers], [1, 2])
        self.assertTrue(all(len(answer.search.results) == 1 for answer in answers), answers)

    def test_watches_take_no_places_of_other_calls(self):
        held = [watch(self.channel()) for _ in range(LONG_CALLS_MAX)]
        for replies in held:
            next(replies)
        self.assertTrue(self.answers(self.channel()))
        with self.assertRaises(grpc.RpcError, msg="beyond the limit of calls that stay open"):
            next(watch(self.channel()))
        for replies in held:
            replies.cancel()


if __name__ == "__main__":
    if NGINX is None:
        print("skipped: no nginx; packages/install deploy")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
