// openai. Where to send, and the key, it finds in the environment, as in any program that uses it.
import OpenAI from "openai";
import { collect, elapsed, fails, misbehave, run, untilRefused } from "./cases.mjs";

const client = new OpenAI();
const once = new OpenAI({ maxRetries: 0 });

const model = "gpt-6.1-terra";
const ask = (content, more) => ({ model, max_completion_tokens: 300, messages: [{ role: "user", content }], ...more });
const parameters = { type: "object", properties: { place: { type: "string" }, days: { type: "integer" } }, required: ["place"] };
const tools = [{ type: "function", function: { name: "weather", description: "The weather at a place", parameters } }];
const flat = [{ type: "function", name: "weather", description: "The weather at a place", parameters, strict: false }];

await run({
  create: () => once.chat.completions.create(ask("Why do rivers bend?")),
  cut: () => once.chat.completions.create(ask("Go on and on.", { max_completion_tokens: 3 })),
  chunks: async () => collect(await once.chat.completions.create(ask("Tell me of locks.", { stream: true }))),
  chunksUsage: async () =>
    collect(await once.chat.completions.create(ask("Tell me of locks, and of tokens.", { stream: true, stream_options: { include_usage: true } }))),
  stream: () => once.chat.completions.stream(ask("Tell me of weirs.")).finalChatCompletion(),
  tool: () => once.chat.completions.create(ask("Use the tool.", { tools })),
  toolChunks: async () => collect(await once.chat.completions.create(ask("Now use the tool.", { tools, tool_choice: "required", stream: true }))),
  response: () => once.responses.create({ model, input: "Why do lakes rest?", max_output_tokens: 300 }),
  responseEvents: async () => collect(await once.responses.create({ model, input: "Tell me of dams.", stream: true })),
  responseStream: () => once.responses.stream({ model, input: "Tell me of mills." }).finalResponse(),
  responseTool: () => once.responses.create({ model, input: "Use the tool.", tools: flat }),
  responseToolEvents: async () =>
    collect(await once.responses.create({ model, input: [{ role: "user", content: "Now use the tool." }], tools: flat, stream: true })),
  cached: () => once.chat.completions.create(ask("What do you remember? ".repeat(40)), misbehave("cache-read=100")),
  models: async () => collect(await once.models.list()),
  zipped: () => once.chat.completions.create(ask("Small, please."), misbehave("gzip")),
  raw: async () => {
    const { data, response } = await once.chat.completions.create(ask("With the header.")).withResponse();
    return { data, status: response.status, type: response.headers.get("content-type"), id: /^req_/.test(response.headers.get("x-request-id")) };
  },

  invalid: () => once.chat.completions.create(ask("No model?", { model: "" })),
  missing: () => once.models.retrieve("no-such-model"),
  broken: () => once.chat.completions.create(ask("Break."), misbehave("status=500")),
  overloaded: () => once.chat.completions.create(ask("Too many?"), misbehave("status=503")),
  inside: async () => collect(await once.chat.completions.create(ask("Fail in the middle.", { stream: true }), misbehave("error-in-200"))),
  insideResponse: async () =>
    collect(await once.responses.create({ model, input: "Fail in the middle.", stream: true }, misbehave("error-in-200"))),
  insteadOfResponse: async () => collect(await client.responses.create({ model, input: "Not today.", stream: true }, misbehave("status=500"))),
  insteadOfChunks: async () => collect(await client.chat.completions.create(ask("Not today.", { stream: true }), misbehave("status=500"))),
  early: async () => collect(await once.chat.completions.create(ask("Close early.", { stream: true }), misbehave("close-early"))),

  // exhausted: somebody else has used up the limit, and the gate does not know.
  exhausted: async () => {
    const other = new OpenAI({ maxRetries: 0, baseURL: process.env.DIRECT_BASE_URL });
    await untilRefused(() => other.chat.completions.create(ask("Not through the gate.")));
    return once.chat.completions.create(ask("And now I."));
  },
  patient: () => elapsed(() => client.chat.completions.create(ask("When it is my turn."))),
  stubborn: () => client.chat.completions.create(ask("Again and again."), misbehave("status=500")),
  stubbornOverload: () => client.chat.completions.create(ask("Again, and slowly."), misbehave("status=503")),
  refused: () => fails(() => once.chat.completions.create(ask("One too many."))),
  denied: () => fails(() => client.chat.completions.create(ask("More than I have."))),
  abort: async () => {
    const controller = new AbortController();
    const stream = await once.chat.completions.create(ask("Never mind.", { stream: true }), {
      ...misbehave("slow=5s"), // it is far from its end when the first piece is here
      signal: controller.signal,
    });
    let pieces = 0;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content && ++pieces === 1) controller.abort();
    }
    return { pieces: pieces >= 1, aborted: controller.signal.aborted };
  },
});
