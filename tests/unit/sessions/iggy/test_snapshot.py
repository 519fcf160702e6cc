"""GET_SNAPSHOT: an archive that tells the truth, in every compression that is offered."""

import io
import tomllib
import zipfile

import pytest

from millstream.broker.configs import BROKER_CONFIGS
from millstream.sessions.iggy.call import HostFacts
from millstream.wire.iggy.dialects import Dialect
from millstream.wire.iggy.messages.system import SnapshotRequest
from tests.unit.sessions.iggy.conversation import IggyBroker


@pytest.fixture
def server() -> IggyBroker:
    return IggyBroker(iggy__deduplication__ms="5")


def taken(server: IggyBroker, compression: int, *kinds: int) -> zipfile.ZipFile:
    answer = server.connect(Dialect.D).ask(
        "GET_SNAPSHOT", SnapshotRequest(compression=compression, types=list(kinds))
    )
    return zipfile.ZipFile(io.BytesIO(bytes(answer.content)))


@pytest.mark.parametrize(
    ("number", "method"),
    [(1, zipfile.ZIP_STORED), (2, zipfile.ZIP_DEFLATED), (3, zipfile.ZIP_BZIP2), (5, zipfile.ZIP_LZMA)],
)
def test_every_compression_holds_all_there_is(server: IggyBroker, number: int, method: int) -> None:
    class Host:
        def measure(self) -> HostFacts:
            return HostFacts(process_id=42, memory_bytes=7, hostname="host")

    server.service.shared.host = Host()
    client = server.connect(Dialect.D)
    client.make()
    client.put(b"x" * 1000)
    archive = taken(server, number, 100)
    assert {one.compress_type for one in archive.infolist()} == {method}
    text = {name: archive.read(name).decode() for name in archive.namelist()}
    assert text.keys() == {
        "filesystem_overview.txt",
        "process_list.txt",
        "resource_usage.txt",
        "test.txt",
        "server_config.txt",
    }
    assert text["test.txt"] == "test\n"
    assert "process_id = 42\n" in text["process_list.txt"]
    assert "hostname = host\n" in text["resource_usage.txt"]
    config = tomllib.loads(text["server_config.txt"])
    assert config.keys() == BROKER_CONFIGS.keys()
    assert config["iggy.deduplication.ms"] == "5"
    log = f"topics/{server.topic('s1.t1').id}/0/{0:020}.log"
    size = server.topic("s1.t1").partitions[0].log.size_bytes
    assert f"{size:>15} {log}\n" in text["filesystem_overview.txt"]


def test_only_what_is_asked_for_once(server: IggyBroker) -> None:
    assert taken(server, 1, 4, 6, 4).namelist() == ["test.txt", "server_config.txt"]


@pytest.mark.parametrize(
    ("compression", "kinds", "code"),
    [
        (0, [100], 3),
        (7, [100], 3),
        (4, [100], 5),
        (6, [100], 5),
        (1, [], 3),
        (1, [7], 3),
        (1, [100, 4], 3),
        (1, [4, 5], 5),
    ],
)
def test_what_cannot_be_had(server: IggyBroker, compression: int, kinds: list[int], code: int) -> None:
    request = SnapshotRequest(compression=compression, types=kinds)
    assert server.connect(Dialect.C3).refusal("GET_SNAPSHOT", request) == code
