"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");

test("require and import give the same classes", async () => {
  const required = require("../index.js");
  const imported = await import("../index.mjs");
  for (const [name, value] of Object.entries(required)) assert.equal(imported[name], value, name);
  assert.deepEqual(Object.keys(imported), Object.keys(required).sort());
});
