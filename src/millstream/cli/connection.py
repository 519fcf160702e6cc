"""The way from a client command to a broker: options, the first contact, and errors in plain words."""

__all__ = [
    "DEFAULT_BROKER",
    "OPERATION_TIMEOUT_S",
    "BrokerOption",
    "Connection",
    "PropertyOption",
    "connected",
    "no_such_topic",
    "parse_pairs",
]

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from millstream.cli.errors import USAGE, CliError

DEFAULT_BROKER: Final = "127.0.0.1:9092"
# A broker that is up answers in milliseconds. Who waits longer than this wants to be told.
_CONNECT_TIMEOUT_S: Final = 5.0
# Creating or deleting a topic with many partitions takes a cluster a while.
OPERATION_TIMEOUT_S: Final = 15.0

BrokerOption = Annotated[
    str,
    typer.Option(
        "--broker",
        "-b",
        envvar="MILLSTREAM_BROKER",
        metavar="HOST:PORT",
        show_default=True,
        help="A broker to start from; several are separated by commas.",
    ),
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-X",
        metavar="KEY=VALUE",
        help="A setting of the client library, such as security.protocol=SASL_SSL. Repeatable.",
    ),
]


class Connection:
    """A broker that was reached once, and makers of clients for it.

    Args:
        addresses: "host:port", or several separated by commas.
        properties: librdkafka settings, which override those chosen here.
    """

    def __init__(self, addresses: str, properties: Mapping[str, str]) -> None:
        self.addresses = addresses
        self._properties = properties
        self._endpoints = [_endpoint(address) for address in addresses.split(",")]
        self._complaint = ""
        # Set when the client library has lost every broker, and cleared by who has looked into it.
        self.lost = False

    def reach(self) -> None:
        """Make sure that something listens at one of the addresses.

        A plain connection says at once, and in the system's words, what the client library would only say
        after it has retried for its whole time-out.

        Raises:
            CliError: nobody listens, or a name does not resolve.
        """
        problem = self.unreachable()
        if problem is not None:
            raise CliError(
                f"no broker at {self.addresses} ({problem})",
                "start one with 'millstream serve', or name another with --broker HOST:PORT",
            )

    def unreachable(self) -> str | None:
        """Return why none of the addresses takes a connection, or None when one does."""
        problem = None
        for endpoint in self._endpoints:
            try:
                socket.create_connection(endpoint, timeout=_CONNECT_TIMEOUT_S).close()
            except OSError as error:
                problem = (error.strerror or str(error) or type(error).__name__).lower()
            else:
                return None
        return problem

    def admin(self) -> Any:
        """Return an admin client. Its calls answer within OPERATION_TIMEOUT_S."""
        client = AdminClient(self._settings({}))
        # The library drops the connection that it began with once it knows the brokers, and sends what was under way
        # there again after some seconds. This waits for a broker that is known.
        client.describe_cluster(request_timeout=_CONNECT_TIMEOUT_S).result()
        return client

    def consumer(self, settings: Mapping[str, Any]) -> Any:
        """Return a consumer with these librdkafka settings."""
        return Consumer(self._settings(settings))

    def producer(self, settings: Mapping[str, Any]) -> Any:
        """Return a producer with these librdkafka settings."""
        return Producer(self._settings(settings))

    def topics(self, client: Any, name: str | None = None) -> dict[str, Any]:
        """Return the metadata of all topics, or of one, by name.

        Asked for one topic through an admin client or a producer, a broker may create it.
        """
        request = {"timeout": _CONNECT_TIMEOUT_S} | ({} if name is None else {"topic": name})
        found: dict[str, Any] = client.list_topics(**request).topics
        return found

    def explain(self, error: Any) -> CliError:
        """Say in plain words what a librdkafka error means here.

        Args:
            error: a confluent_kafka.KafkaError.
        """
        code, message = error.code(), _sentence(error.str())
        if code in _NO_ANSWER:
            detail = self._complaint or message
            return CliError(
                f"the broker at {self.addresses} takes connections but does not answer ({detail})",
                "check that the port is its Kafka port, and that its logs show no problem",
            )
        if code in _REFUSED:
            return CliError(f"the broker refused the request: {message}", "check the credentials and their rights")
        if code in (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION):
            return CliError(f"the broker at {self.addresses} cannot do this", "use one of a later version")
        if code == KafkaError._INVALID_ARG:
            return CliError(message, "check the value, and that of each --property", status=USAGE)
        return CliError(f"the broker answered: {message} ({error.name()})", "change the request accordingly")

    def _settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.addresses,
            # At any other level the library writes to standard error on its own; the callback sees it all.
            "log_level": 0,
            "error_cb": self._note,
            "reconnect.backoff.max.ms": 1000,
            "socket.connection.setup.timeout.ms": int(_CONNECT_TIMEOUT_S * 1000),
            "client.id": "millstream-cli",
            **settings,
            **self._properties,
        }

    def _note(self, error: Any) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.lost = True
        else:
            self._complaint = _sentence(error.str())


@contextmanager
def connected(broker: str, properties: Sequence[str] | None) -> Iterator[Connection]:
    """Reach the broker, and explain any error of the client library that arises in the body.

    Args:
        broker: value of --broker.
        properties: values of --property, each KEY=VALUE.

    Raises:
        CliError: in place of every KafkaException.
    """
    connection = Connection(broker, dict(parse_pairs(properties, "--property")))
    connection.reach()
    try:
        yield connection
    except KafkaException as error:
        raise connection.explain(error.args[0]) from error


def no_such_topic(topic: str) -> CliError:
    """Return the error for a topic that the broker does not have."""
    return CliError(f"there is no topic {topic!r}", "'millstream topic list' shows those there are")


def parse_pairs(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Split each KEY=VALUE at its first '='.

    Args:
        texts: values of a repeatable option; None when it was not given.
        option: its name, for the message.

    Raises:
        CliError: a value has no '=' or an empty key.
    """
    pairs = []
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CliError(f"{option} {text!r} is not KEY=VALUE", f"write {option} KEY=VALUE", status=USAGE)
        pairs.append((key, value))
    return pairs


def _endpoint(address: str) -> tuple[str, int]:
    host, colon, port = address.strip().rpartition(":")
    if not host or not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise CliError(f"{address!r} is not a broker's address", "write --broker HOST:PORT", status=USAGE)
    return host.strip("[]"), int(port)


def _sentence(message: str) -> str:
    # librdkafka says which side an error comes from, and in which state it was itself: neither helps a user.
    return message.replace("Local: ", "").replace("Broker: ", "").split(" (after ")[0].rstrip(".")


_NO_ANSWER: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._SSL,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
    }
)
_REFUSED: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
