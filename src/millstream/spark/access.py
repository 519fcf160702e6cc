"""What a broker with ACLs refuses, as an error that names the right that is missing."""

from millstream.spark.connections import error_name
from millstream.spark.errors import AccessDenied
from millstream.wire.kafka.error_codes import ErrorCode

__all__ = ["check_access"]


def check_access(code: int, operation: str, *, topic: str = "", group: str = "", transactional_id: str = "") -> None:
    """Refuse to go on if a broker's answer says that a right is missing: to ask again would not help.

    Args:
        code: the error code of the answer.
        operation: the right that is wanted, by Kafka's name.
        topic, group, transactional_id: what it may be wanted on; the code says on which of them.

    Raises:
        AccessDenied: a right is missing.
    """
    resources = {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"topic {topic!r}",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: f"group {group!r}",
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: f"transactional id {transactional_id!r}",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    }
    for denied, resource in resources.items():
        if code == denied:
            raise AccessDenied(
                f"the broker does not let this user {operation} the {resource}: {error_name(code)}; give it that "
                "right with an ACL (kafka-acls), or say who one is with the options that begin with kafka.sasl"
            )
