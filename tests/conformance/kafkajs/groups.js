// Members that come, go, die and come back; positions and commits.
"use strict";

const assert = require("node:assert");
const { Member, allSharedOut, createTopic, eventually, withAdmin, withProducer } = require("./client");

const PARTITIONS = 6;
const BASE_MS = 1_700_000_000_000;

async function fill(topic, count, partitions = 1) {
  const messages = Array.from({ length: count }, (_, n) => ({
    value: `${n}`,
    partition: n % partitions,
    timestamp: String(BASE_MS + 1000 * n),
  }));
  await withProducer({}, (producer) => producer.send({ topic, messages }));
  return messages.map(({ value }) => value);
}

async function comeAndGo({ topic, group }) {
  await createTopic(topic, PARTITIONS);
  const first = await new Member(topic, group).start();
  await eventually(() => allSharedOut([first], PARTITIONS));
  const second = await new Member(topic, group).start();
  await eventually(() => allSharedOut([first, second], PARTITIONS));
  const values = await fill(topic, 60, PARTITIONS);
  await eventually(() => first.messages.length + second.messages.length >= 60);
  const found = [...first.messages, ...second.messages].map(({ value }) => value.toString());
  assert.deepStrictEqual(found.sort(), values.sort());
  await second.stop();
  await eventually(() => allSharedOut([first], PARTITIONS));
  await first.stop();
}

async function fiveAtOnce({ topic, group }) {
  await createTopic(topic, 10);
  const members = await Promise.all(Array.from({ length: 5 }, () => new Member(topic, group).start()));
  await eventually(() => allSharedOut(members, 10));
  await Promise.all(members.map((member) => member.stop()));
}

// Joins and says so; whoever started it kills it.
async function joinAndWait({ topic, group }) {
  const member = await new Member(topic, group, { sessionTimeout: 1000 }).start();
  await eventually(() => member.partitions.length);
  console.log("joined");
  await new Promise(() => {});
}

// Takes over from a member that was killed.
async function takeOver({ topic, group, partitions }) {
  const member = await new Member(topic, group, { sessionTimeout: 6000 }).start();
  await eventually(() => allSharedOut([member], partitions), 60_000);
  await member.stop();
}

async function commitAndResume({ topic, group }) {
  await createTopic(topic);
  await fill(topic, 50);
  for (const [first, count] of [
    [0, 20],
    [20, 20],
    [40, 10],
  ]) {
    const seen = [];
    const member = new Member(topic, group);
    await member.start({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        if (seen.length === count) return;
        seen.push(Number(message.value));
        if (seen.length === count) {
          const offset = String(Number(message.offset) + 1);
          await member.consumer.commitOffsets([{ topic, partition: 0, offset, metadata: `at ${offset} ✓` }]);
        }
      },
    });
    await eventually(() => seen.length === count);
    await member.stop();
    assert.deepStrictEqual(
      seen,
      Array.from({ length: count }, (_, n) => first + n),
    );
    await withAdmin(async (admin) => {
      const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
      const offset = String(first + count);
      assert.deepStrictEqual(partitions, [{ partition: 0, offset, metadata: `at ${offset} ✓` }]);
    });
  }
}

async function positions({ topic, group }) {
  await createTopic(topic);
  await fill(topic, 100);
  const member = await new Member(topic, group).start();
  await member.read(100);
  member.messages.length = 0;
  member.consumer.seek({ topic, partition: 0, offset: "42" });
  const found = await member.read(58);
  assert.deepStrictEqual(
    found.map(({ offset }) => Number(offset)),
    Array.from({ length: 58 }, (_, n) => 42 + n),
  );
  member.consumer.pause([{ topic }]);
  // The fetch that is under way may still bring something.
  await new Promise((done) => setTimeout(done, 300));
  member.messages.length = 0;
  await fill(topic, 1);
  await new Promise((done) => setTimeout(done, 300));
  assert.strictEqual(member.messages.length, 0);
  member.consumer.resume([{ topic }]);
  const [next] = await member.read(1);
  assert.strictEqual(next.offset, "100");
  await member.stop();
  await withAdmin(async (admin) => {
    assert.deepStrictEqual(await admin.fetchTopicOffsets(topic), [
      { partition: 0, offset: "101", high: "101", low: "0" },
    ]);
    for (const [ms, offset] of [
      [0, "0"],
      [1, "1"],
      [42_500, "43"],
      [99_000, "99"],
      [99_001, "101"],
    ]) {
      const found = await admin.fetchTopicOffsetsByTimestamp(topic, BASE_MS + ms);
      assert.deepStrictEqual(found, [{ partition: 0, offset }]);
    }
  });
}

async function fromTheEnd({ topic, group }) {
  await createTopic(topic);
  await fill(topic, 10);
  const member = await new Member(topic, group).start({ fromBeginning: false });
  await eventually(() => member.partitions.length);
  await eventually(async () => {
    await fill(topic, 1);
    return member.messages.length;
  });
  assert.ok(Number(member.messages[0].offset) >= 10);
  await member.stop();
}

module.exports = { comeAndGo, fiveAtOnce, joinAndWait, takeOver, commitAndResume, positions, fromTheEnd };
