"""The sessions of Pulsar clients."""
