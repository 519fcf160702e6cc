"""Every command in every dialect: what is written is read, whole or not at all."""

from random import Random

import pytest

from millstream.wire.iggy.commands import BY_CODE, BY_OPERATION, COMMANDS, NON_REPLICATED, Command
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.layout import decode, encode, fields_of
from tests.unit.wire.iggy.samples import plain, sample

CASES = [
    pytest.param(command, dialect, id=f"{command.name}-{dialect.name}")
    for command in COMMANDS
    for dialect in Dialect
    if command.in_dialect(dialect)
]
SAMPLES = 10


@pytest.mark.parametrize(("command", "dialect"), CASES)
def test_what_is_written_is_read(command: Command, dialect: Dialect) -> None:
    rng = Random(f"{command.name} {dialect}")
    for cls in (command.request, command.response):
        for _ in range(SAMPLES):
            message = sample(cls, dialect, rng)
            payload = encode(message, dialect)
            assert plain(decode(cls, dialect, memoryview(payload), whole=True)) == plain(message)


@pytest.mark.parametrize(("command", "dialect"), CASES)
def test_what_is_cut_off_is_refused(command: Command, dialect: Dialect) -> None:
    rng = Random(f"{command.name} {dialect} cut")
    message = sample(command.request, dialect, rng)
    payload = encode(message, dialect)
    for size in range(len(payload)):
        try:
            found = decode(command.request, dialect, memoryview(payload)[:size])
        except Refused:
            continue
        # Only what goes on to the end of a payload can be cut without a trace.
        assert plain(found) != plain(message)
        assert fields_of(command.request, dialect)[-1][0] in {"messages", "options"}


def test_codes_and_operations_are_told_apart() -> None:
    assert len(BY_CODE) == len(COMMANDS)
    replicated = [command for command in COMMANDS if command.operation != NON_REPLICATED]
    assert len(BY_OPERATION) == len(replicated)
    names = [command.name for command in COMMANDS]
    assert len(names) == len(set(names))


def test_the_documented_codes() -> None:
    documented = {
        1: "PING", 10: "GET_STATS", 20: "GET_ME", 21: "GET_CLIENT", 22: "GET_CLIENTS", 100: "POLL_MESSAGES",
        101: "SEND_MESSAGES", 120: "GET_CONSUMER_OFFSET", 121: "STORE_CONSUMER_OFFSET", 200: "GET_STREAM",
        201: "GET_STREAMS", 202: "CREATE_STREAM", 203: "DELETE_STREAM", 300: "GET_TOPIC", 301: "GET_TOPICS",
        302: "CREATE_TOPIC", 303: "DELETE_TOPIC", 402: "CREATE_PARTITIONS", 403: "DELETE_PARTITIONS",
        600: "GET_CONSUMER_GROUP", 601: "GET_CONSUMER_GROUPS", 602: "CREATE_CONSUMER_GROUP",
        603: "DELETE_CONSUMER_GROUP", 604: "JOIN_CONSUMER_GROUP", 605: "LEAVE_CONSUMER_GROUP",
    }  # fmt: skip
    for code, name in documented.items():
        assert BY_CODE[code].name == name
        assert BY_CODE[code].in_dialect(Dialect.A)
