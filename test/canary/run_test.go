//go:build linux

package canary_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// sender is a command that sends keys through the gate of sluice run, and prints its environment and the arguments of
// the processes above it.
var sender = `
for at in "$ANTHROPIC_BASE_URL" "$OPENAI_BASE_URL"; do
  curl -s -m 20 -o /dev/null -H "x-api-key: ` + planted("RunKey") + `" -H "authorization: Bearer ` + planted("RunBearer") + `" -d '{"model":"m","input":"` + planted("RunBody") + `"}' "$at/v1/messages?key=` + planted("RunQuery") + `"
done
env
tr '\0' ' ' </proc/$PPID/cmdline`

// The gate of sluice run writes no key, and gives its command no password of the configuration and no token.
func TestRun(t *testing.T) {
	t.Parallel()
	password := planted("ConfiguredPassword")
	server := redisrun.New(t, "requirepass "+password)
	up := provider(t)
	config := fmt.Sprintf("store: \"redis://:%s@%s?timeout=20s\"\nretry: {attempts: 1}\ndead_letters: {key_env: LETTERS_KEY}\nresources:\n", password, server.Addr()) +
		fmt.Sprintf("  anthropic: {provider: anthropic, upstream: \"%s/unauthorized\", dead_letters: on}\n  openai: {provider: openai, upstream: \"http://%s\", dead_letters: on}\n", up.URL, closedPort(t))
	r := newRig(t, config, "LETTERS_KEY="+hashed("letters"))
	script := filepath.Join(t.TempDir(), "sender.sh") // so that no key is an argument
	if err := os.WriteFile(script, []byte(sender+"\nexit 75\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range []string{"", "--resource anthropic --agent worker --attempts 1", "--intercept", "--no-gate"} {
		out := r.command(75, planted("Input"), append(append([]string{"run"}, strings.Fields(flags)...), "--", "sh", script)...)
		if !strings.Contains(out, "SLUICE_CONFIG=") || !strings.Contains(out, "sluice run ") && !strings.Contains(out, " run ") {
			t.Errorf("run %s: the command prints %s", flags, out)
		}
	}
	r.env = append(r.env, "SLUICE_TOKEN="+planted("RunToken"))
	if out := r.command(75, "", "run", "--no-gate", "--", "sh", script); !strings.Contains(out, "SLUICE_AGENT=") {
		t.Errorf("the command prints %q", out)
	}
	r.command(0, "", "dlq", "list", "--json")
	r.command(0, "", "status", "--json")
	r.search(1)
}

// Logs of other programs hold keys. Replaying them shows none.
func TestReplay(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	access, spend := filepath.Join(t.TempDir(), "access.jsonl"), filepath.Join(t.TempDir(), "spend.jsonl")
	var lines, rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, `{"time":"2026-03-01T12:00:%02dZ","caller":"a%d","status":%d,"path":"/v1/messages?key=%s","headers":{"authorization":"Bearer %s"},"url":"https://me:%s@a.example/","body":"%s"}`+"\n",
			i, i%3, 200+229*(i%2), planted("LoggedQuery"), planted("LoggedBearer"), planted("LoggedPassword"), planted("LoggedBody"))
		fmt.Fprintf(&rows, `{"request_id":"r%d","api_key":"%s","call_type":"acompletion","startTime":"2026-03-01T12:00:%02dZ","endTime":"2026-03-01T12:00:%02d.5Z","model":"gpt-5","user":"","total_tokens":10,"prompt_tokens":5,"completion_tokens":5,"spend":0.1,"status":"success","messages":"%s","response":"%s","proxy_server_request":"%s","metadata":{"user_api_key":"%s"}}`+"\n",
			i, planted("LoggedKey"), i, i, planted("LoggedBody"), planted("LoggedAnswer"), planted("LoggedRequest"), planted("LoggedMetadata"))
	}
	for name, text := range map[string]string{access: lines.String(), spend: rows.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(r.dir, filepath.Base(name))
		r.command(0, "", "replay", name, "--requests", "20/min", "--plot", "--html", out+".html", "--scenario", out+".yaml", "--config-out", out+".conf.yaml")
		r.command(0, "", "replay", name, "--requests", "20/min", "--json")
	}
	r.search(6)
}

