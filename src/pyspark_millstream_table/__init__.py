"""The name under which Spark finds the data source `millstream-table`: it looks for packages named pyspark_*.

Every process that plans a query imports all such packages, so this one is kept light.
"""

from millstream.spark.tables.source import MillstreamTableSource

__all__ = ["DefaultSource"]

DefaultSource = MillstreamTableSource
