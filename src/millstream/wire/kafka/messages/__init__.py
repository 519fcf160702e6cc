"""Field tables of the Kafka APIs, a file each.

Source: Apache Kafka, clients/src/main/resources/common/message/*.json (names, types, versions, defaults).
"""
