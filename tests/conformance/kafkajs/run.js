// Runs one scenario: node run.js MODULE SCENARIO, with its arguments as JSON on standard input.
"use strict";

const [module_, scenario] = process.argv.slice(2);
const args = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

require(`./${module_}`)[scenario](args).then(
  () => process.exit(0),
  (error) => {
    console.error(error.stack, error.errors || error.groups || "");
    process.exit(1);
  },
);
