"""Which protocol a connection speaks: the first bytes of real clients, those of arbitrary ones, and of nobody."""

import ssl
import tomllib
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.server.recognition import TLS, UNKNOWN, recognise
from millstream.wire.iggy.commands import BY_CODE
from millstream.wire.iggy.framing import LongHeader, long_request
from millstream.wire.kafka.api import Api
from millstream.wire.kafka07.requests import (
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    Request,
    encode_request,
)
from millstream.wire.pulsar.frames import encode_command
from millstream.wire.pulsar.pulsar_pb2 import CommandConnect
from tests.golden.kafka07_captures import CAPTURES
from tests.unit.wire.kafka.samples import APIS, sample

GOLDEN: Final = Path(__file__).parents[2] / "golden"
HOMES: Final = ("kafka", "kafka07", "pulsar", "iggy", "http", UNKNOWN)
LOGIN: Final = bytes.fromhex("1c000000 26000000 04 69676779 04 69676779 06000000 302e362e3132 00000000")


def client_hello(**options: str) -> bytes:
    """The first bytes of OpenSSL's client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if "version" in options:
        context.maximum_version = ssl.TLSVersion[options["version"]]
    if "alpn" in options:
        context.set_alpn_protocols(options["alpn"].split(","))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=options.get("name", "localhost"))
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def _captured(folder: str, *names: str) -> list[bytes]:
    paths = [GOLDEN / folder / f"{name}.toml" for name in names] or sorted((GOLDEN / folder).glob("*.toml"))
    frames = [bytes.fromhex(tomllib.loads(path.read_text())["hex"]) for path in paths]
    return [len(frame).to_bytes(4, "big") + frame for frame in frames]


FIRST_BYTES: Final = {
    "http": [
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HEAD / HTTP/1.0\r\n\r\n",
        b"POST /users/login HTTP/1.1\r\n",
        b"PUT /admin/v2/x HTTP/1.1\r\n",
        b"DELETE /a HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\n",
        b"PATCH /a HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    TLS: [
        client_hello(),
        client_hello(version="TLSv1_2"),
        client_hello(alpn="h2,http/1.1"),
        client_hello(name="x" * 60 + ".example"),
    ],
    "kafka": [
        # A SaslHandshake; a Produce without a client id; a Metadata of the first version; a Produce of 16 MiB
        bytes.fromhex("0000000e 0011 0001 00000000 0000 0002 4142"),
        bytes.fromhex("00000050 0000 0009 00000003 ffff") + bytes(70),
        bytes.fromhex("0000000e 0003 0000 00000000 0000 00000000"),
        bytes.fromhex("01000000 0000 0002 00000001 0004 74657374 0001 00001388 00000001 0001 74"),
        *_captured("kafka"),
    ],
    "kafka07": [exchange.request for capture in CAPTURES for exchange in capture.exchanges],
    "pulsar": _captured("pulsar", "connect", "go_connect"),
    "iggy": [
        LOGIN,
        bytes.fromhex("04000000 01000000"),  # PING
        bytes.fromhex("00010000 26000000 04 69676779 04") + bytes(242),  # a LOGIN_USER of 256 bytes
        bytes.fromhex("08000000 2c000000 03 616263"),  # LOGIN_WITH_PERSONAL_ACCESS_TOKEN
        long_request(LongHeader(bytes(16), bytes(16), 0, 2, 0, 40), b"\1"),
        long_request(LongHeader(bytes(range(16)), bytes(16), 0, 2, 0, 40, True), b"\1"),
    ],
}
CASES: Final = [
    pytest.param(name, head, id=f"{name or 'none'}-{number}")
    for name, heads in FIRST_BYTES.items()
    for number, head in enumerate(heads)
]


@pytest.mark.parametrize(("name", "head"), CASES)
@pytest.mark.parametrize("home", HOMES)
def test_the_first_bytes_tell_on_every_listener(name: str, head: bytes, home: str) -> None:
    assert recognise(head, home) == name
    assert recognise(head + b"\xff" * 20, home) == name
    assert {recognise(head[:count], home) for count in range(1, len(head))} <= {None, name}


def _recognised(head: bytes) -> set[str | None]:
    """What each listener takes something for, which fewer bytes may have told already."""
    answers = {home: recognise(head, home) for home in HOMES}
    for home, answer in answers.items():
        assert {recognise(head[:count], home) for count in range(1, len(head))} <= {None, answer}
    return set(answers.values())


# What anybody could send


_topics: Final = st.text(
    st.characters(min_codepoint=0x20, exclude_categories=["Cc", "Cs", "Co"], exclude_characters="/"),
    min_size=1,
    max_size=30,
)
_partitions: Final = st.integers(-1, 1000)
_message_sets: Final = st.binary(max_size=60)
_fetches: Final = st.builds(
    FetchRequest, _topics, _partitions, st.integers(-2, 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
)
_produces: Final = st.builds(ProduceRequest, _topics, _partitions, _message_sets)
_old_requests: Final = st.one_of(
    _fetches,
    _produces,
    st.builds(MultiFetchRequest, st.lists(_fetches, min_size=1, max_size=8)),
    st.builds(MultiProduceRequest, st.lists(_produces, min_size=1, max_size=8)),
    st.builds(OffsetsRequest, _topics, _partitions, st.integers(-2, 2**63 - 1), st.integers(-1, 1000)),
)


@settings(max_examples=400, deadline=None)
@given(_old_requests)
@example(ProduceRequest("kp", -1, bytes.fromhex("0000001a 01 00 00000000") + bytes(20)))
@example(MultiProduceRequest([ProduceRequest("a", 0, b"")] * 2))
@example(MultiFetchRequest([FetchRequest("ab", 0, 0, 1)] * 9))
def test_any_request_of_kafka_07(request: Request) -> None:
    assert _recognised(bytes(encode_request(request))) == {"kafka07"}


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(APIS), st.randoms(use_true_random=False), st.integers(0, 2**31 - 1), st.text(max_size=30))
def test_any_request_of_kafka(api: Api, rng: Random, correlation_id: int, client_id: str) -> None:
    version = rng.choice(api.versions)
    message = sample(api.request, version, rng, rng.choice([0.0, 0.3, 1.0]))
    assert _recognised(b"".join(api.encode_request(version, correlation_id, client_id, message))) == {"kafka"}


@given(st.sampled_from(sorted(BY_CODE)), st.binary(max_size=400))
@example(38, bytes(252))
def test_any_command_of_iggy(code: int, payload: bytes) -> None:
    head = (len(payload) + 4).to_bytes(4, "little") + code.to_bytes(4, "little") + payload
    assert _recognised(head) == {"iggy"}


@given(st.text(max_size=40), st.integers(0, 30), st.binary(max_size=400), st.text(max_size=20))
def test_any_connect_of_pulsar(version: str, protocol_version: int, token: bytes, method: str) -> None:
    connect = CommandConnect(
        client_version=version, protocol_version=protocol_version, auth_data=token, auth_method_name=method
    )
    assert _recognised(encode_command(connect)) == {"pulsar"}


@given(st.binary(min_size=1, max_size=100), st.sampled_from(HOMES))
def test_anything_at_all(head: bytes, home: str) -> None:
    """Once something is recognised, more bytes change nothing."""
    answers = [recognise(head[:count], home) for count in range(1, len(head) + 1)]
    decided = [answer for answer in answers if answer is not None]
    assert len(set(decided)) <= 1
    assert answers[len(answers) - len(decided) :] == decided


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(
    "rubbish",
    [b"\xff" * 4, b"\x7f\xff\xff\xff", b"SSH-2.0-OpenSSH", b"\x16\x03\x09\0\0\1", b"\0\0\0\5\0\0\0\0\0\0\0"],
)
def test_what_is_of_no_protocol_is_for_the_listener_to_refuse(rubbish: bytes, home: str) -> None:
    assert recognise(rubbish, home, 100 * 1024 * 1024) == home


def test_a_request_of_both_kafkas_is_the_listeners_own() -> None:
    # It asks for no bytes from 65536 on, or for the offsets of a topic without a name in version 1.
    head = bytes(encode_request(MultiFetchRequest([FetchRequest("ab", 0, 65536, 0)])))
    assert [recognise(head, home) for home in HOMES] == ["kafka", *["kafka07"] * 5]
    assert {recognise(head[:-1], home) for home in HOMES} == {None}


def test_a_long_request_of_several_parts_is_not_waited_for() -> None:
    produce = ProduceRequest("a", 0, bytes(200_000))
    head = bytes(encode_request(MultiProduceRequest([produce, produce])))
    assert recognise(head[:66_000], "kafka") == "kafka07"
