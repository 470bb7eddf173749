package mock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// A provider that accepts two requests a minute of each key.
func ExampleNew() {
	m, err := mock.New(mock.Options{Provider: "anthropic", Requests: sim.Rate{N: 2, Window: time.Minute}, Algorithm: "rolling"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	h := httptest.NewServer(m)
	defer h.Close()
	for range 3 {
		body := strings.NewReader(`{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
		resp, err := http.Post(h.URL+"/v1/messages", "application/json", body)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Status)
		_ = resp.Body.Close()
	}
	st := m.Stats()
	fmt.Println(st.Accepted, "accepted,", st.Throttled, "throttled,", st.Ledger["claude-x"].InputTokens, "input tokens")
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
	// 2 accepted, 1 throttled, 16 input tokens
}
