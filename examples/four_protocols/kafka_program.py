"""Says something in the topic `room`, and prints what all four have said. Kafka, with librdkafka."""

import sys

from confluent_kafka import Consumer, Producer

server = {"bootstrap.servers": sys.argv[1]}
producer = Producer(server)
producer.produce("room", "Kafka: hello from librdkafka")
producer.flush()

consumer = Consumer({**server, "group.id": "kafka-program", "auto.offset.reset": "earliest"})
consumer.subscribe(["room"])
for _ in range(4):
    while (message := consumer.poll(1)) is None or message.error():
        pass
    print(message.value().decode())
consumer.close()
