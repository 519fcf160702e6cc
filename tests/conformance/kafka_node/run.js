// Runs one scenario with kafka-node: node run.js SCENARIO, with its arguments as JSON on standard input.
"use strict";

const assert = require("node:assert");
const { promisify } = require("node:util");
const kafka = require("kafka-node");
const TimeoutError = require("kafka-node/lib/errors/TimeoutError");

const CODECS = { none: 0, gzip: 1 };
const args = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));

// Before 0.10 no broker answered when it was asked for its versions, and the client went by what 0.9 had.
if (!args.asks) {
  kafka.KafkaClient.prototype.getApiVersions = (broker, done) => done(new TimeoutError("not asked"));
}

function client() {
  return new kafka.KafkaClient({ kafkaHost: process.env.BROKER });
}

async function produce(records, codec) {
  const producer = new kafka.Producer(client(), { requireAcks: 1 });
  await new Promise((ready, failed) => producer.on("ready", ready).on("error", failed));
  const messages = records.map(([key, value]) => new kafka.KeyedMessage(bytes(key), bytes(value)));
  const payload = { topic: args.topic, partition: 0, messages, attributes: CODECS[codec] };
  const told = await promisify(producer.send.bind(producer))([payload]);
  await promisify(producer.close.bind(producer))();
  return told[args.topic][0];
}

// Reads a number of messages with a consumer, whichever its kind.
function read(consumer, count) {
  const found = [];
  return new Promise((resolve, reject) => {
    consumer.on("error", reject).on("offsetOutOfRange", reject);
    consumer.on("message", (message) => {
      if (found.length < count) found.push(message);
      if (found.length === count) resolve(found);
    });
  });
}

async function readFrom(offset, count, more) {
  const consumer = new kafka.Consumer(client(), [{ topic: args.topic, partition: 0, offset }], {
    autoCommit: false,
    fromOffset: true,
    encoding: "buffer",
    keyEncoding: "buffer",
    ...more,
  });
  const found = await read(consumer, count);
  await promisify(consumer.close.bind(consumer))(false);
  return found;
}

async function roundTrip({ records, codec, asks }) {
  if (asks) await promisify(createTopic)(); // without, asking for a topic makes it
  assert.strictEqual(await produce(records, codec), 0);
  assert.strictEqual(await produce(records, codec), records.length);
  const all = records.concat(records);
  for (const [offset, more] of [[0, {}], [records.length + 3, { fetchMaxBytes: 500 }]]) {
    const found = await readFrom(offset, all.length - offset, more);
    assert.deepStrictEqual(
      found.map((message) => [message.offset, message.key, message.value]),
      all.map(([key, value], index) => [index, bytes(key), bytes(value)]).slice(offset),
    );
  }
}

function createTopic(done) {
  const one = client();
  one.on("ready", () => {
    one.createTopics([{ topic: args.topic, partitions: 1, replicationFactor: 1 }], (error, failures) => {
      if (!error && failures.length) error = new Error(JSON.stringify(failures));
      one.close(() => done(error));
    });
  });
}

async function offsets({ records, group }) {
  await produce(records, "none");
  const one = client();
  const offset = new kafka.Offset(one);
  await new Promise((ready) => offset.on("ready", ready));
  const ask = (name, ...more) => promisify(offset[name].bind(offset))(...more);
  const place = { topic: args.topic, partition: 0 };
  const { topic } = args;
  assert.deepStrictEqual(await ask("fetch", [{ ...place, time: -1, maxNum: 5 }]), { [topic]: { 0: [records.length, 0] } });
  assert.deepStrictEqual(await ask("fetch", [{ ...place, time: -1, maxNum: 1 }]), { [topic]: { 0: [records.length] } });
  assert.deepStrictEqual(await ask("fetch", [{ ...place, time: -2, maxNum: 5 }]), { [topic]: { 0: [0] } });
  assert.deepStrictEqual(await ask("fetchCommits", group, [place]), { [topic]: { 0: -1 } });
  await ask("commit", group, [{ ...place, offset: 7 }]);
  assert.deepStrictEqual(await ask("fetchCommits", group, [place]), { [topic]: { 0: 7 } });
  await promisify(one.close.bind(one))();
}

// A member of a group reads half, and the next one the rest.
async function group({ records, codec, asks }) {
  await produce(records, codec);
  const half = Math.floor(records.length / 2);
  const seen = [];
  for (const count of [half, records.length - half]) {
    const member = new kafka.ConsumerGroup(
      {
        kafkaHost: process.env.BROKER,
        groupId: args.group,
        autoCommit: false,
        fromOffset: "earliest",
        encoding: "buffer",
        // One message for each fetch, so that nothing is passed over when it is told to stop.
        fetchMaxBytes: 1,
      },
      [args.topic],
    );
    const found = await read(member, count);
    seen.push(...found.map((message) => message.offset));
    // Only messages of magic 1 have times, and only those of such a producer are not unknown (-1).
    const times = found.map((message) => message.timestamp && message.timestamp.getTime());
    assert(times.every((time) => (asks ? time > 1.7e12 : time === undefined)), String(times));
    const last = seen[seen.length - 1];
    await promisify(member.sendOffsetCommitRequest.bind(member))([
      { topic: args.topic, partition: 0, offset: last + 1, metadata: "m" },
    ]);
    await promisify(member.close.bind(member))(false);
  }
  assert.deepStrictEqual(seen, records.map((_, index) => index));
}

const scenarios = { roundTrip, offsets, group };

scenarios[process.argv[2]](args).then(
  () => process.exit(0),
  (error) => {
    console.error(error.stack || error);
    process.exit(1);
  },
);
