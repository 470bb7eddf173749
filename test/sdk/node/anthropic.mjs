// @anthropic-ai/sdk. Where to send, and the key, it finds in the environment, as in any program that uses it.
import Anthropic from "@anthropic-ai/sdk";
import { collect, elapsed, fails, misbehave, run, untilRefused } from "./cases.mjs";

const client = new Anthropic();
const once = new Anthropic({ maxRetries: 0 });

const model = "claude-sonnet-5-5";
const ask = (content, more) => ({ model, max_tokens: 500, messages: [{ role: "user", content }], ...more });
const tools = [
  {
    name: "weather",
    description: "The weather at a place",
    input_schema: { type: "object", properties: { place: { type: "string" }, days: { type: "integer" } }, required: ["place"] },
  },
];

await run({
  create: () => once.messages.create(ask("Why do rivers bend?")),
  system: () => once.messages.create(ask([{ type: "text", text: "And lakes?" }], { system: "Be brief.", model: "claude-opus-4-8" })),
  cut: () => once.messages.create(ask("Go on and on.", { max_tokens: 3 })),
  events: async () => collect(await once.messages.create(ask("Tell me of locks.", { stream: true }))),
  stream: async () => {
    const stream = once.messages.stream(ask("Tell me of weirs."));
    const text = [];
    stream.on("text", (piece) => text.push(piece));
    return { message: await stream.finalMessage(), text };
  },
  tool: () => once.messages.create(ask("Use the tool.", { tools })),
  toolStream: async () => {
    const stream = once.messages.stream(ask("Please use the tool now.", { tools, tool_choice: { type: "any" } }));
    const json = [];
    stream.on("inputJson", (piece) => json.push(piece));
    return { message: await stream.finalMessage(), json };
  },
  toolResult: async () => {
    const first = await once.messages.create(ask("Use the tool.", { tools }));
    const use = first.content.find((block) => block.type === "tool_use");
    return once.messages.create({
      ...ask("Use the tool.", { tools }),
      messages: [
        { role: "user", content: "Use the tool." },
        { role: "assistant", content: first.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "rain" }] },
      ],
    });
  },
  cached: () => once.messages.create(ask("What do you remember? ".repeat(40)), misbehave("cache-read=100, cache-write=20")),
  beta: () => once.beta.messages.create({ ...ask("In beta?"), betas: ["context-1m-2025-08-07"] }),
  count: () => once.messages.countTokens({ model, messages: [{ role: "user", content: "How long is this?" }] }),
  models: async () => collect(await once.models.list()),
  zipped: () => once.messages.create(ask("Small, please."), misbehave("gzip")),
  zippedStream: async () => collect(await once.messages.create(ask("Small pieces, please.", { stream: true }), misbehave("gzip"))),
  raw: async () => {
    const { data, response } = await once.messages.create(ask("With the header.")).withResponse();
    return { data, status: response.status, type: response.headers.get("content-type"), id: /^req_/.test(response.headers.get("request-id")) };
  },

  invalid: () => once.messages.create(ask("No limit?", { max_tokens: 0 })),
  missing: () => once.models.retrieve("no-such-model"),
  broken: () => once.messages.create(ask("Break."), misbehave("status=500")),
  overloaded: () => once.messages.create(ask("Too many?"), misbehave("status=529")),
  inside: async () => collect(await once.messages.create(ask("Fail in the middle.", { stream: true }), misbehave("error-in-200"))),
  insteadOfStream: async () => collect(await client.messages.create(ask("Not today.", { stream: true }), misbehave("status=500"))),
  early: async () => collect(await once.messages.create(ask("Close early.", { stream: true }), misbehave("close-early"))),

  // exhausted: somebody else has used up the limit, and the gate does not know.
  exhausted: async () => {
    const other = new Anthropic({ maxRetries: 0, baseURL: process.env.DIRECT_BASE_URL });
    await untilRefused(() => other.messages.create(ask("Not through the gate.")));
    return once.messages.create(ask("And now I."));
  },
  patient: () => elapsed(() => client.messages.create(ask("When it is my turn."))),
  stubborn: () => client.messages.create(ask("Again and again."), misbehave("status=500")),
  stubbornOverload: () => client.messages.create(ask("Again, and slowly."), misbehave("status=529")),
  refused: () => fails(() => once.messages.create(ask("One too many."))),
  denied: () => fails(() => client.messages.create(ask("More than I have."))),
  abort: async () => {
    const controller = new AbortController();
    const stream = await once.messages.create(ask("Never mind.", { stream: true }), {
      ...misbehave("slow=5s"), // it is far from its end when the first piece is here
      signal: controller.signal,
    });
    let pieces = 0;
    for await (const event of stream) {
      if (event.type === "content_block_delta" && ++pieces === 1) controller.abort();
    }
    return { pieces: pieces >= 1, aborted: controller.signal.aborted };
  },
});
