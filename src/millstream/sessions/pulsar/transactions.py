"""The commands of transactions: TC_CLIENT_CONNECT, NEW_TXN, the ADD_..._TO_TXN and the END_TXN family.

Clients find the coordinator by looking a topic up, as if it was one of its partitions (see `lookup`). There is one
coordinator, number 0. What its commands call the ttl in seconds is in milliseconds, as Java and Go clients send it.

END_TXN does all there is to do. END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION are what a coordinator sends to the
other brokers; here they tell whether the transaction has been ended in that way, and end nothing on their own.

Source: `CommandNewTxn` and its neighbours in the messages of the protocol; PIP-31; units, the Java client 4.1.1.
"""

from collections.abc import Callable
from typing import Final

from millstream.broker.errors import UnknownTopic
from millstream.broker.subscriptions import SubscriptionNotFound
from millstream.broker.transactions import InvalidTransactionState, SubscriptionPlace
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.sessions.pulsar.error_table import code_of
from millstream.sessions.pulsar.errors import CoordinatorNotFound, NotAllowed
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.names import Place, find_place, parse_name
from millstream.sessions.pulsar.transaction_ids import COORDINATOR, number_of
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandAddPartitionToTxn,
    CommandAddPartitionToTxnResponse,
    CommandAddSubscriptionToTxn,
    CommandAddSubscriptionToTxnResponse,
    CommandEndTxn,
    CommandEndTxnOnPartition,
    CommandEndTxnOnPartitionResponse,
    CommandEndTxnOnSubscription,
    CommandEndTxnOnSubscriptionResponse,
    CommandEndTxnResponse,
    CommandNewTxn,
    CommandNewTxnResponse,
    CommandTcClientConnectRequest,
    CommandTcClientConnectResponse,
    TxnAction,
)

__all__ = [
    "handle_add_partitions",
    "handle_add_subscriptions",
    "handle_client_connect",
    "handle_end",
    "handle_end_on_partition",
    "handle_end_on_subscription",
    "handle_new",
]

_TTL_MS: Final = 60_000
"""How long a transaction is open for which the client says nothing: the Java client's own choice."""

_Response = (
    CommandTcClientConnectResponse
    | CommandNewTxnResponse
    | CommandAddPartitionToTxnResponse
    | CommandAddSubscriptionToTxnResponse
    | CommandEndTxnResponse
    | CommandEndTxnOnPartitionResponse
    | CommandEndTxnOnSubscriptionResponse
)


def _answer(link: Link, response: _Response, begin: Callable[[], Pending[None]]) -> None:
    """Send a response once something is settled, with the error in it if that failed."""

    def refuse(error: MillstreamError) -> None:
        response.error = code_of(error)
        response.message = str(error)

    link.answer(response.request_id, Pending.attempt(begin).settle(lambda _: None, refuse), lambda _: response)


def handle_client_connect(link: Link, command: CommandTcClientConnectRequest) -> None:
    """Tell that the coordinator is here."""

    def connect() -> Pending[None]:
        link.broker.transactions.check_enabled()
        _check_coordinator(command.tc_id)
        return settled(None)

    _answer(link, CommandTcClientConnectResponse(request_id=command.request_id), connect)


def _check_coordinator(number: int) -> None:
    if number != COORDINATOR:
        raise CoordinatorNotFound(f"there is no transaction coordinator {number}")


def handle_new(link: Link, command: CommandNewTxn) -> None:
    """Begin a transaction."""
    response = CommandNewTxnResponse(request_id=command.request_id, txnid_most_bits=COORDINATOR)

    def name(number: int) -> None:
        response.txnid_least_bits = number

    def begin() -> Pending[None]:
        _check_coordinator(command.tc_id)
        return link.broker.transactions.begin(command.txn_ttl_seconds or _TTL_MS).then(name)

    _answer(link, response, begin)


def handle_add_partitions(link: Link, command: CommandAddPartitionToTxn) -> None:
    """Say where a transaction is going to write."""
    response = CommandAddPartitionToTxnResponse(
        request_id=command.request_id,
        txnid_least_bits=command.txnid_least_bits,
        txnid_most_bits=command.txnid_most_bits,
    )

    def add() -> Pending[None]:
        places = [_place(link, text) for text in command.partitions]
        found = [(place.topic, place.partition) for place in places]
        return link.broker.transactions.add_partitions(number_of(command), found)

    _answer(link, response, add)


def _place(link: Link, text: str) -> Place:
    name = parse_name(text)
    if not name.persistent:
        raise NotAllowed(f"{name} keeps nothing, and takes part in no transaction")
    place = find_place(link.broker.topics, name)
    if place is None:
        raise UnknownTopic(f"there is no topic {name}")
    return place


def handle_add_subscriptions(link: Link, command: CommandAddSubscriptionToTxn) -> None:
    """Say where a transaction is going to acknowledge."""
    response = CommandAddSubscriptionToTxnResponse(
        request_id=command.request_id,
        txnid_least_bits=command.txnid_least_bits,
        txnid_most_bits=command.txnid_most_bits,
    )

    def add() -> Pending[None]:
        places = [_subscription(link, one.topic, one.subscription) for one in command.subscription]
        return link.broker.transactions.add_subscriptions(number_of(command), places)

    _answer(link, response, add)


def _subscription(link: Link, topic: str, name: str) -> SubscriptionPlace:
    place = _place(link, topic)
    if link.broker.subscriptions.find(place.topic, place.partition, name) is None:
        raise SubscriptionNotFound(f"there is no subscription {name}")
    return SubscriptionPlace(place.topic.id, place.partition, name)


def handle_end(link: Link, command: CommandEndTxn) -> None:
    """Commit or abort a transaction."""
    response = CommandEndTxnResponse(
        request_id=command.request_id,
        txnid_least_bits=command.txnid_least_bits,
        txnid_most_bits=command.txnid_most_bits,
    )
    commit = command.txn_action == TxnAction.COMMIT
    _answer(link, response, lambda: link.broker.transactions.end(number_of(command), commit=commit))


def handle_end_on_partition(link: Link, command: CommandEndTxnOnPartition) -> None:
    """Tell whether a transaction has ended in a way, and so what it has written to a partition."""
    response = CommandEndTxnOnPartitionResponse(
        request_id=command.request_id,
        txnid_least_bits=command.txnid_least_bits,
        txnid_most_bits=command.txnid_most_bits,
    )
    _answer(link, response, lambda: _ended(link, number_of(command), command.txn_action))


def handle_end_on_subscription(link: Link, command: CommandEndTxnOnSubscription) -> None:
    """Tell whether a transaction has ended in a way, and so what it has acknowledged on a subscription."""
    response = CommandEndTxnOnSubscriptionResponse(
        request_id=command.request_id,
        txnid_least_bits=command.txnid_least_bits,
        txnid_most_bits=command.txnid_most_bits,
    )
    _answer(link, response, lambda: _ended(link, number_of(command), command.txn_action))


def _ended(link: Link, number: int, action: TxnAction) -> Pending[None]:
    transactions = link.broker.transactions
    if not transactions.find(number).state.is_decided:
        raise InvalidTransactionState(f"the transaction {number} is open: it is ended as a whole")
    return transactions.end(number, commit=action == TxnAction.COMMIT)
