// Where the command sluice is: in the package for this platform that npm has installed beside this one, else in the PATH.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const exe = process.platform === "win32" ? "sluice.exe" : "sluice";

/** The package that brings the command for this platform. */
const platformPackage = `@sluicehq/sluice-${process.platform}-${process.arch}`;

/** The command that npm has installed; undefined if there is none. */
function bundled() {
  try {
    return require.resolve(`${platformPackage}/bin/${exe}`);
  } catch {
    return undefined;
  }
}

/** The command; undefined if there is none. */
function binary() {
  return bundled() ?? inPath();
}

function inPath() {
  for (const dir of (process.env.PATH ?? "").split(path.delimiter).filter(Boolean)) {
    const file = path.join(dir, exe);
    try {
      fs.accessSync(file, fs.constants.X_OK);
      if (fs.statSync(file).isFile()) return file;
    } catch {
      // it is not there
    }
  }
  return undefined;
}

module.exports = { binary, bundled, platformPackage };
