// Transactions: commit, abort, offsets that go with them, and a producer that another takes over.
"use strict";

const assert = require("node:assert");
const { Member, createTopic, kafka, withAdmin, withProducer } = require("./client");

const transactional = (transactionalId) => ({ transactionalId, idempotent: true, maxInFlightRequests: 1 });

// The values of a topic that readers of what is committed see; the last one is to be the end.
async function committed(topic, groupId, count) {
  const member = await new Member(topic, groupId).start();
  const found = await member.read(count);
  await new Promise((done) => setTimeout(done, 300));
  await member.stop();
  return found.map(({ value }) => value.toString());
}

async function commitAndAbort({ topic, group }) {
  await createTopic(topic);
  await withProducer(transactional(`${topic}-p`), async (producer) => {
    for (const [value, commit] of [["a", true], ["gone", false], ["b", true]]) {
      const transaction = await producer.transaction();
      await transaction.send({ topic, messages: [{ value }] });
      await (commit ? transaction.commit() : transaction.abort());
    }
  });
  assert.deepStrictEqual(await committed(topic, group, 2), ["a", "b"]);
}

async function offsets({ topic, group }) {
  await createTopic(topic);
  await createTopic(`${topic}-sink`);
  const position = async () =>
    withAdmin(async (admin) => (await admin.fetchOffsets({ groupId: group, topics: [topic] }))[0].partitions[0].offset);
  await withProducer(transactional(`${topic}-p`), async (producer) => {
    await producer.send({ topic, messages: [{ value: "1" }, { value: "2" }] });
    for (const [commit, expected] of [[false, "-1"], [true, "2"]]) {
      const transaction = await producer.transaction();
      await transaction.send({ topic: `${topic}-sink`, messages: [{ value: "x" }] });
      await transaction.sendOffsets({
        consumerGroupId: group,
        topics: [{ topic, partitions: [{ partition: 0, offset: "2" }] }],
      });
      assert.strictEqual(await position(), "-1");
      await (commit ? transaction.commit() : transaction.abort());
      assert.strictEqual(await position(), expected);
    }
  });
  assert.deepStrictEqual(await committed(`${topic}-sink`, `${group}-sink`, 1), ["x"]);
}

async function fencing({ topic, group }) {
  await createTopic(topic);
  const zombie = kafka.producer({ ...transactional(`${topic}-p`), retry: { retries: 1 } });
  await zombie.connect();
  const open = await zombie.transaction();
  await open.send({ topic, messages: [{ value: "of the zombie" }] });
  await withProducer(transactional(`${topic}-p`), async (heir) => {
    const transaction = await heir.transaction();
    await transaction.send({ topic, messages: [{ value: "of its heir" }] });
    await assert.rejects(open.commit());
    await transaction.commit();
  });
  await zombie.disconnect();
  assert.deepStrictEqual(await committed(topic, group, 1), ["of its heir"]);
}

module.exports = { commitAndAbort, fencing, offsets };
