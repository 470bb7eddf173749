package deadletter_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
)

func request(body string) deadletter.Entry {
	h := http.Header{"Content-Type": {"application/json"}}
	return deadletter.Entry{Resource: "api", Agent: "a", Request: deadletter.NewRequest("POST", "/v1/messages", h, []byte(body), true, deadletter.MaxBody), Attempts: 6}
}

func TestSecretsOfARequestAreNotKept(t *testing.T) {
	h := http.Header{
		"Authorization": {"Bearer canary-in-header"}, "X-Api-Key": {"canary-key-one"}, "Cookie": {"a=canary"}, "X-Custom": {"canary-by-name"}, "X-Plain": {"sk-ant-" + strings.Repeat("canary", 5)},
		"Referer": {"https://a.example/x?page=1&access_token=canary-of-referer"}, "Baggage": {"team=a, api_key=canary-of-baggage"}, "X-From": {"https://me:canary-pass@a.example/"},
		"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "Accept": {"text/html;q=0.9, */*;q=0.8"}, "Idempotency-Key": {"once"}, "Content-Length": {"2"}, "X-Sluice-Agent": {"a"},
	}
	r := deadletter.NewRequest("POST", "/v1/m?key=canary-in-query&%6bey=canary-escaped&a%4Beymore=canary&beta=1&v=AIzaCANARYCANARYCANARY&AIzaCANARYCANARYCANARY&%zz=canary", h, []byte("{}"), true, 10, "x-custom")
	if got := fmt.Sprint(r); strings.Contains(strings.ToLower(got), "canary") {
		t.Error(got)
	}
	if r.Path != "/v1/m?beta=1" || r.Body != "{}" || r.Lost != "" || len(r.Header) != 4 || r.Header.Get("Idempotency-Key") != "once" {
		t.Errorf("%+v", r)
	}
	if want := []string{"?(a parameter)", "?(a parameter)", "?aKeymore", "?key", "?key", "?v", "Authorization", "Baggage", "Cookie", "Referer", "X-Api-Key", "X-Custom", "X-From", "X-Plain"}; !slices.Equal(r.Left, want) {
		t.Error(r.Left)
	}
	// A body that holds the key, one that is too long, and one of which there is only the beginning.
	for body, whole := range map[string]bool{`"canary-in-header"`: true, strings.Repeat("x", 101): true, "half": false} {
		if r := deadletter.NewRequest("POST", "/", h, []byte(body), whole, 100); r.Body != "" || r.Lost == "" {
			t.Errorf("%.20q: %+v", body, r)
		}
	}
	if r := deadletter.NewRequest("GET", "/u/canary-key-one/x", h, nil, true, 100); r.Path != "" || r.Lost == "" {
		t.Errorf("%+v", r)
	}
}

// Names and values that percent signs disguise are secrets as well, in the query, in the path and in headers with an address.
func TestEscapedSecretsOfARequestAreNotKept(t *testing.T) {
	h := http.Header{
		"X-Api-Key": {"canary-key-one"}, "Referer": {"https://a.example/?page=1&%6bey=canary-of-referer"},
		"X-From": {"https://a.example/?v=sk%2Dant%2Dcanarycanarycanary"}, "Accept": {"text/html;q=0.9"},
	}
	r := deadletter.NewRequest("GET", "/v1/m?%6bey=canary-name&v=%41Iza%43ANARYCANARYCANARY&beta=%31", h, nil, true, 100)
	if got := fmt.Sprint(r); strings.Contains(strings.ToLower(got), "canary") || r.Path != "/v1/m?beta=%31" || len(r.Header) != 1 {
		t.Errorf("%+v", r)
	}
	for _, path := range []string{"/u/canary%2Dkey%2Done/x", "/u/sk%2Dant%2Dcanarycanarycanary", "/u/x?a=canary%2Dkey-one", "/%zz/canary%2Dkey-one/%", "/%2/sk%2Dant-canarycanarycanary"} {
		if r := deadletter.NewRequest("GET", path, h, nil, true, 100); r.Path != "" || r.Lost == "" {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := deadletter.NewRequest("GET", "/u/50%25/%zz?a=b", http.Header{}, nil, true, 100); r.Path != "/u/50%25/%zz?a=b" {
		t.Errorf("%+v", r)
	}
}

func TestRequestsComeBack(t *testing.T) {
	list := open(t)
	id := add(t, list, request("\xff\x00body"))
	got, err := list.Get(id)
	if err != nil || got.Kind() != deadletter.HTTP || got.Request.Body != "\xff\x00body" || got.Request.Method != "POST" {
		t.Errorf("%+v, %v", got, err)
	}
	c, err := list.Claim(id)
	if err != nil {
		t.Fatal(err)
	}
	e := c.Entry()
	for range 100 {
		e.Request.Answers = append(e.Request.Answers, deadletter.Answer{Status: 500})
	}
	if err := c.Update(e); err != nil {
		t.Fatal(err)
	}
	if got, err := list.Get(id); err != nil || len(got.Request.Answers) != deadletter.MaxAnswers {
		t.Error(len(got.Request.Answers), err)
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	c.Release()
	if files, _ := os.ReadDir(list.Dir()); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// A flood of requests must not drop commands, nor the other way round.
func TestKindsHaveBoundsOfTheirOwn(t *testing.T) {
	list := open(t)
	job := add(t, list, entry("true"))
	var ids []string
	for range 5 {
		id := add(t, list, request("x"))
		if err := os.Truncate(filepath.Join(list.Dir(), id+".request"), 15<<20); err != nil { // without writing as much
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if _, dropped, err := list.Add(request("x")); err != nil || !slices.Equal(dropped, ids[:1]) {
		t.Errorf("dropped %v of %v, %v", dropped, ids, err)
	}
	if _, err := list.Get(job); err != nil {
		t.Error(err)
	}
	big := request("x")
	big.Request.Body = deadletter.Text(strings.Repeat("x", deadletter.MaxRequest))
	if _, _, err := list.Add(big); !errors.Is(err, deadletter.ErrTooLarge) {
		t.Error(err)
	}
}

const (
	aKey     = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	otherKey = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCf8="
)

func TestEncryptedEntries(t *testing.T) {
	list := open(t)
	plain := add(t, list, request("before"))
	if err := list.SetKey(aKey); err != nil {
		t.Fatal(err)
	}
	id := add(t, list, request("canary"))
	job := add(t, list, entry("canary"))
	for _, name := range []string{id + ".request", job + ".json"} {
		if data, err := os.ReadFile(filepath.Join(list.Dir(), name)); err != nil || strings.Contains(string(data), "canary") || strings.Contains(string(data), "POST") {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
	for id, body := range map[string]deadletter.Text{plain: "before", id: "canary"} {
		if e, err := list.Get(id); err != nil || e.Damaged != "" || e.Request.Body != body {
			t.Errorf("%+v, %v", e, err)
		}
	}
	for key, why := range map[string]string{"": deadletter.NoKey, otherKey: deadletter.WrongKey} {
		other, err := deadletter.Open(list.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			if err := other.SetKey(key); err != nil {
				t.Fatal(err)
			}
		}
		if e, err := other.Get(id); err != nil || e.Damaged != why {
			t.Errorf("%+v, %v", e, err)
		}
		if _, err := other.Claim(id); !errors.Is(err, deadletter.ErrDamaged) || !strings.Contains(err.Error(), why) {
			t.Error(err)
		}
	}
	// One in another's place, one that is cut off, one that was changed.
	from := filepath.Join(list.Dir(), id+".request")
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{data[:len(data)/2], []byte(strings.Replace(string(data), `"data":"`, `"data":"AAAA`, 1)), []byte(`{"sealed":"rot13"}`), []byte(`{"sealed":"aes-256-gcm","nonce":"AA=="}`)} {
		if err := os.WriteFile(from, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if e, err := list.Get(id); err != nil || e.Damaged == "" {
			t.Errorf("%s: %+v, %v", bad, e, err)
		}
	}
	if err := os.WriteFile(filepath.Join(list.Dir(), plain+".request"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := list.Get(plain); err != nil || e.Damaged == "" {
		t.Errorf("another's content was read: %+v, %v", e, err)
	}
	if err := list.Remove(id); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "short", aKey[1:], aKey + "00"} {
		if err := list.SetKey(bad); !errors.Is(err, deadletter.ErrKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestKeepersWriteTogether(t *testing.T) {
	list := open(t)
	var mu sync.Mutex
	told, failed := 0, 0
	var keepers []*deadletter.Keeper
	for range 3 {
		k := deadletter.NewKeeper(list, func(_ *deadletter.Entry, _ []string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if told++; err != nil {
				failed++
			}
		})
		k.Config = "/etc/sluice.yaml"
		keepers = append(keepers, k)
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 5 {
				keepers[i%3].Keep(request("x"))
			}
		})
	}
	wg.Wait()
	for _, k := range keepers {
		k.Flush()
	}
	entries, err := list.Entries()
	if err != nil || len(entries) != 30 || told != 30 || failed != 0 || entries[0].Config != "/etc/sluice.yaml" {
		t.Errorf("%d entries, told of %d, %d failed, %v", len(entries), told, failed, err)
	}
	(*deadletter.Keeper)(nil).Flush()
}

// Memory is bounded: entries that cannot be written fast enough are reported and not kept.
func TestAKeeperThatCannotKeepUp(t *testing.T) {
	list := open(t)
	release := make(chan struct{})
	var mu sync.Mutex
	kept, lost := 0, 0
	k := deadletter.NewKeeper(list, func(_ *deadletter.Entry, _ []string, err error) {
		if err == nil {
			<-release
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			kept++
		} else {
			lost++
		}
	})
	e := request(strings.Repeat("x", 6<<20))
	for range 12 {
		k.Keep(e)
	}
	close(release)
	k.Flush()
	if kept+lost != 12 || lost < 6 || kept < 5 {
		t.Errorf("%d kept, %d lost", kept, lost)
	}
}
