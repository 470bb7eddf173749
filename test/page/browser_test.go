package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is for a machine that is busy with other things.
const patience = time.Minute

var browser context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run starts one Chromium with an empty profile for all tests. Each has a tab of its own.
func run(m *testing.M) int {
	path := os.Getenv("SLUICE_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		fmt.Fprintln(os.Stderr, "there is no Chromium: run scripts/need-chromium, or set SLUICE_CHROMIUM to the path of one")
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to start as root with one
	}
	started, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(started)
	defer end()
	defer func() { // it waits until the browser is gone, and its profile
		within, give := context.WithTimeout(browser, patience)
		defer give()
		_ = chromedp.Cancel(within)
	}()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "Chromium does not start:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(built) }()
	return m.Run()
}

// tab is a tab of the browser that looks at a rig.
type tab struct {
	*rig
	ctx  context.Context
	host string
	mu   sync.Mutex
	bad  []string // what the console said, and requests to others
}

// hurry lets a test stop the page's clockwork: while frozen is set no timer of half a second and more goes off. Shorter ones do. And it
// notes how busy the browser is.
const hurry = `(() => {
  const real = window.setTimeout;
  window.slowest = 0; // milliseconds that the page kept the browser busy at once, if that was 50 or more
  new PerformanceObserver((l) => l.getEntries().forEach((e) => { window.slowest = Math.max(window.slowest, e.duration); })).observe({ type: 'longtask' });
  window.shifted = 0; // how much of what is seen jumped
  new PerformanceObserver((l) => l.getEntries().forEach((e) => { if (!e.hadRecentInput) window.shifted += e.value; })).observe({ type: 'layout-shift', buffered: true });
  window.setTimeout = (f, ms, ...more) => real(() => { if (!(window.frozen && ms >= 500)) f(...more); }, ms / (window.faster ?? 1));
})()`

// open opens the page. At the end of the test nothing must have been complained of.
func (r *rig) open(before ...chromedp.Action[chromedp.Void]) *tab {
	r.Helper()
	first, end := chromedp.NewContext(browser)
	if err := chromedp.Do(first); err != nil { // the tab lives as long as the context that opens it
		end()
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(first, patience)
	b := &tab{rig: r, ctx: ctx, host: strings.TrimPrefix(r.url, "http://")}
	var readers sync.WaitGroup
	r.Cleanup(func() {
		cancel()
		end()
		readers.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.bad {
			r.Error(text)
		}
	})
	follow(b, &readers, runtime.ExceptionThrown, func(e runtime.EventExceptionThrown) string {
		d := e.ExceptionDetails
		text := fmt.Sprintf("exception: %s at %s:%d", d.Text, d.URL, d.LineNumber+1)
		if d.Exception != nil {
			text += ": " + d.Exception.Description
		}
		return text
	})
	follow(b, &readers, runtime.ConsoleAPICalled, func(e runtime.EventConsoleAPICalled) string {
		return fmt.Sprintf("console: %s: %s", e.Type, words(e.Args))
	})
	follow(b, &readers, log.EntryAdded, func(e log.EventEntryAdded) string {
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			return "log: " + e.Entry.Text + " " + e.Entry.URL
		}
		return ""
	})
	follow(b, &readers, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) string {
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != b.host && u.Scheme != "data" {
			return "a request to " + e.Request.URL
		}
		return ""
	})
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: hurry})
	}
	if err != nil {
		r.Fatal(err)
	}
	b.run(before...)
	b.run(chromedp.Navigate(r.url + "/"))
	return b
}

// follow writes down what is wrong with events of one kind.
func follow[E any](b *tab, readers *sync.WaitGroup, kind cdp.Event[E], wrong func(E) string) {
	events := chromedp.Events(b.ctx, kind)
	readers.Go(func() {
		for e, err := range events {
			if err != nil {
				return // the tab is closed
			}
			if text := wrong(e); text != "" {
				b.note(text)
			}
		}
	})
}

// note writes down what must not be.
func (b *tab) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, part := range b.quiet {
		if strings.Contains(text, part) {
			return
		}
	}
	b.bad = append(b.bad, text)
}

func words(args []*runtime.RemoteObject) string {
	var all []string
	for _, a := range args {
		all = append(all, string(a.Value)+a.Description)
	}
	return strings.Join(all, " ")
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// do runs a script.
func (b *tab) do(script string) {
	b.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](script))
}

// is evaluates a condition. (Poll of chromedp makes functions of texts, which the page's policy forbids.)
func (b *tab) is(condition string) bool {
	b.Helper()
	yes, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
	if err != nil {
		b.Fatalf("%s: %v; the page says %s", condition, err, b.complaints())
	}
	return yes
}

func (b *tab) text(expression string) string {
	b.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.Fatalf("%s: %v; the page says %s", expression, err, b.complaints())
	}
	return s
}

// until waits for a condition.
func (b *tab) until(condition string) {
	b.Helper()
	soon(b.ctx, b.T, condition, func() bool {
		yes, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		return yes && err == nil // while the page is loaded anew nothing can be asked
	})
}

func (b *tab) complaints() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.bad, "; ")
}
