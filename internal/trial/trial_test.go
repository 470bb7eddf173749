package trial

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/internal/proctest"
)

// act makes this program a client that does what the variable says.
const act = "SLUICE_TEST_CLIENT"

func TestMain(m *testing.M) {
	if does := os.Getenv(act); does != "" {
		if err := client(does); err != nil {
			fmt.Fprintln(os.Stderr, "\x1b[91mError:\x1b[0m", err)
			os.Exit(41)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}

// client is a program that calls OpenAI.
func client(does string) error {
	for _, secret := range []string{"ANTHROPIC_API_KEY", "SLUICE_TEST_SECRET"} {
		if os.Getenv(secret) != "" {
			return fmt.Errorf("%s is there", secret)
		}
	}
	if home, err := os.ReadDir(os.Getenv("HOME")); err != nil || len(home) > 0 {
		return fmt.Errorf("the home directory is not empty: %v %v", home, err)
	}
	base := "https://api.openai.com/v1"
	if own := os.Getenv("OPENAI_BASE_URL"); does == "base" || does == "silent" || does == "wrong path" {
		base = own
	}
	body := `{"model":"gpt-5.4","messages":[{"role":"user","content":"hi"}]}`
	switch does {
	case "nothing":
		fmt.Println("I need no network")
		return nil
	case "wrong path":
		base += "/beta"
	case "elsewhere":
		base = "https://example.com"
	case "hang":
		time.Sleep(time.Hour)
	}
	if err := proctest.TrustBundle(); err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, base+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %v", resp.Status, err)
	}
	if does != "silent" {
		fmt.Println(string(text))
	}
	return nil
}

func TestTry(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "secret")
	t.Setenv("SLUICE_TEST_SECRET", "secret")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	for name, of := range map[string]struct {
		way  clients.Way
		does string
		want string // in the error; empty: none
	}{
		"a base URL":                {clients.ByBase, "base", ""},
		"interception":              {clients.ByIntercept, "address", ""},
		"both":                      {clients.ByBoth, "address", ""},
		"base URLs are ignored":     {clients.ByBase, "address", "it called api.openai.com, past the gate; it ended with exit status 41: Error: Post"},
		"another form of base URL":  {clients.ByBase, "wrong path", "its call passed the gate, and the model answered 404; it ended with exit status 41: Error: 404 Not Found"},
		"no call":                   {clients.ByBase, "nothing", "no call passed the gate"},
		"elsewhere, by base URL":    {clients.ByBase, "elsewhere", "no call passed the gate; it ended with"},
		"elsewhere, by interceptor": {clients.ByIntercept, "elsewhere", "no call passed the gate; it ended with"},
		"empty answer":              {clients.ByBase, "silent", "its call passed the gate, but it printed no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clients.Client{
				Name: strings.ReplaceAll(name, " ", "-"), Kind: clients.Agent, Way: of.way, Commands: []string{"it"}, Providers: []string{"openai"},
				Keys: []string{"OPENAI_API_KEY"}, Bases: []clients.Base{{Variable: "OPENAI_BASE_URL", Provider: "openai", Suffix: "/v1"}},
				Try: &clients.Try{Args: []string{"-test.run=^$"}, Env: map[string]string{act: of.does}},
			}
			err := b.Try(t.Context(), c, program)
			if of.want == "" && err != nil || of.want != "" && (err == nil || !strings.Contains(err.Error(), of.want)) {
				t.Errorf("%v, want %q", err, of.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q", err)
			}
		})
	}
}

// open starts a bench that ends with the test and its parallel subtests.
func open(t *testing.T) *Bench {
	t.Helper()
	b, err := Open(t.Context(), clients.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(b.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", b.dir, err)
		}
	})
	return b
}

// TestLibrariesAreTriedWithACallLikeTheirs tries each library of the table.
func TestLibrariesAreTriedWithACallLikeTheirs(t *testing.T) {
	b := open(t)
	untried := map[string]bool{"boto3": true} // its provider has no address of its own
	for _, c := range clients.Builtin().All() {
		if c.Kind != clients.Library {
			continue
		}
		if err := b.Try(t.Context(), c, ""); (err == noCall) != untried[c.Name] || err != nil && !untried[c.Name] {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	wrong := &clients.Client{
		Name: "wrong", Kind: clients.Library, Way: clients.ByBase, Providers: []string{"anthropic"}, Bases: []clients.Base{{Variable: "X", Provider: "anthropic", Suffix: "/v2"}},
	}
	if err := b.Try(t.Context(), wrong, ""); err == nil || !strings.Contains(err.Error(), "answered 404") {
		t.Errorf("%v", err)
	}
}

// TestAProgramThatHangsIsEnded: with all that it has started.
func TestAProgramThatHangsIsEnded(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.within = 500 * time.Millisecond
	c := &clients.Client{
		Name: "hangs", Kind: clients.Agent, Way: clients.ByBase, Commands: []string{"it"}, Providers: []string{"openai"},
		Try: &clients.Try{Args: []string{"-test.run=^$"}, Env: map[string]string{act: "hang"}},
	}
	if err := b.Try(t.Context(), c, program); err == nil || !strings.Contains(err.Error(), "it did not end within 500ms") {
		t.Errorf("%v", err)
	}
}

func TestUntriedClients(t *testing.T) {
	b := open(t)
	for _, of := range []struct {
		client  clients.Client
		program string
		want    string
	}{
		{clients.Client{Kind: clients.Agent, Way: clients.ByBase}, "it", "no short call of it is known"},
		{clients.Client{Kind: clients.Runtime, Way: clients.ByBoth}, "it", "no short call of it is known"},
		{clients.Client{Kind: clients.Agent, Way: clients.ByBase, Try: &clients.Try{Args: []string{"x"}}}, "", "its program is not in PATH"},
		{clients.Client{Kind: clients.Agent, Way: clients.BySetting, Try: &clients.Try{Args: []string{"x"}}}, "it", "it finds none of its own settings in the check"},
	} {
		if err := b.Try(t.Context(), &of.client, of.program); err != Untried(of.want) {
			t.Errorf("%+v: %v", of.client, err)
		}
	}
}
