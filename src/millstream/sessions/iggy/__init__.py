"""The Iggy protocol: a file per family of commands, one table of them, and a session for each connection."""
