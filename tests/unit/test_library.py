"""A server inside a Python program: its start, its end, and the errors of both."""

import asyncio
import os
import socket
import threading

import pytest

import millstream
from millstream.library import Broker, running
from millstream.model.errors import MillstreamError
from millstream.server.errors import BadSetting, ListenerFailed


def can_connect(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            return True
    except ConnectionRefusedError:
        return False


def test_the_package_offers_them() -> None:
    assert (millstream.Broker, millstream.running) == (Broker, running)


def test_a_broker_runs_for_as_long_as_its_block() -> None:
    async def test() -> None:
        broker = Broker(settings={"durability": "os", "num.partitions": 3, "auto.create.topics.enable": False})
        async with broker as entered:
            assert entered is broker
            address, data_dir = broker.kafka, broker.data_dir
            assert broker.addresses["kafka"] == address
            assert len(set(broker.addresses.values())) == len(broker.addresses) > 1
            assert can_connect(address)
            assert os.path.isdir(data_dir)
        assert not can_connect(address)
        assert not os.path.exists(data_dir)
        with pytest.raises(RuntimeError, match="not running"):
            _ = broker.kafka

    asyncio.run(test())


def test_a_directory_of_ones_own_stays(tmp_path: object) -> None:
    data_dir = f"{tmp_path}/data"
    for _ in range(2):
        with running(data_dir) as broker:
            assert broker.data_dir == data_dir
            assert can_connect(broker.kafka)
    assert os.path.exists(f"{data_dir}/metadata.sqlite")


def test_brokers_side_by_side() -> None:
    with running() as first, running() as second:
        assert first.kafka != second.kafka
        assert can_connect(first.kafka)
        assert can_connect(second.kafka)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"settings": {"nothing": 1}}, BadSetting),
        ({"listen": ("smtp=127.0.0.1:0",)}, BadSetting),
        ({"listen": ("kafka=192.0.2.1:1",)}, ListenerFailed),
    ],
)
def test_an_error_at_the_start_is_raised_where_the_block_is_entered(
    arguments: dict[str, object], error: type[Exception]
) -> None:
    threads = threading.active_count()
    with pytest.raises(error), running(**arguments):  # type: ignore[arg-type]  # by name
        raise AssertionError("the block is not entered")

    async def test() -> None:
        with pytest.raises(error):
            async with Broker(**arguments):  # type: ignore[arg-type]  # by name
                raise AssertionError("the block is not entered")

    asyncio.run(test())
    assert threading.active_count() == threads


def test_a_directory_that_is_in_use(tmp_path: object) -> None:
    with (
        running(f"{tmp_path}/data"),
        pytest.raises(MillstreamError, match="another server"),
        running(f"{tmp_path}/data"),
    ):
        raise AssertionError("the block is not entered")
    with running(f"{tmp_path}/data"):
        pass


def test_an_error_in_the_block_stops_the_broker_and_goes_on() -> None:
    brokers = []
    before = set(threading.enumerate())  # other tests share a broker that runs all the while

    def use() -> None:
        with running() as broker:
            brokers.append(broker.kafka)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()
    assert not can_connect(brokers[0])
    assert not [one for one in set(threading.enumerate()) - before if one.name.startswith("millstream")]


def test_a_broker_that_is_entered_again_has_a_directory_of_its_own_again() -> None:
    directories = []
    broker = Broker()

    async def enter() -> None:
        async with broker:
            directories.append(broker.data_dir)
            assert os.path.isdir(broker.data_dir)

    for _ in range(2):
        asyncio.run(enter())
    assert directories[0] != directories[1]
    assert not any(map(os.path.exists, directories))
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.data_dir
