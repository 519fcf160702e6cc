"""Options of the commands that run on Spark: where that runs, and which brokers it speaks to, and how."""

__all__ = ["OtherBroker", "SourceBroker", "SparkOptions", "Writing", "server_options", "servers_of"]

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from millstream.cli.connection import DEFAULT_BROKER, BrokerOption, parse_pairs
from millstream.cli.errors import USAGE, CliError
from millstream.spark.errors import BadOption
from millstream.spark.servers import SERVER_OPTIONS, SERVERS, Servers

_PREFIX = "kafka."


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs."""

    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Where Spark runs.  [default: this machine]")
    ] = None


@dataclass(frozen=True, slots=True)
class SourceBroker:
    """The broker of the topics that the command names."""

    broker: BrokerOption = DEFAULT_BROKER
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "-X",
            metavar="KEY=VALUE",
            help="How to speak to the broker, such as security.protocol=SASL_SSL. Repeatable.",
        ),
    ] = None

    @property
    def servers(self) -> Servers:
        """Where it is, and how to speak to it. Raises CliError."""
        return servers_of(self.broker, self.properties, "--property")


@dataclass(frozen=True, slots=True)
class OtherBroker:
    """Another broker, to which a command may write."""

    to_broker: Annotated[
        str | None, typer.Option("--to-broker", metavar="HOST:PORT", help="Where to write.  [default: the same]")
    ] = None
    to_properties: Annotated[
        list[str] | None,
        typer.Option(
            "--to-property", metavar="KEY=VALUE", help="How to speak to the one of --to-broker. Repeatable."
        ),
    ] = None

    def servers(self, source: SourceBroker) -> Servers:
        """Where to write. Raises CliError."""
        if self.to_broker is not None:
            return servers_of(self.to_broker, self.to_properties, "--to-property")
        if self.to_properties:
            raise CliError("--to-property says how to speak to another broker", "add --to-broker", status=USAGE)
        return source.servers


@dataclass(frozen=True, slots=True)
class Writing:
    """How topics are written."""

    compression: Annotated[
        str | None,
        typer.Option("--compression", metavar="CODEC", help="Of what is written: gzip, snappy, lz4, zstd."),
    ] = None

    @property
    def sink_options(self) -> dict[str, str]:
        """The same as options of the sink."""
        return {} if self.compression is None else {"kafka.compression.type": self.compression}


def server_options(properties: Sequence[str] | None, option: str) -> dict[str, str]:
    """Properties as options of the source and the sink.

    Args:
        properties: KEY=VALUE, each; None for none.
        option: by which they were given.

    Raises:
        CliError: one does not say how to speak to a broker.
    """
    options = {_PREFIX + name: value for name, value in parse_pairs(properties, option)}
    known = [name for name in SERVER_OPTIONS if name != SERVERS]
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        names = ", ".join(name.removeprefix(_PREFIX) for name in known)
        raise CliError(f"{option} takes no {unknown.removeprefix(_PREFIX)!r}", f"it takes {names}", status=USAGE)
    return options


def servers_of(broker: str, properties: Sequence[str] | None, option: str) -> Servers:
    """A broker's address, and the properties that say how to speak to it. Raises CliError."""
    try:
        return Servers.of({SERVERS: broker, **server_options(properties, option)})
    except BadOption as error:
        raise CliError(str(error).replace(_PREFIX, ""), f"change {option}", status=USAGE) from None
