"""The `millstream` command: `main` dispatches, and each sub-command lives in a module of its own."""
