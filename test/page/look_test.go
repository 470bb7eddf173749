package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sluicehq/sluice"
)

// Everything at once, wide and narrow, light and dark. With SLUICE_SCREENSHOTS=DIR the pictures stay there.
func TestHowItLooks(t *testing.T) {
	r := begin(t, plain)
	s := &scene{now: time.Now().Truncate(time.Second)}
	r.fake, r.date = s.answer, s.date
	b := r.open(chromedp.EmulateViewport(1440, 900))
	b.do(`window.faster = 25`) // ten minutes are too long to wait for
	b.until(live)
	soon(b.ctx, t, "ten minutes pass", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.n >= 120 })
	b.do(`window.faster = 4`)
	for _, e := range []sluice.Event{
		{Kind: sluice.EventThrottled, Resource: "github", Agent: "triage", Class: "p2", Status: 403},
		{Kind: sluice.EventPause, Resource: "github", Reason: "secondary rate limit", Consecutive: 2, ForMS: 60_000},
		{Kind: sluice.EventRefused, Resource: "anthropic", Agent: "crawler-7", Class: "p2", Model: "claude-opus-4-5", Reason: "budget", Limit: "user/day"},
		{Kind: sluice.EventBudget, Resource: "anthropic", Agent: "crawler-7", Reason: "budget", Limit: "user/day"},
		{Kind: sluice.EventStoreLost, Resource: "mail", Mode: "share", Error: "dial tcp: connection refused"},
	} {
		e.Time = s.date()
		r.hub.Add(e)
	}
	b.until(`document.querySelectorAll('#events li').length === 5 && document.querySelectorAll('#report tr').length > 3`)
	b.until(`document.getElementById('agents').textContent.includes('expected in')`) // the queue was asked for since time went fast
	says(b)
	for _, size := range []struct {
		name       string
		wide, high int64
	}{{"desktop", 1440, 900}, {"phone", 360, 740}} {
		for _, scheme := range []string{"light", "dark"} {
			features := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, features); err != nil {
				t.Fatal(err)
			}
			b.run(chromedp.EmulateViewport(size.wide, size.high))
			was := r.asked.Load()
			soon(b.ctx, t, "it is drawn anew", func() bool { return r.asked.Load() >= was+2 })
			if b.is(`document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%s %s: it is wider than the screen", size.name, scheme)
			}
			if back := b.text(`getComputedStyle(document.body).backgroundColor`); (scheme == "dark") != strings.HasPrefix(back, "rgb(16,") {
				t.Errorf("%s: the background is %s", scheme, back)
			}
			if os.Getenv("SLUICE_SCREENSHOTS") != "" { // charts out of sight are not drawn: a picture of all needs a screen for all
				b.run(chromedp.EmulateViewport(size.wide, 4500))
				was := r.asked.Load()
				soon(b.ctx, t, "it is drawn anew", func() bool { return r.asked.Load() >= was+2 })
				keep(b, size.name+"-"+scheme)
			}
		}
	}
}

// says checks that what must be on the page is.
func says(b *tab) {
	b.Helper()
	// Rows and cards out of sight are not laid out, and what is not has no innerText.
	b.do(`document.querySelectorAll('.card, .rows .agent').forEach((e) => { e.style.contentVisibility = 'visible'; })`)
	text := strings.Join(strings.Fields(b.text(`document.querySelector('main').innerText`)), " ")
	for _, want := range []string{
		"Paused", "left secondary rate limit", "429s in 7 days", "by others outside", "resets in 1", "The store cannot be reached", "observe",
		"Breaker", "expected in", "no new work: \u2068newsletter", "\u2068release-bot\u2069", "wait for each other", "user/day ana", "$8.72 / $10.00", "$58.10", "$7.31 saved", "6,530", "cost $0.0420", "none, gone in",
	} {
		if !strings.Contains(text, want) {
			b.Errorf("nowhere does it say %q in %s", want, text)
		}
	}
	// The chart is drawn: some of its pixels have a colour.
	if b.is(`(() => { const c = document.querySelector('canvas'); return !c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0); })()`) {
		b.Error("the chart is empty")
	}
}

// keep takes a picture of the whole page, if somebody wants to look at it.
func keep(b *tab, name string) {
	b.Helper()
	dir := os.Getenv("SLUICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}
