"""Every error that is raised on purpose has a code."""

import pytest

from millstream.broker import errors as broker_errors
from millstream.broker import streams, topic_groups
from millstream.broker.namespaces import InvalidNamespaceName
from millstream.sessions.iggy.error_table import code_of
from millstream.storage.errors import DiskFull
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import DamagedBatch, Refused


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused(ErrorCode.INVALID_OFFSET), 4100),
        (streams.StreamExists("", by_number=True), 1011),
        (streams.StreamExists("", by_number=False), 1012),
        (topic_groups.GroupExists("", by_number=True), 5001),
        (topic_groups.GroupExists("", by_number=False), 5004),
        (streams.TopicNumberTaken(""), 2012),
        (broker_errors.TopicExists(""), 2013),
        (broker_errors.BatchTooLarge(""), 4022),
        (broker_errors.NotEnoughReplicas(""), 5),
        (InvalidNamespaceName(""), 1013),
        (DiskFull(""), 1),
        (OSError(), 1),
        (DamagedBatch(""), 1),
    ],
)
def test_codes(error: Exception, code: int) -> None:
    assert code_of(error) == code  # type: ignore[arg-type]  # each is one of them
