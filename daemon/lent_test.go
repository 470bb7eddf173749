package daemon_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// storeCall sends a request under /v1/store.
func (r *rig) storeCall(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r.Helper()
	q := httptest.NewRequestWithContext(r.Context(), method, "http://localhost"+path, strings.NewReader(body))
	q.Header.Set(wire.VersionHeader, wire.Version)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.daemon.ServeHTTP(w, q)
	return w
}

// openapi.yaml also describes the routes under /v1/store.
func TestTheContractOfTheStoreIsKept(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	c := readContract(t)
	names := strings.NewReplacer()
	done := map[string]bool{"get /v1/store/clients/{client}/watch": true} // every test of package remotestore needs it
	try := func(method, path, query, body string, want int) map[string]any {
		t.Helper()
		done[method+" "+path] = true
		w := r.storeCall(strings.ToUpper(method), names.Replace(path)+query, body)
		op, known := c.Paths[path][method]
		answer, said := op.Responses[strconv.Itoa(w.Code)]
		if w.Code != want || !known || !said {
			t.Fatalf("%s %s: %d, want %d; in the file: %v, %v; %s", method, path, w.Code, want, known, said, w.Body)
		}
		var out map[string]any
		if strings.HasSuffix(w.Header().Get("Content-Type"), "json") {
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			for _, content := range answer.Content {
				r.fits(c, method+" "+path, content.Schema.name(), out)
			}
		}
		return out
	}
	const clients = "/v1/store/clients"
	const client, pools, pool = clients + "/{client}", clients + "/{client}/pools", clients + "/{client}/pools/{pool}"
	try("get", "/v1/store/config", "", "", 200)
	try("get", "/v1/store/pools", "", "", 200)
	try("post", "/v1/store/secret", "", `{"name":"../keys","secret":"AAAA"}`, 400)
	try("post", "/v1/store/secret", "", `{"name":"keys","secret":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`, 200)
	const books = "/v1/store/books/"
	order := `{"Lines":[{"Budget":"b","Size":1000,"Period":{"Length":2,"Name":"total"}}],"Amount":7,"Now":"2026-01-02T03:04:05Z","TTL":60000000000}`
	try("post", books+"take", "", `{"Lines":{}}`, 400)
	receipt := try("post", books+"take", "", order, 200)["Receipt"].(string)
	try("post", books+"settle", "", `{"receipt":"`+receipt+`","actual":5,"now":"2026-01-02T03:04:06Z"}`, 204)
	try("post", books+"cancel", "", `{"receipt":"`+receipt+`","now":"2026-01-02T03:04:06Z"}`, 204)
	try("post", books+"tell", "", `{"line":{"Budget":"b"},"now":"2026-01-02T03:04:06Z"}`, 200)
	read := try("post", books+"read", "", `{"pots":[{"Budget":"b","Size":1000,"Period":{"Length":2,"Name":"total"}}]}`, 200)
	if text, _ := json.Marshal(read); !strings.Contains(string(text), `"Used":5`) {
		t.Errorf("%s", text)
	}
	names = strings.NewReplacer("{client}", "nobody", "{pool}", "1")
	for _, path := range []string{client + "/alive", pools, pool + "/apply"} {
		try("post", path, "", "", 410)
	}
	name := try("post", clients, "", "", 200)["client"].(string)
	names = strings.NewReplacer("{client}", name, "{pool}", "1")
	try("post", client+"/alive", "", "", 204)
	try("post", pool+"/apply", "?seq=1", "", 410) // it has none open
	spec, err := json.Marshal(store.Spec{
		Name: "p", Limits: []store.Limit{{Name: "n", Kind: store.Concurrency, Unit: "requests", Size: 1}}, Classes: []store.Class{{Name: "p0", Weight: 1}},
		MaxWaiting: 1, Throttle: store.Backoff{Start: 1e9, Factor: 2, Cap: 1e10}, Overload: store.Backoff{Start: 1e9, Factor: 2, Cap: 1e10},
	})
	if err != nil {
		t.Fatal(err)
	}
	try("post", pools, "", `{"Name":"p","Colour":"red"}`, 400)
	try("post", pools, "", `{"Name":"p"}`, 400)
	try("post", pools, "", string(spec), 200)
	batch := string(oplog.AppendApply(nil, 1, []store.Op{{Kind: store.OpPoll, ID: store.ID{N: 7}}}))
	try("post", pool+"/apply", "?seq=one", batch, 400)
	try("post", pool+"/apply", "?seq=1", "no batch", 400)
	try("post", pool+"/apply", "?seq=2", batch, 409)
	try("post", pool+"/apply", "?seq=1", batch, 200)
	try("post", pool+"/apply", "?seq=1", batch, 200)
	try("post", pool+"/apply", "?seq=2", strings.Repeat("x", wire.MaxBody+1), 413)
	try("get", pool+"/snapshot", "", "", 200)
	try("post", pool+"/foresee", "", `{"ops":[{"Kind":1}]}`, 400)
	foreseen := try("post", pool+"/foresee", "", `{"ops":[{"Agent":"a","TTL":1000000000,"Amounts":[{"Unit":"requests","N":1}]}]}`, 200)["results"].([]any)
	if got := foreseen[0].(map[string]any)["State"]; got != float64(store.Granted) {
		t.Errorf("foreseen: %v", foreseen)
	}
	try("get", pool+"/history", "?since=x", "", 400)
	try("get", pool+"/history", "?since=0", "", 200)
	try("delete", pool, "", "", 204)
	try("delete", pool, "", "", 410)
	try("delete", client, "", "", 204)
	try("delete", client, "", "", 410)
	for path, ops := range c.Paths {
		for method := range ops {
			if strings.HasPrefix(path, "/v1/store/") && !done[method+" "+path] {
				t.Errorf("%s %s is in the file and not tried", method, path)
			}
		}
	}
	for _, version := range []string{"", "0", "1"} {
		if w := r.storeCall("POST", clients, "", wire.VersionHeader, version); w.Code != 400 || !strings.Contains(w.Body.String(), "same version") {
			t.Errorf("version %q: %d %s", version, w.Code, w.Body)
		}
	}
	if w := r.storeCall("GET", "/v1/store/nothing", ""); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
	if w := r.storeCall("POST", clients, "", "Origin", "http://elsewhere.example"); w.Code != 403 {
		t.Errorf("a page of somebody else: %d", w.Code)
	}
}

