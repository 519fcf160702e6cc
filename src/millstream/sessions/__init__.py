"""Sessions: a decoded request of a protocol becomes calls of the broker, and their outcome its answer."""
