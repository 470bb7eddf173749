package sluicehttp

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// Key is one of several API keys or addresses that a transport can use. Each has its own limits and pauses.
type Key struct {
	// Header and Value are the credentials, such as x-api-key and the key itself. If Header is empty, the request keeps
	// its own credentials.
	Header, Value string
	// Upstream replaces [Transport.Upstream] at the start of the request's address. Nil leaves the address as it is.
	Upstream *url.URL
	// Share is this key's relative share of requests while several keys are available. 0 means 1.
	Share int
	// Name is shown to people: the environment variable that holds the key. The key itself is never shown.
	Name string
}

const (
	// asideFor is how long a key is not used after the provider refused it or asked for payment. Then one request tries
	// it.
	asideFor = 5 * time.Minute
	// asideOnce is how long further refusals of the same key are not reported: those requests were already running.
	asideOnce = 10 * time.Second
)

// ring is the state of a transport's keys.
type ring struct {
	mu    sync.Mutex
	sent  []float64            // by key: requests sent, divided by its share
	aside map[string]time.Time // by label: when the key was set aside
}

// isAside reports whether a key was set aside within the given time. Call it with the lock held.
func (x *ring) isAside(label string, within time.Duration) bool {
	at, is := x.aside[label]
	return is && time.Since(at) < within
}

