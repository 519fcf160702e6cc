"""The Pulsar binary protocol as bytes: frames, commands, entries, and their messages as neutral records."""
