"""What both clients hold: where the server is, and a channel for each process."""

import os
import re
import threading
from collections.abc import Sequence
from typing import Any, Generic, Optional, TypeVar

import grpc

from . import calls, errors

# gRPC reads this when it is imported.
_FORK_SUPPORT = os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "").lower() in ("1", "true", "yes")
_FORKED = ("this process was forked after its parent had made a call by gRPC, which cannot go on here: make the first call after the "
           "fork (gunicorn: without --preload; multiprocessing: set_start_method(\"spawn\")), or set GRPC_ENABLE_FORK_SUPPORT=1 before "
           "Python starts")
# HOST:PORT, or an address of gRPC with its scheme, such as unix:///run/simile and dns:///simile:50051.
_TARGET = re.compile(r"(?!https?://).+:\d+\Z|(unix|dns|ipv4|ipv6|xds|unix-abstract):.+\Z")
# http_proxy and its like are for the web, not for this server. A server that starts is found within a second.
_CHANNEL_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", calls.REPLY_BYTES_MAX),
                    ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000)]


class _Process:
    """What gRPC has begun in this process."""
    lock = threading.Lock()
    pid: Optional[int] = None  # of the process that made the first channel
    unclosed: list[Any] = []  # channels whose end would wait for threads or loops that are not here


def _renew_lock() -> None:
    _Process.lock = threading.Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Connection:
    """A server and a channel to it. See client.connect for the arguments."""

    def __init__(self, target: str, token: Optional[str], credentials: Optional[grpc.ChannelCredentials], timeout: float):
        if not isinstance(target, str) or not _TARGET.match(target):
            raise errors.InvalidRequest(f"the server is {target!r}; give HOST:PORT, such as \"localhost:50051\"")
        self._target, self._token, self._credentials, self.timeout = target, token, credentials, timeout
        self._reset()

    def _reset(self) -> None:
        self._channels: dict[Any, Any] = {}  # by what may use each: see _current_owner
        self._methods: dict[tuple[str, int], Any] = {}  # by name and channel
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        if self._credentials is not None:
            raise TypeError("a client with credentials cannot be pickled: connect in the process that uses it")
        return {"_target": self._target, "_token": self._token, "_credentials": None, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def _current_owner(self) -> Any:
        """A channel belongs to its process."""
        return os.getpid()

    def _make(self, options: Sequence[tuple[str, Any]]) -> Any:
        """A channel with these options."""
        raise NotImplementedError

    def _is_over(self, owner: Any) -> bool:
        """Whether an owner can no longer end its channel."""
        return bool(owner != os.getpid())

    def _drop_ended(self) -> None:
        for owner in [owner for owner in self._channels if self._is_over(owner)]:
            _Process.unclosed.append(self._channels.pop(owner))

    def _method(self, call: calls.Call) -> Any:
        """What makes a call on the channel of this process and loop."""
        channel = self._open()
        made = self._methods.get((call.method, id(channel)))
        if made is None:
            make = channel.unary_stream if call.streamed else channel.unary_unary
            made = make(f"/simile.v1.{call.method}", request_serializer=None, response_deserializer=call.response.FromString)
            self._methods[call.method, id(channel)] = made
        return made

    def _open(self) -> Any:
        with _Process.lock:
            if self._closed:
                raise self._closed_error()
            owner = self._current_owner()
            if owner not in self._channels:
                if _Process.pid not in (None, os.getpid()) and not _FORK_SUPPORT:
                    raise errors.SimileError(_FORKED)
                self._drop_ended()
                self._methods.clear()
                self._channels[owner], _Process.pid = self._make(_CHANNEL_OPTIONS), os.getpid()
            return self._channels[owner]

    def _take_channels(self) -> list[Any]:
        """Ends the use of the client. Returns the channels to close."""
        with _Process.lock:
            self._closed = True
            self._drop_ended()
            channels = list(self._channels.values())
            self._channels.clear()
            return channels

    @staticmethod
    def _closed_error() -> errors.SimileError:
        return errors.SimileError("the client is closed")

    def _metadata(self) -> Optional[Sequence[tuple[str, str]]]:
        return None if self._token is None else (("authorization", f"Bearer {self._token}"),)

    def seconds(self, timeout: Optional[float]) -> float:
        return self.timeout if timeout is None else timeout


AnyClient = TypeVar("AnyClient", bound=Connection)


class NamedCollection(Generic[AnyClient]):
    """A collection of a client, and how its methods read what they share."""

    def __init__(self, client: AnyClient, name: str):
        self._client, self.name = client, name

    def _options(self, k: int, given: dict[str, Any]) -> calls.Options:
        return calls.Options(k, self._client.timeout, given)

    def _seconds(self, timeout: Optional[float]) -> float:
        return self._client.seconds(timeout)
