"""The settings of single consumer groups, which last whether there is such a group or not."""

from collections.abc import Mapping
from typing import Final

from millstream.broker.config_keys import check_configs
from millstream.broker.consumer_groups.environment import GroupTimings
from millstream.broker.documents import Documents
from millstream.broker.errors import InvalidConfig, InvalidGroupId
from millstream.broker.group_config_keys import GROUP_CONFIGS
from millstream.broker.settings import BrokerSettings
from millstream.model.pending import Pending

__all__ = ["GroupConfigs"]

_DOCUMENT: Final = "group_config"


class GroupConfigs:
    """What is set on groups, by their names.

    Args:
        documents: where it lasts.
        settings: the server's, which hold where a group has none of its own, and bound them.
    """

    def __init__(self, documents: Documents, settings: BrokerSettings) -> None:
        self._documents = documents
        self._settings = settings

    def of(self, group_id: str) -> dict[str, str]:
        """What is set on a group."""
        return dict(self._documents.find(_DOCUMENT, group_id) or {})

    def timings(self, group_id: str) -> GroupTimings:
        """How often the members of a group are heard of."""
        return self._timings(self._documents.find(_DOCUMENT, group_id) or {})

    def _timings(self, configs: Mapping[str, str]) -> GroupTimings:
        settings = self._settings.consumer_groups
        return GroupTimings(
            int(configs.get("consumer.session.timeout.ms", settings.session_timeout_ms)),
            int(configs.get("consumer.heartbeat.interval.ms", settings.heartbeat_interval_ms)),
        )

    def check(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Check settings of a group.

        Raises:
            InvalidGroupId: it has no name.
            InvalidConfig: an unknown name, a bad value, or one beyond the bounds of the server.
        """
        if not group_id:
            raise InvalidGroupId("the name of a group is empty")
        check_configs(GROUP_CONFIGS, configs)
        for name, value in configs.items():
            kind = name.removeprefix("consumer.")
            low, high = (int(self._settings.text(f"group.consumer.{bound}.{kind}")) for bound in ("min", "max"))
            if not low <= int(value) <= high:
                raise InvalidConfig(f"{name} lies between {low} and {high}, and {value} does not")
        timings = self._timings(configs)
        if timings.heartbeat_interval_ms >= timings.session_timeout_ms:
            raise InvalidConfig("consumer.session.timeout.ms is more than consumer.heartbeat.interval.ms")

    def set(self, group_id: str, configs: Mapping[str, str]) -> Pending[None]:
        """Replace all settings of a group. They are obeyed from each member's next heartbeat on.

        Returns:
            Resolves once they last; fails with MetadataFailed, and then they are taken back.

        Raises:
            InvalidGroupId, InvalidConfig: nothing is changed.
        """
        self.check(group_id, configs)
        if configs:
            return self._documents.put(_DOCUMENT, group_id, dict(configs))
        return self._documents.delete(_DOCUMENT, group_id)
