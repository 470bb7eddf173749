package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/ping"
	"github.com/sluicehq/sluice/internal/upstream"
)

func newPing() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ping RESOURCE | --gate URL",
		Short: "Check each step of a request to a provider, with timings",
		Long: `Ping checks everything that a request needs: store, name, connection, TLS and key. It tries the key
with a call that costs nothing, such as a list of models, where the provider has one. The key comes
from the variable of resources.NAME.inject, else from the provider's usual one such as
ANTHROPIC_API_KEY, and is sent only to the provider's address. No limit is charged.

With --gate it asks a daemon whether it is healthy, for use as a container's health check.

Exit codes: 0 every step worked or was skipped; 64 usage, unknown resource; 69 the store or the
provider cannot be reached; 75 the provider answers 429; 77 it refuses the key; 78 bad configuration.`,
		Example:           "  sluice ping anthropic\n  sluice ping --gate http://127.0.0.1:7979\n  sluice ping github --json | jq '.steps[] | {name, ms}'",
		ValidArgsFunction: completeResources,
	}
	gate := cmd.Flags().String("gate", "", "`URL` of a daemon whose health to check")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *gate != "" {
			return atMost(0)(cmd, args)
		}
		return needs("RESOURCE")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *gate != "" {
			return pingGate(cmd, *gate)
		}
		return pingResource(cmd, args[0])
	}
	return cmd
}

// pingJSON is the output of ping with --json. A skipped step has null for its time.
type pingJSON struct {
	Resource string     `json:"resource"`
	Upstream string     `json:"upstream"`
	OK       bool       `json:"ok"`
	State    *string    `json:"state"`
	Reason   *string    `json:"reason"`
	Steps    []stepJSON `json:"steps"`
}

type stepJSON struct {
	Name   string   `json:"name"`
	State  string   `json:"state"` // ok, failed or skipped
	MS     *float64 `json:"ms"`
	Detail string   `json:"detail"`
	Error  *string  `json:"error"`
}

func pingResource(cmd *cobra.Command, name string) error {
	f, err := configOf(cmd)
	if err != nil {
		return err
	}
	f.AddPresets()
	if err := keepOnly(f, []string{name}, configName(cmd, nil)); err != nil {
		return err
	}
	f.Resources[name] = withOneKey(f, name)
	at, err := upstreamOf(f, name)
	if err != nil {
		return err
	}
	leave, err := newOutlet(f, notesOf(cmd), nil)
	if err != nil {
		return configFailure(err)
	}
	out := pingJSON{Resource: name, Upstream: at.Redacted(), OK: true, Steps: []stepJSON{}}
	var failed *failure
	add := func(s ping.Step, why *failure) {
		step := stepJSON{Name: s.Name, State: s.State, Detail: harmless(s.Detail)}
		if s.State != ping.Skipped {
			step.MS = new(float64(s.Took.Microseconds()) / 1e3)
		}
		if s.Err != nil {
			step.Error = new(harmless(s.Err.Error()))
		}
		out.Steps = append(out.Steps, step)
		if s.State == ping.Failed && failed == nil {
			out.OK, failed = false, why
		}
	}
	step, why := out.lookAtStore(cmd, name)
	add(step, why)
	call := freeCalls[f.Resources[name].Provider]
	request, from, without := call.request(at, f.Resources[name].Inject)
	target := ping.Target{URL: at, Call: request, Without: without, Config: leave.roots.Config()}
	for _, s := range target.Check(cmd.Context()) {
		s, why := judge(s, name, from)
		add(s, why)
	}
	return out.print(cmd, failed)
}

// lookAtStore is the step that reads the store. It records the state of the resource.
func (out *pingJSON) lookAtStore(cmd *cobra.Command, name string) (ping.Step, *failure) {
	began := time.Now()
	step := ping.Step{Name: "store", State: ping.OK}
	st, err := reading(cmd, []string{name}, func(ctx context.Context, s *session) (inspect.ResourceStatus, error) {
		step.Detail = s.store
		return s.gate.Resource(ctx, name)
	})
	if st.State != "" {
		out.State, out.Reason = &st.State, &st.Reason
	}
	step.Took = time.Since(began)
	if err == nil {
		return step, nil
	}
	f := asFailure(err)
	step.State, step.Err = ping.Failed, f
	return step, f
}

