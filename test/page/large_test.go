package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/sluicehq/sluice/inspect"
)

// A fleet as large as the page is made for, with a queue that is longer than is listed: 500 agents, 50 resources, 10,000 who wait.
func TestALongQueue(t *testing.T) {
	const agents, resources, queued = 500, 50, 10_000
	r := begin(t, plain)
	now := time.Now()
	name := func(i int) string { return fmt.Sprintf("agent-%03d", i%agents) }
	api := func(i int) string { return fmt.Sprintf("api-%02d", i%resources) }
	n := int64(0)
	r.fake = func(path string) any {
		switch path {
		case "/v1/status":
			n++
			s := inspect.Status{Store: "redis://10.0.0.5:6379"}
			for i := range resources {
				c := inspect.ResourceStatus{Name: api(i), Mode: "gate", State: []string{inspect.StateQueueing, inspect.StatePaused}[i%2], Reason: "the limit is full", Light: "green", Waiting: map[string]int{"p1": 50, "p2": queued/resources - 50}, InFlight: int(n) % 9}
				for k := range 6 {
					c.Limits = append(c.Limits, inspect.LimitStatus{Name: fmt.Sprint("limit-", k), Kind: "rolling", Unit: "requests", Limit: 100, Used: (n + int64(i+k)) % 100, Light: "green"})
				}
				c.Sent = n * int64(i)
				s.Resources = append(s.Resources, c)
			}
			for i := range agents {
				s.Agents = append(s.Agents, inspect.AgentStatus{
					Name: name(i), Class: "p1", User: "u", Machine: "m", Resource: api(i), Allocated: 20, Used: (n + int64(i)) % 20, State: []string{"active", "waiting", "limited", "held"}[i%4],
					LeaseExpiresAt: in(now, 5*time.Minute), Leased: true, PauseChain: []string{},
				})
			}
			return s
		case "/v1/why":
			var list []inspect.Waiting
			for i := range 1000 {
				list = append(list, inspect.Waiting{Ticket: fmt.Sprintf("%s.1-%x", api(i), i), Agent: name(i), Class: []string{"p1", "p2"}[i/50%2], Limit: "limit-1", Reason: "limit", HeldBy: []string{"a", "b"}, Position: i/resources + 1, ExpectedAt: in(now, time.Duration(i)*time.Second)})
			}
			return map[string]any{"waiting": list, "more": queued - 1000}
		}
		return nil
	}
	b := r.open(chromedp.EmulateViewport(1440, 900))
	b.do(`window.faster = 4`)
	b.until(live)
	b.until(fmt.Sprintf(`document.querySelectorAll('.agents .agent').length === %d && document.querySelectorAll('tbody.resource').length === %d`, agents, resources))
	if text := b.text(`document.getElementById('figures').textContent`); !strings.Contains(text, "10,000") {
		t.Errorf("the queue is not shown whole: %s", text)
	}
	b.do(`document.querySelector('.row-button').click()`)
	b.until(`document.querySelector('.queue td:last-child')?.textContent.startsWith('later than')`) // those at the end are not listed
	b.until(`document.querySelector('.waiters').childElementCount > 10 && /and \d+ more/.test(document.querySelector('.queues').textContent)`)
	if rows := b.text(`document.querySelectorAll('.waiters li').length`); rows == "0" || len(rows) > 2 {
		t.Errorf("%s who wait are drawn", rows)
	}
	first := b.text(`window.slowest`)
	b.do(`window.slowest = 0; window.row = document.querySelector('.agents .agent')`)
	was := r.asked.Load()
	soon(b.ctx, t, "it is drawn again and again", func() bool { return r.asked.Load() >= was+5 })
	t.Logf("milliseconds that drawing keeps the browser busy: %s at first, then %s (0: less than 50)", first, b.text(`window.slowest`))
	if !b.is(`window.row.isConnected`) {
		t.Error("rows are made anew with every answer")
	}
	// At most four drawings a second, each quick: the median, because the machine may be busy with other things.
	b.do(`window.drew = []; new MutationObserver(() => window.drew.push([performance.now(), Number(document.body.dataset.drew)])).observe(document.body, { attributes: true, attributeFilter: ['data-drew'] })`)
	soon(b.ctx, t, "it is drawn twenty times", func() bool { return b.is(`window.drew.length >= 20`) })
	median := b.text(`window.drew.map(d => d[1]).sort((a, b) => a - b)[10]`)
	apart := b.text(`Math.min(...window.drew.slice(1).map((d, i) => d[0] - window.drew[i][0]).filter(ms => ms > 0))`)
	t.Logf("a drawing takes %s ms, and the next comes %s ms later at the earliest", median, apart)
	if !b.is(`window.drew.map(d => d[1]).sort((a, b) => a - b)[10] < 50`) {
		t.Errorf("a drawing takes %s ms", median)
	}
}
