"""The calls of a client of the films, each with a check of its answer."""

import dataclasses
import json
import pathlib
from typing import Callable, Iterator

import grpc
from simile.v1 import lookup_pb2, search_pb2

SEARCH = "/simile.v1.SearchService/Search"
RECOMMEND = "/simile.v1.SearchService/Recommend"
STREAM = "/simile.v1.SearchService/SearchStream"
LOOKUP = "/simile.v1.LookupService/Lookup"
RELOAD = "/simile.v1.CollectionService/ReloadCollection"
HEALTH = "/grpc.health.v1.Health/Check"
SERVING = b"\x08\x01"  # HealthCheckResponse{status: SERVING}
TIMEOUT_SECONDS = 10
# What a client says that has several servers and lets gRPC do the rest.
SERVERS_CONFIG = {"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}
RETRY_CONFIG = {"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]}}]}


class WrongAnswer(Exception):
    """An answer came that is not the exact one."""


def channel(*addresses: str, retries: bool = True, credentials: grpc.ChannelCredentials | None = None) -> grpc.Channel:
    """With connections of its own.

    retries      without, gRPC does not even repeat what no server has seen: a call that the server refuses fails
    credentials  without, the connections are not encrypted
    """
    config = SERVERS_CONFIG | RETRY_CONFIG if retries else SERVERS_CONFIG
    target = "ipv4:" + ",".join(addresses)
    options = [("grpc.service_config", json.dumps(config)), ("grpc.enable_retries", int(retries)),
               ("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 << 20)]
    if credentials is None:
        return grpc.insecure_channel(target, options)
    return grpc.secure_channel(target, credentials, options)


def is_serving(connection: grpc.Channel, service: str = "") -> bool:
    request = b"" if not service else b"\x0a" + bytes([len(service)]) + service.encode()
    try:
        return connection.unary_unary(HEALTH)(request, timeout=5, wait_for_ready=True) == SERVING
    except grpc.RpcError:
        return False


def expect_rows(what: str, hits, expected: list) -> None:
    """expected  pairs of row and score, as expected.json has them"""
    if [hit.row for hit in hits] != [row for row, _ in expected]:
        raise WrongAnswer(f"{what}: rows {[hit.row for hit in hits]}, exactly {[row for row, _ in expected]}")


@dataclasses.dataclass
class Kind:
    """A kind of call, made over a connection; raises grpc.RpcError when it fails, WrongAnswer when the answer is wrong."""
    name: str
    call: Callable[[grpc.Channel, int], None]


class FilmCalls:
    """Makes calls, the same ones for the same number, and compares their answers with expected.json of the films."""

    def __init__(self, films: pathlib.Path):
        expected = json.loads((films / "expected.json").read_text(encoding="utf-8"))
        self._similar = expected["similar_films"]
        self._users = expected["user_recommendations"]
        self.kinds = [Kind("similar", self.similar), Kind("recommend", self.recommend), Kind("filter", self.filtered),
                      Kind("stream", self.stream), Kind("lookup", self.lookup), Kind("diversity", self.diverse)]

    def similar_request(self, number: int) -> search_pb2.SearchRequest:
        film = self._similar[number % len(self._similar)]
        return search_pb2.SearchRequest(collection="films", queries=[search_pb2.Query(id=film["query_media_id"])],
                                        options=search_pb2.SearchOptions(k=20, with_rows=True))

    def check_similar(self, number: int, response: search_pb2.SearchResponse) -> None:
        film = self._similar[number % len(self._similar)]
        expect_rows(f"like {film['query_media_id']}", response.results[0].hits, film["top_20_excluding_self"])

    def similar(self, connection: grpc.Channel, number: int) -> None:
        answer = connection.unary_unary(SEARCH)(self.similar_request(number).SerializeToString(), timeout=TIMEOUT_SECONDS)
        self.check_similar(number, search_pb2.SearchResponse.FromString(answer))

    def recommend(self, connection: grpc.Channel, number: int) -> None:
        user = self._users[number % len(self._users)]
        request = search_pb2.RecommendRequest(collection="films", user_ids=[user["user_id"]], options=search_pb2.SearchOptions(
            k=20, with_rows=True, exclude_seen=True))
        answer = connection.unary_unary(RECOMMEND)(request.SerializeToString(), timeout=TIMEOUT_SECONDS)
        expect_rows(f"for {user['user_id']}", search_pb2.RecommendResponse.FromString(answer).results[0].hits,
                    user["top_20_excluding_liked"])

    def filtered(self, connection: grpc.Channel, number: int) -> None:
        year = 1950 + number % 60
        request = self.similar_request(number)
        request.options.filter = f"year >= {year}"
        request.options.payload.selection = 1
        answer = connection.unary_unary(SEARCH)(request.SerializeToString(), timeout=TIMEOUT_SECONDS)
        for hit in search_pb2.SearchResponse.FromString(answer).results[0].hits:
            if hit.payload["year"].int_value < year:
                raise WrongAnswer(f"a film of {hit.payload['year'].int_value} passes year >= {year}")

    def stream(self, connection: grpc.Channel, number: int) -> None:
        """Five searches over one stream, answered in their order."""
        def requests() -> Iterator[bytes]:
            for tag in range(5):
                yield search_pb2.SearchStreamRequest(tag=tag, search=self.similar_request(number + tag)).SerializeToString()

        tags = []
        for answer in connection.stream_stream(STREAM)(requests(), timeout=TIMEOUT_SECONDS):
            response = search_pb2.SearchStreamResponse.FromString(answer)
            if response.HasField("error"):
                raise WrongAnswer(f"an error of code {response.error.code} in a stream: {response.error.message}")
            self.check_similar(number + response.tag, response.search)
            tags.append(response.tag)
        if tags != list(range(5)):
            raise WrongAnswer(f"a stream answered {tags}")

    def lookup(self, connection: grpc.Channel, _number: int) -> None:
        request = lookup_pb2.LookupRequest(collection="films", text="Toy Story", limit=5)
        answer = lookup_pb2.LookupResponse.FromString(
            connection.unary_unary(LOOKUP)(request.SerializeToString(), timeout=TIMEOUT_SECONDS))
        if not answer.matches or answer.matches[0].item.id != "toy-story-1995":
            raise WrongAnswer(f"\"Toy Story\" found {[match.item.id for match in answer.matches]}")

    def diverse(self, connection: grpc.Channel, number: int) -> None:
        """Takes the server about ten times as long as the others."""
        request = self.similar_request(number)
        request.options.diversity.candidates = 1_000
        answer = search_pb2.SearchResponse.FromString(
            connection.unary_unary(SEARCH)(request.SerializeToString(), timeout=TIMEOUT_SECONDS))
        if len(answer.results[0].hits) != 20:
            raise WrongAnswer(f"diversity gave {len(answer.results[0].hits)} of 20 hits")


def large_reply_request() -> bytes:
    """For nine megabytes: more than a connection takes that nobody reads."""
    return search_pb2.SearchRequest(collection="films", queries=[search_pb2.Query(id="toy-story-1995")],
                                    options=search_pb2.SearchOptions(k=5_000, with_vectors=True, reply_bytes_max=64 << 20)
                                    ).SerializeToString()
