"""Says something in the topic `room`, and prints what all four have said. Pulsar, with its C++ client."""

import sys

import pulsar

client = pulsar.Client(f"pulsar://{sys.argv[1]}", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
producer = client.create_producer("room")
producer.send(b"Pulsar: hello from the C++ client")

consumer = client.subscribe("room", "pulsar-program", initial_position=pulsar.InitialPosition.Earliest)
for _ in range(4):
    message = consumer.receive()
    print(message.data().decode())
    consumer.acknowledge(message)
client.close()
