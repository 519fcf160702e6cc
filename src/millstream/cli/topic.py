"""`millstream topic`: create, list, describe and delete topics."""

__all__ = ["topic"]

import sys
from typing import Annotated, Any, Final

import typer
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ConfigSource, NewTopic

from millstream.cli.connection import (
    DEFAULT_BROKER,
    OPERATION_TIMEOUT_S,
    BrokerOption,
    Connection,
    PropertyOption,
    connected,
    no_such_topic,
    parse_pairs,
)
from millstream.cli.deleting import YesOption, confirm, finish
from millstream.cli.errors import CliError
from millstream.cli.lazy import CommandGroup
from millstream.cli.offsets import offset_ranges
from millstream.cli.output import print_json, print_rows, print_section

topic = typer.Typer(
    name="topic",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    help="Create, list, describe and delete topics.",
)

_CREATE_EPILOG: Final = """\
\b
Examples:
  millstream topic create orders --partitions 3
  millstream topic create orders --config retention.ms=86400000 --config cleanup.policy=compact
"""
_LIST_EPILOG: Final = """\
\b
Examples:
  millstream topic list
  millstream topic list | cut -f1
"""
_DESCRIBE_EPILOG: Final = """\
Records are counted as the span from the earliest to the latest offset, so that those which compaction or a
transaction has removed count too. Each line starts with its kind when the output is not a terminal.

\b
Examples:
  millstream topic describe orders
  millstream topic describe orders --json | jq '.partitions[].records'
"""
_DELETE_EPILOG: Final = """\
\b
Examples:
  millstream topic delete orders
  millstream topic delete --yes orders orders-dlq
"""

# The broker's own default, in a request to create a topic.
_DEFAULT: Final = -1


@topic.command("create", epilog=_CREATE_EPILOG)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new topic.")],
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, metavar="N", help="Partitions. Default: what the broker is set to."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="A setting of the topic. Repeatable."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a topic of that name as it is, without an error.")
    ] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """Create a topic."""
    settings = dict(parse_pairs(config, "--config"))
    with connected(broker, properties) as connection:
        new = NewTopic(name, partitions or _DEFAULT, _DEFAULT, config=settings)
        admin = connection.admin()
        connection.topics(admin)
        [created] = admin.create_topics([new], operation_timeout=OPERATION_TIMEOUT_S).values()
        try:
            created.result()
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise _creation_error(name, reason, connection) from error
            if not if_not_exists:
                raise CliError(
                    f"topic {name!r} exists already",
                    f"take another name, or see it with 'millstream topic describe {name}'",
                ) from error
            print(f"topic {name} exists already", file=sys.stderr)
            return
    print(f"created topic {name}")


@topic.command("list", epilog=_LIST_EPILOG)
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """List topics with their number of partitions."""
    with connected(broker, properties) as connection:
        found = connection.topics(connection.admin())
    rows = [(name, len(found[name].partitions)) for name in sorted(found)]
    if as_json:
        print_json([{"name": name, "partitions": partitions} for name, partitions in rows])
    else:
        print_rows(("topic", "partitions"), rows)


@topic.command("describe", epilog=_DESCRIBE_EPILOG)
def describe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic.")],
    all_configs: Annotated[
        bool, typer.Option("--all-configs", help="Show every setting, not only those set on the topic.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """Show the partitions, offsets and settings of a topic."""
    with connected(broker, properties) as connection:
        admin = connection.admin()
        found = connection.topics(admin)
        if name not in found:
            raise no_such_topic(name)
        ranges = offset_ranges(admin, name, sorted(found[name].partitions))
        configs = _configs(admin, name, all_configs)
    rows = [(index, first, last, last - first) for index, (first, last) in sorted(ranges.items())]
    columns = ("partition", "earliest", "latest", "records")
    if as_json:
        partitions = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"name": name, "partitions": partitions, "configs": configs})
        return
    print_section("partition", columns, rows)
    if configs or not sys.stdout.isatty():
        print_section("config", ("config", "value"), sorted(configs.items()))


@topic.command("delete", epilog=_DELETE_EPILOG)
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of the topics.")],
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Pass over topics that do not exist, without an error.")
    ] = False,
    broker: BrokerOption = DEFAULT_BROKER,
    properties: PropertyOption = None,
) -> None:
    """Delete topics with all their records. Asks first, on a terminal."""
    wanted = list(dict.fromkeys(names))
    with connected(broker, properties) as connection:
        confirm(wanted, "records", yes=yes)
        admin = connection.admin()
        connection.topics(admin)

        def refusal(name: str, error: KafkaError) -> CliError | None:
            if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                return connection.explain(error)
            return None if if_exists else no_such_topic(name)

        finish("topic", admin.delete_topics(wanted, operation_timeout=OPERATION_TIMEOUT_S), refusal)


def _creation_error(name: str, reason: Any, connection: Connection) -> CliError:
    remedies = {
        KafkaError.INVALID_CONFIG: "correct the --config that it names",
        KafkaError.INVALID_PARTITIONS: "choose another number for --partitions",
        KafkaError.TOPIC_EXCEPTION: "use letters, digits, '.', '_' and '-' in the name, 249 of them at most",
    }
    remedy = remedies.get(reason.code())
    if remedy is None:
        return connection.explain(reason)
    return CliError(f"topic {name!r} was not created: {reason.str().rstrip('.')}", remedy)


def _configs(admin: Any, name: str, everything: bool) -> dict[str, str | None]:
    """Return settings of a topic by name; a value that the broker keeps to itself is None."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    [described] = admin.describe_configs([resource], request_timeout=OPERATION_TIMEOUT_S).values()
    return {entry.name: entry.value for entry in described.result().values() if everything or _is_set_on_topic(entry)}


def _is_set_on_topic(entry: Any) -> bool:
    if entry.source == ConfigSource.UNKNOWN_CONFIG.value:
        # A broker older than sources only says whether a value is the default.
        return not entry.is_default
    return bool(entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
