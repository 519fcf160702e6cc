"""GET_TOPICS_OF_NAMESPACE and the WATCH_TOPIC_LIST family: which topics there are, and which come and go.

Partitions are listed one by one, under their own names. A pattern is matched, as a whole, against the name of a topic
without its domain and without the suffix of a partition.

Source: Pulsar binary protocol specification 3.0; patterns, PIP-145.
"""

from typing import Final

import re2

from millstream.sessions.pulsar.errors import NotAllowed
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.names import parse_name, topic_text
from millstream.sessions.pulsar.topic_watch import Matches, names_of, topics_hash
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
    CommandSuccess,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
    CommandWatchTopicListSuccess,
)

__all__ = ["handle_get_topics", "handle_unwatch", "handle_watch", "topics_hash"]

_PATTERN_CHARACTERS_MAX: Final = 50
"""Characters of a pattern that the server matches, as Apache Pulsar has it; longer ones are the client's to match."""
_WATCHERS_MAX: Final = 1000
"""Watchers of one connection: a client has one for each consumer of a pattern."""

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False  # a client's mistake is told to the client


def handle_get_topics(link: Link, command: CommandGetTopicsOfNamespace) -> None:
    """List the topics of a namespace."""
    matches = _matcher(command.topics_pattern)
    mode = command.mode
    names = _list(
        link,
        command.namespace,
        matches,
        persistent=mode != CommandGetTopicsOfNamespace.NON_PERSISTENT,
        volatile=mode != CommandGetTopicsOfNamespace.PERSISTENT,
    )
    found = topics_hash(names)
    unchanged = bool(command.topics_hash) and command.topics_hash == found
    link.send(
        CommandGetTopicsOfNamespaceResponse(
            request_id=command.request_id,
            topics=[] if unchanged else names,
            filtered=matches is not None,
            topics_hash=found,
            changed=not unchanged,
        )
    )


def handle_watch(link: Link, command: CommandWatchTopicList) -> None:
    """List the topics that match a pattern, and tell from then on of those that come and go; see `topic_watch`."""
    if len(link.watchers) >= _WATCHERS_MAX:
        raise NotAllowed(f"a connection has at most {_WATCHERS_MAX} watchers")
    matches = _matcher(command.topics_pattern)
    if matches is None and command.topics_pattern:
        raise NotAllowed(f"a pattern that the server watches has at most {_PATTERN_CHARACTERS_MAX} characters")
    tenant, name = _namespace(link, command.namespace)
    watcher_id = command.watcher_id
    link.unwatch(watcher_id)
    shared = link.shared
    watcher = shared.topic_watch.watch(link, watcher_id, tenant, name, command.topics_pattern, matches)
    link.watchers[watcher_id] = watcher
    unchanged = bool(command.topics_hash) and command.topics_hash == watcher.hash
    link.send(
        CommandWatchTopicListSuccess(
            request_id=command.request_id,
            watcher_id=watcher_id,
            topic=[] if unchanged else watcher.names,
            topics_hash=watcher.hash,
        )
    )


def handle_unwatch(link: Link, command: CommandWatchTopicListClose) -> None:
    """Tell no more."""
    link.unwatch(command.watcher_id)
    link.send(CommandSuccess(request_id=command.request_id))


def _matcher(pattern: str) -> Matches | None:
    """What tells whether a name without its domain is meant; None if the client is to do it."""
    if not pattern or len(pattern) > _PATTERN_CHARACTERS_MAX:
        return None
    try:
        compiled = re2.compile(pattern.split("://", 1)[-1], _OPTIONS)
    except re2.error as error:
        raise NotAllowed(f"{pattern!r} is no pattern: {error}") from None
    return lambda name: compiled.fullmatch(name) is not None


def _namespace(link: Link, text: str) -> tuple[str, str]:
    """Tenant and name of a namespace: TENANT/NAMESPACE; the old form has a cluster between.

    Raises:
        UnknownTenant, UnknownNamespace: there is no such namespace.
    """
    parts = text.split("/")
    tenant, name = parts[0], parts[-1]
    link.broker.namespaces.get(tenant, name)
    return tenant, name


def _list(link: Link, namespace: str, matches: Matches | None, *, persistent: bool, volatile: bool) -> list[str]:
    """The names of a namespace's topics.

    Args:
        namespace: see `_namespace`, which may raise.
        persistent, volatile: which domains to list.
    """
    tenant, name = _namespace(link, namespace)
    names: list[str] = []
    if persistent:
        for topic in link.broker.topics:
            if topic.name[:2] == (tenant, name) and (matches is None or matches("/".join(topic.name))):
                names += names_of(topic)
    if volatile:
        for kept_nowhere in link.broker.volatile:
            whole = parse_name(topic_text(kept_nowhere.name, persistent=False))
            if kept_nowhere.name[:2] == (tenant, name) and (matches is None or matches("/".join(whole.base))):
                names.append(str(whole))
    return sorted(names)
