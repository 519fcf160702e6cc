"""Runs in the environment of the Iggy package: does what it reads, a line of JSON each, and answers with a line.

Bytes are in hexadecimal. Arguments: the address.
"""

import asyncio
import inspect
import json
import os
import sys
from importlib import import_module
from typing import Any

iggy: Any = import_module("apache_iggy")


def value_of(kind: str, text: str) -> Any:
    """A header's value of a kind."""
    data = bytes.fromhex(text)
    match kind:
        case "string":
            return iggy.HeaderValue.String(data.decode())
        case "int32":
            return iggy.HeaderValue.Int32(int.from_bytes(data, "little", signed=True))
    return iggy.HeaderValue.Raw(data)


def told(key: Any, value: Any) -> list[str]:
    """A header: its name, its kind, its value."""
    kind = type(value).__name__.removeprefix("HeaderValue_").lower()
    content = value.value
    if isinstance(content, str):
        content = content.encode()
    elif isinstance(content, int):
        content = content.to_bytes(4, "little", signed=True)
    return [str(key.value), kind, content.hex()]


async def send(client: Any, job: dict[str, Any]) -> None:
    messages = [
        iggy.SendMessage(
            bytes.fromhex(one["value"]),
            {name: value_of(kind, text) for name, kind, text in one["headers"]} or None,
            one["number"],
        )
        for one in job["messages"]
    ]
    await client.send_messages(
        stream=job["stream"], topic=job["topic"], partitioning=job["partition"], messages=messages
    )


async def poll(client: Any, job: dict[str, Any]) -> list[dict[str, Any]]:
    kind, *argument = job["strategy"]
    found: list[Any] = await client.poll_messages(
        stream=job["stream"],
        topic=job["topic"],
        partition_id=job["partition"],
        consumer=iggy.Consumer.Single(1),
        polling_strategy=getattr(iggy.PollingStrategy, kind)(*argument),
        count=job["count"],
        auto_commit=False,
    )
    return [
        {
            "value": one.payload().hex(),
            "headers": [told(*item) for item in (one.user_headers() or {}).items()],
            "offset": one.offset(),
            "time": one.timestamp(),
            "origin": one.origin_timestamp(),
            "number": one.id(),
        }
        for one in found
    ]


async def call(client: Any, job: dict[str, Any]) -> Any:
    """Any other method: its name, its arguments, and which attributes of the answer are wanted."""
    answer = await getattr(client, job["method"])(**job["arguments"])
    if answer is None or not job["wanted"]:
        return answer is not None
    rows = answer if isinstance(answer, list) else [answer]
    return [[plain(getattr(row, name)) for name in job["wanted"]] for row in rows]


def plain(value: Any) -> Any:
    """The value of an attribute or a method without arguments."""
    return value() if inspect.isbuiltin(value) else value


async def consume(client: Any, job: dict[str, Any]) -> list[str]:
    """Take messages as a member of a group, and store each offset."""
    import datetime

    consumer = await client.consumer_group(
        job["group"],
        job["stream"],
        job["topic"],
        polling_strategy=iggy.PollingStrategy.Next(),
        batch_length=job["count"],
        auto_commit=iggy.AutoCommit.When(iggy.AutoCommitWhen.PollingMessages()),
        poll_interval=datetime.timedelta(milliseconds=20),
    )
    taken: list[str] = []
    enough = asyncio.Event()

    async def take(message: Any) -> None:
        taken.append(message.payload().hex())
        if len(taken) >= job["count"]:
            enough.set()

    await asyncio.wait_for(consumer.consume_messages(take, enough), 15)
    await client.leave_consumer_group(job["stream"], job["topic"], job["group"])
    return taken


DOERS = {"send": send, "poll": poll, "call": call, "consume": consume}


async def main() -> None:
    client = iggy.IggyClient(sys.argv[1])
    await client.connect()
    await client.login_user("iggy", "iggy")
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        job = json.loads(line)
        try:
            answer: dict[str, Any] = {"answer": await DOERS[job["do"]](client, job)}
        except Exception as error:  # noqa: BLE001 - whatever went wrong is told to the test
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)  # threads of the package abort the process at times when it ends
