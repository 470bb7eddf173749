package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sluicehq/sluice"
)

const (
	live   = `document.getElementById('link-text').textContent === 'live'`
	card   = `[...document.querySelectorAll('tbody.resource')].find(c => c.querySelector('.row-button').textContent === 'search')`
	paused = card + `?.dataset.state === 'paused'`
	button = card + `.querySelector('.actions button')`
	unfold = card + `.querySelector('.row-button').click()`
	shown  = `document.body.hasAttribute('data-shown')` // until then nothing in the page takes the focus
)

// The page is told of a pause and does not find it out in the end: its timers stand still.
func TestAPauseIsShownAtOnce(t *testing.T) {
	r := begin(t, plain)
	b := r.open()
	b.until(live)
	b.until(card)
	b.do(unfold)
	b.do(`window.frozen = true`)
	soon(b.ctx, t, "no question is under way", func() bool { return r.asking.Load() == 0 })
	if b.is(paused) {
		t.Fatal("it is paused already")
	}
	began := time.Now()
	r.post("/v1/resources/search/pause", `{"for_ms":600000,"reason":"hands off"}`)
	b.until(paused)
	t.Logf("shown after %v, with the browser asked every 20 ms", time.Since(began).Round(time.Millisecond))
	if text := b.text(card + `.querySelector('.gates').textContent`); !strings.Contains(text, "Paused") || !strings.Contains(text, "left") || !strings.Contains(text, "hands off") {
		t.Errorf("the pause is shown as %q", text)
	}
	b.until(`[...document.querySelectorAll('#events li')].some(e => e.textContent.includes('paused') && e.textContent.includes('search'))`)
	r.post("/v1/resources/search/resume", `{}`)
	b.until(`!(` + paused + `)`)
}

// With the keyboard alone: reach the button, say for how long and why, change one's mind, mean it.
func TestPauseByKeyboard(t *testing.T) {
	r := begin(t, plain)
	b := r.open()
	b.until(card)
	b.until(shown)
	for n := 0; !b.is(`document.activeElement?.textContent === 'search' && document.activeElement.matches('.row-button')`); n++ {
		if n > 40 {
			t.Fatal("the row cannot be reached")
		}
		b.run(chromedp.KeyEvent(kb.Tab))
	}
	b.run(chromedp.KeyEvent(kb.Enter)) // it opens
	focused := `document.activeElement?.getAttribute('aria-label') === 'Pause search'`
	for n := 0; !b.is(focused); n++ {
		if n > 40 {
			t.Fatal("the button cannot be reached")
		}
		b.run(chromedp.KeyEvent(kb.Tab))
	}
	open := `document.getElementById('control').open`
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(open)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until(`!` + open)
	if r.paused("search") {
		t.Fatal("nobody said yes")
	}
	b.until(focused) // it comes back to where it was
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(open)
	for n := 0; !b.is(`document.activeElement?.id === 'control-reason'`); n++ {
		if n > 10 {
			t.Fatal("the reason cannot be reached")
		}
		b.run(chromedp.KeyEvent(kb.Tab))
	}
	keep(b, "pause")
	b.run(chromedp.KeyEvent("lunch"), chromedp.KeyEvent(kb.Enter))
	b.until(paused)
	if !r.paused("search") {
		t.Error("it was not paused")
	}
	if text := b.text(card + `.querySelector('.gates').textContent`); !strings.Contains(text, "lunch") {
		t.Errorf("the reason is not shown: %q", text)
	}
	b.until(button + `.textContent === 'Resume'`)
	b.do(button + `.click()`)
	b.until(open)
	b.do(`document.getElementById('control-go').focus()`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`!(` + paused + `)`)
	if r.paused("search") {
		t.Error("it was not resumed")
	}
}

// What the daemon refuses, the question says.
func TestWhereTheTokenDoesNotAllowIt(t *testing.T) {
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	r := begin(t, plain+"tokens: [{name: any, hash: "+hash("any")+"}, {name: low, hash: "+hash("low")+", agent: bob, class: p2}]\n")
	r.quiet = []string{"401", "403"}
	b := r.open()
	asks := `document.getElementById('token').open`
	enter := func(token string) {
		b.until(asks)
		b.do(`document.getElementById('token-value').focus()`)
		b.run(chromedp.KeyEvent(token), chromedp.KeyEvent(kb.Enter))
	}
	enter("wrong")
	b.until(`document.getElementById('token-error').textContent.includes('does not know')`)
	enter("low")
	b.until(live)
	b.until(card)
	b.do(unfold)
	b.until(`!` + button + `.checkVisibility()`) // there is nothing to press
	if said := b.text(`document.getElementById('me').textContent`); said != "Token low, which may look and not pause." {
		t.Errorf("the page says %q of the token", said)
	}
	b.do(button + `.click()`) // all the same
	b.do(`document.getElementById('control-go').click()`)
	b.until(`document.getElementById('control-error').textContent.includes('highest class')`)
	if r.paused("search") {
		t.Error("it was paused")
	}
	if where := b.text(`JSON.stringify([localStorage.length, document.cookie, location.href.includes('low')])`); where != `[0,"",false]` {
		t.Errorf("the token is kept elsewhere: %s", where)
	}
	b.do(`document.getElementById('control').close()`)
	b.do(`document.getElementById('forget').click()`)
	b.until(asks + ` && !document.getElementById('me')?.textContent`)
	enter("any")
	b.until(live)
	b.until(card)
	b.do(unfold)
	b.until(button + `?.checkVisibility()`)
}

