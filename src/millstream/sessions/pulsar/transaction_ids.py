"""Transaction ids as commands carry them.

most significant 64 bits     the coordinator; there is one, 0
least significant 64 bits    the number of the transaction there
"""

from typing import Final, Protocol

from millstream.broker.transactions import TransactionNotFound

__all__ = ["COORDINATOR", "InTransaction", "has_transaction", "number_of"]

COORDINATOR: Final = 0


class InTransaction(Protocol):
    """A command that names a transaction."""

    @property
    def txnid_least_bits(self) -> int:
        """The number."""

    @property
    def txnid_most_bits(self) -> int:
        """The coordinator."""


class _MayBeInTransaction(Protocol):
    def HasField(self, field_name: str, /) -> bool: ...  # noqa: N802 - protobuf's own name


def has_transaction(command: _MayBeInTransaction) -> bool:
    """Whether a SEND or an ACK is part of a transaction."""
    return command.HasField("txnid_least_bits") or command.HasField("txnid_most_bits")


def number_of(command: InTransaction) -> int:
    """The number of the transaction that a command names. Raises TransactionNotFound: of another coordinator."""
    if command.txnid_most_bits != COORDINATOR:
        raise TransactionNotFound(f"there is no transaction coordinator {command.txnid_most_bits}")
    return command.txnid_least_bits
