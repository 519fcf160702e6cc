"""Reading topics: the two readers that Spark drives, and how a task turns frames into Arrow.

options    the options, checked
offsets    which offsets a query or a micro-batch reads, and how they are split into tasks
readers    planning: the readers of a batch and of a stream
reading    one task: frames from files or from the network, loss and damage
segments   frames from segment files
schema     the columns
frames, varints, fields, decoder   frames to Arrow
"""
