"""The name of a topic, and what it is called where there is only a flat name.

A topic is (tenant, namespace, name). In a protocol with flat names (Kafka, Kafka 0.7) it is called

    public / default / orders    orders
    public / sales   / orders    sales.orders
    acme   / sales   / orders    acme.sales.orders

A topic created under a flat name lives in public/default under that whole name, dots included.
"""

import re
from typing import Final, NamedTuple

__all__ = ["DEFAULT_NAMESPACE", "DEFAULT_TENANT", "TopicName"]

DEFAULT_TENANT: Final = "public"
DEFAULT_NAMESPACE: Final = "default"
_PARTITION: Final = re.compile(r"(.+)-partition-(0|[1-9]\d{0,8})", re.ASCII | re.DOTALL)


class TopicName(NamedTuple):
    """The full name of a topic."""

    tenant: str
    namespace: str
    name: str

    @classmethod
    def from_flat(cls, name: str) -> "TopicName":
        """The topic that is created under a flat name."""
        return cls(DEFAULT_TENANT, DEFAULT_NAMESPACE, name)

    def partition(self, index: int) -> "TopicName":
        """The name of a partition, where partitions have names."""
        return self._replace(name=f"{self.name}-partition-{index}")

    def split_partition(self) -> "tuple[TopicName, int] | None":
        """The topic and the number, if this can be the name of a partition."""
        found = _PARTITION.fullmatch(self.name)
        return None if found is None else (self._replace(name=found[1]), int(found[2]))

    @property
    def flat(self) -> str:
        """Its flat name. Two topics may share one; the broker refuses the second."""
        if self.tenant != DEFAULT_TENANT:
            return f"{self.tenant}.{self.namespace}.{self.name}"
        if self.namespace != DEFAULT_NAMESPACE:
            return f"{self.namespace}.{self.name}"
        return self.name
