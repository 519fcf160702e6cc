"""Asking the broker that coordinates a group or a transactional id, until it has an answer."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, Final

from millstream.spark.access import check_access
from millstream.spark.connections import Connections, address_of, error_name
from millstream.spark.errors import BrokerUnreachable, WriteRefused
from millstream.spark.write.patience import Patience
from millstream.wire.kafka.api import Api
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest

__all__ = ["BUSY", "Coordinators", "Kind"]

_VERSION: Final = 3
_METADATA_VERSION: Final = 12
_ELSEWHERE: Final = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
BUSY: Final = frozenset(
    {
        *_ELSEWHERE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
"""Errors that pass by themselves."""


class Kind(IntEnum):
    """What a coordinator is asked for, by Kafka's numbers."""

    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    """The coordinators of one cluster.

    Args:
        connections: to the cluster.
        patience_s: for how long one request may be put off, by a broker that restarts or is busy.
    """

    def __init__(self, connections: Connections, patience_s: float) -> None:
        self.connections = connections
        self._patience_s = patience_s
        self._addresses: dict[tuple[Kind, str], str] = {}

    def address(self, kind: Kind, key: str) -> str:
        """Where a coordinator is, asked for once.

        Raises:
            AccessDenied: the user may not use it.
            BrokerUnreachable: nobody knows at the moment.
            WriteRefused: there is none.
        """
        found = self._addresses.get((kind, key))
        if found is None:
            request = FindCoordinatorRequest(key=key, key_type=kind)
            answer = self.connections.ask_any(FIND_COORDINATOR, _VERSION, request)
            if answer.error_code:
                operation = "WRITE" if kind is Kind.TRANSACTION else "READ"
                check_access(answer.error_code, operation, group=key, transactional_id=key)
                where = ",".join(self.connections.servers)
                what = f"{where} names no coordinator for {key!r}: {error_name(answer.error_code)}"
                if answer.error_code in BUSY:
                    raise BrokerUnreachable(what)
                advice = "; with the option delivery=at-least-once none is needed" if kind is Kind.TRANSACTION else ""
                raise WriteRefused(what + advice)
            found = self._addresses[kind, key] = address_of(answer.host, answer.port)
        return found

    def brokers(self) -> list[str]:
        """The addresses of all brokers. Raises BrokerUnreachable."""
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        answer = self.connections.ask_any(METADATA, _METADATA_VERSION, request)
        return [address_of(broker.host, broker.port) for broker in answer.brokers]

    def ask(
        self,
        kind: Kind,
        key: str,
        api: Api,
        version: int,
        request: object,
        codes: Callable[[Any], Iterable[int]],
    ) -> Any:
        """Ask a coordinator something that may be asked twice.

        Args:
            kind, key: which coordinator; any broker will do for an empty key.
            api, version, request: the question.
            codes: the error codes in an answer.

        Returns:
            An answer without any of the errors that pass by themselves.

        Raises:
            BrokerUnreachable: the coordinator cannot be reached for too long.
            WriteRefused: it is busy for too long.
        """
        patience = Patience(self._patience_s)
        while True:
            try:
                server = self.address(kind, key) if key else self.brokers()[0]
                answer = self.connections.ask(server, api, version, request)
            except BrokerUnreachable:
                self._addresses.pop((kind, key), None)
                if patience.is_over():
                    raise
                patience.pause()
                continue
            busy = next((code for code in codes(answer) if code in BUSY), None)
            if busy is None:
                return answer
            if busy in _ELSEWHERE:
                self._addresses.pop((kind, key), None)
            if patience.is_over():
                raise WriteRefused(f"{api.name} is put off for too long: {error_name(busy)}; the broker may be busy")
            patience.pause()
