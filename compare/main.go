// Command compare runs one real fleet against one strict provider: without a gate, with each peer, and with Sluice. It
// prints what the provider saw. The provider is sim/mock, and its log is the measure. The fleet is eight Node processes
// with OpenAI's official client. Peers come from npm and PyPI in pinned versions.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the command line flags.
type options struct {
	only   string
	sluice string
	cache  string
	write  bool
	json   bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run the contenders whose name contains this `TEXT`; several are separated by commas")
	flag.StringVar(&o.sluice, "sluice", "../bin/sluice", "the sluice `binary`")
	flag.StringVar(&o.cache, "cache", ".cache", "`directory` for what comes from PyPI")
	flag.BoolVar(&o.write, "write", false, "write ../docs/comparison.md and ../docs/images/compare.svg")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		if ctx.Err() != nil {
			os.Exit(130)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	all := slices.DeleteFunc(contenders(), func(c contender) bool { return !wanted(o.only, c.name) })
	if len(all) == 0 {
		return fmt.Errorf("-only %s: no contender has this in its name", o.only)
	}
	if o.write && o.only != "" {
		return errors.New("-write needs all contenders: leave -only out")
	}
	var err error
	if o.sluice, err = filepath.Abs(o.sluice); err != nil {
		return err
	}
	if _, err := os.Stat(o.sluice); err != nil {
		return fmt.Errorf("%w\nhint: make build builds it", err)
	}
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	began := time.Now()
	say("installing the peers")
	venv, err := install(ctx, o.cache)
	if err != nil {
		return err
	}
	var results []*Result
	for i, c := range all {
		say("%d of %d: %s", i+1, len(all), c.name)
		r, err := measure(ctx, c, &setting{sluice: o.sluice, python: venv})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, r)
		say("   %s", r.line())
		if c.name != direct {
			continue
		}
		if r.Foretold, err = foretell(ctx, o.sluice, r.log); err != nil {
			return err
		}
		say("   sluice replay foretells from this log: %d calls, %d 429s, %.1f s with the gate", r.Foretold.Finished, r.Foretold.Refused, r.Foretold.Took)
	}
	if err := added(results); err != nil && o.only == "" {
		return err
	}
	say("took %s", time.Since(began).Round(time.Second))
	if o.write {
		if err := writeDocs("../docs", results); err != nil {
			return err
		}
	}
	return show(os.Stdout, results, o.json)
}

// wanted reports whether name contains one of the comma-separated parts of only. An empty only matches all names.
func wanted(only, name string) bool {
	return only == "" || slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(name, part) })
}

// added sets the latency that each contender adds to a direct call.
func added(results []*Result) error {
	i := slices.IndexFunc(results, func(r *Result) bool { return r.Name == direct })
	if i < 0 {
		return errors.New("nothing to compare with: the direct run is missing")
	}
	for _, r := range results {
		r.Added = max(r.Median-results[i].Median, 0)
	}
	return nil
}

func show(w io.Writer, results []*Result, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"calls": calls(agents()), "limit": limitSize, "window_s": window.Seconds(), "contenders": results})
	}
	_, err := io.WriteString(w, table(results))
	return err
}

// direct is the name of the run that all others are compared with.
const direct = "no gate"

// setting is the environment that a contender gets.
type setting struct {
	sluice string // path of the binary
	python string // directory of the programs from PyPI
	dir    string // temporary directory
	redis  redisAddress
	target string // URL of the provider
	size   int64  // size of the limit
}

type redisAddress struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func (s *setting) redisURL() string { return fmt.Sprintf("redis://%s:%d", s.redis.Host, s.redis.Port) }

// none formats a table cell: "-" if a figure does not apply.
func none(text string) string { return cmp.Or(text, "-") }
