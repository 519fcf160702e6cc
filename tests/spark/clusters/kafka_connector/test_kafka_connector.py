"""The Kafka connector for Spark, as Apache makes it for the JVM, against our broker: batch and stream, both ways."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from millstream.spark.java import use_java
from tests.spark.conftest import Topics
from tests.support.maven import packages_of
from tests.support.sample_records import Sample
from tests.support.server_process import ServerProcess

HERE = Path(__file__).parent
CACHE = Path(__file__).resolve().parents[4] / "build" / "spark_kafka"
NEEDED = ("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2")
"""Everything else that they need comes with PySpark."""
PIPE_TIMEOUT_S = 250


@pytest.fixture(scope="session")
def jars() -> str:
    """The connector and what it needs, separated by commas; tests that run side by side share them."""
    words = "-DincludeScope=runtime", f"-DincludeArtifactIds={','.join(NEEDED)}"
    libraries = packages_of(HERE / "pom.xml", CACHE, *words)
    found = sorted(str(path) for path in libraries.glob("*.jar"))
    assert len(found) == len(NEEDED)
    return ",".join(found)


@pytest.mark.timeout(500)
def test_it_writes_reads_and_streams(
    jars: str, topics: Topics, broker: ServerProcess, tmp_path: Path, read: Any
) -> None:
    name = topics.create("connector", 2)
    topics.create_exactly(f"{name}-copy", 3)
    topics.write(name, [Sample(b"own", b"from librdkafka", (("h", b"y"),), 1_700_000_000_000)])
    use_java()
    result = subprocess.run(
        [sys.executable, str(HERE / "pipe.py"), broker.kafka, name, str(tmp_path / "state"), jars],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=PIPE_TIMEOUT_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    length = sum(len(f"value {number}") for number in range(1000)) + len("from librdkafka")
    figures = json.loads(result.stdout.splitlines()[-1])
    assert figures == {name: [1001, 1001, length, 2, "x"], f"{name}-copy": [1001, 1001, length, 3, "x"]}
    own = read(f"{name}-copy", includeHeaders="true")
    values = {row.key: (row.value, row.headers[0].value) for row in own.collect()}
    assert len(values) == 1001
    assert values[b"own"] == (b"from librdkafka", b"y")
    assert values[b"7"] == (b"value 7", b"x")
