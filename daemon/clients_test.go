package daemon_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehq/sluice/inspect"
)

// TestClientsOfOnesOwnNameTheirAgents: the directory of clients in the configuration says who sends.
func TestClientsOfOnesOwnNameTheirAgents(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte("name: mine\nkind: library\nway: setting\nwhy: x\nuser_agents: [mine/]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := begin(t, "openai", "clients: "+dir+"\nresources:\n  openai: {provider: openai, upstream: \"${UPSTREAM}\"}\n", nil)
	resp, text := r.post("/openai/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "User-Agent", "mine/2")
	if resp.Code != http.StatusOK {
		t.Fatalf("%d %s", resp.Code, text)
	}
	st, err := r.gate.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(st.Resources, func(r inspect.ResourceStatus) bool { return r.Name == "openai" })
	if i < 0 || len(st.Resources[i].Callers) != 1 || st.Resources[i].Callers[0].Agent != "mine" {
		t.Errorf("%+v", st.Resources)
	}
}
