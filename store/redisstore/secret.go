package redisstore

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

// keepSecret returns the value of a key, after setting it if it is missing.
var keepSecret = redisconn.NewScript(`local v = redis.call('GET', KEYS[1])
if not v then
  v = ARGV[1]
  redis.call('SET', KEYS[1], v)
end
return v`)

// Secret implements [store.Secrets].
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.whole)
	defer cancel()
	key := s.prefix + ":secret:" + name
	text, err := s.redis.Run(ctx, keepSecret, key, hex.EncodeToString(fresh))
	if err != nil {
		return nil, unavailable(err)
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) != store.SecretSize {
		return nil, unavailable(errors.New("the key " + key + " does not hold a secret; delete it, and Sluice makes a new one"))
	}
	return secret, nil
}
