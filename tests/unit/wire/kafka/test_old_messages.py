"""The versions that Apache Kafka 4.x has dropped, both ways, against aiokafka, which wrote its messages by hand."""

import dataclasses
from importlib import import_module
from random import Random
from typing import Any, Final

import pytest

from millstream.wire.kafka.api import Api
from millstream.wire.kafka.schema import compiled_decoder, compiled_encoder, fields_of
from tests.unit.wire.kafka.samples import APIS, SIDES, kafka_4_versions, message_class, sample

MODULES: Final = {
    "Produce": ("produce", "Produce"),
    "Fetch": ("fetch", "Fetch"),
    "ListOffsets": ("offset", "Offset"),
    "OffsetCommit": ("commit", "OffsetCommit"),
    "OffsetFetch": ("commit", "OffsetFetch"),
    "CreateTopics": ("admin", "CreateTopics"),
    "DeleteTopics": ("admin", "DeleteTopics"),
}
OLD = [
    pytest.param(api, version, side, id=f"{api.name}-v{version}-{side}")
    for api in APIS
    for version in range(api.versions.start, kafka_4_versions(api).start)
    for side in SIDES
]


def aiokafka_struct(api: Api, version: int, side: str) -> Any:
    module, stem = MODULES[api.name]
    return getattr(import_module(f"aiokafka.protocol.{module}"), f"{stem}{side.capitalize()}_v{version}")


def plain(value: Any, version: int) -> Any:
    """A message of ours as aiokafka has it: nested tuples in wire order."""
    if isinstance(value, list):
        return [plain(one, version) for one in value]
    if not dataclasses.is_dataclass(value):
        return value
    names = [name for name, field in fields_of(type(value)) if field.since <= version <= field.until]
    return tuple(plain(getattr(value, name), version) for name in names)


def listed(value: Any) -> Any:
    """What aiokafka has decoded, with its arrays as lists throughout."""
    if isinstance(value, list):
        return [listed(one) for one in value]
    return tuple(listed(one) for one in value) if isinstance(value, tuple) else value


def test_there_are_some() -> None:
    assert {param.values[0].name for param in OLD} == set(MODULES)  # type: ignore[union-attr]  # all are Apis


@pytest.mark.parametrize(("api", "version", "side"), OLD)
@pytest.mark.parametrize("absence", [0.0, 0.3, 1.0])
def test_aiokafka_reads_and_writes_the_same_bytes(api: Api, version: int, side: str, absence: float) -> None:
    cls = message_class(api, side)
    value = sample(cls, version, Random(f"{api.name} {version} {side} {absence}"), absence)
    data = b"".join(compiled_encoder(cls, version, flexible=False)(value, bytearray()))
    assert compiled_decoder(cls, version, flexible=False)(memoryview(data), 0) == (value, len(data))
    theirs = aiokafka_struct(api, version, side)
    decoded = theirs.decode(data)
    assert tuple(listed(decoded.get_item(name)) for name in theirs.SCHEMA.names) == plain(value, version)
    assert decoded.encode() == data
