// Runs one scenario: node run.js MODULE SCENARIO, with its arguments as JSON on standard input.
"use strict";

const Module = require("node:module");

const resolve = Module._resolveFilename;
Module._resolveFilename = (request, ...rest) =>
  request === "bignum" ? require.resolve("./bignum.js") : resolve(request, ...rest);

const [module_, scenario] = process.argv.slice(2);
const args = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const [host, port] = process.env.BROKER.split(":");

require(`./${module_}`)
  [scenario]({ host, port: Number(port), ...args })
  .then(
    () => process.exit(0),
    (error) => {
      console.error(error.stack ?? error);
      process.exit(1);
    },
  );
