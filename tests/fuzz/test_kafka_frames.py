"""Damaged Kafka frames: the only outcomes are a message or MalformedMessage."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.wire.kafka.api import Api, read_request_header
from millstream.wire.kafka.errors import MalformedMessage
from tests.unit.wire.kafka.samples import APIS, sample

EXAMPLES_PER_API = 60
FRAMES_PER_VERSION = 2
HOSTILE = ("ffffffff0f", "7fffffff", "fffffffe", "80000000", "ffff", "7fff", "00", "01", "80", "808080808000")

Edit = tuple[str, float, bytes, float]


def frames_of(api: Api, side: str) -> list[tuple[int, bytes]]:
    """Valid frames of every version of an API, without their length prefix."""
    rng = Random(f"{api.name} {side}")
    frames = []
    for version in api.versions:
        for _ in range(FRAMES_PER_VERSION):
            if side == "request":
                request = sample(api.request, version, rng, 0.4)
                parts = api.encode_request(version, 7, "fuzz", request)
            else:
                parts = api.encode_response(version, 7, sample(api.response, version, rng, 0.4))
            frames.append((version, b"".join(parts)[4:]))
    return frames


FRAMES = {(api.key, side): frames_of(api, side) for api in APIS for side in ("request", "response")}
EVERY_FRAME = [frame for frames in FRAMES.values() for _, frame in frames]

places = st.floats(0, 1, exclude_max=True)
fragments = st.one_of(
    st.sampled_from([bytes.fromhex(text) for text in HOSTILE]),
    st.binary(min_size=1, max_size=8),
)
edits = st.lists(
    st.tuples(st.sampled_from(("flip", "cut", "insert", "replace", "drop", "splice")), places, fragments, places),
    min_size=1,
    max_size=3,
)


def damaged(frame: bytes, edit: Edit) -> bytes:
    """Apply one edit; places are parts of the length, so that they mean something in any frame."""
    how, place, fragment, other = edit
    at = int(place * (len(frame) + 1))
    match how:
        case "flip" if at < len(frame):
            return frame[:at] + bytes([frame[at] ^ (1 << int(other * 8))]) + frame[at + 1 :]
        case "cut":
            return frame[:at]
        case "insert":
            return frame[:at] + fragment + frame[at:]
        case "replace":
            return frame[:at] + fragment + frame[at + len(fragment) :]
        case "drop":
            return frame[:at] + frame[at + 1 + int(other * 8) :]
        case "splice":
            donor = EVERY_FRAME[int(other * len(EVERY_FRAME))]
            return frame[:at] + donor[int(place * len(donor)) :]
    return frame


def decode(api: Api, side: str, version: int, frame: bytes) -> Any:
    view = memoryview(frame)
    if side == "response":
        return api.decode_response(version, view)
    header = read_request_header(view)
    # The server has looked the API and its version up before it decodes a request.
    if header.api_key == api.key and header.api_version in api.versions:
        return api.decode_request(view, header)
    return None


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_damaged_frames(api: Api, side: str) -> None:
    @settings(max_examples=EXAMPLES_PER_API, derandomize=True, deadline=None, database=None)
    @given(st.sampled_from(FRAMES[api.key, side]), edits)
    def check(versioned: tuple[int, bytes], changes: list[Edit]) -> None:
        version, frame = versioned
        for change in changes:
            frame = damaged(frame, change)
        try:
            decode(api, side, version, frame)
        except MalformedMessage:
            return

    check()


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.sampled_from(APIS), st.data(), st.binary(max_size=200))
def test_random_bytes_behind_a_good_header(api: Api, data: st.DataObject, body: bytes) -> None:
    version = data.draw(st.sampled_from(api.versions))
    head = b"".join(api.encode_request(version, 7, "fuzz", api.request()))[4:]
    position = read_request_header(memoryview(head)).position
    for frame in (head[:position] + body, head[: position + 1] + body):
        try:
            api.decode_request(memoryview(frame), read_request_header(memoryview(frame)))
        except MalformedMessage:
            continue


def test_the_frames_are_valid_before_they_are_damaged() -> None:
    for api in APIS:
        for side in ("request", "response"):
            for version, frame in FRAMES[api.key, side]:
                assert decode(api, side, version, frame) is not None
