"""Two attempts of one task at once, as Spark runs them where a task is slow: each row is published once."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.spark.clusters.standalone import cluster
from tests.spark.conftest import Topics
from tests.spark.write.conftest import values
from tests.support.server_process import ServerProcess

_ROOT = Path(__file__).parents[3]
_RECORDS = 400


@pytest.mark.timeout(420)
def test_two_attempts_at_once(broker: ServerProcess, topics: Topics, tmp_path: Path) -> None:
    source, target = topics.create("speculated", 2), topics.create("speculated-to")
    for partition in range(2):
        topics.write_numbers(source, range(partition, _RECORDS, 2), partition)
    place = tmp_path / "attempts"
    place.mkdir()
    with cluster(tmp_path, workers=3) as master:
        result = subprocess.run(
            [sys.executable, "-m", "tests.spark.write.speculating", broker.kafka, master, source, target, str(place)],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}"},
            capture_output=True,
            text=True,
            timeout=360,
            check=False,
        )
    assert result.returncode == 0, result.stderr[-4000:]
    attempts = {path.name for path in place.iterdir()}
    # Of the last task of the table and of both micro-batches.
    assert {f"{run}-1-{attempt}" for run in ("table-0", "stream-0", "stream-1") for attempt in range(2)} <= attempts
    counts = Counter(int(value) for value in values(broker.kafka, target))
    assert counts == dict.fromkeys(range(_RECORDS), 2)
