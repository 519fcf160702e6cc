"""Every message of every version, both ways, against kio, a codec made from Apache Kafka's definitions."""

import dataclasses
import datetime
import io
import typing
import uuid
from enum import IntEnum
from random import Random
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from millstream.wire.kafka.api import API_VERSIONS_KEY, Api, read_request_header
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.schema import (
    NO_UUID,
    OWN_TAGS,
    Field,
    compiled_decoder,
    compiled_encoder,
    fields_of,
)
from tests.unit.wire.kafka.samples import APIS, SIDES, kafka_4_versions, message_class, sample

EVERY_MESSAGE = [
    pytest.param(api, version, side, id=f"{api.name}-v{version}-{side}")
    for api in APIS
    for version in kafka_4_versions(api)
    for side in SIDES
]
# Everything set; nothing set that can be left out; and two mixtures.
ABSENCES = (0.0, 1.0, 0.3, 0.3)
KINDS = {
    "bool": "boolean",
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}


def kio_schema(api: Api, version: int, side: str) -> Any:
    return (load_request_schema if side == "request" else load_response_schema)(api.key, version)


def samples_of(api: Api, version: int, side: str) -> list[Any]:
    rng = Random(f"{api.name} {version} {side}")
    return [sample(message_class(api, side), version, rng, absence) for absence in ABSENCES]


def encoded(api: Api, version: int, side: str, value: Any) -> bytes:
    encode = compiled_encoder(message_class(api, side), version, flexible=api.flexible(version))
    return b"".join(encode(value, bytearray()))


@pytest.mark.parametrize(("api", "version", "side"), EVERY_MESSAGE)
def test_round_trip(api: Api, version: int, side: str) -> None:
    decode = compiled_decoder(message_class(api, side), version, flexible=api.flexible(version))
    for value in samples_of(api, version, side):
        data = encoded(api, version, side, value)
        assert decode(memoryview(data), 0) == (value, len(data))
        framed = b"\xff" * 7 + data + b"\x81" * 9
        assert decode(memoryview(framed), 7) == (value, 7 + len(data))


@pytest.mark.parametrize(("api", "version", "side"), EVERY_MESSAGE)
def test_kio_reads_and_writes_the_same_bytes(api: Api, version: int, side: str) -> None:
    schema = kio_schema(api, version, side)
    read, write = entity_reader(schema), entity_writer(schema)
    for value in map(without_own_fields, samples_of(api, version, side)):
        data = encoded(api, version, side, value)
        entity, size = read(data, 0)
        assert size == len(data)
        again = io.BytesIO()
        write(again, entity)
        assert again.getvalue() == data
        assert_same(entity, value, version)


def is_own(field: Field) -> bool:
    """Whether a field is not Kafka's."""
    return field.tag is not None and field.tag >= OWN_TAGS


def without_own_fields(value: Any) -> Any:
    """A message without what Kafka's has not."""
    own = {name: field.default() for name, field in fields_of(type(value)) if is_own(field)}
    return dataclasses.replace(value, **own)


def fields_in(cls: type, version: int) -> list[tuple[str, Field]]:
    """Kafka's fields of a version."""
    found = [(name, field) for name, field in fields_of(cls) if field.since <= version <= field.until]
    return [(name, field) for name, field in found if not is_own(field)]


def assert_same(entity: Any, value: Any, version: int) -> None:
    """Compare what kio read with what we wrote, field by field in wire order."""
    for (name, _), theirs in zip(fields_in(type(value), version), dataclasses.fields(entity), strict=True):
        assert theirs.name in (name, name.removesuffix("_ms")), (theirs.name, name)
        assert_same_value(getattr(entity, theirs.name), getattr(value, name), version)


def assert_same_value(theirs: Any, ours: Any, version: int) -> None:
    if isinstance(ours, list):
        for left, right in zip(theirs, ours, strict=True):
            assert_same_value(left, right, version)
    elif dataclasses.is_dataclass(ours):
        assert_same(theirs, ours, version)
    else:
        assert plain(theirs, like=ours) == ours


def plain(value: Any, like: Any) -> Any:
    """Undo what kio makes of milliseconds, and of the zero uuid and the time -1, which it has as None."""
    match value:
        case datetime.timedelta():
            return round(value.total_seconds() * 1000)
        case datetime.datetime():
            return round(value.timestamp() * 1000)
        case None if isinstance(like, uuid.UUID):
            return NO_UUID
        case None if isinstance(like, int):
            return -1
    return value


