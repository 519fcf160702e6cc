"""The settings of groups: those of the server, and those of single consumer groups on top of them."""

from collections.abc import Mapping
from typing import Final

from millstream.broker.config_keys import INT_MAX, ConfigKey, Kind

__all__ = ["GROUP_CONFIGS", "GROUP_SERVER_CONFIGS"]

GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    key.name: key
    for key in (
        ConfigKey(
            "consumer.heartbeat.interval.ms",
            Kind.INT,
            "5000",
            "ms between two heartbeats of a member.",
            low=1,
            high=INT_MAX,
            server_name="group.consumer.heartbeat.interval.ms",
        ),
        ConfigKey(
            "consumer.session.timeout.ms",
            Kind.INT,
            "45000",
            "ms of silence after which a member is taken for dead.",
            low=1,
            high=INT_MAX,
            server_name="group.consumer.session.timeout.ms",
        ),
    )
}
"""What may be set on a consumer group (resources of type GROUP), by name; the server's settings bound it."""

GROUP_SERVER_CONFIGS: Final = (
    ConfigKey(
        "group.consumer.assignors",
        Kind.LIST,
        "uniform,range",
        "How the partitions of consumer groups (KIP-848) may be shared out; the first where members do not say.",
        choices=("uniform", "range"),
    ),
    ConfigKey(
        "group.consumer.heartbeat.interval.ms",
        Kind.INT,
        "5000",
        "ms between two heartbeats of a member of a consumer group, unless the group says otherwise.",
        low=1,
        high=INT_MAX,
    ),
    ConfigKey(
        "group.consumer.max.heartbeat.interval.ms",
        Kind.INT,
        "15000",
        "The largest interval between two heartbeats of such a member, in ms.",
        low=1,
        high=INT_MAX,
    ),
    ConfigKey(
        "group.consumer.max.session.timeout.ms",
        Kind.INT,
        "60000",
        "The largest session timeout of a consumer group, in ms.",
        low=1,
        high=INT_MAX,
    ),
    ConfigKey(
        "group.consumer.max.size",
        Kind.INT,
        str(INT_MAX),
        "Members that one consumer group may have.",
        low=1,
        high=INT_MAX,
    ),
    ConfigKey(
        "group.consumer.migration.policy",
        Kind.STRING,
        "bidirectional",
        "Whether a group with members may change its kind: upgrade, from classic to consumer when a member of that "
        "protocol joins; downgrade, when the last of them leaves; bidirectional; disabled.",
        choices=("bidirectional", "disabled", "downgrade", "upgrade"),
    ),
    ConfigKey(
        "group.consumer.min.heartbeat.interval.ms",
        Kind.INT,
        "5000",
        "The smallest interval between two heartbeats of such a member, in ms.",
        low=1,
        high=INT_MAX,
    ),
    ConfigKey(
        "group.consumer.min.session.timeout.ms",
        Kind.INT,
        "45000",
        "The smallest session timeout of a consumer group, in ms.",
        low=1,
        high=INT_MAX,
    ),
    ConfigKey(
        "group.consumer.session.timeout.ms",
        Kind.INT,
        "45000",
        "ms of silence after which a member of a consumer group is taken for dead, unless the group says otherwise.",
        low=1,
        high=INT_MAX,
    ),
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        "0",
        "ms for which the first rebalance of an empty group waits for more members.",
        high=INT_MAX,
    ),
    ConfigKey(
        "group.max.session.timeout.ms", Kind.INT, "1800000", "The largest session timeout, in ms.", high=INT_MAX
    ),
    ConfigKey("group.max.size", Kind.INT, str(INT_MAX), "Members that one group may have.", low=1, high=INT_MAX),
    ConfigKey("group.min.session.timeout.ms", Kind.INT, "6000", "The smallest session timeout, in ms.", high=INT_MAX),
)
"""The server's settings of groups of both kinds."""
