"""The sessions of Kafka clients."""
