package redisstore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// garbage is a way to damage a pool. Commands have KEY in place of the key.
type garbage struct {
	name     string
	commands [][]string
	says     string
}

var backoff = store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}

func randomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	for i := 0; i+8 <= n; i += 8 { // never a whole number, by whatever chance
		b[i+6], b[i+7], b[i] = 0xe1, 0x3f, b[i]|1
	}
	return string(b)
}

func everyGarbage() []garbage {
	list := []garbage{
		{"a string", [][]string{{"DEL", "KEY"}, {"SET", "KEY", "hello"}}, "it is a string, not a hash"},
		{"a list", [][]string{{"DEL", "KEY"}, {"RPUSH", "KEY", "hello"}}, "it is a list, not a hash"},
		{"another hash", [][]string{{"DEL", "KEY"}, {"HSET", "KEY", "a", "b"}}, "the field v is missing"},
		{"another version", [][]string{{"HSET", "KEY", "f", "9-other"}}, "made by another version of Sluice"},
		{"an empty meter", [][]string{{"HSET", "KEY", "F1", ""}}, "the field F1 has foreign content"},
		{"a meter cut short", [][]string{{"HSET", "KEY", "F1", "seven b"}}, "the field F1 has foreign content"},
		{"a journal entry cut short", [][]string{{"HSET", "KEY", "j1", "x"}}, "the field j1 has foreign content"},
	}
	for field, size := range map[string]int{"v": 40, "q": 16, "cfg": 680, "once": 888, "counts": 128, "sum": 120, "past": 32, "F1": 216, "hF": 24, "s": 100} {
		says := "the field " + field + " has foreign content"
		if field == "s" {
			says = "limits cannot be read"
		}
		list = append(list, garbage{"random bytes in " + field, [][]string{{"HSET", "KEY", field, randomText(size)}}, says})
	}
	for _, field := range []string{"v", "q", "f", "s", "once", "cfg", "counts", "F1"} {
		list = append(list, garbage{"without " + field, [][]string{{"HDEL", "KEY", field}}, "the field " + field + " is missing"})
	}
	return list
}

