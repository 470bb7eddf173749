// A file with the times of the last requests behind a lock file: what is written by hand where several processes share one key.
import { readFile, writeFile } from 'node:fs/promises';
import lockfile from 'proper-lockfile';

const sleep = (millis) => new Promise((done) => setTimeout(done, millis));

export async function open(limit) {
  // take returns 0 if the request may go, else how long until there is room.
  async function take() {
    const release = await lockfile.lock(limit.file, { retries: { forever: true, minTimeout: 5, maxTimeout: 100 } });
    try {
      const now = Date.now();
      const sent = JSON.parse(await readFile(limit.file, 'utf8')).filter((at) => at > now - limit.windowMillis);
      if (sent.length >= limit.size) return sent[sent.length - limit.size] + limit.windowMillis - now + 1;
      sent.push(now);
      await writeFile(limit.file, JSON.stringify(sent));
      return 0;
    } finally {
      await release();
    }
  }
  return {
    around: async (send) => {
      for (let wait; (wait = await take()) > 0; ) await sleep(wait);
      return send();
    },
    close: async () => {},
  };
}
