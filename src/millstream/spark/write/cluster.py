"""The cluster that is written to, as one task or the driver sees it."""

from types import TracebackType
from typing import Final, Self

from millstream.spark.connections import Connections
from millstream.spark.errors import BrokerUnreachable
from millstream.spark.write.coordinators import Coordinators
from millstream.spark.write.ledger import Ledger
from millstream.spark.write.options import WriteOptions
from millstream.spark.write.patience import Patience
from millstream.spark.write.topics import Topics
from millstream.spark.write.transactions import Transactions

__all__ = ["Cluster"]

_FIRST_PATIENCE_S: Final = 10.0
"""Who does not answer at first may restart; more likely the address is wrong, which somebody waits to be told."""


class Cluster:
    """Connections to a cluster and what is done over them; a context.

    Args:
        options: where it is, and how patient to be with it.

    Raises:
        BrokerUnreachable: on entering, if nobody answers at its address.
    """

    def __init__(self, options: WriteOptions) -> None:
        self.connections = Connections(options.servers)
        self.coordinators = Coordinators(self.connections, options.patience_s)
        self.topics = Topics(self.connections, options.patience_s)
        self._first_patience_s = min(_FIRST_PATIENCE_S, options.patience_s)

    def __enter__(self) -> Self:
        patience = Patience(self._first_patience_s)
        while True:
            try:
                self.coordinators.brokers()
            except BrokerUnreachable:
                if patience.is_over():
                    raise
                patience.pause()
            else:
                return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connections.close()

    def ledger(self, application_id: str) -> Ledger:
        """The ledger of an application."""
        return Ledger(self.coordinators, application_id)

    def transactions(self, application_id: str) -> Transactions:
        """The transactions of an application."""
        return Transactions(self.coordinators, f"millstream-sink-{application_id}")
