// A program in CommonJS. It is compiled, and not run.
import sluice = require("@sluicehq/sluice");

const client: sluice.Client = new sluice.Client({ agent: "indexer" });
export const held: Promise<string> = client.observe("github", 200, { vary: "a" });
