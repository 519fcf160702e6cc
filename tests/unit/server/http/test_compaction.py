"""Compaction, as the routes know it."""

import pytest

from millstream.broker.compaction import CompactionRunning
from millstream.server.http.compaction import BrokerCompaction
from millstream.server.http.problems import status_of
from millstream.server.http.site import CompactionStatus
from tests.unit.broker.simulated_broker import SimulatedBroker, append


def test_the_states_have_the_names_that_tools_know() -> None:
    simulated = SimulatedBroker()
    topic = simulated.create()
    append(topic.partitions[0])
    compaction = BrokerCompaction(simulated.broker)
    assert compaction.status(topic, 0) == CompactionStatus("NOT_RUN")
    compaction.start(topic, 0)
    assert compaction.status(topic, 0) == CompactionStatus("RUNNING")
    with pytest.raises(CompactionRunning) as refused:
        compaction.start(topic, 0)
    assert status_of(refused.value) == 409
    simulated.runtime.run()
    assert compaction.status(topic, 0) == CompactionStatus("SUCCESS")
    simulated.files.room_bytes = simulated.files.used_bytes()
    compaction.start(topic, 0)
    simulated.runtime.run()
    status = compaction.status(topic, 0)
    assert status.status == "ERROR"
    assert "no room" in status.last_error
