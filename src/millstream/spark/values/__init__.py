"""Keys and values of records as typed columns, and a quarantine for those that do not decode.

    from millstream.spark.values import decode, registered

    good, bad = decode(records, format="json", schema="id BIGINT, name STRING")

What Spark's own functions read, they read; the rest is decoded in Python workers, a batch at a time.

    decoding         decode(): formats, modes, what the good and the bad rows look like
    landing          land(): good rows and bad ones of a micro-batch, each once
    schemas          what users give as a schema
    registry         schemas that are registered through Pulsar
    json_values      JSON, read by Spark itself
    text_values      CSV and text, read by Spark itself
    columns          what these have in common
    arrow_decoder    what Spark does not read
    avro, avro_columns, avro_types, protobuf, plain_values    the formats that are read so
    framing          Confluent's five bytes
"""

from millstream.spark.values.decoding import QUARANTINE_COLUMNS, Decoded, Format, Mode, decode
from millstream.spark.values.landing import land
from millstream.spark.values.registry import Registered, registered

__all__ = ["QUARANTINE_COLUMNS", "Decoded", "Format", "Mode", "Registered", "decode", "land", "registered"]
