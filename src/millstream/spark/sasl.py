"""Showing brokers who one is, by SASL: the options, and the tokens that are exchanged.

Source: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM); the options are those of Kafka's Java client and of librdkafka.
"""

import re
import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from millstream.spark.errors import BadOption
from millstream.wire.kafka.scram import ScramClient

__all__ = ["SASL_OPTIONS", "SASL_SECRETS", "Sasl"]

_MECHANISM: Final = "kafka.sasl.mechanism"
_CREDENTIALS: Final = ("kafka.sasl.username", "kafka.sasl.password")
_JAAS: Final = "kafka.sasl.jaas.config"
SASL_OPTIONS: Final = (_MECHANISM, *_CREDENTIALS, _JAAS)
SASL_SECRETS: Final = frozenset({_CREDENTIALS[1], _JAAS})
_PLAIN: Final = "PLAIN"
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash of each mechanism of SCRAM, by hashlib's name."""
_MECHANISMS: Final = (_PLAIN, *_HASHES)
_MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": {_PLAIN},
    "org.apache.kafka.common.security.scram.ScramLoginModule": set(_HASHES),
}
"""The login modules of Kafka's Java client, and for which mechanisms each is."""
_NONCE_BYTES: Final = 18
_ENTRY: Final = re.compile(
    r"""\s*(?P<module>[\w.$]+) \s+ (?:required|requisite|sufficient|optional)
    (?P<settings>(?:\s+ \w+ \s*=\s* (?:"(?:[^"\\]|\\.)*" | [^\s;"]+))*) \s*;\s*""",
    re.VERBOSE | re.IGNORECASE,
)
_SETTING: Final = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


@dataclass(frozen=True, slots=True)
class Sasl:
    """Who one is, and how that is shown.

    Args:
        mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
        username, password: of the user.
    """

    mechanism: str
    username: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Read the options.

        Args:
            given: by the names in SASL_OPTIONS.

        Raises:
            BadOption: one is missing, or they contradict each other. The message does not tell the password.
        """
        mechanism = given.get(_MECHANISM, "").upper()
        if mechanism not in _MECHANISMS:
            told = f", not {given[_MECHANISM]!r}" if _MECHANISM in given else ", and is missing"
            raise BadOption(f"{_MECHANISM} is one of {', '.join(_MECHANISMS)}{told}")
        if _JAAS in given:
            both = next((name for name in _CREDENTIALS if name in given), None)
            if both is not None:
                raise BadOption(f"{_JAAS} and {both} both tell who one is; give one of them")
            return cls(mechanism, *_jaas(given[_JAAS], mechanism))
        for name in _CREDENTIALS:
            if not given.get(name):
                raise BadOption(f"{name} is missing: {_MECHANISM} is {mechanism}")
        return cls(mechanism, *(given[name] for name in _CREDENTIALS))

    def tokens(self) -> Generator[bytes, bytes | None]:
        """What is sent to the broker, one after the other; to be sent the broker's answer to each.

        Raises:
            MalformedMessage: the broker answers otherwise than the mechanism demands, or does not know the password.
        """
        if self.mechanism == _PLAIN:
            yield b"\0".join((b"", self.username.encode(), self.password.encode()))
            return
        nonce = secrets.token_hex(_NONCE_BYTES)
        scram = ScramClient(_HASHES[self.mechanism], self.username, self.password, nonce)
        challenge = yield scram.first
        signature = yield scram.final(challenge or b"")
        scram.check(signature or b"")


def _jaas(text: str, mechanism: str) -> tuple[str, str]:
    """The name and the password in the configuration of a login module of Java's."""
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise BadOption(f'{_JAAS} is not of the form: LOGIN MODULE required username="NAME" password="PASSWORD";')
    # Platforms that have a Kafka client of their own give its packages a prefix.
    mechanisms = next((kinds for module, kinds in _MODULES.items() if entry["module"].endswith(module)), None)
    if mechanisms is None:
        raise BadOption(f"{_JAAS} names the login module {entry['module']}; taken are {' and '.join(_MODULES)}")
    if mechanism not in mechanisms:
        raise BadOption(f"{_JAAS} is for {' or '.join(sorted(mechanisms))}, and {_MECHANISM} is {mechanism}")
    settings = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for name, quoted, bare in _SETTING.findall(entry["settings"])
    }
    if settings.keys() != {"username", "password"} or not all(settings.values()):
        raise BadOption(f"{_JAAS} tells a username and a password, and nothing else")
    return settings["username"], settings["password"]
