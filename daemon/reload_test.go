package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/store"
)

// reloads is a daemon whose configuration changes. It needs no network: virtual time will do.
type reloads struct {
	*testing.T
	daemon *daemon.Daemon
	store  store.Store
	gate   *sluice.Gate // in force
	text   string
	opened []*sluice.Gate
	fail   error         // of the next gate but the first
	hold   chan struct{} // nil: loading takes no time
}

func (r *reloads) open(ctx context.Context, f *config.File) (*sluice.Gate, error) {
	c, err := f.GateConfig(time.Now())
	if err != nil {
		return nil, err
	}
	c.Store = "mem:"
	g, err := sluice.OpenWithStore(ctx, r.store, c)
	if err == nil && r.fail != nil {
		err, r.fail = errors.Join(r.fail, g.Close()), nil
		return nil, err
	}
	r.opened = append(r.opened, g)
	return g, err
}

func (r *reloads) load() (*config.File, error) {
	if r.hold != nil {
		<-r.hold
	}
	return config.Parse("sluice.yaml", []byte(r.text), none)
}

// none is an empty environment.
func none(string) (string, bool) { return "", false }

func reloadable(t *testing.T, text string) *reloads {
	t.Helper()
	r := &reloads{T: t, text: text}
	var err error
	if r.store, err = store.Open(t.Context(), "mem:"); err != nil {
		t.Fatal(err)
	}
	f, err := r.load()
	if err != nil {
		t.Fatal(err)
	}
	if r.gate, err = r.open(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	r.daemon, err = daemon.New(daemon.Options{File: f, Gate: r.gate, Base: http.DefaultTransport, Env: none, Events: api.NewHub(), Reloading: daemon.Reloading{
		Load: r.load, Open: r.open, Follow: func(_ *config.File, gate *sluice.Gate) { r.gate = gate },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.daemon.Settle()
		for _, g := range r.opened {
			_ = g.Close() // some are closed
		}
		_ = r.store.Close()
	})
	return r
}

// call sends a request to the daemon.
func (r *reloads) call(method, path, body string, header ...string) (int, map[string]any) {
	r.Helper()
	q := httptest.NewRequestWithContext(context.Background(), method, "http://localhost"+path, strings.NewReader(body))
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.daemon.ServeHTTP(w, q)
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil && w.Body.Len() > 0 {
		r.Fatalf("%s %s: %s", method, path, w.Body)
	}
	return w.Code, out
}

func (r *reloads) must(method, path, body string, header ...string) map[string]any {
	r.Helper()
	code, out := r.call(method, path, body, header...)
	if code != 200 && code != 204 {
		r.Fatalf("%s %s: %d %v", method, path, code, out)
	}
	return out
}

const onePlace = "resources: {api: {limits: [{name: places, concurrency: 1}]}}\n"

// A ticket that was granted before a reload can be ended after it. Waiting requests are served under the new limits.
// The previous gate is closed after its last request.
func TestReloadUnderThoseWhoUseIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reloadable(t, onePlace)
		before := r.gate
		held := r.must("POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0}`)["ticket"].(string)
		waits := make(chan string)
		for range 2 {
			go func() {
				code, out := r.call("POST", "/v1/tickets", `{"resource":"api","agent":"b","wait_ms":60000}`)
				if code != 200 {
					t.Errorf("who waits gets %d %v", code, out)
				}
				id, _ := out["ticket"].(string)
				waits <- id
			}()
		}
		synctest.Wait()
		r.text = strings.Replace(onePlace, "concurrency: 1", "concurrency: 2", 1)
		out := r.must("POST", "/-/reload", "")
		if changed := out["changed"].([]any); len(changed) != 1 || changed[0] != "resource api: limits" {
			t.Errorf("changed: %v", changed)
		}
		second := <-waits
		if _, err := before.Status(t.Context()); err != nil {
			t.Errorf("one still waits at the gate of before, which says %v", err)
		}
		r.must("POST", "/v1/tickets/"+held+"/answer", `{"status":200,"headers":{}}`)
		r.must("POST", "/v1/tickets/"+held+"/close", `{}`)
		third := <-waits
		synctest.Wait()
		if _, err := before.Status(t.Context()); !errors.Is(err, sluice.ErrClosed) {
			t.Errorf("the gate of before is not closed: %v", err)
		}
		if code, _ := r.call("POST", "/v1/tickets", `{"resource":"api","agent":"c","wait_ms":0}`); code != 429 {
			t.Errorf("two of two are held, and a third gets %d", code)
		}
		for _, id := range []string{second, third} {
			r.must("POST", "/v1/tickets/"+id+"/close", `{}`)
		}
		s, err := r.gate.Resource(t.Context(), "api")
		if err != nil || s.InFlight != 0 || s.Limits[0].Used != 0 || s.Limits[0].Limit != 2 || s.Sent != 3 {
			t.Errorf("%+v %v", s, err)
		}
	})
}

