// prozess 0.7.0: writes magic 1, and counts its way through a topic by itself.
"use strict";

const assert = require("node:assert");
const { promisify } = require("node:util");
const { Consumer, Producer } = require("prozess");

async function produce(address, topic, payloads) {
  const producer = new Producer(topic, address);
  await new Promise((resolve, reject) => {
    producer.once("error", reject);
    producer.once("connect", resolve);
    producer.connect();
  });
  const send = promisify(producer.send.bind(producer));
  for (let first = 0; first < payloads.length; first += 50) {
    await send(payloads.slice(first, first + 50), {});
  }
}

async function connected(options) {
  const consumer = new Consumer(options);
  await promisify(consumer.connect.bind(consumer))();
  return consumer;
}

// Polls until so many messages are there; prozess moves its offset on.
async function read(consumer, count) {
  const found = [];
  const consume = promisify(consumer.consume.bind(consumer));
  while (found.length < count) {
    found.push(...(await consume()));
  }
  return found;
}

async function roundTrip({ topic, ...address }) {
  const payloads = Array.from({ length: 500 }, (_, n) => Buffer.from(`message ${n} \u00e9\u4e16 ${"x".repeat(n)}`));
  await produce(address, topic, payloads);
  const consumer = await connected({ topic, ...address, offset: 0, maxMessageSize: 10_000 });
  const found = await read(consumer, payloads.length);
  assert.deepStrictEqual(
    found.map(({ payload }) => payload.toString()),
    payloads.map(String),
  );
  assert(found.every((message) => message.magic === 1 && message.isValid()));
  const latest = await promisify(consumer.getLatestOffset.bind(consumer))();
  const size = payloads.reduce((sum, payload) => sum + 10 + payload.length, 0);
  assert.strictEqual(latest.toString(), String(size));
  assert.strictEqual(consumer.offset.toString(), String(size));
  assert.strictEqual((await promisify(consumer.getEarliestOffset.bind(consumer))()).toString(), "0");
  await assert.rejects(readAt(address, topic, size + 1, 0), /OffsetOutOfRange/);
  await assert.rejects(readAt(address, topic, 0, 9), /WrongPartition/);
  assert.deepStrictEqual(await readAt(address, topic, size, 0), []);
}

async function readAt(address, topic, offset, partition) {
  const consumer = await connected({ topic, partition, ...address, offset });
  return promisify(consumer.consume.bind(consumer))();
}

// Reads what others wrote, which the server is told to give as messages of magic 1.
async function readOthers({ topic, payloads, ...address }) {
  const consumer = await connected({ topic, ...address, offset: 0 });
  const found = await read(consumer, payloads.length);
  assert.deepStrictEqual(
    found.map(({ payload }) => payload.toString()),
    payloads,
  );
}

module.exports = { roundTrip, readOthers };
