"""How a system is driven: with a real client, or with pre-encoded requests over a socket of our own."""
