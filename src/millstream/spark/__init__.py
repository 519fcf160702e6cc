"""Topics as tables and streams in Apache Spark: the PySpark data source `millstream`.

    spark.read.format("millstream")
        .option("kafka.bootstrap.servers", "127.0.0.1:9092").option("subscribe", "orders").load()

Spark finds it by itself, through the package `pyspark_millstream`. Columns and options are those of Spark's own
Kafka source. A task reads the segment files of the log where it can reach the broker's data directory, and fetches
over the network where it cannot; both bring the same frames, which one decoder turns into Arrow.

    source           what Spark sees under the name of the format
    read/            the readers: options, offsets, one task, segment files, frames to Arrow
    client           what is asked about topics, and reading over the network
    connections      connections to brokers
    java             a Java for Spark
"""
