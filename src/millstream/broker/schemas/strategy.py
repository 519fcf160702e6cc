"""What a new version of a schema must keep."""

from enum import Enum

__all__ = ["SchemaCompatibility"]


class SchemaCompatibility(Enum):
    """The rule by which a schema may follow others, as Pulsar's namespaces have it."""

    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    """None may."""
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    """Any may, of whatever type."""
    BACKWARD = "BACKWARD"
    """It reads what was written with the latest."""
    FORWARD = "FORWARD"
    """The latest reads what is written with it."""
    FULL = "FULL"
    """Both."""
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    """It reads what was written with any version."""
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    """Every version reads what is written with it."""
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    """Both."""

    @property
    def transitive(self) -> bool:
        """Whether all versions count, rather than the latest alone."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_older(self) -> bool:
        """Whether the new schema must read what was written with older ones."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def read_by_older(self) -> bool:
        """Whether older schemas must read what is written with the new one."""
        return self.value.startswith(("FORWARD", "FULL"))
