"""A server that decides by ACLs: its settings, and what Kafka clients of it are told."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.support.server_process import ServerProcess, serving

__all__ = ["ANSWER_S", "USERS", "aio_config", "allow", "config", "guarded_server", "guarded_settings", "rule"]

USERS: Final = {"root": "root-secret", "ada": "ada-secret", "bob": "bob-secret"}
ANSWER_S: Final = 20


def guarded_settings(directory: Path) -> list[str]:
    """The settings of a server with `USERS`, of whom root may do everything; their file lies in the directory."""
    users = directory / "users"
    users.write_text("".join(f"{name}:{password}\n" for name, password in USERS.items()))
    return [
        "sasl.enabled.mechanisms=PLAIN",
        f"sasl.users.file={users}",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:root",
    ]


@contextlib.contextmanager
def guarded_server(directory: Path) -> Iterator[ServerProcess]:
    """A server with these settings, for as long as the block lasts. Nothing in it may go wrong unseen."""
    with serving(str(directory / "data"), settings=guarded_settings(directory)) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


def config(server: ServerProcess, user: str, **more: Any) -> dict[str, Any]:
    """What librdkafka is told to be a user; settings by their names, with _ for each dot."""
    return {
        "bootstrap.servers": server.kafka,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": USERS[user],
        "log_level": 0,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def aio_config(server: ServerProcess, user: str) -> dict[str, Any]:
    """What kafka-python and aiokafka are told to be a user."""
    return {
        "bootstrap_servers": server.kafka,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": USERS[user],
    }


def rule(
    user: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclBinding:
    """An ACL for a user from anywhere."""
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)


def allow(
    server: ServerProcess,
    user: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> None:
    """Have root let a user do something."""
    admin = AdminClient(config(server, "root"))
    for done in admin.create_acls([rule(user, operation, kind, name, pattern)]).values():
        done.result(ANSWER_S)
