"""`millstream group`: list, describe and delete consumer groups."""

__all__ = ["group"]

from typing import Annotated, Any, Final

import typer
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException

from millstream.cli.connection import (
    DEFAULT_BROKER,
    OPERATION_TIMEOUT_S,
    BrokerOption,
    PropertyOption,
    connected,
)
from millstream.cli.deleting import YesOption, confirm, finish
from millstream.cli.errors import CliError
from millstream.cli.lazy import CommandGroup
from millstream.cli.offsets import end_offsets
from millstream.cli.output import print_json, print_rows, print_section

group = typer.Typer(
    name="group",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    help="List, describe and delete consumer groups.",
)

_LIST_EPILOG: Final = """\
The columns are name, state, members, protocol type and assignor. Subscriptions and groups of other protocols are
listed as well: a group and a subscription of one name are one position. While clients of another protocol have it,
that protocol is the assignor (pulsar, iggy).

\b
Examples:
  millstream group list
  millstream group list --json | jq -r '.[] | select(.members == 0).name'
"""
_DESCRIBE_EPILOG: Final = """\
Lag is the number of records between the committed offset and the end. Clients of other protocols that read under
the name are members too, each with its protocol in front of its name, and the assignor names the protocol. Each line
starts with its kind (group, member, partition) when the output is not a terminal.

\b
Examples:
  millstream group describe billing
  millstream group describe billing | awk -F'\\t' '$1 == "partition" {lag += $6} END {print lag}'
"""
_DELETE_EPILOG: Final = """\
What a group has committed goes with it: whoever reads under its name next begins as a new group does. A group that
has members is not deleted.

\b
Examples:
  millstream group delete billing
  millstream group delete --yes billing audit
"""


@group.command("list", epilog=_LIST_EPILOG)
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """List consumer groups."""
    with connected(broker, properties) as connection:
        admin = connection.admin()
        connection.topics(admin)
        listing = admin.list_consumer_groups(request_timeout=OPERATION_TIMEOUT_S).result()
        if listing.errors:
            raise KafkaException(listing.errors[0])
        names = sorted(each.group_id for each in listing.valid)
        descriptions = _describe(admin, names) if names else {}
    columns = ("name", "state", "members", "protocol_type", "assignor")
    rows = [
        (
            name,
            _state(descriptions[name]),
            len(descriptions[name].members),
            None if descriptions[name].is_simple_consumer_group else "consumer",
            descriptions[name].partition_assignor or None,
        )
        for name in names
    ]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows(("group", "state", "members", "protocol type", "assignor"), rows)


@group.command("describe", epilog=_DESCRIBE_EPILOG)
def describe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """Show the members of a group, and per partition what is committed and the lag."""
    with connected(broker, properties) as connection:
        admin = connection.admin()
        topics = connection.topics(admin)
        description = _describe(admin, [name])[name]
        committed = _committed(admin, name)
        if not description.members and not committed and description.state != ConsumerGroupState.STABLE:
            raise _no_such_group(name)
        owners = {
            (each.topic, each.partition): member.member_id
            for member in description.members
            for each in member.assignment.topic_partitions
        }
        where = sorted(committed.keys() | owners.keys())
        # A group may have committed offsets of a topic that is gone by now.
        known = [(topic, index) for topic, index in where if topic in topics and index in topics[topic].partitions]
        ends = end_offsets(admin, known)
    members = [_member(each) for each in sorted(description.members, key=lambda each: str(each.member_id))]
    partitions = [
        {
            "topic": topic,
            "partition": partition,
            "committed": committed.get((topic, partition)),
            "end": ends.get((topic, partition)),
            "lag": _lag(committed.get((topic, partition)), ends.get((topic, partition))),
            "member": owners.get((topic, partition)),
        }
        for topic, partition in where
    ]
    head = {"name": name, "state": _state(description), "assignor": description.partition_assignor or None}
    if as_json:
        print_json({**head, "members": members, "partitions": partitions})
        return
    print_section("group", ("group", "state", "assignor"), [tuple(head.values())])
    print_section(
        "member",
        ("member", "client id", "host", "assignment"),
        [(each["member"], each["client_id"], each["host"], _spell(each["assignment"])) for each in members],
    )
    print_section(
        "partition",
        ("topic", "partition", "committed", "end", "lag", "member"),
        [tuple(each.values()) for each in partitions],
    )


@group.command("delete", epilog=_DELETE_EPILOG)
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of the groups.")],
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Pass over groups that do not exist, without an error.")
    ] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """Delete groups with all they have committed. Asks first, on a terminal."""
    wanted = list(dict.fromkeys(names))
    with connected(broker, properties) as connection:
        confirm(wanted, "that was committed", yes=yes)
        admin = connection.admin()
        connection.topics(admin)

        def refusal(name: str, error: KafkaError) -> CliError | None:
            match error.code():
                case KafkaError.GROUP_ID_NOT_FOUND:
                    return None if if_exists else _no_such_group(name)
                case KafkaError.NON_EMPTY_GROUP:
                    return CliError(
                        f"the group {name!r} has members", f"stop them: 'millstream group describe {name}'"
                    )
            return connection.explain(error)

        finish("group", admin.delete_consumer_groups(wanted, request_timeout=OPERATION_TIMEOUT_S), refusal)


def _no_such_group(name: str) -> CliError:
    return CliError(f"there is no group {name!r}", "'millstream group list' shows those there are")


def _describe(admin: Any, names: list[str]) -> dict[str, Any]:
    described = admin.describe_consumer_groups(names, request_timeout=OPERATION_TIMEOUT_S)
    return {name: future.result() for name, future in described.items()}


def _committed(admin: Any, name: str) -> dict[tuple[str, int], int]:
    """Return the committed offset by topic and partition; empty for a group that the broker does not know."""
    request = [ConsumerGroupTopicPartitions(name)]
    [answer] = admin.list_consumer_group_offsets(request, request_timeout=OPERATION_TIMEOUT_S).values()
    try:
        found = answer.result().topic_partitions
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return {}
        raise
    return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


def _member(member: Any) -> dict[str, Any]:
    assignment = sorted((each.topic, each.partition) for each in member.assignment.topic_partitions)
    return {
        "member": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "assignment": [{"topic": topic, "partition": partition} for topic, partition in assignment],
    }


def _spell(assignment: list[dict[str, Any]]) -> str | None:
    return ",".join(f"{each['topic']}:{each['partition']}" for each in assignment) or None


def _state(description: Any) -> str:
    return str(description.state.name).lower().replace("_", "-")


def _lag(committed: int | None, end: int | None) -> int | None:
    # Retention and deletion can leave a committed offset behind the end of a new topic of the same name.
    return None if committed is None or end is None else max(0, end - committed)
