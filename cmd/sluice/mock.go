package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// mockFlags holds the flags of mock.
type mockFlags struct {
	listen                  string
	requests, input, output rateFlag
	concurrency, burst      int64
	algorithm               string
	plan                    planFlag
	overage                 bool
	latency, tail           timeFlag
	seed                    uint64
	log                     string
}

// drain is how long running responses may take after the server is told to end.
const drain = 5 * time.Second

func newMock() *cobra.Command {
	f := new(mockFlags)
	cmd := &cobra.Command{
		Use:   "mock PROVIDER",
		Short: "Serve a model of a provider over HTTP, for tests and demos",
		Long: "Mock serves a model of a provider (" + strings.Join(mock.Providers, ", ") + ") over HTTP, with the real\n" +
			"paths, shapes, headers and refusals, and exact limits per API key. Any key works. Responses\n" +
			"depend only on the request; the header X-Mock asks for misbehaviour. docs/mock.md describes\n" +
			"everything.\n\n" +
			"Without a limit flag it has the limits that the provider publishes; with one, only those given.",
		Example: "  sluice mock anthropic --listen 127.0.0.1:8081 --requests 100/min\n" +
			"  sluice mock generic --listen 127.0.0.1:0 --requests 30/10s --algorithm fixed --json\n" +
			"  curl http://127.0.0.1:8081/_mock/stats",
		Args:      needs("PROVIDER"),
		ValidArgs: mock.Providers,
		RunE:      func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDR` to listen on; port 0 is any that is free; without a host it is 127.0.0.1")
	flags.Var(&f.requests, "requests", "limit on requests, such as 100/min")
	flags.Var(&f.input, "input-tokens", "limit on input tokens, such as 50000/min")
	flags.Var(&f.output, "output-tokens", "limit on output tokens, such as 10000/min")
	flags.Int64Var(&f.concurrency, "concurrency", 0, "how many requests can be under way; 0: no limit")
	flags.Int64Var(&f.burst, "burst", 0, "what the bucket of --requests holds; 0: one window's worth")
	flags.StringVar(&f.algorithm, "algorithm", "", "how limits are enforced: "+strings.Join(mock.Algorithms, ", ")+"; else as the provider does")
	flags.Var(&f.plan, "plan", "windows of a subscription with the tokens they hold, such as 5h=2000000,7d=20000000")
	flags.BoolVar(&f.overage, "overage", false, "accept requests beyond the windows of --plan, and state that they are paid for")
	flags.Var(&f.latency, "latency", "time to the first byte of an answer")
	flags.Var(&f.tail, "tail", "mean of a random delay that is added to --latency")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of all random draws")
	flags.StringVar(&f.log, "log", "", "append every request that counts to `FILE`, as a line of JSON: time, agent, model, outcome")
	completeFlag(cmd, "algorithm", cobra.FixedCompletions(mock.Algorithms, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// rateFlag is a flag for an amount per window: 100/min.
type rateFlag sim.Rate

// Set implements pflag.Value.
func (r *rateFlag) Set(text string) error {
	rate, err := sim.ParseRate(text)
	*r = rateFlag(rate)
	return err
}

func (r *rateFlag) String() string {
	if r.N == 0 {
		return ""
	}
	return sim.Rate(*r).String()
}

// Type implements pflag.Value.
func (*rateFlag) Type() string { return "N/WINDOW" }

// planFlag is a flag for the windows of a subscription.
type planFlag []mock.Window

// Set implements pflag.Value.
func (p *planFlag) Set(text string) (err error) {
	*p, err = mock.ParsePlan(text)
	return err
}

func (p *planFlag) String() string { return "" }

// Type implements pflag.Value.
func (*planFlag) Type() string { return "WINDOW=TOKENS,..." }

// options returns the options that the flags describe.
func (f *mockFlags) options(cmd *cobra.Command, provider string) mock.Options {
	limited := slices.ContainsFunc([]string{"requests", "input-tokens", "output-tokens", "concurrency", "plan"}, cmd.Flags().Changed)
	return mock.Options{
		Provider: provider, Requests: sim.Rate(f.requests), InputTokens: sim.Rate(f.input), OutputTokens: sim.Rate(f.output),
		Burst: f.burst, Concurrency: f.concurrency, Plan: f.plan, Overage: f.overage, Published: !limited, Algorithm: f.algorithm,
		Latency: time.Duration(f.latency), Tail: time.Duration(f.tail), Seed: f.seed,
	}
}

func (f *mockFlags) run(cmd *cobra.Command, provider string) error {
	o := f.options(cmd, provider)
	if f.log != "" {
		file, err := os.OpenFile(f.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return &failure{code: exitUsage, message: "--log: " + err.Error(), hint: "name a file in a directory that exists and that you may write to"}
		}
		defer file.Close() //nolint:errcheck // lines are written as they come
		o.Log = file
	}
	m, err := mock.New(o)
	if err != nil {
		hint := usage("sluice mock")
		switch {
		case !slices.Contains(mock.Providers, provider):
			hint = didYouMean(provider, mock.Providers, hint)
		case f.algorithm != "" && !slices.Contains(mock.Algorithms, f.algorithm):
			hint = didYouMean(f.algorithm, mock.Algorithms, hint)
		}
		return &failure{code: exitUsage, message: strings.TrimPrefix(err.Error(), mock.ErrOptions.Error()+": "), hint: hint}
	}
	defer m.Close()
	// Before the address is printed: its reader may end this process at once.
	ctx, ignore := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer ignore()
	l, err := listen(ctx, f.listen)
	if err != nil {
		return err
	}
	if err := sayAddress(cmd.OutOrStdout(), provider, l.Addr().String(), asJSON(cmd)); err != nil {
		_ = l.Close()
		return err
	}
	return serveUntil(ctx, ignore, l, m)
}

// listen opens the address. An invalid address is a usage error.
func listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &failure{code: exitUsage, message: fmt.Sprintf("--listen %.80q: it is not HOST:PORT", address), hint: "127.0.0.1:0 is any port that is free"}
	}
	if host == "" {
		host = "127.0.0.1" // not for the whole network
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err == nil {
		return l, nil
	}
	code := exitUnavailable
	var name *net.DNSError
	var part *net.AddrError
	if errors.As(err, &name) || errors.As(err, &part) {
		code = exitUsage
	}
	return nil, &failure{code: code, message: fmt.Sprintf("--listen %.80q: %v", address, err), hint: "127.0.0.1:0 is any port that is free"}
}

// sayAddress prints one line, so that a script can wait for it.
func sayAddress(w io.Writer, provider, address string, asJSON bool) error {
	url := "http://" + address
	if !asJSON {
		_, err := fmt.Fprintf(w, "mock %s listens on %s\n", provider, url)
		return written(err)
	}
	return written(json.NewEncoder(w).Encode(struct {
		Address string `json:"address"`
		URL     string `json:"url"`
	}{address, url}))
}

// serveUntil serves until the context ends, and then until running responses are done. ignore restores the default
// handling of signals, so that a second signal ends the process at once.
func serveUntil(ctx context.Context, ignore func(), l net.Listener, m *mock.Server) error {
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: m, Protocols: &both, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 1 << 20,
		ErrorLog: log.New(io.Discard, "", 0), // it would report clients that went away
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return &failure{code: exitInternal, message: "the server has ended: " + err.Error()}
	case <-ctx.Done():
	}
	ignore()
	m.Close()
	stop, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if server.Shutdown(stop) != nil {
		_ = server.Close() // cut off what takes longer
	}
	<-ended
	return nil
}
