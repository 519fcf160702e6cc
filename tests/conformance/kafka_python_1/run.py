"""Runs one scenario with kafka-python 1.x, with arguments as JSON on standard input: `run.py SCENARIO`.

This file is not imported by the tests: it runs beside packages that the project's own environment has in later
versions. What a scenario returns is written as JSON; what it raises ends the process with an error.
"""

import base64
import json
import sys
from importlib import import_module
from typing import Any

six: Any = import_module("six")

# The copy of six inside kafka-python 1.x does not work in Python 3.12 and later.
sys.modules["kafka.vendor.six"] = six
sys.modules["kafka.vendor.six.moves"] = six.moves

import kafka  # noqa: E402
import kafka.errors  # noqa: E402
from kafka.structs import OffsetAndMetadata, TopicPartition  # noqa: E402

Args = dict[str, Any]


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def octets(data: str | None) -> bytes | None:
    return None if data is None else base64.b64decode(data)


def version(args: Args) -> Any:
    return tuple(args["version"])


def consumer(args: Args, **more: Any) -> Any:
    return kafka.KafkaConsumer(
        bootstrap_servers=args["broker"],
        api_version=version(args),
        consumer_timeout_ms=args.get("timeout_ms", 10000),
        **more,
    )


def produce(args: Args) -> Any:
    """Send records to partition 0; returns their offsets and times."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=args["broker"],
        api_version=version(args),
        compression_type=args["codec"],
        acks=args.get("acks", -1),
        max_request_size=args.get("max_request_bytes", 1048576),
        linger_ms=20,
        retries=0,
    )
    sent = [
        producer.send(args["topic"], octets(value), octets(key), partition=0, timestamp_ms=time_ms)
        for key, value, time_ms in args["records"]
    ]
    producer.flush(30)
    answers = [future.get(30) for future in sent]
    producer.close()
    return [[one.offset, one.timestamp] for one in answers]


def plain(args: Args) -> Any:
    """Send a record after showing a name and a password by PLAIN, in tokens without requests around them."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=args["broker"],
        api_version=version(args),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=args["user"],
        sasl_plain_password=args["password"],
        max_block_ms=5000,
        retries=0,
    )
    offset = producer.send(args["topic"], b"value").get(30).offset
    producer.close()
    return offset


def refused(args: Args) -> Any:
    """Send one record that is to be refused; returns the name of the error."""
    try:
        produce(args)
    except kafka.errors.KafkaError as error:
        return type(error).__name__
    return None


def read(args: Args) -> Any:
    """Read a number of records of partition 0 from an offset on."""
    reader = consumer(args, max_partition_fetch_bytes=args.get("max_bytes", 1048576))
    place = TopicPartition(args["topic"], 0)
    reader.assign([place])
    reader.seek(place, args.get("offset", 0))
    found = []
    for record in reader:
        found.append([record.offset, record.timestamp, record.timestamp_type, text(record.key), text(record.value)])
        if len(found) == args["count"]:
            break
    reader.close()
    return found


def bounds(args: Args) -> Any:
    """The first and the last offset of partition 0."""
    reader = consumer(args)
    place = TopicPartition(args["topic"], 0)
    found = [reader.beginning_offsets([place])[place], reader.end_offsets([place])[place]]
    reader.close()
    return found


def committed(args: Args) -> Any:
    """Commit an offset for a group, without being its member, and fetch it with another consumer."""
    place = TopicPartition(args["topic"], 0)
    first = consumer(args, group_id=args["group"], enable_auto_commit=False)
    first.assign([place])
    before = first.committed(place)
    first.commit({place: OffsetAndMetadata(args["offset"], "note")})
    first.close()
    second = consumer(args, group_id=args["group"], enable_auto_commit=False)
    second.assign([place])
    found = [before, second.committed(place), second.position(place)]
    second.close()
    return found


def group(args: Args) -> Any:
    """Read as a member of a group, committing at the end; returns the offsets read."""
    member = kafka.KafkaConsumer(
        args["topic"],
        bootstrap_servers=args["broker"],
        api_version=version(args),
        group_id=args["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=20000,
    )
    found = []
    for record in member:
        found.append(record.offset)
        if len(found) == args["count"]:
            break
    member.commit()
    member.close()
    return found


def simple(args: Args) -> Any:
    """The client of 0.8: produce, look up offsets, read and commit, all in version 0 of everything."""
    client = kafka.SimpleClient(args["broker"])
    client.ensure_topic_exists(args["topic"])
    producer = kafka.SimpleProducer(client, codec=args["codec"], req_acks=1)
    for number in range(0, args["count"], 10):
        messages = [b"%d" % (number + index) for index in range(10)]
        producer.send_messages(args["topic"], *messages)
    first = kafka.SimpleConsumer(client, args["group"], args["topic"], auto_commit=False, iter_timeout=5)
    half = [one.offset for one in first.get_messages(args["count"] // 2, timeout=10)]
    first.commit()
    first.stop()
    second = kafka.SimpleConsumer(client, args["group"], args["topic"], auto_commit=False, iter_timeout=5)
    rest = [[one.offset, one.message.value.decode()] for one in second.get_messages(args["count"], timeout=3)]
    second.seek(0, 2)
    pending = second.pending()
    second.stop()
    client.close()
    return [half, rest, pending]


def probe(args: Args) -> Any:
    """Which version the client takes the broker to be of, by its advertised APIs."""
    client = kafka.KafkaConsumer(bootstrap_servers=args["broker"])
    found = client.config["api_version"]
    client.close()
    return found


SCENARIOS = {one.__name__: one for one in (produce, plain, refused, read, bounds, committed, group, simple, probe)}

if __name__ == "__main__":
    json.dump(SCENARIOS[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
