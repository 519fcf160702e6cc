"""Access control entries (ACLs): who may, or may not, do what to which resources; and filters over them.

The names and the rules are Apache Kafka's. Source: KIP-11, KIP-290 (prefixes) and Apache Kafka 4.x,
org.apache.kafka.common.acl and org.apache.kafka.common.resource.
"""

import json
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from millstream.broker.documents import Document
from millstream.broker.errors import BrokerError

__all__ = [
    "CLUSTER_NAME",
    "WILDCARD",
    "Acl",
    "AclFilter",
    "InvalidAcl",
    "Operation",
    "PatternType",
    "Permission",
    "Resource",
    "ResourceType",
    "check_principal",
]

WILDCARD: Final = "*"
"""As a name every resource of a type, as a host every host; as the name of a principal everybody."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of the type CLUSTER."""


class InvalidAcl(BrokerError):
    """An ACL, or a filter, that makes no sense."""


class ResourceType(Enum):
    """Kinds of resources."""

    TOPIC = auto()
    GROUP = auto()
    CLUSTER = auto()
    TRANSACTIONAL_ID = auto()
    DELEGATION_TOKEN = auto()
    USER = auto()


class PatternType(Enum):
    """How the name of an ACL stands for those of resources.

    The first two are of ACLs; all are of filters. MATCH finds the ACLs that apply to a resource of the filter's name.
    """

    LITERAL = auto()
    PREFIXED = auto()
    ANY = auto()
    MATCH = auto()


class Operation(Enum):
    """What is done to a resource; ALL stands for each of the others."""

    ALL = auto()
    READ = auto()
    WRITE = auto()
    CREATE = auto()
    DELETE = auto()
    ALTER = auto()
    DESCRIBE = auto()
    CLUSTER_ACTION = auto()
    DESCRIBE_CONFIGS = auto()
    ALTER_CONFIGS = auto()
    IDEMPOTENT_WRITE = auto()
    CREATE_TOKENS = auto()
    DESCRIBE_TOKENS = auto()
    TWO_PHASE_COMMIT = auto()


class Permission(Enum):
    """Whether an ACL allows or denies."""

    ALLOW = auto()
    DENY = auto()


class Resource(NamedTuple):
    """The resources of a type whose names a pattern stands for."""

    type: ResourceType
    pattern: PatternType
    name: str


@dataclass(frozen=True, slots=True)
class Acl:
    """One access control entry.

    Args:
        resource: of what it speaks; LITERAL or PREFIXED. The literal name "*" stands for every resource of the type.
        principal: of whom, as TYPE:NAME; "User:*" for everybody.
        host: the address that they come from; "*" for any.
        operation: what they may do or not.
        permission: whether they may.

    Raises:
        InvalidAcl: there can be no such ACL.
    """

    resource: Resource
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __post_init__(self) -> None:
        kind, pattern, name = self.resource
        if not name:
            raise InvalidAcl("the name of a resource is empty")
        if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
            raise InvalidAcl(f"an ACL is for a literal name or for a prefix, not {pattern.name}")
        if kind is ResourceType.CLUSTER and name != CLUSTER_NAME:
            raise InvalidAcl(f"the cluster is called {CLUSTER_NAME}, not {name!r}")
        if not self.host:
            raise InvalidAcl('a host is an address, or "*" for any')
        check_principal(self.principal)

    @property
    def key(self) -> str:
        """What it is stored under: one text for each ACL."""
        return json.dumps(list(self.document().values()), ensure_ascii=False)

    def document(self) -> dict[str, str]:
        """What is stored of it: its texts, and the names of the rest."""
        kind, pattern, name = self.resource
        return {
            "resource_type": kind.name,
            "pattern_type": pattern.name,
            "name": name,
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation.name,
            "permission": self.permission.name,
        }

    @classmethod
    def of_document(cls, document: Document) -> "Acl":
        """Read back what was stored."""
        return cls(
            Resource(
                ResourceType[document["resource_type"]], PatternType[document["pattern_type"]], document["name"]
            ),
            document["principal"],
            document["host"],
            Operation[document["operation"]],
            Permission[document["permission"]],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Which ACLs are meant: those that have all that is set here.

    Args:
        resource_type, name, principal, host, operation, permission: what an ACL has; None for anything.
        pattern: how `name` is compared: ANY and the types of an ACL with the ACL's own name, MATCH by what the ACL
            applies to.
    """

    resource_type: ResourceType | None = None
    pattern: PatternType = PatternType.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.resource_type in (None, acl.resource.type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (None, acl.operation)
            and self.permission in (None, acl.permission)
            and self._names(acl.resource)
        )

    def _names(self, resource: Resource) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, resource.pattern):
            return False
        name = self.name
        if name is None or name == resource.name:
            return True
        if self.pattern is not PatternType.MATCH:
            return False
        if resource.pattern is PatternType.PREFIXED:
            return name.startswith(resource.name)
        return resource.name == WILDCARD


def check_principal(text: str) -> None:
    """Check the name of a principal, TYPE:NAME. Raises InvalidAcl."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise InvalidAcl(f"a principal is TYPE:NAME, such as User:ada, not {text!r}")
