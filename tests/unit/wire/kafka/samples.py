"""Random messages of every Kafka API, legal in the version asked for."""

import importlib
import pkgutil
import uuid
from random import Random
from typing import Any, Final

from millstream.wire.kafka import messages
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.schema import NO_UUID, Field, fields_of

__all__ = ["APIS", "SIDES", "kafka_4_versions", "message_class", "sample"]

SIDES: Final = ("request", "response")
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
# 2^41 ms is the year 2039: the independent codec turns times into datetime, which ends with the year 9999.
_TIME_MS_MAX: Final = 2**41
_TEXTS: Final = ("", "a", "orders", "späti.東京-🚲", "x" * 126, "x" * 127, "y" * 300)


def _all_apis() -> list[Api]:
    found = []
    for module in pkgutil.iter_modules(messages.__path__):
        loaded = importlib.import_module(f"{messages.__name__}.{module.name}")
        found += [value for value in vars(loaded).values() if isinstance(value, Api)]
    return sorted(found, key=lambda api: api.key)


APIS: Final = _all_apis()


_FIRST_IN_KAFKA_4: Final = {0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2, 20: 1}
"""Of the APIs that are served in older versions than Apache Kafka 4.x has, and a codec made from its definitions."""


def kafka_4_versions(api: Api) -> range:
    """The versions of an API that Apache Kafka 4.x has."""
    return range(_FIRST_IN_KAFKA_4.get(api.key, api.versions.start), api.versions.stop)


def message_class(api: Api, side: str) -> type:
    """The request or the response class of an API."""
    return api.request if side == "request" else api.response


def sample(cls: type, version: int, rng: Random, absence: float) -> Any:
    """Make a message with random values.

    Args:
        cls: the message or a struct of one.
        version: only fields of this version are set.
        rng: where the values come from.
        absence: how likely each value is null, empty or, if it is tagged, left out; 0 to 1.
    """
    return cls(
        **{
            name: _value(name, field, version, rng, absence)
            for name, field in fields_of(cls)
            if field.since <= version <= field.until
        }
    )


def _value(name: str, field: Field, version: int, rng: Random, absence: float) -> Any:
    absent = rng.random() < absence
    if absent and field.tag is not None:
        return field.default()
    if absent and (field.nullable(version) or field.kind == "records"):
        return None
    if field.kind == "array":
        count = 0 if absent else rng.randint(1, 3)
        element = field.element
        if not isinstance(element, str):
            return [sample(element, version, rng, absence) for _ in range(count)]
        return [_primitive(element, name, rng, empty=False) for _ in range(count)]
    if field.kind == "struct":
        return sample(field.element, version, rng, absence)
    return _primitive(field.kind, name, rng, empty=absent)


def _primitive(kind: str, name: str, rng: Random, *, empty: bool) -> Any:
    match kind:
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return "" if empty else rng.choice(_TEXTS)
        case "bytes" | "records":
            return b"" if empty else rng.randbytes(rng.choice((1, 126, 127, 400)))
        case "uuid":
            return NO_UUID if empty else uuid.UUID(int=rng.getrandbits(128))
        case "uint16":
            return rng.choice((0, 1, 0x7FFF, 0x8000, 0xFFFF))
        case "float64":
            return rng.choice((0.0, -1.5, 1e300))
    if name.endswith("error_code"):
        return int(rng.choice(list(ErrorCode)))
    if name.endswith("_ms") and kind == "int64":
        return rng.choice((-1, 0, rng.randrange(_TIME_MS_MAX)))
    bits = _BITS[kind]
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return rng.choice((low, -2, -1, 0, 1, 5, high, rng.randint(low, high)))
