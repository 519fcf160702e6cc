"""Every setting of the server and of a topic, by Kafka's names where Kafka has one.

One table each: it refuses unknown keys and bad values, gives the defaults, and is what DescribeConfigs and the
documentation print. A topic's setting falls back to the server setting that is named in its row.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from millstream.broker.config_keys import INT_MAX as _INT_MAX
from millstream.broker.config_keys import LONG_MAX as _LONG_MAX
from millstream.broker.config_keys import ConfigKey, Kind, check_configs, parse_value
from millstream.broker.group_config_keys import GROUP_SERVER_CONFIGS

__all__ = ["BROKER_CONFIGS", "TOPIC_CONFIGS", "ConfigKey", "Kind", "check_configs", "parse_value"]

_HOUR_MS: Final = 3600 * 1000


def _table(*keys: ConfigKey) -> dict[str, ConfigKey]:
    return {key.name: key for key in keys}


_COMPRESSIONS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = _table(
    ConfigKey(
        "cleanup.policy",
        Kind.LIST,
        "delete",
        "What becomes of old records: delete removes them by retention, compact keeps the last of each key. Both may "
        "be set.",
        choices=("delete", "compact"),
        server_name="log.cleanup.policy",
    ),
    ConfigKey(
        "compression.type",
        Kind.STRING,
        "producer",
        "Kept for clients that set it: batches are always stored as their producer compressed them.",
        choices=_COMPRESSIONS,
        server_name="compression.type",
        obeyed=False,
    ),
    ConfigKey(
        "delete.retention.ms",
        Kind.LONG,
        str(24 * _HOUR_MS),
        "ms for which a compacted topic keeps a record without value after all before it with its key are gone.",
        server_name="log.cleaner.delete.retention.ms",
    ),
    ConfigKey(
        "file.delete.delay.ms",
        Kind.LONG,
        "60000",
        "ms before a deleted file leaves the disk; this server removes it at once.",
        server_name="log.segment.delete.delay.ms",
        obeyed=False,
    ),
    ConfigKey(
        "flush.messages",
        Kind.LONG,
        str(_LONG_MAX),
        "Records between two flushes; this server flushes by acks and by flush.interval.ms.",
        low=1,
        server_name="log.flush.interval.messages",
        obeyed=False,
    ),
    ConfigKey(
        "flush.ms",
        Kind.LONG,
        str(_LONG_MAX),
        "ms between two flushes; this server flushes by acks and by flush.interval.ms.",
        server_name="log.flush.interval.ms",
        obeyed=False,
    ),
    ConfigKey(
        "index.interval.bytes",
        Kind.INT,
        "4096",
        "Bytes of log between two index entries.",
        high=_INT_MAX,
        server_name="log.index.interval.bytes",
        obeyed=False,
    ),
    ConfigKey(
        "max.compaction.lag.ms",
        Kind.LONG,
        str(_LONG_MAX),
        "ms after which a record must be compacted, whatever min.cleanable.dirty.ratio says.",
        low=1,
        server_name="log.cleaner.max.compaction.lag.ms",
    ),
    ConfigKey(
        "max.message.bytes",
        Kind.INT,
        str(1024 * 1024 + 12),
        "Bytes of the largest batch that is taken, as it was sent.",
        high=_INT_MAX,
        server_name="message.max.bytes",
    ),
    ConfigKey(
        "message.timestamp.after.max.ms",
        Kind.LONG,
        str(_HOUR_MS),
        "ms by which a producer's timestamp may lie ahead of the server's time.",
        server_name="log.message.timestamp.after.max.ms",
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        Kind.LONG,
        str(_LONG_MAX),
        "ms by which a producer's timestamp may lie behind the server's time.",
        server_name="log.message.timestamp.before.max.ms",
    ),
    ConfigKey(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "Whose time a record carries: the producer's, or that of its append.",
        choices=_TIMESTAMP_TYPES,
        server_name="log.message.timestamp.type",
    ),
    ConfigKey(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        "0.5",
        "Share of a partition's bytes at which compaction begins: of those that were not compacted yet.",
        high=1,
        server_name="log.cleaner.min.cleanable.ratio",
    ),
    ConfigKey(
        "min.compaction.lag.ms",
        Kind.LONG,
        "0",
        "ms for which a record is not compacted.",
        server_name="log.cleaner.min.compaction.lag.ms",
    ),
    ConfigKey(
        "min.insync.replicas",
        Kind.INT,
        "1",
        "Replicas that must have a batch sent with acks=all; there is one, so more than 1 refuses such batches.",
        low=1,
        high=_INT_MAX,
        server_name="min.insync.replicas",
    ),
    ConfigKey(
        "preallocate",
        Kind.BOOLEAN,
        "false",
        "Whether files are made at full size.",
        server_name="log.preallocate",
        obeyed=False,
    ),
    ConfigKey(
        "retention.bytes",
        Kind.LONG,
        "-1",
        "Bytes of one partition beyond which its oldest segments are deleted; -1 for no bound.",
        low=-1,
        server_name="log.retention.bytes",
    ),
    ConfigKey(
        "retention.ms",
        Kind.LONG,
        str(7 * 24 * _HOUR_MS),
        "ms after which a segment whose records are all older is deleted; -1 for never.",
        low=-1,
        server_name="log.retention.ms",
    ),
    ConfigKey(
        "segment.bytes",
        Kind.INT,
        str(1024 * 1024 * 1024),
        "Bytes at which a partition begins a new file.",
        low=14,
        high=_INT_MAX,
        server_name="log.segment.bytes",
    ),
    ConfigKey(
        "segment.index.bytes",
        Kind.INT,
        str(10 * 1024 * 1024),
        "Bytes of the index of a segment.",
        low=4,
        high=_INT_MAX,
        server_name="log.index.size.max.bytes",
        obeyed=False,
    ),
    ConfigKey(
        "segment.jitter.ms",
        Kind.LONG,
        "0",
        "ms by which segment.ms is varied.",
        server_name="log.roll.jitter.ms",
        obeyed=False,
    ),
    ConfigKey(
        "segment.ms",
        Kind.LONG,
        str(7 * 24 * _HOUR_MS),
        "ms after which a partition begins a new file at its next append.",
        low=1,
        server_name="log.roll.ms",
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        Kind.BOOLEAN,
        "false",
        "Whether a replica that lags may lead.",
        server_name="unclean.leader.election.enable",
        obeyed=False,
    ),
)


def _topic_defaults() -> Iterable[ConfigKey]:
    for key in TOPIC_CONFIGS.values():
        assert key.server_name is not None
        yield ConfigKey(
            key.server_name,
            key.kind,
            key.default,
            f"Default of the topic setting {key.name}. {key.doc}",
            low=key.low,
            high=key.high,
            choices=key.choices,
            obeyed=key.obeyed,
        )


BROKER_CONFIGS: Final[Mapping[str, ConfigKey]] = _table(
    ConfigKey(
        "advertised.listeners",
        Kind.STRING,
        "",
        "Where clients are told to connect, as NAME=HOST:PORT, comma-separated; empty for where the server listens.",
    ),
    ConfigKey(
        "allow.everyone.if.no.acl.found",
        Kind.BOOLEAN,
        "false",
        "Whether Kafka clients may do everything with a resource of which no ACL speaks.",
    ),
    ConfigKey(
        "authorizer.class.name",
        Kind.STRING,
        "",
        "What Kafka clients may do is decided by ACLs if this is Kafka's StandardAuthorizer; empty to let all do "
        "everything.",
        choices=("org.apache.kafka.metadata.authorizer.StandardAuthorizer",),
    ),
    ConfigKey(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        "true",
        "Whether a topic that a client asks for comes to be.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        Kind.LONG,
        "600000",
        "ms without a whole request, and with no answer due, after which a connection is closed.",
        low=1,
    ),
    ConfigKey(
        "durability",
        Kind.STRING,
        "fsync",
        "When acks=all is answered: fsync, after the batch is on the disk; os, after the operating system has it.",
        choices=("fsync", "os"),
    ),
    ConfigKey(
        "flush.interval.ms",
        Kind.INT,
        "1000",
        "ms after which what nobody asked to flush is flushed: what a power loss may cost acks=1.",
        low=1,
        high=_INT_MAX,
    ),
    *GROUP_SERVER_CONFIGS,
    ConfigKey(
        "group.several.protocols.enable",
        Kind.BOOLEAN,
        "false",
        "Whether clients of several protocols may read a topic as one group or subscription at the same moment. Each "
        "protocol's clients are given all records then, and move one position.",
    ),
    ConfigKey(
        "kafka07.broker.id",
        Kind.INT,
        "0",
        "The id under which this server stands in ZooKeeper.",
        high=_INT_MAX,
    ),
    ConfigKey(
        "kafka07.magic",
        Kind.INT,
        "0",
        "The magic of the messages that clients of Kafka 0.7 read in place of records which others wrote, 0 or 1. A "
        "new value counts for what is written from then on.",
        high=1,
    ),
    ConfigKey(
        "listener.pinned",
        Kind.STRING,
        "",
        "Listeners that take the protocol of their name only, comma-separated; any other recognises what its clients "
        "speak.",
    ),
    ConfigKey(
        "listener.recognition.timeout.ms",
        Kind.INT,
        "10000",
        "ms in which a client must have said enough to be recognised: from its first byte on a listener with a "
        "protocol of its own, which it is taken to speak then; from the start on the listener any, which ends the "
        "connection.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "log.cleaner.backoff.ms",
        Kind.LONG,
        "15000",
        "ms between two looks for partitions to compact, as long as there are none.",
        low=1,
    ),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size",
        Kind.LONG,
        str(128 * 1024 * 1024),
        "Bytes of memory for the keys of the partition that is being compacted, 200 for each. If that is not "
        "enough, it takes several runs.",
        low=1024 * 1024,
    ),
    ConfigKey(
        "log.cleaner.enable",
        Kind.BOOLEAN,
        "true",
        "Whether topics with compact in their cleanup.policy are compacted.",
    ),
    ConfigKey(
        "log.retention.check.interval.ms",
        Kind.LONG,
        "60000",
        "ms between two looks for segments to delete and for offsets to forget.",
        low=1,
    ),
    ConfigKey(
        "max.connections",
        Kind.INT,
        str(_INT_MAX),
        "Connections that may be open; at most three quarters of the files that the server may open besides its own.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots",
        Kind.INT,
        "1000",
        "Fetch sessions kept at a time; beyond, only those unused for two minutes make room for new ones.",
        high=_INT_MAX,
    ),
    ConfigKey(
        "max.message.size",
        Kind.INT,
        "1000000",
        "Bytes of payload of the largest message that clients of Kafka 0.7 may write; a larger one is dropped. A "
        "compressed message counts as one.",
        high=_INT_MAX,
    ),
    ConfigKey(
        "subscription.take.over.delay.ms",
        Kind.INT,
        "1000",
        "Ms that the next consumer of a Failover subscription waits for acknowledgements of the one before it.",
        high=_INT_MAX,
    ),
    ConfigKey(
        "subscription.unacknowledged.max",
        Kind.INT,
        "200000",
        "Unacknowledged messages at which the consumers of a Shared or Key_Shared subscription get no more; 0 for no "
        "limit.",
        high=_INT_MAX,
    ),
    ConfigKey(
        "subscription.unacknowledged.per.consumer.max",
        Kind.INT,
        "50000",
        "Unacknowledged messages at which one of them gets no more; 0 for no limit.",
        high=_INT_MAX,
    ),
    ConfigKey(
        "pulsar.broker.entry.metadata.enable",
        Kind.BOOLEAN,
        "false",
        "Whether Pulsar consumers that can take it are told the index of each entry and the time of the log.",
    ),
    ConfigKey(
        "iggy.deduplication.enable",
        Kind.BOOLEAN,
        "false",
        "Whether Iggy messages whose id their partition has seen of late are dropped.",
    ),
    ConfigKey(
        "iggy.deduplication.entries.max",
        Kind.INT,
        "10000",
        "Message ids that are remembered for each partition where Iggy's duplicates are dropped.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "iggy.deduplication.ms",
        Kind.INT,
        "60000",
        "ms for which such an id is remembered.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "pulsar.token.secret.file",
        Kind.STRING,
        "",
        "A file with the secret that signs the tokens (JWT, HS256) of Pulsar clients, over HTTP too; without one "
        "every client is let in.",
    ),
    ConfigKey(
        "pulsar.deduplication.enable",
        Kind.BOOLEAN,
        "false",
        "Whether messages that a Pulsar producer sends twice are kept once, where its namespace does not say.",
    ),
    ConfigKey(
        "pulsar.transactions.enable",
        Kind.BOOLEAN,
        "true",
        "Whether Pulsar clients may begin transactions.",
    ),
    ConfigKey(
        "num.partitions", Kind.INT, "1", "Partitions of a topic that is made without a number.", low=1, high=_INT_MAX
    ),
    ConfigKey(
        "offset.metadata.max.bytes", Kind.INT, "4096", "Bytes of text that may be kept with an offset.", high=_INT_MAX
    ),
    ConfigKey(
        "translation.cache.bytes",
        Kind.INT,
        str(32 * 1024 * 1024),
        "Bytes of batches that are kept as readers of other protocols than their writer's were given them, so that "
        "the next reader costs no translation; 0 for none.",
        low=0,
        high=_INT_MAX,
    ),
    ConfigKey(
        "offsets.retention.minutes",
        Kind.INT,
        "10080",
        "Minutes for which the offsets of a group without members are kept; those that Iggy clients store stay.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "producer.id.expiration.ms",
        Kind.INT,
        "86400000",
        "ms for which the sequence of an idempotent producer that does not write is remembered.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "sasl.enabled.mechanisms",
        Kind.LIST,
        "",
        "By what Kafka clients must show who they are before anything else; empty to let everybody in. Clients of "
        "other protocols are not asked.",
        choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    ),
    ConfigKey(
        "sasl.users.file",
        Kind.STRING,
        "",
        "Users and their passwords, a line NAME:PASSWORD each; more are made with AlterUserScramCredentials.",
    ),
    ConfigKey(
        "super.users",
        Kind.STRING,
        "",
        "Principals that may do everything whatever the ACLs say, such as User:ada;User:grace.",
    ),
    ConfigKey(
        "transaction.max.timeout.ms",
        Kind.INT,
        "900000",
        "ms that a Kafka client may ask for its transactions to be open; readers of what is committed wait as long.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "transactional.id.expiration.ms",
        Kind.INT,
        "604800000",
        "ms for which a transactional id without a transaction is remembered.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "socket.request.max.bytes",
        Kind.INT,
        str(100 * 1024 * 1024),
        "Bytes of the largest request; a longer one is disconnected.",
        low=1,
        high=_INT_MAX,
    ),
    ConfigKey(
        "tls.certificate.file",
        Kind.STRING,
        "",
        "The server's certificate, and those between it and its root, in PEM; with it every listener takes TLS too.",
    ),
    ConfigKey(
        "tls.client.ca.file",
        Kind.STRING,
        "",
        "The authorities of which TLS clients must show a certificate, in PEM; empty to ask for none.",
    ),
    ConfigKey(
        "tls.key.file", Kind.STRING, "", "The private key of the certificate, in PEM, if it is not in the same file."
    ),
    ConfigKey("tls.required", Kind.BOOLEAN, "false", "Whether connections without TLS are refused."),
    ConfigKey(
        "zookeeper.connect",
        Kind.STRING,
        "",
        "HOST:PORT of the ZooKeeper servers where clients of Kafka 0.7 look for this one, comma-separated, with a "
        "path behind the last if all stands below it; empty for none.",
    ),
    *_topic_defaults(),
)
