// The admin client: topics, settings, offsets, groups, records and the cluster.
"use strict";

const assert = require("node:assert");
const { ConfigResourceTypes } = require("kafkajs");
const { Member, createTopic, eventually, withAdmin, withProducer } = require("./client");

const TOPIC = ConfigResourceTypes.TOPIC;

async function topics({ topic }) {
  await withAdmin(async (admin) => {
    assert.strictEqual(await admin.createTopics({ topics: [{ topic, numPartitions: 3 }] }), true);
    assert.strictEqual(await admin.createTopics({ topics: [{ topic }] }), false, "it exists");
    assert.ok((await admin.listTopics()).includes(topic));
    await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] });
    const { topics: described } = await admin.fetchTopicMetadata({ topics: [topic] });
    assert.deepStrictEqual(
      described[0].partitions.map(({ partitionId, leader, replicas, isr }) => [partitionId, leader, replicas, isr]),
      [0, 1, 2, 3, 4].map((index) => [index, 0, [0], [0]]),
    );
    await admin.deleteTopics({ topics: [topic] });
    assert.ok(!(await admin.listTopics()).includes(topic));
  });
  const deleteAgain = withAdmin((admin) => admin.deleteTopics({ topics: [topic] }), { retry: { retries: 0 } });
  await assert.rejects(deleteAgain, ({ cause }) => {
    assert.strictEqual(cause.type, "UNKNOWN_TOPIC_OR_PARTITION");
    return true;
  });
}

async function refusedTopics({ topic }) {
  const cases = {
    INVALID_TOPIC_EXCEPTION: { topic: "no/slash" },
    INVALID_PARTITIONS: { topic, numPartitions: 20_000 },
    INVALID_REPLICATION_FACTOR: { topic, replicationFactor: 3 },
    INVALID_CONFIG: { topic, configEntries: [{ name: "no.such.setting", value: "1" }] },
  };
  await withAdmin(async (admin) => {
    for (const [type, refused] of Object.entries(cases)) {
      for (const validateOnly of [true, false]) {
        await assert.rejects(admin.createTopics({ topics: [refused], validateOnly }), (error) => {
          const codes = [error, ...(error.errors || [])].map((one) => one.type);
          assert.ok(codes.includes(type), `${codes} instead of ${type}`);
          return true;
        });
      }
    }
    assert.ok(!(await admin.listTopics()).includes(topic));
    await createTopic(topic, 3);
    const fewer = admin.createPartitions({ topicPartitions: [{ topic, count: 2 }] });
    await assert.rejects(fewer, { type: "INVALID_PARTITIONS" });
  });
}

async function settings({ topic, defaults }) {
  await createTopic(topic, 1, { "retention.ms": "12345" });
  await withAdmin(async (admin) => {
    const described = async () => {
      const { resources } = await admin.describeConfigs({ resources: [{ type: TOPIC, name: topic }] });
      return Object.fromEntries(resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]));
    };
    const alter = (name, value) =>
      admin.alterConfigs({ resources: [{ type: TOPIC, name: topic, configEntries: [{ name, value }] }] });
    assert.deepStrictEqual(await described(), { ...defaults, "retention.ms": "12345" });
    await alter("segment.bytes", "1000000");
    assert.deepStrictEqual(await described(), { ...defaults, "segment.bytes": "1000000" });
    for (const [name, value] of [
      ["retention.ms", "soon"],
      ["no.such.setting", "1"],
    ]) {
      await assert.rejects(alter(name, value), { type: "INVALID_CONFIG" });
    }
    assert.deepStrictEqual(await described(), { ...defaults, "segment.bytes": "1000000" });
  });
}

async function offsetsAndGroups({ topic, group }) {
  await createTopic(topic, 2);
  const messages = Array.from({ length: 20 }, (_, n) => ({ value: `${n}`, partition: 0 }));
  await withProducer({}, (producer) => producer.send({ topic, messages }));
  const member = await new Member(topic, group).start();
  await member.read(20);
  await withAdmin(async (admin) => {
    const { groups } = await admin.listGroups();
    assert.ok(groups.some(({ groupId, protocolType }) => groupId === group && protocolType === "consumer"));
    const [described] = (await admin.describeGroups([group])).groups;
    assert.deepStrictEqual(
      [described.state, described.protocol, described.members.length, described.members[0].clientId],
      ["Stable", "RoundRobinAssigner", 1, "kafkajs"],
    );
    await assert.rejects(admin.deleteGroups([group]), ({ groups: refused }) => {
      assert.strictEqual(refused[0].error.type, "NON_EMPTY_GROUP");
      return true;
    });
    await member.stop();
    await eventually(async () => (await admin.describeGroups([group])).groups[0].state === "Empty");
    const offsets = async () => {
      const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
      return Object.fromEntries(partitions.map(({ partition, offset }) => [partition, offset]));
    };
    // This takes the client 5 seconds, in which it asks for nothing.
    const partitions = [
      { partition: 0, offset: "7" },
      { partition: 1, offset: "0" },
    ];
    await admin.setOffsets({ groupId: group, topic, partitions });
    assert.deepStrictEqual(await offsets(), { 0: "7", 1: "0" });
    await admin.deleteGroups([group]);
    assert.deepStrictEqual(await offsets(), { 0: "-1", 1: "-1" });
  });
}

async function deletedRecords({ topic, group }) {
  await createTopic(topic);
  const messages = Array.from({ length: 20 }, (_, n) => ({ value: `${n}` }));
  await withProducer({}, (producer) => producer.send({ topic, messages }));
  await withAdmin(async (admin) => {
    // The client must have heard of a topic before it deletes records from it.
    await admin.fetchTopicOffsets(topic);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "7" }] });
    const [{ low, high }] = await admin.fetchTopicOffsets(topic);
    assert.deepStrictEqual([low, high], ["7", "20"]);
  });
  const member = await new Member(topic, group).start();
  const found = await member.read(13);
  await member.stop();
  assert.deepStrictEqual(
    found.map(({ offset }) => Number(offset)),
    Array.from({ length: 13 }, (_, n) => n + 7),
  );
}

async function cluster() {
  await withAdmin(async (admin) => {
    const { brokers, controller, clusterId } = await admin.describeCluster();
    assert.deepStrictEqual(
      brokers.map(({ nodeId, host, port }) => [nodeId, `${host}:${port}`]),
      [[controller, process.env.BROKER]],
    );
    assert.ok(clusterId);
  });
}

module.exports = { topics, refusedTopics, settings, offsetsAndGroups, deletedRecords, cluster };
