package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// serveWith starts a daemon with a store and a configuration, and returns its address.
func serveWith(t *testing.T, env []string, store, config string, args ...string) (p *process, url string) {
	t.Helper()
	p = start(t, env, append([]string{"serve", "--store", store, "--config", configIn(t, config), "--listen", "127.0.0.1:0"}, args...)...)
	url, _, _ = strings.Cut(p.tells("sluice: listening on "), ";")
	return p, url
}

// stops ends a daemon and returns its log.
func (p *process) stops() string {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	text, err := io.ReadAll(p.stderr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.ends(exitOK)
	return string(text)
}

// commandSays runs a command to its end and returns its output.
func commandSays(t *testing.T, env []string, code int, args ...string) string {
	t.Helper()
	p := start(t, env, args...)
	text, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	if told, err := io.ReadAll(p.stderr); err != nil || code == exitOK && len(told) > 0 {
		t.Errorf("%q says %q, %v", args, told, err)
	}
	p.ends(code)
	return string(text)
}

// recentOf waits until a daemon has seen a request of an agent, and returns its last requests.
func recentOf(t *testing.T, url, agent string) string {
	t.Helper()
	for end := time.Now().Add(proctest.Patience); ; time.Sleep(20 * time.Millisecond) {
		_, text := get(t, url+"/v1/recent")
		if strings.Contains(text, `"agent":"`+agent+`"`) {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not in %s", agent, text)
		}
	}
}

const freeAPI = "resources: {api: {limits: [{name: minute, size: 80/min}]}}\n"

// A daemon on files and two on databases of a Redis share the user's state directory. Each keeps a history of its own, and
// counts only requests to its own store: those of other processes, and of commands that use the store through it.
func TestHistoriesOfDifferentStoresStayApart(t *testing.T) {
	t.Parallel()
	server, home := redisrun.New(t), t.TempDir()
	env := []string{"XDG_STATE_HOME=" + home}
	stores := map[string]string{"file": "file:", "five": server.URL() + "/5", "six": server.URL() + "/6"}
	daemons, urls := map[string]*process{}, map[string]string{}
	for name, store := range stores {
		daemons[name], urls[name] = serveWith(t, env, store, freeAPI)
	}
	direct := append(slices.Clone(env), "SLUICE_CONFIG=")
	for name, store := range stores { // every event is in the log before any daemon is asked about it
		commandSays(t, direct, exitOK, "acquire", "api", "--agent", "by-"+name, "--store", urls[name])
		commandSays(t, append(slices.Clone(env), "SLUICE_CONFIG="+configIn(t, freeAPI)), exitOK, "acquire", "api", "--agent", "at-"+name, "--store", store)
	}
	for name := range stores {
		commandSays(t, direct, exitOK, "acquire", "api", "--agent", "last", "--store", urls[name])
		text := recentOf(t, urls[name], "last")
		for other := range stores {
			for _, agent := range []string{"by-" + other, "at-" + other} {
				if shown := strings.Contains(text, `"agent":"`+agent+`"`); shown != (other == name) {
					t.Errorf("the daemon at %s shows %s: %v in %s", name, agent, shown, text)
				}
			}
		}
	}
	for name, p := range daemons {
		if log := p.stops(); strings.Contains(log, "history") {
			t.Errorf("%s: %s", name, log)
		}
	}
	// Each finds its own history again.
	for name, store := range stores {
		p, url := serveWith(t, env, store, freeAPI)
		_, text := get(t, url+"/v1/history?points=agents")
		for other := range stores {
			if shown := strings.Contains(text, `"name":"at-`+other+`"`); shown != (other == name) {
				t.Errorf("the history of %s has %s: %v", name, other, shown)
			}
		}
		p.stops()
	}
	if files, err := filepath.Glob(filepath.Join(home, "sluice", "history*", "minutes-*.bin")); len(files) < 3 || err != nil {
		t.Errorf("%q, %v", files, err)
	}
	if files, err := filepath.Glob(filepath.Join(home, "sluice", "history", "minutes-*.bin")); len(files) == 0 || err != nil {
		t.Errorf("the default store has no history: %v", err) // it stays where earlier versions kept it
	}
}

// rounded rounds the numbers of a JSON value: sums that were divided and multiplied again differ in the last digit.
func rounded(v any) any {
	switch v := v.(type) {
	case float64:
		return fmt.Sprintf("%.9g", v)
	case map[string]any:
		for name := range v {
			v[name] = rounded(v[name])
		}
	case []any:
		for i := range v {
			v[i] = rounded(v[i])
		}
	}
	return v
}

// configIn writes a configuration and returns the name of its file.
func configIn(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The report of a command that uses a daemon's store is the daemon's, whether or not both share a state directory.
func TestReportThroughADaemonIsTheDaemons(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/busy") {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(provider.Close)
	home := t.TempDir()
	p, url := serveWith(t, []string{"XDG_STATE_HOME=" + home}, "file:", fmt.Sprintf(`
resources:
  api: {mode: observe, upstream: %q, limits: [{name: minute, size: 2/min}]}
  strict: {limits: [{name: one, concurrency: 1}]}
`, provider.URL))
	for i := range 6 {
		path := "/@indexer/api/calm"
		if i == 5 {
			path = "/@indexer/api/busy"
		}
		get(t, url+path)
	}
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		resp, err := http.Post(url+"/v1/tickets", "application/json", strings.NewReader(fmt.Sprintf(`{"resource":"strict","agent":"hasty%d","wait_ms":0}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	resources := func(text string) map[string]map[string]any {
		t.Helper()
		var r struct{ Resources []map[string]any }
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		all := map[string]map[string]any{}
		for _, one := range r.Resources {
			delete(one, "since")
			rounded(one)
			all[one["name"].(string)] = one
		}
		return all
	}
	var told map[string]map[string]any
	for end := time.Now().Add(proctest.Patience); ; time.Sleep(20 * time.Millisecond) { // until its log is written
		_, text := get(t, url+"/v1/report")
		if told = resources(text); told["api"]["total"].(map[string]any)["throttled"] == "1" && told["api"]["total"].(map[string]any)["would_wait"] != "0" {
			break
		}
		if time.Now().After(end) {
			t.Fatal(text)
		}
	}
	for i, home := range []string{home, t.TempDir()} {
		name := []string{"the same state directory", "another"}[i]
		env := []string{"XDG_STATE_HOME=" + home, "SLUICE_STORE=" + url, "SLUICE_CONFIG="}
		got := resources(commandSays(t, env, exitOK, "report", "--json"))
		for _, resource := range []string{"api", "strict"} {
			if g, w := fmt.Sprint(got[resource]), fmt.Sprint(told[resource]); g != w {
				t.Errorf("%s, %s:\n%s\nthe daemon says\n%s", name, resource, g, w)
			}
		}
		if page := commandSays(t, env, exitOK, "report", "--html", "-"); !strings.Contains(page, ": 1 refused (429)</title>") {
			t.Errorf("%s: the page has no refusal", name)
		}
		if why := commandSays(t, env, exitOK, "why"); strings.Count(why, "hasty1") != 1 || !strings.Contains(why, "the limit one is full") {
			t.Errorf("%s: %s", name, why)
		}
		turnedAway := func(n int) {
			t.Helper()
			if status := commandSays(t, env, exitOK, "status"); !strings.Contains(status, fmt.Sprint(" 0 refused, ", n, " turned away by the gate in 1h\n")) {
				t.Errorf("%s: want %d turned away in\n%s", name, n, status)
			}
		}
		turnedAway(1 + i) // the second session sees the first one's
		// What it does itself is in its own log, and counts once.
		commandSays(t, env, exitNotYet, "acquire", "strict", "--agent", fmt.Sprint("own", i), "--wait", "0")
		turnedAway(2 + i)
		if why := commandSays(t, env, exitOK, "why"); strings.Count(why, fmt.Sprint("own", i)) != 1 || strings.Count(why, "hasty1") != 1 {
			t.Errorf("%s: %s", name, why)
		}
	}
	p.stops()
}

// A caller whose sends only the daemon's event log has counts in the verdict on a long limit.
func TestDoctorThroughADaemonCountsCallersOfItsLog(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(provider.Close)
	home := t.TempDir()
	var log strings.Builder
	for range 9 { // sent while the store was away
		fmt.Fprintf(&log, `{"time":%q,"event":"send","resource":"api","agent":"indexer","class":"p2","observed":true,"units":{"requests":1},"store":"file"}`+"\n",
			time.Now().UTC().Add(-time.Hour).Format(time.RFC3339Nano))
	}
	if err := os.MkdirAll(filepath.Join(home, "sluice"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "sluice", "events.jsonl"), []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p, url := serveWith(t, []string{"XDG_STATE_HOME=" + home}, "file:",
		fmt.Sprintf("resources:\n  api: {upstream: %q, limits: [{name: day, size: 10/day}]}\n", provider.URL))
	get(t, url+"/@web/api/calm")
	for i, home := range []string{home, t.TempDir()} {
		var d struct {
			Resources []struct {
				Ratio   float64
				Verdict string
			}
		}
		text := commandSays(t, []string{"XDG_STATE_HOME=" + home, "SLUICE_STORE=" + url, "SLUICE_CONFIG="}, exitOK, "doctor", "api", "--json")
		if err := json.Unmarshal([]byte(text), &d); err != nil || len(d.Resources) != 1 || math.Round(100*d.Resources[0].Ratio) != 100 || d.Resources[0].Verdict != "contention" {
			t.Errorf("%s: %v in %s", []string{"the same state directory", "another"}[i], err, text)
		}
	}
	p.stops()
}