// A mistake in a configuration is shown with the lines around it. None of them shows a secret.
func TestMistakesInAConfiguration(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"store: redis://me:" + planted("Password") + "@host\nstor: x\n",
		"store: redis+sentinel://a/main?sentinel_password=" + planted("Sentinel") + "\nstor: x\n",
		"alerts: {webhook: \"https://a.example/" + planted("Hook") + "\"}\nstor: x\n",
		"resources:\n  api: {upstream: \"https://me:" + planted("Upstream") + "@a.example\"}\n",
		"resources:\n  api:\n    upstream: https://a.example\n    inject: {header: x-api-key, env: \"" + planted("Key") + "-x\"}\n    limts: []\n",
		"tokens: [{name: a, hash: " + planted("PlainToken") + "-}]\nstor: x\n",
		"store: \"http://:${SECRET}@host:bad\"\n",
	} {
		r := newRig(t, text, "SECRET="+planted("Variable"))
		for _, args := range [][]string{{"config", "check"}, {"config", "check", "--json"}, {"config", "show"}, {"status"}, {"serve", "--json"}} {
			r.command(78, "", args...)
		}
		r.search(0)
	}
}

// The clients of other languages show no token: not in errors, logs, or what a client is printed as.
func TestClients(t *testing.T) {
	t.Parallel()
	r := newRig(t, "tokens: [{name: all, hash: "+hashed(planted("ClientToken"))+"}]\nresources:\n  api: {dead_letters: on, limits: [{name: own, size: 1000/h}]}\n")
	d := r.serve()
	env := append(r.env, "SLUICE_URL="+d.Listen[0], "GONE_URL=http://"+closedPort(t), "RIGHT="+planted("ClientToken"), "WRONG="+planted("WrongClientToken"), "KEY="+planted("ClientKey"), "PYTHONPATH="+clients(t, "python"), "NODE="+clients(t, "typescript"))
	for name, argv := range map[string][]string{"python": {"python3", "-B", "-c", inPython}, "node": {"node", "--input-type=module", "-e", inNode}} {
		cmd := proctest.Command(t, argv[0], argv[1:]...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "done") || strings.Count(string(out), "error ") < 5 {
			t.Errorf("%s: %v\n%s", name, err, forms.ReplaceAllString(string(out), "SECRET"))
		}
		r.say("the "+name+" client", out)
	}
	r.command(0, "", "dlq", "list", "--json")
	r.end(d, 15)
	r.search(3)
}

func clients(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "clients", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const inPython = `
import logging, os, traceback
logging.basicConfig(level=logging.DEBUG)
import sluice
env = os.environ
class Answer:
    status_code, headers, content = 503, {"x-api-key": env["KEY"]}, env["KEY"].encode()
letter = sluice.Letter("POST", "https://api.example/v1/x?key=" + env["KEY"], {"authorization": "Bearer " + env["KEY"]}, b"{}")
def send(t):
    print(t, repr(t))
    return Answer()
def failing(t):
    raise OSError("the connection broke")
once = sluice.Retry(attempts=1)
for url, token in ((env["SLUICE_URL"], env["RIGHT"]), (env["SLUICE_URL"], env["WRONG"]), (env["GONE_URL"], env["RIGHT"])):
    c = sluice.Client(url, token=token, timeout=20)
    print(c, repr(c))
    for call in (lambda: c.acquire("api", key=env["KEY"], wait=0), lambda: c.do("api", send, policy=once, letter=letter), lambda: c.do("api", failing, policy=once, letter=letter), lambda: c.acquire("nothing", wait=0)):
        try:
            call()
        except Exception as e:
            print("error", e, repr(e))
            traceback.print_exc()
    c.close()
print("done")
`

const inNode = `
const env = process.env;
const { Client } = await import(env.NODE + "/index.js");
const letter = { method: "POST", url: "https://api.example/v1/x?key=" + env.KEY, headers: { authorization: "Bearer " + env.KEY }, body: "{}" };
for (const [url, token] of [[env.SLUICE_URL, env.RIGHT], [env.SLUICE_URL, env.WRONG], [env.GONE_URL, env.RIGHT]]) {
  const c = new Client({ url, token, timeoutMs: 20000 });
  console.log(c, String(c), JSON.stringify(c));
  for (const call of [
    () => c.acquire("api", { key: env.KEY, waitMs: 0 }),
    () => c.do("api", { policy: { attempts: 1 }, letter }, async (t) => { console.log(t, JSON.stringify(t)); return { status: 503, headers: { "x-api-key": env.KEY }, body: env.KEY }; }),
    () => c.acquire("nothing", { waitMs: 0 }),
  ]) {
    try { await call(); } catch (e) { console.log("error", e.message, e.hint, e.stack); }
  }
  await c.close?.();
}
console.log("done");
`
