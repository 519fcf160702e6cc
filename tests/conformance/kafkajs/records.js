// Records of every shape with every codec, written and read back byte for byte.
"use strict";

const assert = require("node:assert");
const { CompressionTypes } = require("kafkajs");
const { Member, createTopic, withProducer } = require("./client");

const CODECS = { none: "None", gzip: "GZIP", snappy: "Snappy", lz4: "LZ4", zstd: "ZSTD" };

const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));

// Headers as this client has them: one value, or a list where a name repeats.
function headersOf(pairs) {
  const headers = {};
  for (const [name, value] of pairs) {
    const known = headers[name];
    headers[name] = known === undefined ? bytes(value) : [known, bytes(value)].flat();
  }
  return headers;
}

async function roundTrip({ topic, group, codec, samples }) {
  await createTopic(topic, 3);
  const written = samples.map(({ key, value, headers, timestamp }) => ({
    key: bytes(key),
    value: bytes(value),
    headers: headersOf(headers),
    timestamp: String(timestamp),
  }));
  const compression = CompressionTypes[CODECS[codec]];
  await withProducer({}, async (producer) => {
    for (const partition of [0, 1, 2]) {
      // A few large batches, each below max.message.bytes.
      for (let first = 0; first < written.length; first += 100) {
        const messages = written.slice(first, first + 100).map((message) => ({ ...message, partition }));
        const [told] = await producer.send({ topic, messages, acks: -1, compression });
        assert.strictEqual(told.baseOffset, String(first));
      }
    }
  });
  const member = await new Member(topic, group).start();
  const found = await member.read(3 * written.length);
  await member.stop();
  for (const partition of [0, 1, 2]) {
    const own = found.filter((message) => message.partition === partition);
    assert.deepStrictEqual(
      own.map(({ offset }) => offset),
      written.map((_, index) => String(index)),
    );
    assert.deepStrictEqual(
      own.map(({ key, value, headers, timestamp }) => ({ key, value, headers, timestamp })),
      written,
    );
  }
}

async function acks({ topic, group }) {
  await createTopic(topic);
  const options = [{ acks: 0 }, { acks: 1 }, { acks: -1 }, { acks: -1, idempotent: true, maxInFlightRequests: 1 }];
  const values = [];
  for (const { acks, ...producerOptions } of options) {
    await withProducer(producerOptions, async (producer) => {
      for (let n = 0; n < 20; n += 1) {
        const messages = Array.from({ length: 10 }, (_, index) => ({ value: `${values.length + index}` }));
        values.push(...messages.map(({ value }) => value));
        await producer.send({ topic, messages, acks });
      }
    });
  }
  const member = await new Member(topic, group).start();
  const found = await member.read(values.length);
  await member.stop();
  assert.deepStrictEqual(
    found.map(({ value }) => value.toString()),
    values,
  );
}

async function tooLarge({ topic }) {
  await createTopic(topic, 1, { "max.message.bytes": "2000" });
  await withProducer({ retry: { retries: 0 } }, async (producer) => {
    const send = (value) => producer.send({ topic, messages: [{ value }] });
    await assert.rejects(send(Buffer.alloc(3000)), /larger than the max message size/);
    const [told] = await send("small");
    assert.strictEqual(told.baseOffset, "0");
  });
}

module.exports = { roundTrip, acks, tooLarge };
