// A middleware of the Vercel AI SDK. It sees calls of a model, not HTTP requests: where the provider takes a fetch, sluiceFetch tells the
// gate more, and tells it before.
"use strict";

const { gateOf } = require("./start.js");

/**
 * Each call of the model waits for its turn. What it used is charged when it ends.
 * @param {import("../index.d.ts").MiddlewareOptions} [options]
 */
function sluiceMiddleware(options = {}) {
  const { resource, units, ...how } = options;

  const acquire = async ({ model, params }) => {
    const client = await gateOf(options);
    const name = resource ?? model.provider.split(".")[0];
    return { client, ticket: await client.acquire(name, { waitMs: 600_000, ...how, units, model: model.modelId, signal: params.abortSignal }) };
  };

  const answered = (ticket, response) => ticket.answer(200, response?.headers ?? {});

  // What the provider said instead, as APICallError has it.
  const failed = async (ticket, error) => {
    if (Number.isInteger(error?.statusCode)) await ticket.answer(error.statusCode, error.responseHeaders ?? {}, { body: error.responseBody });
  };

  return {
    specificationVersion: options.specificationVersion ?? "v4",

    async wrapGenerate({ doGenerate, model, params }) {
      const { client, ticket } = await acquire({ model, params });
      try {
        const result = await doGenerate();
        await told(client, () => answered(ticket, result.response));
        ticket.used(amounts(result.usage));
        return result;
      } catch (error) {
        await told(client, () => failed(ticket, error));
        throw error;
      } finally {
        await told(client, () => ticket.close());
      }
    },

    async wrapStream({ doStream, model, params }) {
      const { client, ticket } = await acquire({ model, params });
      let result;
      try {
        result = await doStream();
      } catch (error) {
        await told(client, () => failed(ticket, error));
        await told(client, () => ticket.close());
        throw error;
      }
      await told(client, () => answered(ticket, result.response));
      const reader = result.stream.getReader();
      const over = () => told(client, () => ticket.close());
      params.abortSignal?.addEventListener("abort", over, { once: true });
      const stream = new ReadableStream({
        async pull(controller) {
          try {
            const { done, value } = await reader.read();
            if (value?.type === "finish") ticket.used(amounts(value.usage));
            if (!done) return controller.enqueue(value);
            await over();
            controller.close();
          } catch (error) {
            await over();
            controller.error(error);
          }
        },
        async cancel(reason) {
          await Promise.all([over(), reader.cancel(reason)]);
        },
      }, { highWaterMark: 0 });
      return { ...result, stream };
    },
  };
}

// The model's response is worth more than its report.
async function told(client, report) {
  try {
    await report();
  } catch (error) {
    client._warn(error, "a call of a model could not be reported");
  }
}

/** Usage of the SDK, in units of the gate. */
function amounts(usage) {
  const total = (n) => (typeof n === "object" && n !== null ? n.total : n);
  const [input, output] = [total(usage?.inputTokens), total(usage?.outputTokens)];
  const used = {};
  if (Number.isInteger(input)) used.input_tokens = input;
  if (Number.isInteger(output)) used.output_tokens = output;
  if (Number.isInteger(input) && Number.isInteger(output)) used.tokens = input + output;
  return used;
}

module.exports = { sluiceMiddleware };
