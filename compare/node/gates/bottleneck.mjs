// Bottleneck, clustered through Redis, with a reservoir that is filled again each window, as its documentation says for "N per minute".
import Bottleneck from 'bottleneck';
import Redis from 'ioredis';

const priorities = { p0: 1, p1: 5, p2: 9 };

export async function open(limit) {
  const limiter = new Bottleneck({
    id: 'compare',
    Redis,
    datastore: 'ioredis',
    clientOptions: limit.redis,
    clearDatastore: false,
    reservoir: limit.size,
    reservoirRefreshAmount: limit.size,
    reservoirRefreshInterval: limit.windowMillis,
  });
  await limiter.ready();
  return {
    around: (send, agent) => limiter.schedule({ priority: priorities[agent.class] }, send),
    close: () => limiter.disconnect(),
  };
}
