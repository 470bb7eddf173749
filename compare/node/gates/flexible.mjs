// rate-limiter-flexible on Redis, with its queue, which waits where the limiter alone would refuse.
import Redis from 'ioredis';
import { RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible';

export async function open(limit) {
  const redis = new Redis(limit.redis);
  const limiter = new RateLimiterRedis({ storeClient: redis, points: limit.size, duration: limit.windowMillis / 1000 });
  const queue = new RateLimiterQueue(limiter, { maxQueueSize: 100000 });
  return {
    around: async (send) => {
      await queue.removeTokens(1, 'compare');
      return send();
    },
    close: async () => redis.disconnect(),
  };
}