// With foreign content in the key of a pool, requests fail with the key and how to repair it. After the repair the pool
// begins anew, and assumes that requests may have been sent.
func TestGarbageInAPoolIsNamedAndRepaired(t *testing.T) {
	server := redisrun.New(t)
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "~*", "&*", "+@all", "-function", "-fcall"); err != nil {
		t.Fatal(err)
	}
	for _, functions := range []bool{true, false} {
		for i, g := range everyGarbage() {
			if !functions && g.name == "a journal entry cut short" {
				continue // without functions there is no journal
			}
			t.Run(fmt.Sprintf("functions %v/%s", functions, g.name), func(t *testing.T) {
				prefix := fmt.Sprintf("g%v%d", functions, i)
				url, key := server.URL()+"?timeout=1m&prefix="+prefix, prefix+":{api}"
				if !functions {
					url = strings.Replace(url, "redis://", "redis://plain:secret@", 1)
				}
				spec := store.Spec{
					Name: "api", Limits: []store.Limit{{Name: "w", Kind: store.Rolling, Unit: "requests", Size: 5, Window: 2 * time.Minute}},
					Classes: []store.Class{{Name: "all", Weight: 1}}, MaxWaiting: 10, Lease: -1, OneShot: true, Throttle: backoff, Overload: backoff,
				}
				open := func() *Store {
					s, err := Open(t.Context(), url, WithStateDir(""))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = s.Close() })
					return s
				}
				grant := func(s *Store) (store.Result, error) {
					p, err := s.Pool(t.Context(), spec)
					if err != nil {
						return store.Result{}, err
					}
					ops := []store.Op{{Kind: store.OpAcquire, Agent: "a", Spent: true, TTL: time.Second}}
					ops[0].Amounts = []store.Amount{{Unit: "requests", N: 1}}
					err = p.Apply(t.Context(), ops)
					return ops[0].Result, errors.Join(err, p.Close())
				}
				first := open()
				for range 5 {
					if r, err := grant(first); err != nil || r.State != store.Granted {
						t.Fatalf("%+v, %v", r, err)
					}
				}
				if g.name != "a journal entry cut short" { // looking at all of it ends the journal
					if r, err := first.Repair(t.Context(), "api", true); err != nil || r.Damage != "" || r.Aside != "" {
						t.Fatalf("a pool that is well: %+v, %v", r, err)
					}
				}
				for _, c := range g.commands {
					args := append([]string(nil), c...)
					args[1] = key
					if _, err := server.Do(t.Context(), args...); err != nil {
						t.Fatal(err)
					}
				}
				// As after a restart: what the server knows by heart it would go on with, and write again.
				if _, err := server.Do(t.Context(), "FUNCTION", "FLUSH"); err != nil {
					t.Fatal(err)
				}
				s := open()
				_, err := grant(s)
				if err == nil && g.name == "random bytes in hF" { // which a grant does not need; a look at all of it does
					p, opened := s.Pool(t.Context(), spec)
					if opened != nil {
						t.Fatal(opened)
					}
					_, err = p.Snapshot(t.Context())
				}
				var hinted interface{ Hint() string }
				if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), g.says) {
					t.Fatalf("it says %v, want %q and %q", err, key, g.says)
				}
				if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "sluice repair api") {
					t.Errorf("no hint: %v", err)
				}
				r, err := s.Repair(t.Context(), "api", false)
				if err != nil || r.At != key || !strings.Contains(r.Damage, g.says) || r.Aside != "" {
					t.Fatalf("%+v, %v", r, err)
				}
				r, err = s.Repair(t.Context(), "api", true)
				if err != nil || !strings.HasPrefix(r.Aside, key+":damaged-") {
					t.Fatalf("%+v, %v", r, err)
				}
				if ttl, err := server.Do(t.Context(), "TTL", r.Aside); err != nil || ttl == "-1" || ttl == "-2" {
					t.Errorf("what was moved away lives for %s, %v", ttl, err)
				}
				// Five were sent in this window: a fresh process must not send more, nor one that was there all the time.
				for who, s := range map[string]*Store{"fresh": open(), "old": first} {
					if r, err := grant(s); err != nil || r.State == store.Granted {
						t.Errorf("%s: after the repair: %+v, %v", who, r, err)
					}
				}
				if r, err := s.Repair(t.Context(), "api", true); err != nil || r.Damage != "" {
					t.Errorf("once more: %+v, %v", r, err)
				}
			})
		}
	}
}

// Foreign content among the kept replies is dropped: replies are kept only in case they get lost on the way.
func TestGarbageInKeptRepliesIsThrownAway(t *testing.T) {
	server := redisrun.New(t)
	s, err := Open(t.Context(), server.URL()+"?timeout=1m&prefix=r", WithStateDir(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	spec := store.Spec{Name: "api", Limits: []store.Limit{{Name: "w", Kind: store.Rolling, Unit: "requests", Size: 5, Window: time.Minute}},
		Classes: []store.Class{{Name: "all", Weight: 1}}, MaxWaiting: 10, Lease: -1, OneShot: true, Throttle: backoff, Overload: backoff}
	p, err := s.Pool(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	args := []string{"HSET", "r:{api}"}
	for bin := range 256 {
		args = append(args, fmt.Sprint("r:", bin), randomText(5+bin))
	}
	if _, err := server.Do(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Do(t.Context(), "FUNCTION", "FLUSH"); err != nil { // what it knows is gone
		t.Fatal(err)
	}
	ops := []store.Op{{Kind: store.OpAcquire, Agent: "a", Spent: true, TTL: time.Second}}
	ops[0].Amounts = []store.Amount{{Unit: "requests", N: 1}}
	if err := p.Apply(t.Context(), ops); err != nil || ops[0].Result.State != store.Granted {
		t.Errorf("%+v, %v", ops[0].Result, err)
	}
	if r, err := s.Repair(t.Context(), "api", true); err != nil || r.Damage != "" {
		t.Errorf("%+v, %v", r, err)
	}
}