// A reload adds and removes resources.
func TestReloadOfResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reloadable(t, onePlace)
		held := r.must("POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0}`)["ticket"].(string)
		done := make(chan int)
		go func() {
			code, _ := r.call("POST", "/v1/tickets", `{"resource":"api","agent":"b","wait_ms":60000}`)
			done <- code
		}()
		synctest.Wait()
		r.text = "resources: {other: {limits: [{name: minute, size: 5/min}]}}\norder: strict\n"
		out := r.must("POST", "/-/reload", "")
		if text, _ := json.Marshal(out["changed"]); string(text) != `["resource other is new","resource api is gone","order"]` {
			t.Errorf("changed: %s", text)
		}
		r.must("POST", "/v1/tickets", `{"resource":"other","agent":"a","wait_ms":0}`)
		if code, _ := r.call("POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0}`); code != 404 {
			t.Errorf("a resource that is gone: %d", code)
		}
		if code, _ := r.call("POST", "/v1/tickets/"+held+"/close", `{}`); code != 404 { // its place is free when its time is over
			t.Errorf("a ticket of a resource that is gone: %d", code)
		}
		if code := <-done; code != 200 && code != 429 {
			t.Errorf("who waited for it gets %d", code)
		}
	})
}

// A wrong or unreadable configuration changes nothing.
func TestReloadKeepsWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reloadable(t, onePlace)
		before := r.gate
		stands := func() {
			t.Helper()
			s, err := before.Resource(t.Context(), "api")
			if r.gate != before || err != nil || s.Limits[0].Limit != 1 || len(s.Limits) != 1 {
				t.Errorf("in force is %+v %v", s, err)
			}
		}
		r.text = "resources:\n  api:\n    limits: [{name: places, concurrency: many}]\n"
		code, out := r.call("POST", "/-/reload", "")
		if code != 400 || out["file"] != "sluice.yaml" || out["line"] != 3.0 || out["column"] == nil || out["field"] != "resources.api.limits[0].concurrency" {
			t.Errorf("%d %v", code, out)
		}
		stands()
		r.text = strings.Replace(onePlace, "concurrency: 1", "concurrency: 7", 1)
		r.fail = &sluice.Error{Err: sluice.ErrInvalid, Message: "processes that are running use it"} // when all pools are changed already
		if code, out = r.call("POST", "/-/reload", ""); code != 409 || !strings.Contains(out["detail"].(string), "processes") || out["hint"] == nil {
			t.Errorf("%d %v", code, out)
		}
		stands()
		r.text = "resources: {api: {upstream: \"http://x\", inject: {env: NONE, header: x-key}, limits: [{name: places, concurrency: 7}]}}\ntokens: [{name: t, hash: \"" + strings.Repeat("0", 64) + "\"}]\n"
		if code, out = r.call("POST", "/-/reload", ""); code != 400 || !strings.Contains(out["detail"].(string), "NONE") {
			t.Errorf("%d %v", code, out)
		}
		stands()
	})
}

func TestReloadsAreOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reloadable(t, onePlace)
		r.hold = make(chan struct{})
		first := make(chan error)
		go func() {
			_, err := r.daemon.Reload(t.Context())
			first <- err
		}()
		synctest.Wait()
		if code, out := r.call("POST", "/-/reload", ""); code != 409 || !strings.Contains(out["detail"].(string), "another reload") {
			t.Errorf("%d %v", code, out)
		}
		close(r.hold)
		if err := <-first; err != nil {
			t.Error(err)
		}
		// A daemon without a file says so.
		plain, err := daemon.New(daemon.Options{File: config.Default(), Gate: r.gate, Base: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		var p *api.Problem
		if _, err := plain.Reload(t.Context()); !errors.As(err, &p) || p.Status != 409 || !strings.Contains(p.Detail, "no configuration file") {
			t.Errorf("%v", err)
		}
		// One that is about to end does not begin anew.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.daemon.Serve(ctx, ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := r.daemon.Reload(t.Context()); !errors.As(err, &p) || p.Status != 503 {
			t.Errorf("%v", err)
		}
	})
}

