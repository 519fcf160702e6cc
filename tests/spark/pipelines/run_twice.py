"""A program that runs a pipeline twice, with a record more before the second run, and reads what comes out.

python -m tests.spark.pipelines.run_twice PROJECT BROKER TOPIC
"""

import json
import sys

from confluent_kafka import Producer

from millstream.spark.pipelines.pipeline import Pipeline


def main(project: str, broker: str, topic: str) -> None:
    """Print what each run says, and how many rows there are afterwards, as JSON."""
    with Pipeline(project) as pipeline:
        first = pipeline.run(until_drained=True, out=sys.stderr)
        producer = Producer({"bootstrap.servers": broker})
        producer.produce(topic, b"{}")
        producer.flush()
        second = pipeline.run(until_drained=True, out=sys.stderr)
        table = pipeline.session.read.format("millstream-table").load(f"{project}/tables/{topic}")
        print(json.dumps({"runs": [first, second], "rows": table.count()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