@pytest.mark.parametrize(("api", "version", "side"), EVERY_MESSAGE)
def test_fields_are_those_of_kio(api: Api, version: int, side: str) -> None:
    """Kinds, tags, nullability and defaults, which a sample may happen not to show."""
    assert_same_fields(message_class(api, side), kio_schema(api, version, side), version)


def assert_same_fields(cls: type, schema: Any, version: int) -> None:
    for (name, ours), theirs in zip(fields_in(cls, version), dataclasses.fields(schema), strict=True):
        where = f"{cls.__name__}.{name} v{version}"
        kind: str = theirs.metadata.get("kafka_type", "struct")
        nullable, array, element = taken_apart(theirs.type)
        assert theirs.metadata.get("tag") == ours.tag, where
        assert (ours.kind == "array") == array, where
        wire_kind = ours.element if array else ours.kind
        if dataclasses.is_dataclass(element):
            assert_same_fields(ours.element, element, version)
        else:
            assert KINDS.get(kind, kind) == wire_kind, where
        # To kio the zero uuid and the time -1 are null; on the wire they are not.
        if array or ours.kind in ("string", "bytes", "struct"):
            assert nullable == ours.nullable(version), where
        if theirs.default is not dataclasses.MISSING:
            assert_same_default(theirs.default, ours, version, where)


def taken_apart(declared: Any) -> tuple[bool, bool, Any]:
    """Whether a type of kio's may be None, whether it is an array, and what it is without that."""
    arguments = typing.get_args(declared)
    nullable = type(None) in arguments and typing.get_origin(declared) is not tuple
    if nullable:
        (declared,) = (argument for argument in arguments if argument is not type(None))
    if typing.get_origin(declared) is tuple:
        return nullable, True, typing.get_args(declared)[0]
    return nullable, False, declared


def assert_same_default(theirs: Any, ours: Field, version: int, where: str) -> None:
    default = ours.default()
    if theirs == ():
        assert default == [], where
    elif dataclasses.is_dataclass(theirs):
        assert_same(theirs, default, version)
    else:
        assert plain(theirs, like=default) == default, where


def test_apis_are_those_of_kio() -> None:
    for api in APIS:
        for version in kafka_4_versions(api):
            for side in SIDES:
                assert kio_schema(api, version, side).__flexible__ == api.flexible(version)


@pytest.mark.parametrize("client_id", ["", "späti", "c" * 300])
def test_request_headers(client_id: str) -> None:
    for api in APIS:
        for version in (kafka_4_versions(api)[0], api.versions[-1]):
            schema = kio_schema(api, version, "request")
            request = samples_of(api, version, "request")[0]
            frame = b"".join(api.encode_request(version, -7, client_id, request))
            assert int.from_bytes(frame[:4], "big") == len(frame) - 4
            header, header_size = entity_reader(schema.__header_schema__)(frame, 4)
            assert (header.request_api_key, header.request_api_version) == (api.key, version)
            assert (header.correlation_id, header.client_id) == (-7, client_id)
            assert_same(entity_reader(schema)(frame, 4 + header_size)[0], request, version)
            ours = read_request_header(memoryview(frame)[4:])
            assert (ours.api_key, ours.api_version) == (api.key, version)
            assert (ours.correlation_id, ours.client_id) == (-7, client_id)
            assert api.decode_request(memoryview(frame)[4:], ours) == request


def test_response_headers() -> None:
    for api in APIS:
        for version in (kafka_4_versions(api)[0], api.versions[-1]):
            schema = kio_schema(api, version, "response")
            response = without_own_fields(samples_of(api, version, "response")[0])
            frame = b"".join(api.encode_response(version, 2**31 - 1, response))
            assert int.from_bytes(frame[:4], "big") == len(frame) - 4
            header, header_size = entity_reader(schema.__header_schema__)(frame, 4)
            assert header.correlation_id == 2**31 - 1
            assert_same(entity_reader(schema)(frame, 4 + header_size)[0], response, version)
            assert api.decode_response(version, memoryview(frame)[4:]) == (2**31 - 1, response)


def test_only_the_answer_to_api_versions_has_a_header_without_tags() -> None:
    for api in APIS:
        for version in kafka_4_versions(api):
            header = kio_schema(api, version, "response").__header_schema__
            assert header.__flexible__ == (api.flexible(version) and api.key != API_VERSIONS_KEY)


def test_error_codes_are_those_of_kio() -> None:
    theirs: type[IntEnum] = KioErrorCode
    assert {code.name: code.value for code in ErrorCode} == {code.name.upper(): int(code) for code in theirs}
