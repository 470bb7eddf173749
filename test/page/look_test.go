package page

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Every moment says what it should, on a desktop and a phone, in light and dark, and axe finds nothing. With SLUICE_SCREENSHOTS=DIR the pictures
// stay there.
func TestHowItLooks(t *testing.T) {
	axe := readAxe(t)
	now := time.Now().Truncate(time.Second).Add(-time.Minute) // far enough from the real one that the page goes by the daemon's
	for _, s := range scenes(now) {
		t.Run(s.name, func(t *testing.T) {
			r := begin(t, plain)
			r.fakes, r.date = s.answer, func() time.Time { return s.now }
			b := r.open(chromedp.EmulateViewport(1440, 900))
			b.until(live)
			b.until(`document.querySelectorAll('.plot text').length > 4`) // the history was read
			b.until(`document.getElementById('figures').children.length === 6 && !document.getElementById('figures').textContent.includes('undefined')`)
			says(b, s.says)
			for _, size := range []struct {
				name       string
				wide, high int64
			}{{"desktop", 1440, 900}, {"phone", 390, 844}} {
				for _, scheme := range []string{"light", "dark"} {
					features := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
					if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, features); err != nil {
						t.Fatal(err)
					}
					b.run(chromedp.EmulateViewport(size.wide, size.high))
					b.until(fmt.Sprintf(`innerWidth === %d && Number(document.querySelector('.plot svg').getAttribute('width')) <= %d`, size.wide, size.wide)) // it is drawn anew
					if b.is(`document.documentElement.scrollWidth > innerWidth`) {
						t.Errorf("%s %s: it is wider than the screen: %s", size.name, scheme, b.text(`[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join(' | ')`))
					}
					keep(b, s.name+"-"+size.name+"-"+scheme)
					if s.name != "500-agents" && (size.name == "desktop" || s.name == "queueing") { // hundreds of rows alike take axe minutes
						findings(b, axe, s.name+" "+size.name+" "+scheme)
					}
				}
			}
		})
	}
}

// While the page loads, nothing that is seen jumps. Layout shift was 0.4 to 1.3; below 0.1 is good.
func TestThePageDoesNotJump(t *testing.T) {
	now := time.Now().Truncate(time.Second).Add(-time.Minute)
	for _, s := range scenes(now) {
		t.Run(s.name, func(t *testing.T) {
			r := begin(t, plain)
			r.fakes, r.date = s.answer, func() time.Time { return s.now }
			b := r.open(chromedp.EmulateViewport(1440, 900))
			b.until(live)
			b.until(`document.querySelectorAll('.plot text').length > 4 && 'shown' in document.body.dataset`)
			b.until(`performance.now() > 3000`) // the answers after the first ones are shown, too
			t.Log("layout shift", b.text(`String(window.shifted)`))
			if !b.is(`window.shifted < 0.1`) {
				t.Error("the page jumps")
			}
		})
	}
}

// An opened row shows all limits, the queue and a chart of its own.
func TestADetailLooks(t *testing.T) {
	axe := readAxe(t)
	r := begin(t, plain)
	s := paused1(time.Now().Truncate(time.Second).Add(-time.Minute))
	s.served = []map[string]string{{"resource": "anthropic", "provider": "anthropic"}}
	at := time.Now().Truncate(time.Second).Add(-time.Minute)
	for i := range s.status.Resources {
		if x := &s.status.Resources[i]; x.Name == "anthropic" {
			x.PastGate, x.PastHosts = new(int64(13)), map[string]int64{"one.example": 1, "api.anthropic.com": 12}
		}
	}
	r.fakes, r.date = s.answer, func() time.Time { return at }
	b := r.open(chromedp.EmulateViewport(1440, 900))
	b.until(live)
	b.until(`document.querySelectorAll('.plot text').length > 4`)
	b.do(`[...document.querySelectorAll('.row-button')].find(e => e.textContent === 'anthropic').click()`)
	b.until(`document.querySelector('.detail .plot svg')?.childElementCount > 10`)
	says(b, []string{"Limits", "opus-4 requests", "21 / 50", "output tokens in 1 min", "learned from the provider", "Queue", "next goes", "Paused", "left", "Base URL", "/anthropic", "429s in 7 days", "Resume", "Past the gate in the last hour: 12 connections to api.anthropic.com, 1 to one.example; sluice run --intercept"})
	if n := b.text(`document.querySelectorAll('.detail .band').length + ' ' + document.querySelectorAll('.detail .mark').length + ' ' + document.querySelectorAll('.detail .limit-text').length`); n != "2 1 1" {
		t.Errorf("pauses, marks and limits in the chart: %s", n)
	}
	if text := b.text(`document.querySelector('.detail .limit-text').textContent`); text != "120 requests/min (learned)" {
		t.Errorf("the limit says %q", text)
	}
	// With the keyboard: the chart tells each step in words.
	b.until(shown)
	b.do(`document.querySelector('.detail .plot').focus()`)
	b.do(`document.querySelector('.detail .plot').dispatchEvent(new KeyboardEvent('keydown', {key: 'End'}))`)
	b.do(`document.querySelector('.detail .plot').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft'}))`)
	if text := b.text(`document.querySelector('.detail .plot').getAttribute('aria-valuetext')`); !strings.Contains(text, "sends/min") || !strings.Contains(text, "p0") || !b.is(`!document.querySelector('.detail .tip').hidden`) {
		t.Errorf("the chart says %q", text)
	}
	keep(b, "detail-desktop-light")
	findings(b, axe, "detail")
}

// says checks that what must be on the page is.
func says(b *tab, words []string) {
	b.Helper()
	for _, want := range words {
		b.until(fmt.Sprintf(`document.querySelector('main').innerText.replace(/[\u2068\u2069]/g, '').replace(/\s+/g, ' ').includes(%q)`, want))
	}
}

// readAxe is the text of axe-core, which is installed where it is missing.
func readAxe(t *testing.T) string {
	t.Helper()
	const file = "node/node_modules/axe-core/axe.min.js"
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) && os.Getenv("SLUICE_OFFLINE") == "1" {
		t.Log("axe-core is left out, because SLUICE_OFFLINE=1")
		return ""
	}
	if os.IsNotExist(err) {
		npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		npm.Dir = "node"
		if out, err := npm.CombinedOutput(); err != nil {
			t.Fatalf("axe-core could not be installed: %v\n%s\nscripts/need-node installs npm; SLUICE_OFFLINE=1 leaves axe out", err, out)
		}
		text, err = os.ReadFile(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// findings fails for everything that axe finds.
func findings(b *tab, axe, where string) {
	b.Helper()
	if axe == "" {
		return
	}
	b.do(axe + `; window.axed = ''; axe.run(document, {resultTypes: ['violations']}).then((r) => { window.axed = JSON.stringify(r.violations.map((v) => ({ id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')) }))); }, (e) => { window.axed = 'failed: ' + e; })`)
	b.until(`window.axed`)
	text := b.text(`window.axed`)
	if text == "[]" {
		return
	}
	var list []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		b.Errorf("%s: axe: %s", where, text)
	}
	for _, v := range list {
		b.Errorf("%s: axe: %s: %s\n%s", where, v.ID, v.Help, strings.Join(v.Nodes, "\n"))
	}
}

// keep takes a picture of the whole page, if somebody wants to look at it.
func keep(b *tab, name string) {
	b.Helper()
	dir := os.Getenv("SLUICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	b.until(live) // a busy machine may have kept it waiting
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
