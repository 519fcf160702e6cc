// ACLs, made, told and deleted.
"use strict";

const assert = require("node:assert");
const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = require("kafkajs");
const { withAdmin } = require("./client");

const entry = {
  principal: "User:ada",
  host: "*",
  operation: AclOperationTypes.WRITE,
  permissionType: AclPermissionTypes.ALLOW,
};
const anything = {
  operation: AclOperationTypes.ANY,
  permissionType: AclPermissionTypes.ANY,
};

async function administered({ topic }) {
  const acl = {
    resourceType: AclResourceTypes.TOPIC,
    resourceName: topic,
    resourcePatternType: ResourcePatternTypes.PREFIXED,
    ...entry,
  };
  const filter = {
    resourceType: AclResourceTypes.TOPIC,
    resourceName: `${topic}-more`,
    resourcePatternType: ResourcePatternTypes.MATCH,
    ...anything,
  };
  await withAdmin(async (admin) => {
    assert.strictEqual(await admin.createAcls({ acl: [acl] }), true);
    const { resources } = await admin.describeAcls(filter);
    assert.deepStrictEqual(resources, [
      {
        resourceType: AclResourceTypes.TOPIC,
        resourceName: topic,
        resourcePatternType: ResourcePatternTypes.PREFIXED,
        acls: [entry],
      },
    ]);
    const { filterResponses } = await admin.deleteAcls({ filters: [filter] });
    assert.deepStrictEqual(filterResponses[0].matchingAcls.map(({ resourceName }) => resourceName), [topic]);
    assert.deepStrictEqual((await admin.describeAcls(filter)).resources, []);
  });
}

async function refused({ topic }) {
  const acl = {
    resourceType: AclResourceTypes.TOPIC,
    resourceName: topic,
    resourcePatternType: ResourcePatternTypes.LITERAL,
    ...entry,
  };
  const created = withAdmin((admin) => admin.createAcls({ acl: [acl] }), { retry: { retries: 0 } });
  await assert.rejects(created, ({ cause, type }) => {
    assert.strictEqual(type || cause.type, "SECURITY_DISABLED");
    return true;
  });
}

module.exports = { administered, refused };
