"""The requests and answers of the Iggy protocol: one class for all dialects of a message, a module per noun."""
