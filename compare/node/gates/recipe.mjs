// The usual recipe for Redis: a sorted set with the times of the last requests, checked and extended by a script.
import { randomUUID } from 'node:crypto';
import Redis from 'ioredis';

const script = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - ARGV[1])
if redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('ZADD', KEYS[1], now, ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return 0
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return oldest[2] + ARGV[1] - now + 1`;

const sleep = (millis) => new Promise((done) => setTimeout(done, millis));

export async function open(limit) {
  const redis = new Redis(limit.redis);
  redis.defineCommand('takeOne', { numberOfKeys: 1, lua: script });
  return {
    around: async (send) => {
      for (let wait; (wait = await redis.takeOne('compare', limit.windowMillis, limit.size, randomUUID())) > 0; ) await sleep(wait);
      return send();
    },
    close: async () => redis.disconnect(),
  };
}
