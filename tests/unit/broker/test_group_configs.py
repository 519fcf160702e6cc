"""What is set on single consumer groups: checked, obeyed, and there after a restart."""

from pathlib import Path

import pytest

from millstream.broker.consumer_groups.environment import GroupTimings
from millstream.broker.errors import InvalidConfig, InvalidGroupId
from millstream.broker.group_config_keys import GROUP_CONFIGS, GROUP_SERVER_CONFIGS
from millstream.broker.group_configs import GroupConfigs
from millstream.storage.metadata import MetadataFailed
from tests.unit.broker.consumer_groups.crowd import GROUP, Crowd, Fellow
from tests.unit.broker.simulated_broker import SimulatedBroker

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.fixture
def sim() -> SimulatedBroker:
    return SimulatedBroker()


def configs_of(sim: SimulatedBroker) -> GroupConfigs:
    return sim.broker.groups.configs


def test_every_setting_has_one_of_the_server(sim: SimulatedBroker) -> None:
    server = {key.name: key for key in GROUP_SERVER_CONFIGS}
    for key in GROUP_CONFIGS.values():
        assert key.server_name is not None
        assert server[key.server_name].default == key.default
    assert configs_of(sim).timings("g") == GroupTimings(45_000, 5000)


def test_they_are_obeyed_and_last(tmp_path: Path) -> None:
    crowd = Crowd(str(tmp_path / "metadata"))
    crowd.wait(configs_of(crowd).set(GROUP, {SESSION: "50000", HEARTBEAT: "6000"}))
    assert Fellow(crowd, "m").join().heartbeat_interval_ms == 6000
    crowd.pass_ms(49_000)
    assert crowd.group.members
    crowd.pass_ms(1001)
    assert not crowd.group.members
    crowd.restart()
    assert configs_of(crowd).of(GROUP) == {SESSION: "50000", HEARTBEAT: "6000"}
    assert configs_of(crowd).timings("another") == GroupTimings(45_000, 5000)
    crowd.wait(configs_of(crowd).set(GROUP, {}))
    crowd.restart()
    assert configs_of(crowd).of(GROUP) == {}


@pytest.mark.parametrize(
    "configs",
    [{SESSION: "44999"}, {SESSION: "60001"}, {HEARTBEAT: "4999"}, {HEARTBEAT: "x"}, {"share.x": "1"}],
    ids=str,
)
def test_what_the_server_does_not_allow_is_refused(sim: SimulatedBroker, configs: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        configs_of(sim).set("g", configs)
    assert configs_of(sim).of("g") == {}


def test_a_session_is_longer_than_an_interval() -> None:
    sim = SimulatedBroker(group__consumer__max__heartbeat__interval__ms="60000")
    with pytest.raises(InvalidConfig, match="more than"):
        configs_of(sim).check("g", {HEARTBEAT: "45000"})
    configs_of(sim).check("g", {HEARTBEAT: "45000", SESSION: "45001"})
    with pytest.raises(InvalidGroupId):
        configs_of(sim).check("", {})


def test_what_could_not_be_stored_is_taken_back(sim: SimulatedBroker) -> None:
    sim.store.failing = True
    with pytest.raises(MetadataFailed):
        sim.wait(configs_of(sim).set("g", {SESSION: "50000"}))
    assert configs_of(sim).of("g") == {}
