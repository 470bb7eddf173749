// What passing costs where no limit is near: the same small request, one after the other or by many callers at once. Prints one line of JSON.
import { readFileSync } from 'node:fs';

const plan = JSON.parse(readFileSync(0, 'utf8'));
const gate = await (await import(`./gates/${plan.gate}.mjs`)).open(plan.limit);
const body = JSON.stringify({ model: plan.model, max_tokens: 64, messages: [{ role: 'user', content: '[load/0] Say something.' }] });
const headers = { 'content-type': 'application/json', authorization: `Bearer ${plan.key}`, 'X-Sluice-Agent': 'load' };
const agent = { name: 'load', class: 'p1' };
let failed = 0;

async function once() {
  const began = performance.now();
  await gate.around(async () => {
    const answer = await fetch(`${plan.base}/chat/completions`, { method: 'POST', headers, body });
    await answer.text();
    if (!answer.ok) failed++;
  }, agent);
  return performance.now() - began;
}

// for a while, not until it is over: a gate may hold a call for minutes.
const within = (millis, work) => Promise.race([work, new Promise((done) => setTimeout(done, millis))]);
const times = [];
await within(
  plan.millis * 2,
  (async () => {
    for (let i = 0; i < plan.warm; i++) await once();
    for (let i = 0; i < plan.one; i++) times.push(await once());
  })(),
);
times.sort((a, b) => a - b);

failed = 0;
let sent = 0;
const began = performance.now();
await within(
  plan.millis,
  Promise.all(
    Array.from({ length: plan.callers }, async () => {
      while (performance.now() - began < plan.millis) {
        await once();
        sent++;
      }
    }),
  ),
);
const took = (performance.now() - began) / 1000;
console.log(JSON.stringify({ one: times.length, median_ms: times[times.length >> 1] ?? 0, per_second: (sent - failed) / took, failed }));
process.exit(0);