// judge decides what a step means: a call with a response may still be a refusal.
func judge(s ping.Step, resource, from string) (ping.Step, *failure) {
	hints := map[string]string{
		ping.DNS: "look at the name in resources." + resource + ".upstream, and at the resolver of this machine", ping.Connect: "look at the network between this machine and the provider",
		ping.TLS: "look at the clock and the certificate authorities of this machine, and at proxies on the way", ping.Call: "the provider may be down: look at its status page",
	}
	code := exitUnavailable
	switch {
	case s.Status == 0:
	case s.Status == http.StatusUnauthorized || s.Status == http.StatusForbidden:
		s.State, code = ping.Failed, exitRefused
		s.Err = fmt.Errorf("the provider refuses the key of %s (status %d)", from, s.Status)
		hints[ping.Call] = "set " + from + " to a key of this provider that is still valid"
	case s.Status == http.StatusTooManyRequests:
		s.State, code, s.Err = ping.Failed, exitNotYet, fmt.Errorf("the provider is limiting this key (status 429)")
		hints[ping.Call] = "sluice status shows what uses the quota"
	case s.Status >= 500:
		s.State, s.Err = ping.Failed, fmt.Errorf("the provider answers with status %d", s.Status)
	case s.Status >= 300:
		s.State, s.Err = ping.Failed, fmt.Errorf("the provider answers with status %d where 200 was expected", s.Status)
		hints[ping.Call] = "look at the path in resources." + resource + ".upstream"
	default:
		s.Detail += ", with the key of " + from
	}
	if s.State != ping.Failed {
		return s, nil
	}
	what := s.Name + ": " + strings.TrimPrefix(s.Err.Error(), s.Name+": ") // system calls begin with their name
	if s.Name == ping.TLS && upstream.Kind(s.Err) == upstream.TLS {
		what = s.Err.Error() // it says TLS, and to whom
	}
	hint := hints[s.Name]
	if upstream.Untrusted(s.Err) {
		hint = upstream.TrustHint
	}
	return s, &failure{code: code, message: resource + ": " + what, hint: hint}
}

func (out *pingJSON) print(cmd *cobra.Command, failed *failure) error {
	if asJSON(cmd) {
		if failed == nil {
			return written(printJSON(cmd.OutOrStdout(), out))
		}
		failed.extra = map[string]any{"resource": out.Resource, "upstream": out.Upstream, "ok": false, "state": out.State, "reason": out.Reason, "steps": out.Steps}
		return failed
	}
	s := screenFor(cmd.OutOrStdout(), time.Now())
	s.line("%s  %s", harmless(out.Resource), harmless(out.Upstream))
	for i := range out.Steps {
		st := &out.Steps[i]
		ms := "-"
		if st.MS != nil {
			ms = fmt.Sprintf("%.1f ms", *st.MS)
		}
		text := st.Detail
		if st.Error != nil {
			text = *st.Error
		}
		s.line("  %-8s %-8s %10s  %s", st.Name, st.State, ms, text)
	}
	if out.State != nil && (*out.State == inspect.StatePaused || *out.State == inspect.StateQueueing || *out.State == inspect.StateFailing || *out.State == inspect.StateDegraded) {
		s.line("  %s is %s: %s", harmless(out.Resource), *out.State, harmless(*out.Reason))
	}
	if err := s.end(); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return nil
}

// upstreamOf returns the address that a resource's requests go to.
func upstreamOf(f *config.File, name string) (*url.URL, error) {
	address := f.UpstreamOf(name)
	if address == "" {
		return nil, &failure{
			code: exitUsage, message: fmt.Sprintf("the resource %s has no upstream", name), hint: fmt.Sprintf("set resources.%s.upstream to the address of the provider", name),
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, &failure{code: exitConfig, message: fmt.Sprintf("resources.%s.upstream: not a valid address", name), hint: "write it as https://HOST"}
	}
	return u, nil
}
