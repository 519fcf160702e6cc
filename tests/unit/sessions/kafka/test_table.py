"""The dispatch table: what is told is what is served, and every version of every API gives an answer."""

import itertools
from random import Random

import pytest

from millstream.sessions.kafka.table import HANDLERS
from millstream.wire.kafka.api import API_VERSIONS_KEY, Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import MalformedMessage, Unanswerable
from millstream.wire.kafka.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from millstream.wire.kafka.messages.produce import PRODUCE
from tests.unit.sessions.kafka.conversation import Conversation
from tests.unit.wire.kafka.samples import APIS, sample

SERVED = [(api, version) for api in APIS for version in api.versions]
SERVED_BUT_NOT_TOLD = {(22, 6)}


@pytest.fixture(scope="module")
def talk() -> Conversation:
    talk = Conversation()
    talk.create("orders", 2)
    return talk


def test_every_api_that_is_described_is_served() -> None:
    assert [handler.api for handler in sorted(HANDLERS.values(), key=lambda handler: handler.key)] == APIS
    assert all(key == handler.key == handler.api.key for key, handler in HANDLERS.items())


@pytest.mark.parametrize("version", API_VERSIONS.versions)
def test_what_is_told_is_what_is_served(talk: Conversation, version: int) -> None:
    response = talk.ask(API_VERSIONS, ApiVersionsRequest(), version)
    told = {(one.api_key, v) for one in response.api_keys for v in range(one.min_version, one.max_version + 1)}
    served = {(api.key, v) for api, v in SERVED}
    assert told <= served
    assert served - told == SERVED_BUT_NOT_TOLD
    assert response.error_code == ErrorCode.NONE


def test_a_client_from_the_future_is_answered_in_version_0(talk: Conversation) -> None:
    frame = bytearray.fromhex("0012 007f 0000002a 0003 72646b 00")
    answer = talk.session.handle(memoryview(frame))
    assert isinstance(answer, list)
    correlation_id, response = API_VERSIONS.decode_response(0, memoryview(b"".join(answer))[4:])
    assert correlation_id == 42
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [one.max_version for one in response.api_keys if one.api_key == API_VERSIONS_KEY] == [4]


@pytest.mark.parametrize(("api", "version"), SERVED, ids=lambda value: getattr(value, "name", value))
def test_every_version_answers_a_request_that_asks_for_nothing(talk: Conversation, api: Api, version: int) -> None:
    pending = talk.send(api, api.request(), version)
    if api is PRODUCE:
        assert pending is None  # acks=0
        return
    assert pending is not None
    talk.pass_ms(1)
    pending.result()


@pytest.mark.parametrize(("api", "version"), SERVED, ids=lambda value: getattr(value, "name", value))
def test_every_version_answers_whatever_is_asked_for(api: Api, version: int) -> None:
    """Random requests: the only outcomes are an answer and, for acks=0, none or the end; no error of ours."""
    talk = Conversation()
    talk.create("orders", 2)
    rng = Random(f"{api.key} {version}")
    for absence in (0.1, 0.3, 0.5, 0.7, 0.9):
        request = sample(api.request, version, rng, absence)
        try:
            pending = talk.send(api, request, version)
        except Unanswerable:
            assert request.acks == 0
            continue
        talk.runtime.run()
        talk.session.finish()
        talk.pass_ms(400_000)
        if pending is not None and pending.done:
            pending.result()


@pytest.mark.parametrize(
    ("key", "version"),
    [(0, -1), (0, 14), (1, 19), (22, 7), (4, 0), (9999, 0), (-1, 0), (11, -1), (3, 99)],
)
def test_what_is_not_served_ends_the_connection(talk: Conversation, key: int, version: int) -> None:
    frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + bytes(200)
    with pytest.raises(MalformedMessage):
        talk.session.handle(memoryview(bytearray(frame)))


def test_requests_without_batches_are_bounded_below_the_servers_limit(talk: Conversation) -> None:
    limited = {handler.api.name for handler in HANDLERS.values() if handler.request_bytes_max is not None}
    assert limited == {api.name for api in APIS} - {"Produce"}
    frame = bytearray(8 * 1024 * 1024 + 1)
    frame[:10] = bytes.fromhex("0003 0000 00000001 ffff")
    with pytest.raises(MalformedMessage, match="Metadata request of 8388609 bytes"):
        talk.session.handle(memoryview(frame))


def test_every_cut_of_a_request_is_malformed(talk: Conversation) -> None:
    rng = Random(5)
    for api, absence in itertools.product((api for api in APIS if api is not PRODUCE), (0.0,)):
        version = api.versions.start
        frame = bytearray(b"".join(api.encode_request(version, 1, "c", sample(api.request, version, rng, absence))))
        for size in range(4, min(len(frame), 80)):
            with pytest.raises(MalformedMessage):
                talk.session.handle(memoryview(frame)[4:size])
