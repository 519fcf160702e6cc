"""Byte addresses: the same record keeps its address, whatever happens to the server and to the log around it."""

from functools import partial

import pytest

from millstream.broker import address_index
from millstream.broker.address_index import INTERVAL_BYTES, EncodedFrames, _Encoded
from millstream.model.frame import transaction_fields
from millstream.model.frame_span import take_span
from millstream.model.pending import Pending
from millstream.storage.address_file import ADDRESSES_FILE, AddressFile
from millstream.wire.kafka07.requests import FetchRequest
from millstream.wire.pulsar.entry import check_entry, encode_entry
from millstream.wire.pulsar.pulsar_pb2 import MessageMetadata
from millstream.wire.pulsar.stored_frame import build_frame
from tests.support.batches import batch
from tests.support.simulated_files import Fault
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.kafka07.conversation import Conversation
from tests.unit.wire.kafka07.sets import message_set

VALUE = b"x" * 1000


@pytest.fixture
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A metadata store that outlives the broker."""
    return str(tmp_path_factory.mktemp("metadata") / "metadata.sqlite")


def journal(client: Conversation) -> bytes:
    return client.files.content(f"{client.partition().log.directory}/{ADDRESSES_FILE}")


def numbered(first: int, stop: int, magic: int = 0) -> bytes:
    return message_set(*(b"%05d" % n + VALUE for n in range(first, stop)), magic=magic)


def write(client: Conversation, first: int, stop: int) -> None:
    """Let a Kafka client write records, a batch each."""
    client.write_kafka(*(b"%05d" % n + VALUE for n in range(first, stop)))


def delete_before(client: Conversation, offset: int) -> None:
    client.wait(client.broker.delete_records(client.partition(), offset))


SIZE = len(numbered(0, 1))


def test_a_topic_that_nobody_reads_by_address_has_no_file() -> None:
    client = Conversation()
    client.produce(message_set(b"a"))
    client.write_kafka(b"b")
    assert ADDRESSES_FILE not in client.files.list_directory(client.partition().log.directory)
    client.fetch()
    assert ADDRESSES_FILE in client.files.list_directory(client.partition().log.directory)


def test_checkpoints_are_sparse() -> None:
    client = Conversation()
    client.create("orders")
    write(client, 0, 400)
    client.fetch(0, 1)
    assert 400 * 1000 // INTERVAL_BYTES - 5 <= len(journal(client)) // 32 <= 400 * 1000 // INTERVAL_BYTES + 2


def test_frames_counted_together_have_the_addresses_and_checkpoints_that_they_have_one_by_one(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for frames_max in (256, 1):
        monkeypatch.setattr(address_index, "take_span", partial(take_span, frames_max=frames_max))
        client = Transactional(f"{database}{frames_max}")
        client.create("orders")
        seen = b""
        for number in range(300):
            append(client.partition(), batch(b"k" * (number % 7 * 100), 1 + number % 3))
            seen += message_set(b"k" * (number % 7 * 100)) * (1 + number % 3)
            if number % 100 == 50:
                aborted = client.begin()
                client.write_in(aborted, b"dropped", aborted=True)
                client.end_one(aborted, commit=False)
                client.produce(message_set(b"seven") * 5)
                seen += message_set(b"seven") * 5
            if number % 90 == 80:
                assert client.fetch() == (0, seen)
        assert client.fetch() == (0, seen)
        assert [client.fetch(at, 1000) for at in range(0, len(seen), 777)] == [
            (0, seen[at : at + 1000]) for at in range(0, len(seen), 777)
        ]
        found.append(journal(client))
    assert found[0] == found[1]


def test_a_clean_restart(database: str) -> None:
    client = Conversation(database)
    client.create("orders")
    write(client, 0, 50)
    assert client.fetch() == (0, numbered(0, 50))
    client.restart()
    write(client, 50, 100)
    assert client.end() == 100 * SIZE
    assert client.fetch(49 * SIZE) == (0, numbered(49, 100))


@pytest.mark.parametrize("kind", ["kill", "crash"])
def test_addresses_outlive_what_was_before_them(database: str, kind: str) -> None:
    """Retention removes what addresses follow from; the journal has them all the same."""
    for seed in range(8):
        client = Conversation(f"{database}{seed}", log__segment__bytes="50000")
        client.create("orders")
        write(client, 0, 200)
        assert client.end() == 200 * SIZE
        client.pass_ms(2000)
        delete_before(client, 120 + seed)
        assert client.first() == (120 + seed) * SIZE
        client.pass_ms(2000)
        if kind == "kill":
            client.kill()
        else:
            client.files.crash(seed)
            client.store.close()
        client.start()
        assert client.first() == (120 + seed) * SIZE
        assert client.fetch() == (1, b"")
        assert client.fetch((120 + seed) * SIZE) == (0, numbered(120 + seed, 200))
        assert client.fetch(150 * SIZE, 3 * SIZE) == (0, numbered(150, 153))


def test_a_kill_right_after_a_deletion(database: str) -> None:
    client = Conversation(database, log__segment__bytes="50000")
    client.create("orders")
    client.fetch()
    write(client, 0, 100)
    delete_before(client, 77)
    client.kill()
    client.start()
    assert client.first() == 77 * SIZE
    assert client.fetch(80 * SIZE) == (0, numbered(80, 100))


def test_retention_by_size() -> None:
    client = Conversation(
        log__segment__bytes="50000", log__retention__bytes="100000", log__retention__check__interval__ms="1000"
    )
    client.create("orders")
    client.fetch()
    for first in range(0, 400, 20):
        write(client, first, first + 20)
        client.pass_ms(3000)
    start = client.partition().log.start_offset
    assert start > 200
    assert client.first() == start * SIZE
    assert client.end() == 400 * SIZE
    assert client.fetch(start * SIZE - 1) == (1, b"")
    assert client.fetch(start * SIZE) == (0, numbered(start, 400))


def test_a_start_in_the_middle_of_a_batch() -> None:
    client = Conversation()
    client.create("orders")
    append(client.partition(), batch(b"0123456789", 10))
    client.produce(message_set(*[b"mine"] * 10))
    whole = message_set(*[b"0123456789"] * 10, *[b"mine"] * 10)
    assert client.fetch() == (0, whole)
    for offset, address in ((4, 4 * 19), (10, 190), (13, 190 + 3 * 13), (20, 190 + 130)):
        delete_before(client, offset)
        assert client.first() == address
        assert client.fetch(address) == (0, whole[address:])
        if address:
            assert client.fetch(address - 1) == (1, b"")


def test_what_was_removed_before_the_first_question_takes_an_address_each() -> None:
    client = Conversation(log__segment__bytes="5000")
    client.create("orders")
    write(client, 0, 20)
    delete_before(client, 13)
    assert client.first() == 13
    assert client.fetch(13) == (0, numbered(13, 20))
    assert client.end() == 13 + 7 * SIZE


def test_who_stood_at_the_end_is_not_led_past_what_is_missing(database: str) -> None:
    client = Conversation(database, log__segment__bytes="5000")
    client.create("orders")
    write(client, 0, 10)
    assert client.end() == 10 * SIZE
    client.service.close()  # as if another server, which nobody asked for addresses, had been running
    write(client, 10, 30)
    client.wait(client.broker.delete_records(client.partition(), 20))
    client.restart()
    assert client.fetch(10 * SIZE) == (1, b"")
    assert client.first() > 10 * SIZE
    assert client.fetch(client.first()) == (0, numbered(20, 30))


def test_everything_deleted(database: str) -> None:
    client = Conversation(database, log__segment__bytes="5000")
    client.create("orders")
    write(client, 0, 10)
    client.fetch()
    delete_before(client, 10)
    assert (client.first(), client.end()) == (10 * SIZE, 10 * SIZE)
    client.restart()
    assert client.fetch(10 * SIZE) == (0, b"")
    write(client, 10, 12)
    assert client.fetch(10 * SIZE) == (0, numbered(10, 12))


def test_another_magic_counts_for_what_comes_later(database: str) -> None:
    client = Conversation(database, kafka07__magic="0")
    client.create("orders")
    write(client, 0, 50)
    before = numbered(0, 50)
    assert client.fetch() == (0, before)
    client.settings.configs["kafka07.magic"] = "1"
    client.settings.kafka07_magic = 1
    client.restart()
    write(client, 50, 100)
    after = numbered(50, 100, magic=1)
    assert client.fetch() == (0, before + after)
    for address in (0, len(before) - 1, len(before), len(before) + 5, len(before + after) - 1):
        assert client.fetch(address) == (0, (before + after)[address:])
    client.settings.kafka07_magic = 0
    client.restart()
    write(client, 100, 110)
    delete_before(client, 75)
    whole = before + after + numbered(100, 110)
    assert client.first() == len(before) + 25 * (SIZE + 1)
    assert client.fetch(client.first()) == (0, whole[client.first() :])


def test_the_tail_that_a_power_loss_took_is_forgotten(database: str) -> None:
    for seed in range(30):
        client = Conversation(f"{database}{seed}")
        client.create("orders")
        write(client, 0, 20)
        client.fetch()
        client.pass_ms(3000)
        write(client, 20, 60)
        client.fetch()
        client.files.crash(seed)
        client.store.close()
        client.start()
        left = client.partition().log.end_offset
        new = [b"new" + b"%05d" % n for n in range(40)]
        client.write_kafka(*new)
        body = message_set(*new)
        assert client.fetch(0, 20 * SIZE) == (0, numbered(0, 20))
        assert client.end() <= left * SIZE + len(body)
        assert client.fetch(client.end() - len(body)) == (0, body)


def test_a_tail_that_was_lost_and_grew_again_unseen(database: str) -> None:
    client = Conversation(database)
    client.create("orders")
    client.fetch()
    client.files.keep_all()
    write(client, 0, 40)
    lost = journal(client)
    client.service.close()
    client.files.crash(1)  # the log is gone, the journal was on the disk
    client.store.close()
    super(Conversation, client).start()
    client.write_kafka(*(b"%03d" % n * 20 for n in range(50)))
    client.files.put(f"{client.partition().log.directory}/{ADDRESSES_FILE}", lost)
    client.restart()
    body = message_set(*(b"%03d" % n * 20 for n in range(50)))
    assert client.fetch() == (0, numbered(0, client.partition().log.end_offset - 50) + body)


def flip(client: Conversation, position: int) -> None:
    client.files.flip_bit(f"{client.partition().log.directory}/{0:020d}.log", position * 8)


FRAME = len(batch(b"00000" + VALUE))


def test_damage_takes_no_addresses_from_what_is_behind_it(database: str) -> None:
    client = Conversation(database)
    client.create("orders")
    write(client, 0, 60)
    assert client.end() == 60 * SIZE
    flip(client, 30 * FRAME + 200)
    for _ in range(2):
        assert client.fetch(29 * SIZE) == (0, numbered(29, 30)), "up to the damage"
        assert client.fetch(30 * SIZE) == (2, b"")
        assert client.fetch(31 * SIZE - 1) == (2, b"")
        assert client.fetch(31 * SIZE) == (0, numbered(31, 60))
        assert client.fetch(31 * SIZE + 5, 10) == (0, numbered(31, 60)[5:15])
        client.restart()


def test_damage_in_two_places_between_two_checkpoints() -> None:
    client = Conversation()
    client.create("orders")
    write(client, 0, 60)
    client.fetch()
    flip(client, 33 * FRAME + 200)
    flip(client, 35 * FRAME + 200)
    assert client.fetch(32 * SIZE, SIZE) == (0, numbered(32, 33))
    assert client.fetch(33 * SIZE) == (2, b"")
    assert client.fetch(34 * SIZE) == (2, b""), "where it stood is not certain"
    assert client.fetch(36 * SIZE) == (0, numbered(36, 60))


def test_damage_up_to_a_checkpoint_and_at_the_end() -> None:
    client = Conversation()
    client.create("orders")
    write(client, 0, 60)
    client.fetch()
    for number in range(10, 33):
        flip(client, number * FRAME + 200)
    flip(client, 59 * FRAME + 200)
    assert client.fetch(0) == (0, numbered(0, 10))
    assert client.fetch(20 * SIZE) == (2, b"")
    assert client.fetch(33 * SIZE) == (0, numbered(33, 59))
    assert client.fetch(59 * SIZE) == (2, b"")
    assert client.fetch(60 * SIZE) == (0, b"")


def test_damage_that_was_there_before_takes_up_no_addresses() -> None:
    client = Conversation()
    client.create("orders")
    write(client, 0, 60)
    flip(client, 30 * FRAME + 200)
    assert client.fetch() == (0, numbered(0, 30) + numbered(31, 60))
    flip(client, 59 * FRAME + 200)
    assert client.fetch(58 * SIZE) == (2, b"")


def test_damage_at_the_start() -> None:
    client = Conversation()
    client.create("orders")
    write(client, 0, 60)
    client.fetch()
    flip(client, 30 * FRAME + 200)
    delete_before(client, 30)
    assert client.first() == 31 * SIZE
    assert client.fetch(31 * SIZE) == (0, numbered(31, 60))


def test_a_start_that_moves_on_in_front_of_damage(database: str) -> None:
    client = Conversation(database, kafka07__magic="0")
    client.create("orders")
    write(client, 0, 60)
    client.fetch()
    client.settings.kafka07_magic = 1
    client.restart()
    write(client, 60, 100)
    flip(client, 5 * FRAME + 200)
    for offset in (3, 4, 5, 6):
        delete_before(client, offset)
        assert client.first() == 6 * SIZE
        assert client.fetch(6 * SIZE) == (0, numbered(6, 60) + numbered(60, 100, magic=1))
    write(client, 100, 101)
    client.restart()
    assert client.fetch(7 * SIZE) == (0, numbered(7, 60) + numbered(60, 101, magic=1))


@pytest.mark.parametrize("record", [0, 5, -1])
def test_a_damaged_journal_is_found_again_from_the_log(database: str, record: int) -> None:
    client = Conversation(database)
    client.create("orders")
    write(client, 0, 200)
    client.fetch()
    path = f"{client.partition().log.directory}/{ADDRESSES_FILE}"
    client.wait(client.broker.close())
    client.files.flip_bit(path, (record % (len(client.files.content(path)) // 32) * 32 + 9) * 8)
    client.start()
    assert client.fetch(150 * SIZE) == (0, numbered(150, 200))
    assert client.end() == 200 * SIZE


def test_the_journal_does_not_grow_for_ever(database: str) -> None:
    client = Conversation(database)
    client.create("orders", segment__bytes="400000")
    client.fetch()
    log = client.partition().log
    longest = 0
    value = b"x" * INTERVAL_BYTES
    for _ in range(60):
        for _ in range(150):
            append(client.partition(), batch(value))
        client.runtime.run()
        delete_before(client, log.end_offset - 100)
        client.first()
        longest = max(longest, len(journal(client)) // 32)
    assert log.end_offset == 9000
    assert longest < 5000
    size = len(message_set(value))
    for _ in range(2):
        assert client.first() == 8900 * size
        assert client.fetch(8950 * size, size) == (0, message_set(value))
        client.restart()


def test_a_full_disk_does_not_keep_anybody_from_reading(database: str) -> None:
    client = Conversation(database)
    client.create("orders")
    client.fetch()
    before = journal(client)
    client.files.inject(Fault("write", path_ending=ADDRESSES_FILE, code=28, lasting=True))
    write(client, 0, 100)
    assert client.fetch(50 * SIZE) == (0, numbered(50, 100))
    assert journal(client) == before
    client.files.heal()
    write(client, 100, 101)
    assert len(journal(client)) > 32 * 4
    client.restart()
    assert client.fetch(50 * SIZE) == (0, numbered(50, 101))


@pytest.mark.parametrize("operation", ["open", "write", "sync", "truncate", "read"])
def test_an_error_of_the_disk_is_told_and_does_not_last(operation: str) -> None:
    client = Conversation()
    client.create("orders")
    write(client, 0, 10)
    client.files.inject(Fault(operation, path_ending=ADDRESSES_FILE))  # type: ignore[arg-type]  # one of the literals
    assert client.fetch() == (-1, b"")
    assert client.fetch() == (0, numbered(0, 10))


def test_a_topic_that_is_deleted_meanwhile() -> None:
    client = Conversation()
    topic = client.create("orders")
    write(client, 0, 200)
    asked = client.send(FetchRequest("orders", 0, 0, 10))
    client.wait(client.broker.delete_topic(topic))
    assert asked is not None
    assert client.fetch() == (0, b"")
    client.create("orders")
    client.produce(message_set(b"new"))
    assert client.fetch() == (0, message_set(b"new"))


def test_frames_that_are_read_piece_by_piece_are_kept() -> None:
    client = Conversation()
    client.create("orders")
    append(client.partition(), batch(VALUE, 100))
    client.produce(message_set(VALUE) * 100)
    body = message_set(VALUE) * 200
    assert client.fetch(0, 1) == (0, body[:1])
    reads = client.files.calls["read"]
    for address in range(0, len(body) // 2, 1000):
        assert client.fetch(address, 60) == (0, body[address : address + 60])
    assert client.files.calls["read"] <= reads + 2
    for address in range(len(body) - 1, 0, -1000):
        assert client.fetch(address, 10**6) == (0, body[address:])


def encoded(size: int, next_offset: int = 0) -> _Encoded:
    return _Encoded(memoryview(bytes(size)), next_offset)


def test_partitions_do_not_share_what_was_encoded() -> None:
    frames = EncodedFrames(bytes_max=10)
    one, other = frames.owner(), frames.owner()
    frames.keep(one, 0, encoded(5, 1))
    assert frames.find(other, 0) is None
    frames.keep(other, 0, encoded(5, 2))
    assert (frames.find(one, 0), frames.find(other, 0)) == (encoded(5, 1), encoded(5, 2))
    frames.keep(one, 5, encoded(20))
    assert (frames.find(one, 0), frames.find(other, 0), frames.find(one, 5)) == (None, None, encoded(20))
    frames.keep(one, 5, encoded(3))
    frames.keep(one, 6, encoded(7))
    assert frames.find(one, 5) is not None


def test_who_asks_is_answered_while_more_is_written_than_can_be_followed() -> None:
    client = Conversation()
    client.create("orders")
    client.fetch()
    for _ in range(3):
        append(client.partition(), batch(b"x" * 900_000))
    answer = client.send(FetchRequest("orders", 0, 0, 100))
    assert isinstance(answer, Pending)
    left = 100
    answered: list[object] = []
    answer.when_done(answered.append)

    def write_on() -> None:
        nonlocal left
        left -= 1
        append(client.partition(), batch(b"x" * 900_000))
        if left and not answered:
            client.runtime.call_soon(write_on)

    write_on()
    client.runtime.run()
    assert answered
    assert left


def test_an_index_that_cannot_be_opened_keeps_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Conversation()
    client.create("orders")
    closed: list[AddressFile] = []
    monkeypatch.setattr(AddressFile, "close", lambda file: closed.append(file))
    client.files.inject(Fault("truncate", path_ending=ADDRESSES_FILE))
    assert client.fetch()[0] == -1
    assert len(closed) == 1
    assert client.fetch() == (0, b"")


class Transactional(Conversation):
    """A broker to which somebody else writes in transactions."""

    def begin(self) -> int:
        number = self.wait(self.broker.transactions.begin(60_000))
        self.wait(self.broker.transactions.add_partitions(number, [(self.topic("orders"), 0)]))
        return number

    def write_in(self, number: int, value: bytes, *, aborted: bool = False) -> bytes:
        """Write a record in a transaction; gives what a client is to see of it."""
        data = memoryview(encode_entry(MessageMetadata(producer_name="p", sequence_id=0, publish_time=1000), value))
        epoch, sequence = transaction_fields(number)
        frame = build_frame(data, check_entry(data), transactional=True, producer_epoch=epoch, base_sequence=sequence)
        base = append(self.partition(), frame).base_offset
        self.broker.transactions.wrote(number, self.partition(), base, base + 1)
        self.runtime.run()
        return b"" if aborted else message_set(value)

    def end_one(self, number: int, *, commit: bool) -> None:
        self.wait(self.broker.transactions.end(number, commit=commit))
        self.runtime.run()


def test_what_a_transaction_has_not_decided_is_not_there_yet(database: str) -> None:
    client = Transactional(database)
    client.create("orders")
    write(client, 0, 2)
    assert client.fetch() == (0, numbered(0, 2))
    first, second = client.begin(), client.begin()
    one = client.write_in(first, b"kept")
    client.write_in(second, b"dropped", aborted=True)
    write(client, 2, 4)
    for _ in range(2):
        assert client.fetch() == (0, numbered(0, 2))
        assert client.end() == 2 * SIZE
        client.restart()
    client.end_one(first, commit=True)
    assert client.fetch() == (0, numbered(0, 2) + one)
    client.end_one(second, commit=False)
    whole = numbered(0, 2) + one + numbered(2, 4)
    for _ in range(2):
        for address in (0, 2 * SIZE, len(whole) - 2 * SIZE, len(whole)):
            assert client.fetch(address) == (0, whole[address:])
        assert client.end() == len(whole)
        client.restart()
    for offset, address in ((3, 2 * SIZE + len(one)), (4, 2 * SIZE + len(one)), (5, 3 * SIZE + len(one))):
        delete_before(client, offset)
        assert client.first() == address
        assert client.fetch(address) == (0, whole[address:])


def test_an_index_that_waits_for_a_transaction_does_nothing_meanwhile(database: str) -> None:
    client = Transactional(database, kafka07__magic="0")
    client.create("orders")
    write(client, 0, 3)
    assert client.end() == 3 * SIZE
    number = client.begin()
    client.write_in(number, b"kept")
    client.settings.kafka07_magic = 1
    client.restart()  # comes to rest, although nothing behind the transaction can be counted yet
    flip(client, 2 * FRAME + 200)
    assert client.end() == 3 * SIZE
    client.end_one(number, commit=True)
    assert client.fetch(3 * SIZE) == (0, message_set(b"kept", magic=1))
