"""Who may do what: decisions by ACLs, by the rules of Apache Kafka's StandardAuthorizer.

A super user may do everything. Of the ACLs that speak of a resource, of the principal and of its address, one that
denies goes before all that allow, and without one that allows nothing is. To be allowed to read, write, delete or
alter implies to be allowed to describe, and to alter settings to describe them; to be denied implies nothing.

Source: Apache Kafka 4.x, org.apache.kafka.metadata.authorizer.StandardAuthorizerData and, for `may_somewhere`,
org.apache.kafka.server.authorizer.Authorizer.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from millstream.broker.acl import WILDCARD, Acl, Operation, PatternType, Permission, ResourceType
from millstream.broker.acls import Acls
from millstream.broker.errors import BrokerError

__all__ = [
    "ANONYMOUS",
    "Authorizer",
    "ClusterNotAuthorized",
    "GroupNotAuthorized",
    "NotAuthorized",
    "TopicNotAuthorized",
    "TransactionalIdNotAuthorized",
]

_log = logging.getLogger(__name__)

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of a client that has not shown who it is."""
_EVERYBODY: Final = "User:*"
_UNNAMED: Final = ""
"""Stands for a resource that no ACL names: only those for all resources of its type speak of it."""
_IMPLIED_BY: Final[Mapping[Operation, frozenset[Operation]]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""The operations whose permission is one for the operation as well."""
_DECISIONS_MAX: Final = 10_000
"""Decisions that are remembered, each some 500 bytes; every check of those in use is one look-up then."""
_NAME_CHARACTERS_MAX: Final = 255
"""Characters of a resource's name up to which a decision about it is remembered. Clients make names up."""
_REFUSALS_MAX: Final = 1000
"""Refusals that are remembered, so that the log has each once and not as often as it is asked for."""


class NotAuthorized(BrokerError):
    """A client may not do what it asks for."""


class TopicNotAuthorized(NotAuthorized):
    """Not with this topic."""


class GroupNotAuthorized(NotAuthorized):
    """Not with this group."""


class ClusterNotAuthorized(NotAuthorized):
    """Not with the cluster."""


class TransactionalIdNotAuthorized(NotAuthorized):
    """Not with this transactional id."""


_REFUSALS: Final[Mapping[ResourceType, type[NotAuthorized]]] = {
    ResourceType.TOPIC: TopicNotAuthorized,
    ResourceType.GROUP: GroupNotAuthorized,
    ResourceType.CLUSTER: ClusterNotAuthorized,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdNotAuthorized,
}


class Authorizer:
    """Decides by ACLs.

    Args:
        acls: the rules.
        super_users: principals that may do everything.
        allow_if_none: whether everybody may do everything with a resource of which no ACL speaks.

    `changes` counts how often the ACLs have been changed.
    """

    def __init__(self, acls: Acls, super_users: frozenset[str], *, allow_if_none: bool = False) -> None:
        self.acls = acls
        self._super_users = super_users
        self._allow_if_none = allow_if_none
        self._remembered = lru_cache(_DECISIONS_MAX)(self._decide)
        self._remembered_somewhere = lru_cache(_DECISIONS_MAX)(self._decide_somewhere)
        self._refused: set[tuple[str, str, Operation, ResourceType, str]] = set()
        self.changes = 0
        acls.changed = self._forget
        if not (super_users or allow_if_none or list(acls)):
            _log.warning("nobody may do anything, not even make ACLs: see the setting super.users")

    def may(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether a client may do something with a resource.

        Args:
            principal: who it is, as TYPE:NAME.
            host: its address.
            operation: what it wants to do, not ALL.
            resource_type: the kind of the resource.
            name: its name.
        """
        if len(name) > _NAME_CHARACTERS_MAX:
            return self._decide(principal, host, operation, resource_type, name)
        return self._remembered(principal, host, operation, resource_type, name)

    def check(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> None:
        """Refuse what a client may not do, with a line in the log. Arguments as of `may`.

        Raises:
            NotAuthorized: the class of the resource's type.
        """
        if self.may(principal, host, operation, resource_type, name):
            return
        refused = principal, host, operation, resource_type, name[:_NAME_CHARACTERS_MAX]
        if refused not in self._refused:
            if len(self._refused) >= _REFUSALS_MAX:
                self._refused.clear()
            self._refused.add(refused)
            _log.info(
                "refused principal=%s host=%s operation=%s resource=%s:%r",
                principal,
                host,
                operation.name,
                resource_type.name,
                refused[-1],
            )
        refusal = _REFUSALS.get(resource_type, NotAuthorized)
        # Without the name: who asked by an id is not to learn it.
        raise refusal(f"{principal} has no permission to {operation.name} this {resource_type.name}")

    def may_somewhere(self, principal: str, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether a client may do something with at least one resource of a type, be it one that does not exist.

        Arguments as of `may`; the operation is one that no other implies.
        """
        return self._remembered_somewhere(principal, host, operation, resource_type)

    def is_same_for_all_hosts(self, resource_type: ResourceType) -> bool:
        """Whether no ACL of a type of resource asks where a client is."""
        return all(acl.host == WILDCARD for acl in self.acls.of_type(resource_type))

    def _forget(self) -> None:
        self.changes += 1
        self._remembered.cache_clear()
        self._remembered_somewhere.cache_clear()
        self._refused.clear()

    def _decide_somewhere(self, principal: str, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        if self.may(principal, host, operation, resource_type, _UNNAMED):
            return True
        allowed, denied = [], set()
        for acl in self._of_client(self.acls.of_type(resource_type), principal, host):
            if acl.operation in (operation, Operation.ALL):
                if acl.permission is Permission.ALLOW:
                    allowed.append(acl.resource)
                else:
                    denied.add((acl.resource.pattern, acl.resource.name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        for _, pattern, name in allowed:
            prefixes = ((PatternType.PREFIXED, name[:length]) for length in range(1, len(name) + 1))
            named = pattern is PatternType.LITERAL and (pattern, name) in denied
            if not named and denied.isdisjoint(prefixes):
                return True
        return False

    def _decide(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        if principal in self._super_users:
            return True
        applying = list(self.acls.applying_to(resource_type, name))
        if not applying:
            return self._allow_if_none
        allowed = False
        for acl in self._of_client(applying, principal, host):
            if acl.permission is Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return False
            elif acl.operation in (operation, Operation.ALL) or acl.operation in _IMPLIED_BY.get(operation, ()):
                allowed = True
        return allowed

    def _of_client(self, acls: Iterable[Acl], principal: str, host: str) -> Iterator[Acl]:
        address = _canonical(host)
        for acl in acls:
            if acl.principal in (principal, _EVERYBODY) and (
                acl.host == WILDCARD or acl.host == host or _canonical(acl.host) == address
            ):
                yield acl


def _canonical(host: str) -> str:
    """An address in its shortest form, and as IPv4 where IPv6 carries it; what is no address stays as it is."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
