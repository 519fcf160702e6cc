"""Cleaning: compaction of logs in place, as `cleanup.policy=compact` asks for.

`cleaner` decides which partition is due, `run` goes over one, `sieve` says what stays of its frames, and
`key_offsets` which record of a key is the last.
"""

from millstream.broker.cleaning.cleaner import CleanerFigures, LogCleaner

__all__ = ["CleanerFigures", "LogCleaner"]
