// A program with @types/node. It is compiled, and not run.
import type { SecureContextOptions } from "node:tls";
import type { IncomingMessage } from "node:http";
import { Client } from "@sluicehq/sluice";

declare const options: SecureContextOptions;
declare const message: IncomingMessage;
const client = new Client({ tls: { ca: Buffer.from("PEM") } });
await client.observe("github", message.statusCode ?? 0, message.headers, { body: Buffer.from("text") });
export const { key, cert } = options;
export const other = new Client({ tls: options });
