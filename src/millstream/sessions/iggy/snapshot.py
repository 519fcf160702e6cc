"""GET_SNAPSHOT: what the server knows of itself, as text files in a ZIP archive."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from enum import IntEnum
from typing import Final

from millstream.broker.broker import Broker
from millstream.broker.configs import BROKER_CONFIGS
from millstream.broker.permissions import Action
from millstream.model.pending import Pending
from millstream.sessions.iggy.call import Call, HostFacts
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.messages.batches import Archive
from millstream.wire.iggy.messages.system import SnapshotRequest

__all__ = ["Compression", "Kind", "snapshot"]

_LANE: Final = "snapshot"
_FILES_MAX: Final = 100_000
"""Files of the data directory that are listed: their names make some ten MB, less than one answer may hold."""


class Kind(IntEnum):
    """What can be asked for."""

    FILESYSTEM_OVERVIEW = 1
    PROCESS_LIST = 2
    RESOURCE_USAGE = 3
    TEST = 4
    SERVER_LOGS = 5
    SERVER_CONFIG = 6
    ALL = 100


class Compression(IntEnum):
    """How it can be asked to be packed."""

    STORED = 1
    DEFLATED = 2
    BZIP2 = 3
    ZSTD = 4
    LZMA = 5
    XZ = 6


_METHODS: Final = {
    Compression.STORED: zipfile.ZIP_STORED,
    Compression.DEFLATED: zipfile.ZIP_DEFLATED,
    Compression.BZIP2: zipfile.ZIP_BZIP2,
    Compression.LZMA: zipfile.ZIP_LZMA,
}
_PROCESS: Final = ("process_id", "threads_count", "cpu_usage", "memory_bytes", "start_time_us")
"""What there is to say of the one process of this server."""


def snapshot(call: Call, request: SnapshotRequest) -> Pending[Archive]:
    """An archive with a file for each kind asked for, or for all kinds that there are."""
    call.permit(Action.READ_SERVER)
    method = _method(request.compression)
    kinds = _kinds(request.types)
    broker = call.broker
    host = call.shared.host.measure() if call.shared.host is not None else HostFacts()
    made_at = datetime.fromtimestamp(broker.runtime.now_ms() / 1000, UTC).timetuple()[:6]

    def work() -> bytes:
        content = _Content()
        with zipfile.ZipFile(content, "w") as archive:
            for kind in kinds:
                # The earliest year that the format has is 1980.
                entry = zipfile.ZipInfo(f"{kind.name.lower()}.txt", max(made_at, (1980, 1, 1, 0, 0, 0)))
                entry.compress_type = method
                archive.writestr(entry, _WRITERS[kind](broker, host))
        return b"".join(content.parts)

    return broker.runtime.run_blocking(_LANE, work).then(lambda content: Archive(content=memoryview(content)))


class _Content:
    """Takes the bytes of an archive as they come."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        """Take some."""
        self.parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """There is nothing behind it."""

    def close(self) -> None:
        """There is nothing to close."""


def _method(number: int) -> int:
    if number not in list(Compression):
        raise Refused(ErrorCode.INVALID_COMMAND, f"there is no compression {number}")
    method = _METHODS.get(Compression(number))
    if method is None:
        raise Refused(ErrorCode.FEATURE_UNAVAILABLE, f"the compression {Compression(number).name} is not offered")
    return method


def _kinds(numbers: list[int]) -> list[Kind]:
    """What is to be in the archive, each once. The server keeps no logs: left out of all, refused else."""
    if not numbers or any(number not in list(Kind) for number in numbers):
        raise Refused(ErrorCode.INVALID_COMMAND, f"there are no such snapshots: {numbers}")
    if numbers == [Kind.ALL]:
        return list(_WRITERS)
    if Kind.ALL in numbers:
        raise Refused(ErrorCode.INVALID_COMMAND, "all snapshots, and others")
    if Kind.SERVER_LOGS in numbers:
        raise Refused(ErrorCode.FEATURE_UNAVAILABLE, "the server writes its log to the standard error output")
    return [Kind(number) for number in dict.fromkeys(numbers)]


def _filesystem(broker: Broker, host: HostFacts) -> str:
    """Every file of the data directory with its size."""
    files, path = broker.directory.files, broker.directory.path
    total, free = files.space(path)
    lines = [f"{path}: {free} of {total} bytes free", ""]
    for name, size in _listed(broker):
        if len(lines) > _FILES_MAX:
            lines.append(f"... and more than these {_FILES_MAX} files")
            break
        lines.append(f"{size:>15} {name}")
    return "\n".join(lines) + "\n"


def _listed(broker: Broker) -> Iterator[tuple[str, int]]:
    files, path = broker.directory.files, broker.directory.path
    for name in files.list_directory(path):
        if name != "topics":
            yield name, files.size(f"{path}/{name}")
    for topic in files.list_directory(f"{path}/topics"):
        for partition in files.list_directory(f"{path}/topics/{topic}"):
            directory = f"topics/{topic}/{partition}"
            for name in files.list_directory(f"{path}/{directory}"):
                yield f"{directory}/{name}", files.size(f"{path}/{directory}/{name}")


def _process(broker: Broker, host: HostFacts) -> str:
    """This process, which is the only one of the server."""
    return _told(host, _PROCESS)


def _resources(broker: Broker, host: HostFacts) -> str:
    """What the process and its host use and have."""
    return _told(host, [one.name for one in fields(host)])


def _told(host: HostFacts, names: tuple[str, ...] | list[str]) -> str:
    return "".join(f"{name} = {getattr(host, name)}\n" for name in names)


def _test(broker: Broker, host: HostFacts) -> str:
    """A text that never changes, for tests of clients."""
    return "test\n"


def _config(broker: Broker, host: HostFacts) -> str:
    """Every setting in force, in TOML."""
    return "".join(f'"{name}" = "{_escaped(broker.settings.text(name))}"\n' for name in BROKER_CONFIGS)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_WRITERS: Final[Mapping[Kind, Callable[[Broker, HostFacts], str]]] = {
    Kind.FILESYSTEM_OVERVIEW: _filesystem,
    Kind.PROCESS_LIST: _process,
    Kind.RESOURCE_USAGE: _resources,
    Kind.TEST: _test,
    Kind.SERVER_CONFIG: _config,
}
