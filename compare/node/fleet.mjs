// One process of the fleet: some agents that call a model with the official client, each as its schedule says. The plan comes as JSON on
// standard input, every call that ended goes out as one line of JSON.
import { readFileSync } from 'node:fs';
import OpenAI from 'openai';

const plan = JSON.parse(readFileSync(0, 'utf8'));
const gate = await (await import(`./gates/${plan.gate}.mjs`)).open(plan.limit);

const sleepUntil = (at) => new Promise((done) => setTimeout(done, Math.max(0, at - Date.now())));
const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');

// call sends one streamed request, with the retries and timeouts that the client has by default.
async function call(client, agent, number) {
  const asked = Date.now();
  let failed = '';
  try {
    await gate.around(async () => {
      const stream = await client.chat.completions.create({
        model: plan.model,
        stream: true,
        max_tokens: 64,
        messages: [{ role: 'user', content: `[${agent.name}/${number}] Say something.` }],
        ...(plan.priorities ? { priority: plan.priorities[agent.class] } : {}),
      });
      for await (const _ of stream);
    }, agent);
  } catch (err) {
    failed = String(err?.message ?? err).slice(0, 200) || 'failed';
  }
  tell({ agent: agent.name, class: agent.class, asked, done: Date.now(), failed });
}

async function run(agent) {
  const client = new OpenAI({
    apiKey: plan.key,
    baseURL: agent.base,
    defaultHeaders: { 'X-Sluice-Agent': agent.name, 'X-Sluice-Class': agent.class, 'X-Hivemind-Agent-Id': agent.name },
  });
  let number = 0;
  for (const burst of agent.bursts) {
    await sleepUntil(plan.begin + burst.at);
    await Promise.all(Array.from({ length: burst.calls }, () => call(client, agent, number++)));
  }
}

tell({ ready: true });
await Promise.all(plan.agents.map(run));
await gate.close();
process.exit(0); // limiters leave timers behind
