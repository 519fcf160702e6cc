"""The journal of addresses: what is written is read, up to the first record that is not whole or not in order."""

import pytest

from millstream.storage.address_file import ADDRESSES_FILE, AddressFile, Checkpoint
from tests.support.simulated_files import SimulatedFiles

PATH = f"/log/{ADDRESSES_FILE}"
RECORDS = [Checkpoint(n * 10, n * 1000, 2**32 - 1 - n, n % 2) for n in range(5)]


@pytest.fixture
def files() -> SimulatedFiles:
    """A disk with the directory of a log."""
    files = SimulatedFiles()
    files.make_directory("/log")
    return files


def written(files: SimulatedFiles) -> AddressFile:
    file = AddressFile(files, "/log")
    file.write(0, RECORDS)
    return file


def test_round_trip(files: SimulatedFiles) -> None:
    file = AddressFile(files, "/log")
    assert file.read() == []
    file.write(0, RECORDS[:3])
    file.write(3, RECORDS[3:])
    assert file.read() == RECORDS
    assert AddressFile(files, "/log").read() == RECORDS
    assert len(files.content(PATH)) == 32 * 5


def test_a_record_is_written_over(files: SimulatedFiles) -> None:
    file = written(files)
    later = Checkpoint(100, 200_000, 0, 1)
    file.write(4, [later])
    assert file.read() == [*RECORDS[:4], later]


@pytest.mark.parametrize("byte", range(32, 64))
def test_a_damaged_record_ends_it(files: SimulatedFiles, byte: int) -> None:
    file = written(files)
    files.flip_bit(PATH, byte * 8 + 3)
    assert file.read() == RECORDS[:1]


def test_a_record_that_is_cut_off_ends_it(files: SimulatedFiles) -> None:
    file = written(files)
    files.put(PATH, files.content(PATH)[:-1])
    assert file.read() == RECORDS[:4]


@pytest.mark.parametrize("late", [Checkpoint(9, 5000, 0, 0), Checkpoint(40, 3999, 0, 0)])
def test_a_record_out_of_order_ends_it(files: SimulatedFiles, late: Checkpoint) -> None:
    file = written(files)
    file.write(5, [late])
    assert file.read() == RECORDS


def test_two_variants_at_the_same_place_are_in_order(files: SimulatedFiles) -> None:
    file = written(files)
    again = RECORDS[4]._replace(variant=1)
    file.write(5, [again])
    assert file.read() == [*RECORDS, again]


def test_cut(files: SimulatedFiles) -> None:
    file = written(files)
    file.cut(2)
    assert file.read() == RECORDS[:2]


def test_what_was_synced_lasts(files: SimulatedFiles) -> None:
    written(files).sync()
    files.crash(0)
    assert AddressFile(files, "/log").read() == RECORDS


def test_replace(files: SimulatedFiles) -> None:
    file = written(files)
    file.replace(RECORDS[3:])
    file.write(5, [RECORDS[4]])
    close_old = file.reopen()
    assert file.read() == RECORDS[3:]
    close_old()
    file.write(2, [Checkpoint(100, 10_000, 0, 0)])
    assert len(file.read()) == 3
    file.close()
