"""The sink to topics: rows of Arrow into record batches, published once for every micro-batch.

options        what `.option(...)` may say
columns        which columns a table may have, and their rows as Arrow arrays
hashes         the hashes of keys that Kafka's clients use, for many keys at once
partitioners   which partition each row goes to
records        rows to encoded records
batches        records to batches
topics         the topics written to, and who has their partitions
producer       batches to brokers
coordinators   who coordinates a group or a transactional id, and asking it
transactions   transactions
ledger         which micro-batch has been published, kept with the broker
task           what one task does
publishing     what the driver does when all tasks are done
writers        what Spark drives
"""
