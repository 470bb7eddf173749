package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
)

// A client's dead letter is kept without secrets, and only if the resource keeps dead letters.
func TestClientsKeepDeadLetters(t *testing.T) {
	const resources = `
resources:
  on: {upstream: "${UPSTREAM}/base", dead_letters: on, limits: [{name: inflight, concurrency: 1}]}
  off: {upstream: "${UPSTREAM}", limits: [{name: inflight, concurrency: 1}]}
`
	r := begin(t, "generic", resources, nil)
	const key = "the-canary-of-a-key"
	said := `,"agent":"a","class":"p1","method":"POST","path":"/base/x?y=1&token=` + key + `","headers":{"content-type":"text/plain","authorization":"Bearer ` + key + `"},` +
		`"left_out":["X-Mine","?sig"],"body":{"base64":"Y2FuYXJ5/w=="},"attempts":3,"status":500,"verdict":"error","reason":"gave up"}`
	for _, c := range []struct {
		body string
		code int
	}{
		{`{"resource":"off"` + said, 409},
		{`{"resource":"none"` + said, 404},
		{`{"resource":"on","agent":"a","method":"GET","path":"x"}`, 400},
		{`{"resource":"on","agent":"a","method":"G T","path":"/x"}`, 400},
		{`{"resource":"on","agent":"a","method":"GET","path":"/x","status":7}`, 400},
		{`{"resource":"on","agent":"a","method":"GET","path":"/x","reason":"` + strings.Repeat("r", 201) + `"}`, 400},
		{`{"resource":"on","agent":"a","method":"GET","path":"/x","left_out":["` + strings.Repeat(`","`, 100) + `"]}`, 400},
	} {
		if code, out := r.call("POST", "/v1/dead-letters", c.body); code != c.code {
			t.Errorf("%.100s: %d, not %d: %v", c.body, code, c.code, out)
		}
	}
	r.letters.Flush()
	if files, _ := os.ReadDir(r.list.Dir()); len(files) != 0 {
		t.Errorf("kept: %v", files)
	}
	if code, out := r.call("POST", "/v1/dead-letters", `{"resource":"on"`+said); code != 204 {
		t.Fatal(code, out)
	}
	r.letters.Flush()
	entries, err := r.list.Entries()
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	e, q := entries[0], entries[0].Request
	if e.Agent != "a" || e.Class != "p1" || e.Attempts != 3 || e.Reason != "gave up" || q.Method != "POST" || q.Path != "/x?y=1" || q.Body != "canary\xff" || q.Lost != "" || q.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("%+v, %+v", e, q)
	}
	if !slices.Equal(q.Left, []string{"?sig", "?token", "Authorization", "X-Mine"}) || len(q.Answers) != 1 || q.Answers[0].Status != 500 {
		t.Errorf("%+v", q)
	}
	data, err := os.ReadFile(filepath.Join(r.list.Dir(), e.ID+".request"))
	if err != nil || strings.Contains(string(data), key) {
		t.Errorf("%s, %v", data, err)
	}
	// One whose body stayed with the client says so.
	if code, out := r.call("POST", "/v1/dead-letters", `{"resource":"on","agent":"a","method":"POST","path":"/x","body_lost":true}`); code != 204 {
		t.Fatal(code, out)
	}
	r.letters.Flush()
	entries, err = r.list.Entries()
	if err != nil || !slices.ContainsFunc(entries, func(e deadletter.Entry) bool { return e.Request.Lost != "" }) {
		t.Error(entries, err)
	}
}
