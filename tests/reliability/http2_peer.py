"""A peer that speaks HTTP/2 by itself: it sees GOAWAY, which gRPC's clients hide, and leaves replies unread, which they do not."""

import contextlib
import select
import socket
import ssl
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
ACK, END_STREAM, END_HEADERS = 1, 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def header(name: str, value: str) -> bytes:
    """In HPACK: a literal that enters no table and is not compressed."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Http2Peer:
    """A connection of its own. It acknowledges settings and pings, and never gives a stream more window than the first 64 KiB.

    mute   it does not even acknowledge: what is left of a client whose machine is gone
    tls    encrypts the connection
    token  is sent with each call
    """

    def __init__(self, address: str, mute: bool = False, tls: ssl.SSLContext | None = None, token: str = ""):
        host, port = address.rsplit(":", 1)
        self.goaways: list[tuple[int, int]] = []  # last stream, error code
        self.data_bytes = 0
        self._answered = threading.Event()
        self._mute, self._token = mute, token
        self._lock = threading.Lock()  # an encrypted connection is one thread's at a time
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._socket.settimeout(None)
        self._send(PREFACE + frame(SETTINGS, 0, 0))
        self._settled = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # SSLSocket's own would make it a plain one
        self._thread.join()
        self._socket.close()

    def await_settings(self, seconds: float) -> None:
        """Until the server speaks HTTP/2 with this peer."""
        if not self._settled.wait(seconds):
            raise AssertionError(f"no SETTINGS from the server within {seconds} s")

    def call(self, path: str, message: bytes) -> None:
        """Sends a gRPC call, whose reply is read as far as the first window goes."""
        headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                   ("te", "trailers"), ("content-type", "application/grpc")]
        if self._token:
            headers.append(("authorization", f"Bearer {self._token}"))
        body = b"\0" + len(message).to_bytes(4, "big") + message
        self._send(frame(HEADERS, END_HEADERS, 1, b"".join(header(*each) for each in headers))
                   + frame(DATA, END_STREAM, 1, body))

    def await_answer(self, seconds: float) -> None:
        """Until the reply has begun to come."""
        if not self._answered.wait(seconds):
            raise AssertionError(f"no reply within {seconds} s")

    def await_end(self, seconds: float) -> None:
        """Until the server has closed the connection."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise AssertionError(f"the server has not closed the connection within {seconds} s")

    def is_open(self) -> bool:
        return self._thread.is_alive()

    def is_mute(self) -> bool:
        return self._mute

    def _send(self, data: bytes) -> None:
        with self._lock:
            self._socket.sendall(data)

    def _receive_ready(self, count: int) -> bytes | None:
        """None when nothing has come that holds data, as a session ticket of TLS does not."""
        with self._lock:
            self._socket.setblocking(False)
            try:
                return self._socket.recv(count)
            except (BlockingIOError, ssl.SSLWantReadError):
                return None
            finally:
                self._socket.setblocking(True)

    def _receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            part = self._receive_ready(count - len(received))
            if part is None:
                select.select([self._socket], [], [])
                continue
            if not part:
                raise ConnectionError
            received += part
        return received

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                head = self._receive(9)
                kind, flags, payload = head[3], head[4], self._receive(int.from_bytes(head[:3], "big"))
                self._take(kind, flags, payload)

    def _take(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            if not self._mute:
                self._send(frame(SETTINGS, ACK, 0))
            self._settled.set()
        elif kind == PING and not flags & ACK and not self._mute:
            self._send(frame(PING, ACK, 0, payload))
        elif kind == DATA:
            self.data_bytes += len(payload)
            self._answered.set()
        elif kind == GOAWAY:
            self.goaways.append((int.from_bytes(payload[:4], "big") & 0x7FFFFFFF, int.from_bytes(payload[4:8], "big")))