// The page says so when what it shows is old, and comes back by itself.
func TestTheDaemonGoesAway(t *testing.T) {
	r := begin(t, plain)
	r.quiet = []string{"Failed to load resource", "net::ERR_"}
	b := r.open()
	b.until(live)
	b.do(`window.faster = 4`) // it tries again sooner
	r.down.Store(true)
	r.server.CloseClientConnections() // who listens to events is cut off too
	b.until(`document.getElementById('link-text').textContent.startsWith('stale') && document.body.hasAttribute('data-stale') && document.getElementById('stale').textContent.includes('Below is what was known then')`)
	r.down.Store(false)
	b.until(live + ` && !document.body.hasAttribute('data-stale')`)
}

// Who waits is shown with the limit, who holds it, and since when.
func TestTheQueue(t *testing.T) {
	r := begin(t, plain)
	b := r.open()
	held, err := r.gate.Acquire(t.Context(), sluice.Request{Resource: "places", Agent: "holder"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if late, err := r.gate.Acquire(ctx, sluice.Request{Resource: "places", Agent: "late", Class: "p1"}); err == nil {
			_ = late.Close()
		}
	}()
	defer func() { cancel(); <-done; _ = held.Close() }()
	places := strings.ReplaceAll(card, "'search'", "'places'")
	b.until(places)
	b.do(places + `.querySelector('.row-button').click()`)
	b.until(places + `?.querySelector('.queue')?.checkVisibility() && ` + places + `.querySelector('.queue').textContent.includes('p1')`)
	b.until(places + `.dataset.state === 'queueing'`)
	b.until(places + `.querySelector('.waiters').textContent.includes('late')`)
	b.until(`[...document.querySelectorAll('.agents .agent')].some(a => a.textContent.includes('late') && a.querySelector('.doing').textContent.includes('inflight'))`)
}

// Before the first request the page says how to send one, and a tick says that it came. From then on it is in the charts and the lists.
func TestTheFirstRequest(t *testing.T) {
	r := begin(t, plain)
	b := r.open()
	b.until(live)
	b.until(`document.getElementById('start').checkVisibility() && document.getElementById('headline').textContent.startsWith('No request yet')`)
	if lines := b.text(`[...document.querySelectorAll('#start .copy-line code')].map(e => e.textContent).join()`); !strings.HasPrefix(lines, "sluice run -- claude") {
		t.Errorf("it says %s", lines)
	}
	ticket, err := r.gate.Acquire(t.Context(), sluice.Request{Resource: "search", Agent: "ana", Class: "p1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ticket.Close() }()
	b.until(`document.getElementById('start').hasAttribute('data-done') && document.getElementById('start-wait').textContent.includes('ana')`)
	b.until(card + `.dataset.state === 'flowing' && document.querySelector('.recent tbody').textContent.includes('ana')`)
	b.until(`document.querySelector('#figures .n').textContent === '1'`)
	// A step of the chart is a minute, and another one may have begun.
	b.until(`((plot) => ['Escape', 'End', 'ArrowLeft'].some((key) => {
		plot.dispatchEvent(new KeyboardEvent('keydown', { key }));
		return plot.getAttribute('aria-valuetext').includes('p1 1');
	}))(document.querySelector('#sends-chart .plot'))`)
	b.do(`document.getElementById('start-close').click()`)
	b.until(`!document.getElementById('start').checkVisibility()`)
}

// The time shown is chosen, and kept for the tab. Events are there after the page is loaded anew.
func TestTheTimeShown(t *testing.T) {
	r := begin(t, plain)
	asked := make(chan string, 1000)
	r.fakes = func(path, query string) any {
		if path == "/v1/history" {
			select {
			case asked <- query:
			default:
			}
		}
		return nil
	}
	last := func(want string) {
		t.Helper()
		soon(t.Context(), t, want, func() bool {
			select {
			case q := <-asked:
				return strings.HasPrefix(q, want)
			default:
				return false
			}
		})
	}
	b := r.open()
	b.until(live)
	last("since=1h&")
	r.post("/v1/resources/search/pause", `{"for_ms":600000,"reason":"hands off"}`)
	b.until(`document.getElementById('events').textContent.includes('hands off')`)
	b.do(`document.querySelector('input[value="7d"]').click()`)
	last("since=7d&")
	b.until(`document.querySelector('.in-range').textContent === 'in 7 d'`)
	b.run(chromedp.Navigate(r.url + "/"))
	last("since=7d&")
	b.until(`document.querySelector('input[value="7d"]').checked && document.getElementById('events').textContent.includes('hands off')`)
	b.do(`const k = document.getElementById('event-kind'); k.value = 'store'; k.dispatchEvent(new Event('change'))`)
	b.until(`!document.getElementById('events').textContent.includes('hands off')`)
}

// The configuration in effect is shown, without secrets.
func TestTheConfiguration(t *testing.T) {
	r := begin(t, plain+"alerts: {webhook: \"https://hooks.example.com/very-secret\"}\n")
	b := r.open()
	b.until(live)
	b.do(`document.querySelector('details').setAttribute('open', '')`)
	b.until(`document.getElementById('config').textContent.includes('80/min')`)
	if text := b.text(`document.getElementById('config').textContent`); strings.Contains(text, "secret") {
		t.Errorf("it shows %s", text)
	}
}