// keyHeaders are the headers in which clients send keys. They are removed from requests that use a key of the ring.
var keyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// KeyLabels returns the labels of Keys, in the same order.
func (t *Transport) KeyLabels(ctx context.Context) ([]string, error) {
	t.once.Do(t.init)
	list := make([]string, len(t.Keys))
	for i := range t.Keys {
		k := &t.Keys[i]
		key := k.Value
		if t.speaker != nil && k.Header != "" {
			key = t.speaker.Key(map[string][]string{k.Header: {k.Value}})
		}
		var err error
		at := ""
		if k.Upstream != nil {
			at = k.Upstream.String()
		}
		if list[i], err = t.Gate.KeyLabel(ctx, keylabel.Source(at, key)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// chooseFrom sets the keys that the request may use, in the order to try them. The key of its conversation comes first,
// for the provider's prompt cache, then the least used ones.
func (f *flight) chooseFrom() error {
	t := f.t
	labels, err := t.KeyLabels(f.ctx)
	if err != nil {
		return err
	}
	f.labels = labels
	order := make([]int, len(labels))
	for i := range order {
		order[i] = i
	}
	t.ring.mu.Lock()
	if t.ring.sent == nil {
		t.ring.sent = make([]float64, len(labels))
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(t.ring.sent[a]+1/t.share(a), t.ring.sent[b]+1/t.share(b))
	})
	t.ring.mu.Unlock()
	if f.talk != 0 {
		own := slices.MinFunc(order, func(a, b int) int { return cmp.Compare(f.distance(a), f.distance(b)) })
		order = slices.Insert(slices.DeleteFunc(order, func(i int) bool { return i == own }), 0, own)
	}
	for _, i := range order {
		f.ask.Keys = append(f.ask.Keys, labels[i])
	}
	if f.observe || f.asked.Free { // such a request does not wait, so no pause holds a key back
		t.ring.mu.Lock()
		good := slices.IndexFunc(f.ask.Keys, func(label string) bool { return !t.ring.isAside(label, asideFor) })
		t.ring.mu.Unlock()
		f.use(f.ask.Keys[max(good, 0)])
	}
	if f.observe {
		f.ask.Keys = nil // sent only once
	}
	return nil
}

func (t *Transport) share(i int) float64 { return float64(max(t.Keys[i].Share, 1)) }

// distance returns how far a key is from the conversation; the nearest key gets it. Keys get conversations in
// proportion to their shares. Adding or removing a key moves no conversation between the other keys.
func (f *flight) distance(i int) float64 {
	h := newTalk()
	h.add(f.labels[i])
	x := mix(f.talk ^ h.sum)
	return -math.Log((float64(x>>11)+0.5)/(1<<53)) / f.t.share(i)
}

// use sets the key that the request is sent with.
func (f *flight) use(label string) {
	i := max(slices.Index(f.labels, label), 0)
	f.ask.Key, f.key = label, &f.t.Keys[i]
	f.t.ring.mu.Lock()
	defer f.t.ring.mu.Unlock()
	if f.t.ring.sent[i] += 1 / f.t.share(i); f.t.ring.sent[i] > 1e12 { // only differences matter
		clear(f.t.ring.sent)
	}
}

// pinned calls fn while the request is bound to its current key, because its header is already written.
func (f *flight) pinned(fn func()) {
	keys := f.ask.Keys
	if f.key != nil {
		f.ask.Keys = nil
	}
	fn()
	f.ask.Keys = keys
}

// turn changes a request to use the key. The dialect knows what the path is called below the key's own address.
func (k *Key) turn(req *http.Request, from *url.URL, d provider.Dialect) {
	if k.Header != "" {
		for _, name := range keyHeaders {
			req.Header.Del(name)
		}
		req.Header.Set(k.Header, k.Value)
	}
	if k.Upstream == nil || from == nil {
		return
	}
	u := *req.URL
	rest := strings.TrimPrefix(u.EscapedPath(), strings.TrimSuffix(from.EscapedPath(), "/"))
	escaped := provider.JoinPath(k.Upstream.EscapedPath(), rest)
	if l, ok := d.(provider.Locator); ok {
		escaped, _ = l.Locate(strings.ToLower(k.Upstream.Hostname()), k.Upstream.EscapedPath(), rest)
	}
	u.Scheme, u.Host = k.Upstream.Scheme, k.Upstream.Host
	if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = plain, escaped
	}
	req.URL, req.Host = &u, ""
}

// refusesKey returns why the provider refuses the key rather than the request; empty if it does not.
func (f *flight) refusesKey(o *outcome) (why string) {
	switch {
	case f.key == nil || o.resp == nil:
	case o.answer.Verdict == store.VerdictBilling:
		return "billing stop: " + cmp.Or(o.answer.Cause, "the account is not paid for")
	case f.badKey && f.key.Header != "": // otherwise it is the client's own key
		return fmt.Sprintf("the provider refuses the key (%d)", o.resp.StatusCode)
	}
	return ""
}

// isBadKey reports whether a response says that the key is not valid. Gemini says so with status 400.
func isBadKey(status int, body []byte) bool {
	return status == http.StatusUnauthorized || status == http.StatusBadRequest && bytes.Contains(body, []byte("API_KEY_INVALID"))
}

// setAside stops using a key that the provider refuses. It reports whether the request can use another key.
func (f *flight) setAside(why string) bool {
	t, label := f.t, f.ask.Key
	t.ring.mu.Lock()
	known := t.ring.isAside(label, asideOnce)
	if t.ring.aside == nil {
		t.ring.aside = map[string]time.Time{}
	}
	t.ring.aside[label] = time.Now()
	f.ask.Keys = slices.DeleteFunc(slices.Clone(f.ask.Keys), func(key string) bool { return key == label })
	other := slices.ContainsFunc(f.ask.Keys, func(key string) bool { return !t.ring.isAside(key, asideFor) })
	t.ring.mu.Unlock()
	if !known { // otherwise already reported
		if f.key.Name != "" {
			why += "; it is in " + f.key.Name
		}
		_ = inside.Of(t.Gate).SetKeyAside(context.WithoutCancel(f.ctx), t.Resource, label, asideFor, why) // if the store cannot be reached, each process finds out by itself
	}
	return other
}

// served records that the provider accepts the key, which may have been set aside before.
func (f *flight) served() {
	if f.key == nil {
		return
	}
	f.t.ring.mu.Lock()
	defer f.t.ring.mu.Unlock()
	delete(f.t.ring.aside, f.ask.Key)
}
