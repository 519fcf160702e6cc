"""Whether a client may do what a request asks for: what every handler asks before it does anything.

`require` refuses, by an error that the table of errors has a code for; `may` is for what is only left out of an
answer. Where the server decides by no ACLs, both say yes at the cost of a look.

Which operation on which resource an API wants is as in Apache Kafka 4.x (kafka.server.KafkaApis, ControllerApis).
A topic that is asked for by name is checked before it is looked for, so that nobody learns whether it exists.
"""

from typing import Final

from millstream.broker.acl import CLUSTER_NAME, Operation, ResourceType
from millstream.broker.acls import Acls
from millstream.broker.topics import Topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.errors import SecurityDisabled

__all__ = [
    "acls_for",
    "may",
    "may_with_cluster",
    "may_write_somewhere",
    "require",
    "require_cluster",
    "require_topic",
]

_CLUSTER: Final = ResourceType.CLUSTER


def may(call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
    """Whether the client may do something with a resource."""
    authorizer, client = call.broker.authorizer, call.client
    return authorizer is None or authorizer.may(client.principal, client.host, operation, resource_type, name)


def may_with_cluster(call: Call, operation: Operation) -> bool:
    """Whether the client may do something with the cluster."""
    return may(call, operation, _CLUSTER, CLUSTER_NAME)


def may_write_somewhere(call: Call) -> bool:
    """Whether there is, or could be, a topic that the client may write to (KIP-679)."""
    authorizer, client = call.broker.authorizer, call.client
    return authorizer is None or authorizer.may_somewhere(
        client.principal, client.host, Operation.WRITE, ResourceType.TOPIC
    )


def require(call: Call, operation: Operation, resource_type: ResourceType, name: str) -> None:
    """Refuse what the client may not do with a resource.

    Raises:
        NotAuthorized: the class of the resource's type.
    """
    authorizer, client = call.broker.authorizer, call.client
    if authorizer is not None:
        authorizer.check(client.principal, client.host, operation, resource_type, name)


def require_cluster(call: Call, operation: Operation) -> None:
    """Refuse what the client may not do with the cluster. Raises ClusterNotAuthorized."""
    require(call, operation, _CLUSTER, CLUSTER_NAME)


def acls_for(call: Call, operation: Operation) -> Acls:
    """The ACLs, for a client that may describe or alter the cluster.

    Raises:
        ClusterNotAuthorized: it may not.
        SecurityDisabled: the server decides by none.
    """
    require_cluster(call, operation)
    authorizer = call.broker.authorizer
    if authorizer is None:
        raise SecurityDisabled("there are no ACLs here: see the server's setting authorizer.class.name")
    return authorizer.acls


def require_topic(call: Call, operation: Operation, topic: Topic | None, name: str | None) -> None:
    """Refuse what the client may not do with a topic.

    Args:
        topic: what was found; None for nothing.
        name: what it was asked for by; empty or None if that was an id. An id that is nobody's is not refused here.

    Raises:
        TopicNotAuthorized.
    """
    if topic is not None:
        require(call, operation, ResourceType.TOPIC, topic.name.flat)
    elif name:
        require(call, operation, ResourceType.TOPIC, name)
