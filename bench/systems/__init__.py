"""The systems that are compared, one file each."""

from collections.abc import Mapping
from typing import Final

from bench.systems.millstream import MillstreamFsync, MillstreamOs
from bench.systems.nats import Nats
from bench.systems.pulsar_lite import PulsarLite
from bench.systems.redis import RedisEverySecond, RedisFsync
from bench.systems.system import NotFound, Server, System
from bench.systems.tansu import TansuMemory, TansuNull, TansuSqlite

__all__ = ["DEFAULT_SYSTEMS", "SYSTEMS", "NotFound", "Server", "System"]

SYSTEMS: Final[Mapping[str, type[System]]] = {
    system.name: system
    for system in (
        MillstreamOs,
        MillstreamFsync,
        TansuMemory,
        TansuSqlite,
        TansuNull,
        Nats,
        RedisEverySecond,
        RedisFsync,
        PulsarLite,
    )
}

DEFAULT_SYSTEMS: Final = ("millstream", "millstream-fsync", "tansu", "nats", "redis", "pulsar-lite")
