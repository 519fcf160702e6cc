"""Topics as tables and streams in Apache Spark: the PySpark data source `millstream`.

    spark.read.format("millstream")
        .option("kafka.bootstrap.servers", "127.0.0.1:9092").option("subscribe", "orders").load()

Spark finds it by itself, through the package `pyspark_millstream`. Columns and options are those of Spark's own
Kafka source. A task reads the segment files of the log where it can reach the broker's data directory, and fetches
over the network where it cannot; both bring the same frames, which one decoder turns into Arrow.

    source     what Spark sees: the source and its two readers
    options    the options, checked
    offsets    which offsets a query or a micro-batch reads, and how they are split into tasks
    reading    one task: frames from files or from the network, loss and damage
    segments   frames from segment files
    client     a small blocking Kafka client
    frames, varints, fields, decoder   frames to Arrow
    java       a Java for Spark
"""
