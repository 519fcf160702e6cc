"""Requests in the forms of the protocol's document, and which form is taken where several fit."""

import pytest

from millstream.wire.iggy.commands import BY_CODE
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.documented import with_headers
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.messages.streams import CreateStream
from millstream.wire.iggy.messages.topics import CreateTopic

CREATE_STREAM, CREATE_TOPIC = BY_CODE[202], BY_CODE[302]


def unhexed(text: str) -> memoryview:
    return memoryview(bytearray(bytes.fromhex(text)))


def stream(number: int | None, name: str) -> CreateStream:
    return CreateStream(stream_id=number, name=name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("01000000 02 7331", stream(0, "s1"), id="its clients"),
        pytest.param("01040000 02 7331", stream(1024, "s1"), id="its clients, as an identifier begins"),
        pytest.param("01040100 02 7331 0000", stream(66560, "s1"), id="its clients, with zeros behind it"),
        pytest.param("01 04 01000000 02 7331", stream(0, "s1"), id="the document, a number"),
        pytest.param("01 04 00000000 02 7331", stream(-1, "s1"), id="the document, the number 0"),
        pytest.param("01 04 ffffffff 02 7331", stream(2**32 - 2, "s1"), id="the document, the last number"),
        pytest.param("02 02 7331 02 7331", stream(None, "s1"), id="the document, a name"),
        pytest.param("02 02 5331 02 7331", stream(None, "s1"), id="the document, a name in capitals"),
        pytest.param("02 ff" + "61" * 255 + "ff" + "61" * 255, stream(None, "a" * 255), id="the longest name"),
    ],
)
def test_create_stream(text: str, expected: CreateStream) -> None:
    assert CREATE_STREAM.decode_request(Dialect.A, unhexed(text)) == expected


@pytest.mark.parametrize("number", [1, 1025, 66561, 2**24, 2**31])
@pytest.mark.parametrize("length", range(1, 256))
def test_no_name_makes_one_form_look_like_the_other(number: int, length: int) -> None:
    """Also where what stands at the place of a length happens to be the right one."""
    name = (chr(max(length - 2, 33) % 94 + 33) * length)[:length]
    client = number.to_bytes(4, "little") + bytes([length]) + name.encode()
    document = b"\x01\x04" + client
    assert CREATE_STREAM.decode_request(Dialect.A, memoryview(client)) == stream(number - 1, name)
    assert CREATE_STREAM.decode_request(Dialect.A, memoryview(document)) == stream(number - 1, name)


@pytest.mark.parametrize("first", range(256))
def test_no_number_looks_like_a_name(first: int) -> None:
    """514, for one, begins as the identifier with a name of two bytes does."""
    for second in range(256):
        number = first + 256 * second
        client = number.to_bytes(4, "little") + b"\x02s1"
        if number:
            assert CREATE_STREAM.decode_request(Dialect.A, memoryview(client)) == stream(number - 1, "s1")


def topic(**fields: object) -> CreateTopic:
    return CreateTopic(**{"stream": 0, "partitions_count": 3, "name": "t1", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("01000000 03000000 00000000 02 7431 0000", topic(topic_id=0), id="a client, with two zeros"),
        pytest.param("01040000 03000000 80510100 02 7431", topic(topic_id=1024, expiry_s=86400), id="a client"),
        pytest.param("01 04 01000000 03000000 02 7431", topic(topic_id=0), id="the document"),
        pytest.param("01 04 01000000 03000000 80510100 02 7431", topic(topic_id=0, expiry_s=86400), id="an expiry"),
        pytest.param("01000000 03000000 02 7431", topic(topic_id=0), id="a u32, no expiry"),
        pytest.param("02 02 7431 03000000 02 7431", topic(topic_id=None), id="a name"),
    ],
)
def test_create_topic(text: str, expected: CreateTopic) -> None:
    assert CREATE_TOPIC.decode_request(Dialect.A, unhexed("01 04 01000000" + text)) == expected


@pytest.mark.parametrize(
    ("command", "text"),
    [(CREATE_STREAM, "02 02 7332 02 7331"), (CREATE_TOPIC, "010401000000 02 02 7332 03000000 02 7431")],
)
def test_two_names_for_one_thing(command: object, text: str) -> None:
    with pytest.raises(Refused, match="is named 's2'"):
        command.decode_request(Dialect.A, unhexed(text))  # type: ignore[attr-defined]  # a Command


@pytest.mark.parametrize("dialect", [one for one in Dialect if one is not Dialect.A])
def test_later_dialects_have_one_form(dialect: Dialect) -> None:
    try:
        found = CREATE_STREAM.decode_request(dialect, unhexed("01 04 01000000 02 7331"))
    except Refused:
        return
    assert found.name != "s1"


def test_messages_without_headers() -> None:
    sent = unhexed("11" * 16 + "05000000 68656c6c6f" + "22" * 16 + "01000000 78")
    expected = unhexed("11" * 16 + "00000000 05000000 68656c6c6f" + "22" * 16 + "00000000 01000000 78")
    assert with_headers(sent) == expected


@pytest.mark.parametrize(
    "text", ["", "00", "11" * 20, "11" * 16 + "00000000", "11" * 16 + "02000000 78", "11" * 16 + "01000000 78 00"]
)
def test_what_is_no_message(text: str) -> None:
    assert with_headers(unhexed(text)) is None
