package sluicehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
	_ "github.com/sluicehq/sluice/store/memstore" // for "mem:"
)

func open(limits ...sluice.Limit) *sluice.Gate {
	gate, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{"search": {Limits: limits}}})
	if err != nil {
		panic(err)
	}
	return gate
}

// An ordinary client, behind a gate: whoever else uses the same quota waits in the same line.
func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "100")
		w.Header().Set("X-RateLimit-Remaining", "58") // others use it as well
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()

	limits := []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 100, Window: time.Minute}}
	gate := open(limits...)
	defer gate.Close()
	transport := &sluicehttp.Transport{
		Gate: gate, Resource: "search", Limits: limits,
		Caller: sluicehttp.Caller{Agent: "indexer", Class: sluice.P1},
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}

	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	status, _ := gate.Status(context.Background())
	fmt.Printf("%s; %d left\n", text, status.Resources[0].Limits[0].Remaining)
	// Output: hello; 58 left
}

// A refusal of the gate is an error with all that is known. The caller of a single request is told in its context.
func ExampleWithCaller() {
	gate := open(sluice.Limit{Name: "places", Kind: sluice.Concurrency, Size: 1})
	defer gate.Close()
	busy, err := gate.Acquire(context.Background(), sluice.Request{Resource: "search", Agent: "somebody"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer busy.Close()
	client := &http.Client{Transport: &sluicehttp.Transport{Gate: gate, Resource: "search"}}

	ctx := sluicehttp.WithCaller(context.Background(), sluicehttp.Caller{Agent: "editor", Wait: 50 * time.Millisecond})
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.com/", nil)
	_, err = client.Do(request)
	var refusal *sluice.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Agent, "was refused:", refusal.Err)
	}
	// Output: editor was refused: not before the deadline
}

// Calls of language models are reserved with an estimate and settled with what the answer says that it used, also if
// that is at the end of a stream.
func ExampleTransport_done() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":12,"output_tokens":30}}`)
	}))
	defer server.Close()

	dialect, _ := provider.Lookup("anthropic")
	gate := open(sluice.Limit{Name: "output", Kind: sluice.Rolling, Size: 8000, Window: time.Minute, Unit: sluice.OutputTokens})
	defer gate.Close()
	transport := &sluicehttp.Transport{
		Gate: gate, Resource: "search", Dialect: dialect, Caller: sluicehttp.Caller{Agent: "writer"},
		Done: func(e sluicehttp.Exchange) {
			fmt.Println(e.Agent, e.Model, "reserved", e.Estimated.Output, "and used", e.Usage.Output)
		},
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}

	body := `{"model":"claude-sonnet-4-5","max_tokens":64000,"messages":[{"role":"user","content":"Hello"}]}`
	resp, err := client.Post(server.URL+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	_, _ = io.ReadAll(resp.Body)
	// Output: writer claude-sonnet-4-5 reserved 1024 and used 30
}
