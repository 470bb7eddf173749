// openai's clients for WebSockets. Where to send, and the key, they find in the environment.
import net from "node:net";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { ResponsesWS } from "openai/resources/responses/ws";
import { run } from "./cases.mjs";

const client = new OpenAI();

// next waits for one of some events.
const next = (rt, ...kinds) =>
  new Promise((resolve, reject) => {
    for (const kind of kinds) rt.on(kind, resolve);
    rt.on("error", reject);
  });

await run({
  // The client insists on wss:// and is given a plain connection, as behind a proxy that ends TLS.
  realtime: async () => {
    const rt = new OpenAIRealtimeWS({ model: "gpt-realtime", options: { createConnection: ({ host, port }) => net.connect({ host, port }) } }, client);
    await next(rt, "session.created");
    const used = [];
    for (let i = 0; i < 5; i++) {
      const done = next(rt, "response.done");
      rt.send({ type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_text", text: `question ${i}` }] } });
      rt.send({ type: "response.create" });
      used.push((await done).response.usage.total_tokens);
    }
    const closed = new Promise((resolve) => rt.socket.on("close", resolve));
    rt.close();
    await closed;
    return used;
  },
  responses: async () => {
    const ws = new ResponsesWS(client);
    const used = [];
    for (let i = 0; i < 5; i++) {
      const done = next(ws, "response.completed");
      ws.send({ type: "response.create", model: "gpt-6.1-terra", input: `question ${i}` });
      used.push((await done).response.usage.total_tokens);
    }
    const closed = new Promise((resolve) => ws.socket.on("close", resolve));
    ws.close();
    await closed;
    return used;
  },
});
