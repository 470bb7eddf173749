package sluice

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/store"
)

const (
	keySecret    = "keys"      // name of the secret in the store
	secretEvery  = time.Minute // between two checks of the store's secret
	secretWithin = 250 * time.Millisecond
)

// labels computes labels of API keys.
type labels struct {
	mu     sync.Mutex // held while the secret is read
	secret atomic.Pointer[[]byte]
	looked atomic.Int64 // the [uptime] of the last check
}

// KeyLabel returns the label of an API key: eight hexadecimal digits for [Request.Key]. It is an HMAC of the key with a
// secret of the store. All processes that share a store therefore agree on it, and the key cannot be computed from it.
// The label of an empty key is "none". The error is [ErrStore].
//
// The key is neither stored nor sent anywhere.
func (g *Gate) KeyLabel(ctx context.Context, key string) (string, error) {
	if key == "" {
		return keylabel.None, nil
	}
	secret, err := g.labels.get(ctx, g.store)
	if err != nil {
		return "", g.storeError(err)
	}
	return keylabel.Of(secret, key), nil
}

// TellsKeys reports whether a resource tells API keys apart: it is split by key, or has a limit per key.
func (g inside) TellsKeys(resource string) bool {
	r, err := g.resource(resource)
	return err == nil && r.keyed
}

// SetKeyAside pauses one key of a resource, because the provider refuses it or wants payment for it. The other keys
// continue. After d, or after [Gate.Resume], one request tries the key again. The reason is for people to read.
func (g inside) SetKeyAside(ctx context.Context, resource, label string, d time.Duration, reason string) error {
	r, err := g.resource(resource)
	if err != nil {
		return err
	}
	if label == "" || d <= 0 || d > maxPause {
		return r.invalid(&Request{Resource: resource}, "a pause of %v for the key %.80q is not possible", d, label)
	}
	if r.observe {
		return nil // mode observe has no pauses
	}
	op := store.Op{Kind: store.OpPause, RetryAfter: d, Cause: reason, Scope: PerKey, Key: label}
	if err := r.order(ctx, &op); err != nil {
		return err
	}
	if r.events != nil {
		until := time.Now().Add(d).UTC()
		r.emit(inspect.Event{Kind: inspect.EventKeyAside, Scope: "key=" + label, Reason: reason, ForMS: d.Milliseconds(), Until: &until})
	}
	return nil
}

// get returns the store's secret. It checks the store from time to time: a store that has lost its memory gets the
// secret back or, if another process came first, all processes adopt that one.
func (l *labels) get(ctx context.Context, st store.Store) ([]byte, error) {
	if secret := l.secret.Load(); secret != nil {
		now, last := int64(uptime()), l.looked.Load()
		if now-last >= int64(secretEvery) && l.looked.CompareAndSwap(last, now) {
			ctx, cancel := context.WithTimeout(ctx, secretWithin)
			defer cancel()
			if kept, err := keptSecret(ctx, st, *secret); err == nil && !bytes.Equal(kept, *secret) {
				l.secret.Store(&kept)
				return kept, nil
			}
		}
		return *secret, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if secret := l.secret.Load(); secret != nil {
		return *secret, nil
	}
	fresh := make([]byte, store.SecretSize)
	_, _ = rand.Read(fresh) // never fails
	secret, err := keptSecret(ctx, st, fresh)
	if err == nil {
		l.looked.Store(int64(uptime()))
		l.secret.Store(&secret)
	}
	return secret, err
}

// keptSecret asks the store for the secret. If the store keeps no secrets, each gate has its own.
func keptSecret(ctx context.Context, st store.Store, fresh []byte) ([]byte, error) {
	if keeper, ok := store.As[store.Secrets](st); ok {
		return keeper.Secret(ctx, keySecret, fresh)
	}
	return fresh, nil
}

// tellsKeys reports whether any limit is scoped by key.
func tellsKeys(limits []store.Limit) bool {
	for i := range limits {
		if limits[i].Per&PerKey != 0 {
			return true
		}
	}
	return false
}

// keyOf returns the key label that a request counts under.
func (r *resource) keyOf(req *Request) string {
	if req.Key == "" && r.keyed {
		return keylabel.None
	}
	return req.Key
}

// narrow adds the key to the scope of a refusal if keys are told apart: the provider refused that key and said nothing
// about others. An overload concerns all keys.
func (r *resource) narrow(a *Answer) Scope {
	if !r.keyed {
		return a.Scope
	}
	switch a.Verdict {
	case VerdictThrottled, VerdictExhausted, VerdictBilling:
		return a.Scope | PerKey
	}
	return a.Scope
}
