"""Backlog quotas: how far the slowest subscription of a partition may fall behind, and what happens then.

Bytes of a backlog are an estimate, its records at the mean size of those in the log, as they are in Pulsar.
"""

from collections.abc import Iterator

from millstream.broker.namespaces.namespaces import Namespaces
from millstream.broker.namespaces.policies import BacklogAction, BacklogQuota
from millstream.broker.subscriptions import Subscription, Subscriptions
from millstream.broker.topics import Topic
from millstream.model.frame import read_frame_header
from millstream.model.runtime import Runtime
from millstream.storage.log import PartitionLog

__all__ = ["Backlogs"]


class Backlogs:
    """The quotas of all namespaces, as they apply to partitions. Subscriptions that do not last count for nothing.

    Args:
        runtime: the time.
        subscriptions: whose backlogs they are.
        namespaces: whose quotas they are.
    """

    def __init__(self, runtime: Runtime, subscriptions: Subscriptions, namespaces: Namespaces) -> None:
        self._runtime = runtime
        self._subscriptions = subscriptions
        self._namespaces = namespaces

    def closed_by(self, topic: Topic, index: int) -> BacklogQuota | None:
        """The quota for which producers are kept out of a partition at present; None if they are let in."""
        return next(self._exceeded(topic, index, evict=False), None)

    def enforce(self, topic: Topic, index: int) -> BacklogQuota | None:
        """Let subscriptions that are too far behind lose what is too much, where the quota says so.

        Returns:
            See `closed_by`: the caller parts from the producers that are connected.
        """
        for quota in list(self._exceeded(topic, index, evict=True)):
            for subscription in self._durable(topic, index):
                self._evict(subscription, topic.partitions[index].log, quota)
        return self.closed_by(topic, index)

    def _exceeded(self, topic: Topic, index: int, *, evict: bool) -> Iterator[BacklogQuota]:
        """The quotas that are exceeded: those that evict, or those that keep producers out."""
        namespace = self._namespaces.find(topic.name.tenant, topic.name.namespace)
        if namespace is None:
            return
        for quota in namespace.policies.backlog_quotas.values():
            if (quota.action is BacklogAction.EVICT) is evict and self._is_exceeded(topic, index, quota):
                yield quota

    def _is_exceeded(self, topic: Topic, index: int, quota: BacklogQuota) -> bool:
        log = topic.partitions[index].log
        position = min((one.position for one in self._durable(topic, index)), default=log.end_offset)
        position = max(position, log.start_offset)
        if position >= log.end_offset:
            return False
        if 0 <= quota.limit_bytes < _bytes_behind(log, position):
            return True
        return quota.limit_s >= 0 and self._age_ms(log, position) > quota.limit_s * 1000

    def _age_ms(self, log: PartitionLog, position: int) -> int:
        data, _ = log.read(position, 1)
        return self._runtime.now_ms() - read_frame_header(data).max_timestamp if data else 0

    def _evict(self, subscription: Subscription, log: PartitionLog, quota: BacklogQuota) -> None:
        position = max(subscription.position, log.start_offset)
        behind = _bytes_behind(log, position)
        if 0 <= quota.limit_bytes < behind:
            kept = int((log.end_offset - position) * quota.limit_bytes / behind)
            subscription.expire_before(log.end_offset - kept)
        if quota.limit_s >= 0:
            subscription.expire_before_time(self._runtime.now_ms() - quota.limit_s * 1000)

    def _durable(self, topic: Topic, index: int) -> Iterator[Subscription]:
        for name in self._subscriptions.names(topic, index):
            found = self._subscriptions.find(topic, index, name)
            if found is not None and found.durable:
                yield found


def _bytes_behind(log: PartitionLog, position: int) -> float:
    return log.size_bytes * (log.end_offset - position) / (log.end_offset - log.start_offset)
