package daemon_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sluicehq/sluice/inspect"
)

// contract is as much of the OpenAPI file as is held against the handlers.
type contract struct {
	Paths map[string]map[string]struct {
		OperationID string `yaml:"operationId"`
		Description string `yaml:"description"`
		RequestBody struct {
			Content map[string]struct {
				Schema ref `yaml:"schema"`
			} `yaml:"content"`
		} `yaml:"requestBody"`
		Responses map[string]struct {
			Content map[string]struct {
				Schema ref `yaml:"schema"`
			} `yaml:"content"`
		} `yaml:"responses"`
	} `yaml:"paths"`
	Components struct {
		Schemas map[string]struct {
			Required   []string       `yaml:"required"`
			Properties map[string]any `yaml:"properties"`
		} `yaml:"schemas"`
	} `yaml:"components"`
}

type ref struct {
	Ref string `yaml:"$ref"`
}

func (r ref) name() string { return strings.TrimPrefix(r.Ref, "#/components/schemas/") }

func readContract(t *testing.T) contract {
	t.Helper()
	text, err := os.ReadFile("api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c contract
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// samples are bodies with which an operation succeeds, in this order. TICKET is one that was granted.
var samples = []struct{ method, path, body string }{
	{"post", "/v1/tickets", `{"resource":"places","agent":"a","key":"0123abcd","wait_ms":0}`},
	{"post", "/v1/tickets/{id}/renew", `{"wait_ms":10}`},
	{"post", "/v1/tickets/{id}/answer", `{"status":200,"headers":{},"body":""}`},
	{"post", "/v1/tickets/{id}/close", `{"usage":{"requests":1}}`},
	{"delete", "/v1/tickets/{id}", ``},
	{"post", "/v1/exchanges", `{"resource":"api","agent":"a","key":"0123abcd","wait_ms":0,"once":true,"method":"POST","url":"http://127.0.0.1:1/x","headers":{},"body":"b"}`},
	{"post", "/v1/exchanges/{id}/answer", `{"status":200,"headers":{},"body":"","ended":"","error":""}`},
	{"post", "/v1/exchanges/{id}/body", `{"body":"","ended":"complete"}`},
	{"post", "/v1/exchanges", `{"resource":"api","url":"http://127.0.0.1:1/x"}`},
	{"delete", "/v1/exchanges/{id}", ``},
	{"put", "/v1/agents/{name}", `{"class":"p1","user":"u","machine":"m","waits_for":["x"],"resources":["api"]}`},
	{"delete", "/v1/agents/{name}", ``},
	{"post", "/v1/resources/{name}/observe", `{"status":200,"headers":{},"body":"","agent":"a","model":"m","key":"0123abcd"}`},
	{"post", "/v1/resources/{name}/pause", `{"for_ms":1,"reason":"r"}`},
	{"post", "/v1/resources/{name}/resume", ``},
	{"post", "/v1/route", `{"task":"simple","agent":"a","class":"p1","user":"u","units":{"requests":1}}`},
	{"post", "/v1/dead-letters", `{"resource":"kept","agent":"a","method":"POST","path":"/x","headers":{},"left_out":["X-Api-Key"],"body":"b","body_lost":false,"attempts":1,"status":500,"verdict":"error","reason":"r"}`},
	{"get", "/v1/status", ``},
	{"get", "/v1/pool/{name}", ``},
	{"get", "/v1/why", ``},
	{"get", "/v1/report", ``},
	{"get", "/v1/history", ``},
	{"get", "/v1/recent", ``},
	{"get", "/v1/config", ``},
	{"get", "/v1/me", ``},
	{"get", "/healthz", ``},
	{"get", "/readyz", ``},
	{"post", "/-/reload", ``},
}

// openapi.yaml describes the handlers: each operation responds as stated, with every required field and no unknown one,
// and accepts every field that it names.
func TestTheContractIsKept(t *testing.T) {
	r := begin(t, "generic", strings.Replace(plain, "agents:", `  kept: {upstream: "${UPSTREAM}", dead_letters: on, limits: [{name: inflight, concurrency: 1}]}`+"\nagents:", 1), nil)
	c := readContract(t)
	tried := map[string]bool{}
	ticket, done := "", map[string]bool{"get /v1/events": true, "get /v1/openapi.yaml": true} // which have tests of their own
	for _, s := range samples {
		op, ok := c.Paths[s.path][s.method]
		if !ok {
			t.Errorf("%s %s is not in the file", s.method, s.path)
			continue
		}
		done[s.method+" "+s.path] = true
		path := strings.NewReplacer("{id}", ticket, "{name}", "api").Replace(s.path)
		code, out := r.call(strings.ToUpper(s.method), path, s.body)
		want, schema := 204, ""
		if ok, there := op.Responses["200"]; there {
			want, schema = 200, ok.Content["application/json"].Schema.name()
		}
		if code != want {
			t.Errorf("%s %s: %d, not %d: %v", s.method, path, code, want, out)
			continue
		}
		for _, name := range []string{"ticket", "exchange"} {
			if id, ok := out[name].(string); ok {
				ticket = id
			}
		}
		r.fits(c, s.method+" "+s.path, schema, out)
		if name := op.RequestBody.Content["application/json"].Schema.name(); name != "" && !tried[s.path] {
			tried[s.path] = true
			for field := range c.Components.Schemas[name].Properties {
				if !strings.Contains(s.body, `"`+field+`"`) && !slices.Contains([]string{"class", "user", "tool", "model", "units", "emergency", "retry", "ttl_ms"}, field) {
					t.Errorf("%s %s: %s is not tried", s.method, s.path, field)
				}
			}
		}
	}
	for path, ops := range c.Paths {
		for method := range ops {
			if !done[method+" "+path] && !strings.HasPrefix(path, "/v1/store/") { // which have a test of their own
				t.Errorf("%s %s is in the file and not tried", method, path)
			}
		}
	}
}

// fits compares a response with its schema.
func (r *rig) fits(c contract, what, schema string, out map[string]any) {
	r.Helper()
	if schema == "" {
		return
	}
	s, ok := c.Components.Schemas[schema]
	if !ok {
		r.Errorf("%s: there is no schema %s", what, schema)
	}
	for _, field := range s.Required {
		if _, there := out[field]; !there {
			r.Errorf("%s: %s is missing in %v", what, field, out)
		}
	}
	for field := range out {
		if _, known := s.Properties[field]; !known {
			r.Errorf("%s: %s is not in the file", what, field)
		}
	}
}

// openapi.yaml lists the names of events, in order, and their fields.
func TestEventsAreInTheContract(t *testing.T) {
	source, err := os.ReadFile("../inspect/event.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\tEvent[A-Za-z]+ += "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	last := len(names) - 1
	c := readContract(t)
	if want := "The names are " + strings.Join(names[:last], ", ") + " and " + names[last] + "."; last < 20 || !strings.Contains(c.Paths["/v1/events"]["get"].Description, want) {
		t.Errorf("GET /v1/events has to say %q", want)
	}
	of, fields := c.Components.Schemas["Event"].Properties, reflect.TypeFor[inspect.Event]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if of[name] == nil {
			t.Errorf("Event: %s is not in the file", name)
		}
	}
	if len(of) != fields.NumField() {
		t.Errorf("Event has %d fields in the file, %d in Go", len(of), fields.NumField())
	}
}

// The daemon serves its description, whole.
func TestTheDescriptionIsServed(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	w := httptest.NewRecorder()
	r.daemon.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/v1/openapi.yaml", nil))
	want, err := os.ReadFile("api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/yaml" || !bytes.Equal(w.Body.Bytes(), want) {
		t.Errorf("%d %v, %d bytes", w.Code, w.Header(), w.Body.Len())
	}
}

// Every problem type is in openapi.yaml.
func TestProblemsAreInTheContract(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	c := readContract(t)
	_, out := r.call("POST", "/v1/tickets", `{"resource":"nowhere","agent":"a"}`)
	r.fits(c, "a problem", "Problem", out)
	_, out = r.call("POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"requests":99}}`)
	r.fits(c, "a refusal", "Problem", out)
}

// Every handler is in openapi.yaml: the test reads the patterns from the source.
func TestEveryHandlerIsInTheContract(t *testing.T) {
	var source []byte
	for _, file := range []string{"api/api.go", "storeapi/storeapi.go", "storeapi/books.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	c := readContract(t)
	found := regexp.MustCompile(`(?:handle\(|of\(|at\(|booked\(s, )"([A-Z]+) (/v1/[^"]*)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 31 {
		t.Fatalf("only %d patterns were found", len(found))
	}
	for _, m := range found {
		if _, ok := c.Paths[m[2]][strings.ToLower(m[1])]; !ok {
			t.Errorf("%s %s is not in the file", m[1], m[2])
		}
	}
}
