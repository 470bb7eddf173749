//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Regression: pools that only another process uses were missing on the page and in the API, because the daemon's
// configuration does not name them.
func TestServeShowsPoolsOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("store: file:"+dir+"/state\npresets: off\nresources:\n  "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	own := config("own.yaml", "search: {upstream: 'http://127.0.0.1:1', limits: [{name: minute, size: 80/min}]}")
	other := config("other.yaml", "beta: {limits: [{name: jobs, concurrency: 5}]}")
	env := []string{"SLUICE_STORE="}
	p := start(t, env, "serve", "--listen", "127.0.0.1:0", "--config", own)
	at := ""
	for !strings.HasSuffix(at, "/search") {
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		at = strings.TrimSpace(line)
	}
	at = strings.TrimSuffix(at, "/search")
	start(t, env, "acquire", "beta", "--config", other, "--agent", "worker").ends(0)

	get := func(path string, into any) int {
		t.Helper()
		resp, err := http.Get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if into != nil {
			if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
				t.Fatal(err)
			}
		}
		return resp.StatusCode
	}
	var status struct {
		Resources []struct {
			Name       string
			Configured bool
			Sent       int
			Members    int
			Limits     []struct{ Name string }
		}
		Agents []struct{ Name string }
	}
	for end := time.Now().Add(time.Minute); len(status.Resources) < 2 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		get("/v1/status", &status) // it looks for new ones from time to time
	}
	if r := status.Resources; len(r) != 2 || !r[0].Configured || r[1].Name != "beta" || r[1].Configured || r[1].Sent != 1 || len(r[1].Limits) != 1 || r[1].Members != 0 ||
		len(status.Agents) != 1 || status.Agents[0].Name != "worker" {
		t.Errorf("%+v", status)
	}
	var pool struct{ TotalLimit int }
	if code := get("/v1/pool/beta", &pool); code != 200 || pool.TotalLimit != 5 {
		t.Errorf("%d %+v", code, pool)
	}
	var report struct {
		Resources []struct {
			Name  string
			Total struct {
				FirstSends int `json:"first_sends"`
			}
		}
	}
	if get("/v1/report", &report); len(report.Resources) != 2 || report.Resources[1].Name != "beta" || report.Resources[1].Total.FirstSends != 1 {
		t.Errorf("%+v", report)
	}
	events, err := (&http.Client{Timeout: time.Minute}).Get(at + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	if code, body := post(t, at+"/v1/resources/beta/pause", `{"for_ms":600000,"reason":"maintenance"}`); code != 200 && code != 204 {
		t.Errorf("%d %s", code, body)
	}
	happened := bufio.NewScanner(events.Body)
	for happened.Scan() && (!strings.Contains(happened.Text(), `"event":"pause"`) || !strings.Contains(happened.Text(), `"beta"`)) {
	}
	if happened.Err() != nil || happened.Text() == "" {
		t.Errorf("no event tells of the pause: %v", happened.Err())
	}
	for _, want := range []string{`sluice_resource_state{resource="beta",state="paused"} 1`, `sluice_pool_sends_total{resource="beta"} 1`} {
		if _, text := fetch(t, "GET", at+"/metrics", ""); !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	var why struct {
		States []struct{ Resource, State string }
	}
	if code := get("/v1/why?resource=beta", &why); code != 200 || len(why.States) != 1 || why.States[0].State != "paused" {
		t.Errorf("%d %+v", code, why)
	}
	if code := get("/v1/why?resource=gamma", nil); code != 404 {
		t.Errorf("%d", code)
	}
	if code, body := post(t, at+"/v1/tickets", `{"resource":"beta","agent":"a","wait_ms":0}`); code != 404 {
		t.Errorf("a request needs limits that are configured: %d %s", code, body)
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
}
