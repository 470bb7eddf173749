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
	"github.com/sluicehq/sluice/store"
)

// Key is one of several keys or addresses that the requests of a transport can go with. Each has its own limits and pauses.
type Key struct {
	// Header and Value are what the request is sent with, such as x-api-key and the key itself. If Header is empty, the request goes
	// with the credentials that it came with.
	Header, Value string
	// Upstream takes the place of the first part of the request's address; nil means that the address stays as it is.
	Upstream *url.URL
	// Share is how much of the requests this key gets while several could go, compared with the others. 0 means 1.
	Share int
	// Name is for people: the environment variable that the key comes from. It is shown, unlike the key.
	Name string
}

const (
	// asideFor is how long a key is left alone that the provider refuses or wants money for. Then one request tries it.
	asideFor = 5 * time.Minute
	// asideOnce is how long requests that were under way with the same key say nothing new.
	asideOnce = 10 * time.Second
)

// ring is what a transport knows of its keys.
type ring struct {
	mu    sync.Mutex
	sent  []float64            // by key: how many requests, over its share
	aside map[string]time.Time // by label: when it was set aside
}

// isAside reports that a key was set aside within a time. It is called with the lock held.
func (x *ring) isAside(label string, within time.Duration) bool {
	at, is := x.aside[label]
	return is && time.Since(at) < within
}

// keyHeaders are where clients put keys: none of theirs goes with a key of the ring.
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

// chooseFrom notes which keys the request may go with, and in which order they are tried: the one of its conversation first, so that
// the provider's prompt cache serves it, then those that were used least.
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
	if f.observe || f.asked.Free { // there is no turn to wait for, and no pause that holds a key
		t.ring.mu.Lock()
		good := slices.IndexFunc(f.ask.Keys, func(label string) bool { return !t.ring.isAside(label, asideFor) })
		t.ring.mu.Unlock()
		f.use(f.ask.Keys[max(good, 0)])
	}
	if f.observe {
		f.ask.Keys = nil // it goes once
	}
	return nil
}

func (t *Transport) share(i int) float64 { return float64(max(t.Keys[i].Share, 1)) }

// distance is how far a key is from the conversation: the nearest has it. Keys are near to as many conversations as their shares say,
// and one that is added or removed moves no conversation between the others.
func (f *flight) distance(i int) float64 {
	h := newTalk()
	h.add(f.labels[i])
	x := mix(f.talk ^ h.sum)
	return -math.Log((float64(x>>11)+0.5)/(1<<53)) / f.t.share(i)
}

// use notes which key the request goes with.
func (f *flight) use(label string) {
	i := max(slices.Index(f.labels, label), 0)
	f.ask.Key, f.key = label, &f.t.Keys[i]
	f.t.ring.mu.Lock()
	defer f.t.ring.mu.Unlock()
	if f.t.ring.sent[i] += 1 / f.t.share(i); f.t.ring.sent[i] > 1e12 { // only differences count
		clear(f.t.ring.sent)
	}
}

// pinned calls a function while the request can go with the key that it has, and with no other: its header is written.
func (f *flight) pinned(fn func()) {
	keys := f.ask.Keys
	if f.key != nil {
		f.ask.Keys = nil
	}
	fn()
	f.ask.Keys = keys
}

// turn makes a request go with the key that was chosen.
func (k *Key) turn(req *http.Request, from *url.URL) {
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
	escaped := strings.TrimSuffix(k.Upstream.EscapedPath(), "/") + "/" + strings.TrimPrefix(rest, "/")
	u.Scheme, u.Host = k.Upstream.Scheme, k.Upstream.Host
	if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = plain, escaped
	}
	req.URL, req.Host = &u, ""
}

// refusesKey reports an answer by which the provider refuses the key and not the request, and says why.
func (f *flight) refusesKey(o *outcome) (why string) {
	switch {
	case f.key == nil || o.resp == nil:
	case o.answer.Verdict == store.VerdictBilling:
		return "billing stop: " + cmp.Or(o.answer.Cause, "the account is not paid for")
	case f.badKey && f.key.Header != "": // else it is the client's own
		return fmt.Sprintf("the provider refuses the key (%d)", o.resp.StatusCode)
	}
	return ""
}

// isBadKey reports an answer that says the key is not good. Gemini says so with status 400.
func isBadKey(status int, body []byte) bool {
	return status == http.StatusUnauthorized || status == http.StatusBadRequest && bytes.Contains(body, []byte("API_KEY_INVALID"))
}

// setAside leaves a key alone that the provider refuses. It reports that the request can go with another.
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
	if !known { // else others have said so
		if f.key.Name != "" {
			why += "; it is in " + f.key.Name
		}
		_ = inside.Of(t.Gate).SetKeyAside(context.WithoutCancel(f.ctx), t.Resource, label, asideFor, why) // if the store cannot be told, each finds out
	}
	return other
}

// served notes that the provider accepts a key: it may have been set aside before.
func (f *flight) served() {
	if f.key == nil {
		return
	}
	f.t.ring.mu.Lock()
	defer f.t.ring.mu.Unlock()
	delete(f.t.ring.aside, f.ask.Key)
}
