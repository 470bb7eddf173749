// What all scripts have in common: they run the cases that the command line names, and print what the client
// has seen in each, one line of JSON per case.

// run runs cases one after the other.
export async function run(cases) {
  for (const name of process.argv.slice(2)) {
    let seen;
    try {
      if (!cases[name]) throw new Error(`there is no case ${name}`);
      seen = { value: (await cases[name]()) ?? null };
    } catch (error) {
      seen = { error: describe(error) };
    }
    process.stdout.write(JSON.stringify({ case: name, ...seen }) + "\n");
  }
}

// fails is what a call throws, for cases that go on after it.
export async function fails(call) {
  try {
    await call();
  } catch (error) {
    return describe(error);
  }
  throw new Error("the call did not fail");
}

// untilRefused calls until the provider has had enough.
export async function untilRefused(call) {
  for (let calls = 0; calls < 100; calls++) {
    try {
      await call();
    } catch (error) {
      if (error.status === 429) return;
      throw error;
    }
  }
  throw new Error("the provider refuses nothing");
}

// arrived waits until the provider has a request that it has not answered.
export async function arrived() {
  const stats = new URL("/_mock/stats", process.env.DIRECT_BASE_URL);
  while ((await (await fetch(stats)).json()).in_flight === 0) await new Promise((resolve) => setTimeout(resolve, 20));
}

// describe is what a program can know of an error.
function describe(error) {
  const header = (name) => error.headers?.get?.(name) ?? error.response?.headers?.[name] ?? null;
  return {
    class: error.constructor.name,
    status: error.status ?? null,
    type: error.type ?? error.error?.type ?? null,
    message: error.message,
    body: error.error ?? error.response?.data ?? null,
    retry_after: header("retry-after"),
    refused: header("x-sluice-refused"),
  };
}

// collect is all that a stream brings.
export async function collect(stream) {
  const all = [];
  for await (const event of stream) all.push(event);
  return all;
}

// elapsed is how long a call takes, in milliseconds, and what it returns.
export async function elapsed(call) {
  const begin = performance.now();
  const value = await call();
  return { ms: performance.now() - begin, value };
}

// misbehave asks the mock for misbehaviour.
export const misbehave = (what) => ({ headers: { "X-Mock": what } });
