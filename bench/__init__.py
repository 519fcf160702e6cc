"""Throughput, latency, start-up and memory of Millstream beside its peers, in one run."""
