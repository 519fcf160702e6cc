// kafka 0.2.3: reads and writes magic 0 only, and polls on a timer.
"use strict";

const assert = require("node:assert");
const { Client, Consumer, Producer } = require("kafka");

function produce(address, topic, payloads) {
  return new Promise((resolve, reject) => {
    const producer = new Producer(address);
    producer.on("error", reject);
    producer.connect(() => {
      for (let first = 0; first < payloads.length; first += 20) {
        producer.send(payloads.slice(first, first + 20), topic);
      }
      producer.close(); // at once, with everything still to be sent
      resolve();
    });
  });
}

// Reads so many messages from an offset on; resolves with them and the offset behind.
function read(address, topic, offset, count) {
  return new Promise((resolve, reject) => {
    const consumer = new Consumer({ ...address, pollInterval: 20 });
    const found = [];
    consumer.on("error", reject);
    consumer.on("message", (name, message, next) => {
      assert.strictEqual(name, topic);
      found.push(message);
      if (found.length === count) {
        consumer.close();
        resolve({ found, next });
      }
    });
    consumer.connect(() => consumer.subscribeTopic({ name: topic, offset }));
  });
}

function latest(address, topic) {
  return new Promise((resolve, reject) => {
    const client = new Client(address);
    client.on("error", reject);
    client.on("offset", (name, offset) => {
      client.close();
      resolve(offset);
    });
    client.connect(() => client.fetchOffsets(topic));
  });
}

async function roundTrip({ topic, ...address }) {
  const payloads = Array.from({ length: 300 }, (_, n) => `message ${n} ${"x".repeat(n)}`);
  await produce(address, topic, payloads);
  const { found, next } = await read(address, topic, 0, payloads.length);
  assert.deepStrictEqual(found, payloads);
  const size = payloads.reduce((sum, payload) => sum + 9 + payload.length, 0);
  assert.strictEqual(next, size);
  assert.strictEqual(await latest(address, topic), size);
  await produce(address, topic, ["later"]);
  assert.deepStrictEqual((await read(address, topic, next, 1)).found, ["later"]);
}

// Reads what others wrote, which the server gives as messages of magic 0.
async function readOthers({ topic, payloads, ...address }) {
  const { found } = await read(address, topic, 0, payloads.length);
  assert.deepStrictEqual(found, payloads);
}

module.exports = { roundTrip, readOthers };