// A caller with the store can act as any agent. So a token that is bound to an agent does not get the store, and no
// token gets another's client.
func TestTheStoreIsNotForEveryone(t *testing.T) {
	hash := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return hex.EncodeToString(sum[:])
	}
	text := plain + "\ntokens:\n  - {name: all, hash: " + hash("t-all") + "}\n  - {name: other, hash: " + hash("t-other") + "}\n" +
		"  - {name: low, hash: " + hash("t-low") + ", class: p2}\n  - {name: one, hash: " + hash("t-one") + ", agent: a}\n"
	r := begin(t, "generic", text, nil)
	const clients = "/v1/store/clients"
	if w := r.storeCall("POST", clients, ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", w.Code)
	}
	for _, bound := range []string{"t-low", "t-one"} {
		w := r.storeCall("POST", clients, "", "Authorization", "Bearer "+bound)
		if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), bound) {
			t.Errorf("%s: %d %s", bound, w.Code, w.Body)
		}
	}
	w := r.storeCall("POST", clients, "", "Authorization", "Bearer t-all")
	var hello wire.Hello
	if err := json.Unmarshal(w.Body.Bytes(), &hello); err != nil || w.Code != 200 {
		t.Fatalf("%d %v", w.Code, err)
	}
	for token, want := range map[string]int{"t-other": 410, "t-low": 403, "t-all": 204} {
		if w := r.storeCall("POST", clients+"/"+hello.Client+"/alive", "", "Authorization", "Bearer "+token); w.Code != want {
			t.Errorf("%s: %d, want %d", token, w.Code, want)
		}
	}
}

// A client of the store learns whether a token is missing, unknown or not allowed, and what to do.
func TestErrorsAboutTokensSayWhatToDo(t *testing.T) {
	t.Setenv("SLUICE_TOKEN", "")
	sum := sha256.Sum256([]byte("t-low"))
	r := begin(t, "generic", plain+"\ntokens:\n  - {name: low, hash: "+hex.EncodeToString(sum[:])+", class: p2}\n", nil)
	server := httptest.NewServer(r.daemon)
	defer server.Close()
	for token, want := range map[string][2]string{
		"":        {"a valid token is needed", "set SLUICE_TOKEN"},
		"t-wrong": {"does not know this token", "correct SLUICE_TOKEN"},
		"t-low":   {`the token "low" is bound to an agent or a class`, "use this token with the API"},
	} {
		address := server.URL
		if token != "" {
			address = strings.Replace(address, "http://", "http://:"+token+"@", 1)
		}
		_, err := remotestore.Config(t.Context(), address)
		var hinted interface{ Hint() string }
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want[0]) || !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), want[1]) {
			t.Errorf("%q: %v, want %q", token, err, want)
		} else if token != "" && strings.Contains(err.Error()+hinted.Hint(), token) {
			t.Errorf("%q: the error shows the token: %v", token, err)
		}
	}
}

// A gate in another process uses the daemon's limits and configuration, across a reload.
func TestGateFromAfar(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	server := httptest.NewServer(r.daemon)
	defer server.Close()
	text, err := remotestore.Config(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.Parse("lent", text, none)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.GateConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	gate, err := sluice.OpenWithStore(t.Context(), st, c)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	ticket, err := gate.Try(t.Context(), sluice.Request{Resource: "places", Agent: "afar"})
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := r.call("POST", "/v1/tickets", `{"resource":"places","agent":"here","wait_ms":0}`); code != 429 {
		t.Errorf("the only place is taken from afar, and here they get %d", code)
	}
	if _, err := r.daemon.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error)
	go func() {
		again, err := gate.Acquire(t.Context(), sluice.Request{Resource: "places", Agent: "afar"})
		waits <- errors.Join(err, again.Close())
	}()
	r.until("it waits", func(s inspect.ResourceStatus) bool { return s.Waiting["p2"] == 1 }) // nobody says when it has arrived
	if code, out := r.call("POST", "/v1/tickets/"+ticket.ID()+"/close", `{}`); code != 204 {
		t.Errorf("ended here: %d %v", code, out)
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
	r.until("it has ended", func(s inspect.ResourceStatus) bool { return s.InFlight == 0 && s.Sent == 2 }) // which is said in passing
}

// until waits until the status of the resource places satisfies a condition.
func (r *rig) until(what string, is func(s inspect.ResourceStatus) bool) {
	r.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		s, err := r.gate.Resource(r.Context(), "places")
		if err == nil && is(s) {
			return
		}
		if err != nil || time.Now().After(end) {
			r.Fatalf("not so: %s: %+v, %v", what, s, err)
		}
	}
}
