"""Reading topics: the two readers that Spark drives, and how a task turns frames into Arrow.

options    the options, checked
selection  which topics and partitions
points     where a query begins and ends: offsets, times, groups
offsets    offsets in checkpoints, between micro-batches, and shared out
sizes      how many bytes records take
readers    the readers of a batch and of a stream
planning   the tasks of a range of offsets
pushdown   filters that Spark hands down
reading    one task: frames from files or from the network, loss and damage
committed  what aborted transactions wrote
segments, indexes   frames from segment files
schema     the columns
frames, varints, fields, origin, decoder   frames to Arrow
"""
