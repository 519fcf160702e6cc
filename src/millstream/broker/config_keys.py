"""What a setting is: its name, its kind, its bounds; and what its values are checked with."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from millstream.broker.errors import InvalidConfig

__all__ = ["INT_MAX", "LONG_MAX", "ConfigKey", "Kind", "check_configs", "parse_value"]

INT_MAX: Final = 2**31 - 1
"""The largest number of a setting that is an int."""
LONG_MAX: Final = 2**63 - 1
"""The largest number of a setting that is a long."""


class Kind(Enum):
    """The type of a setting's value."""

    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One setting.

    Args:
        name: as users write it.
        kind: the type of its value.
        default: its value where nobody sets it.
        doc: one sentence for users, with the unit.
        low, high: the bounds of a number, both included.
        choices: the words that are allowed, if not all are.
        server_name: for a topic's setting, the server setting that is its default.
        obeyed: whether this server acts on it; others are kept and described for clients that set them.
    """

    name: str
    kind: Kind
    default: str
    doc: str
    low: int = 0
    high: int = LONG_MAX
    choices: tuple[str, ...] = ()
    server_name: str | None = None
    obeyed: bool = True


_BOOLEANS: Final = {"true": True, "false": False}


def parse_value(key: ConfigKey, text: str) -> str | int | float | bool | tuple[str, ...]:
    """The value that a text means for a key.

    Raises:
        InvalidConfig: the key does not take it; the message names the key and says what it takes.
    """
    match key.kind:
        case Kind.BOOLEAN:
            value = _BOOLEANS.get(text.strip().lower())
            if value is None:
                raise InvalidConfig(f"{key.name} is true or false, not {text!r}")
            return value
        case Kind.INT | Kind.LONG:
            return _bounded(key, text, int)
        case Kind.DOUBLE:
            return _bounded(key, text, float)
        case Kind.LIST:
            items = tuple(item.strip() for item in text.split(",") if item.strip())
            if (not items and key.default) or any(item not in key.choices for item in items):
                raise InvalidConfig(f"{key.name} is a list of {', '.join(key.choices)}, not {text!r}")
            return items
        case Kind.STRING:
            if key.choices and text not in key.choices and text != key.default:
                raise InvalidConfig(f"{key.name} is one of {', '.join(key.choices)}, not {text!r}")
            return text


def _bounded(key: ConfigKey, text: str, convert: type[int] | type[float]) -> int | float:
    try:
        if "_" in text:  # which Python would take, and nobody else
            raise ValueError
        value = convert(text.strip())
    except ValueError:
        raise InvalidConfig(f"{key.name} is a number, not {text!r}") from None
    if not key.low <= value <= key.high:
        raise InvalidConfig(f"{key.name} lies between {key.low} and {key.high}, and {text} does not")
    return value


def check_configs(table: Mapping[str, ConfigKey], configs: Mapping[str, str | None]) -> None:
    """Check keys and values that somebody sets.

    Raises:
        InvalidConfig: the first key that is unknown, or whose value it does not take.
    """
    for name, text in configs.items():
        key = table.get(name)
        if key is None:
            raise InvalidConfig(f"there is no setting {name}")
        if text is None:
            raise InvalidConfig(f"{name} has no value")
        parse_value(key, text)