// Only callers of the highest class may reload. A removed token is invalid at once. Tickets keep their owners.
func TestReloadAndTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := onePlace + "tokens:\n- {name: boss, hash: \"" + hashOf("b") + "\"}\n- {name: low, class: p2, agent: worker, hash: \"" + hashOf("l") + "\"}\n"
		r := reloadable(t, text)
		boss, low := []string{"Authorization", "Bearer b"}, []string{"Authorization", "Bearer l"}
		for want, header := range map[int][]string{401: nil, 403: low} {
			if code, out := r.call("POST", "/-/reload", "", header...); code != want {
				t.Errorf("%d %v, want %d", code, out, want)
			}
		}
		if code, _ := r.call("POST", "/-/reload", "", append(boss, "Origin", "http://evil.example")...); code != 403 {
			t.Errorf("a page of another site: %d", code)
		}
		if code, _ := r.call("GET", "/-/reload", "", boss...); code != 405 {
			t.Errorf("GET: %d", code)
		}
		id := r.must("POST", "/v1/tickets", `{"resource":"api","wait_ms":0}`, low...)["ticket"].(string)
		r.must("POST", "/-/reload", "", boss...)
		r.must("POST", "/v1/tickets/"+id+"/close", `{}`, low...)
		r.text = onePlace + "tokens:\n- {name: low, class: p2, agent: worker, hash: \"" + hashOf("l") + "\"}\n"
		r.must("POST", "/-/reload", "", boss...)
		if code, _ := r.call("POST", "/-/reload", "", boss...); code != 401 {
			t.Errorf("a token that is gone: %d", code)
		}
	})
}

// Event listeners are disconnected by a reload, because the new configuration decides who may listen. They reconnect by
// themselves.
func TestReloadEndsListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reloadable(t, onePlace)
		before := r.gate
		ended := make(chan struct{})
		go func() {
			q := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/events", nil)
			w := httptest.NewRecorder()
			r.daemon.ServeHTTP(w, q)
			_, _ = io.Copy(io.Discard, w.Body)
			close(ended)
		}()
		synctest.Wait()
		r.must("POST", "/-/reload", "")
		<-ended
		synctest.Wait()
		if _, err := before.Status(t.Context()); !errors.Is(err, sluice.ErrClosed) {
			t.Errorf("the gate of before is not closed: %v", err)
		}
	})
}

// Spent budgets stay spent, also with a store in memory.
func TestReloadKeepsBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reloadable(t, onePlace+"budgets: [{name: all, size: 1 usd/day, over: deny}]\n")
		if code, out := r.call("POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"units":{"requests":1,"usd":0.6}}`); code != 200 {
			t.Fatalf("%d %v", code, out)
		}
		r.text = strings.Replace(r.text, "concurrency: 1", "concurrency: 2", 1)
		r.must("POST", "/-/reload", "")
		b, err := r.gate.Budgets(t.Context())
		if err != nil || len(b) != 1 || b[0].UsedUSD != 0.6 {
			t.Errorf("%+v %v", b, err)
		}
	})
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// A limit with another scope or name forgot what it had counted, and the reload said nothing of it.
func TestReloadWarnsOfForgottenCharges(t *testing.T) {
	const before = "resources: {api: {limits: [{name: ten, size: 10/30s}, {name: places, concurrency: 5}]}}\n"
	for name, c := range map[string]struct{ limits, warning string }{
		"scope":     {"{name: ten, size: 10/30s, per: [agent]}, {name: places, concurrency: 5}", "resource api: limit ten has another scope now and starts empty: requests of the last 30s do not count against it, and for as long the provider may get more than the limit"},
		"unit":      {"{name: ten, size: 10/30s, unit: tokens}, {name: places, concurrency: 5}", "limit ten counts another unit now"},
		"name":      {"{name: dix, size: 10/30s}, {name: places, concurrency: 5}", "limit dix replaces ten and starts empty"},
		"places":    {"{name: ten, size: 10/30s}, {name: room, concurrency: 5}", "limit room replaces places and starts empty: running requests do not count against it"},
		"size":      {"{name: ten, size: 20/30s}, {name: places, concurrency: 6}", ""},
		"window":    {"{name: ten, size: 10/40s}, {name: places, concurrency: 5}", ""},
		"one more":  {"{name: ten, size: 10/30s}, {name: places, concurrency: 5}, {name: hour, size: 90/h}", ""},
		"one fewer": {"{name: ten, size: 10/30s}", ""},
	} {
		r := reloadable(t, before)
		r.text = strings.Replace(before, before[strings.Index(before, "["):strings.LastIndex(before, "]")], "["+c.limits, 1)
		done, err := r.daemon.Reload(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(done.Warnings, "\n"); (got == "") != (c.warning == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
