// What all scenarios share: a client with every codec, and small helpers.
"use strict";

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require("kafkajs");

const lz4 = require("lz4-napi");
const snappy = require("kafkajs-snappy");
const { Decoder, Encoder } = require("@toondepauw/node-zstd");

CompressionCodecs[CompressionTypes.Snappy] = snappy;
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder) => new Encoder(3).encode(encoder.buffer),
  decompress: (buffer) => new Decoder().decode(buffer),
});

const kafka = new Kafka({
  brokers: [process.env.BROKER],
  clientId: "kafkajs",
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 8 },
});

// Runs a function with something that connects, and disconnects it whatever happens.
async function using(thing, use) {
  await thing.connect();
  try {
    return await use(thing);
  } finally {
    await thing.disconnect();
  }
}

async function withAdmin(use, options = {}) {
  return using(kafka.admin(options), use);
}

async function withProducer(options, use) {
  return using(kafka.producer({ allowAutoTopicCreation: false, ...options }), use);
}

async function createTopic(topic, numPartitions = 1, configs = {}) {
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
  await withAdmin((admin) => admin.createTopics({ topics: [{ topic, numPartitions, configEntries }] }));
}

async function eventually(ask, timeoutMs = 30_000) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > deadline) throw new Error(`still ${answer} after ${timeoutMs} ms`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

// A member of a group that keeps what it reads and what it was assigned.
class Member {
  constructor(topic, groupId, options = {}) {
    this.messages = [];
    this.partitions = [];
    this.topic = topic;
    this.consumer = kafka.consumer({
      groupId,
      heartbeatInterval: 200,
      maxWaitTimeInMs: 50,
      rebalanceTimeout: 30_000,
      ...options,
    });
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.partitions = payload.memberAssignment[topic] || [];
    });
    this.consumer.on(this.consumer.events.REBALANCING, () => {
      this.partitions = [];
    });
  }

  async start({ fromBeginning = true, ...run } = {}) {
    await this.consumer.connect();
    await this.consumer.subscribe({ topics: [this.topic], fromBeginning });
    await this.consumer.run({
      eachMessage: async ({ partition, message }) => {
        this.messages.push({ partition, ...message });
      },
      ...run,
    });
    return this;
  }

  async read(count) {
    await eventually(() => this.messages.length >= count);
    return this.messages;
  }

  stop() {
    return this.consumer.disconnect();
  }
}

// Whether every partition has one member, and the members have about as many each.
function allSharedOut(members, partitions) {
  const shares = members.map((member) => member.partitions);
  const sizes = shares.map((share) => share.length);
  const every = shares.flat().sort((a, b) => a - b);
  return (
    Math.max(...sizes) - Math.min(...sizes) <= 1 &&
    every.length === partitions &&
    every.every((partition, index) => partition === index)
  );
}

module.exports = { Member, allSharedOut, createTopic, eventually, kafka, withAdmin, withProducer };
