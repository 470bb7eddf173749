package page

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sluicehq/sluice"
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
			s := sluice.Status{Store: "redis://10.0.0.5:6379"}
			for i := range resources {
				c := sluice.ResourceStatus{Name: api(i), Mode: "gate", Light: []string{"green", "amber", "red"}[i%3], Waiting: map[string]int{"p1": 50, "p2": queued/resources - 50}, InFlight: int(n) % 9}
				for k := range 6 {
					c.Limits = append(c.Limits, sluice.LimitStatus{Name: fmt.Sprint("limit-", k), Kind: "rolling", Unit: "requests", Limit: 100, Used: (n + int64(i+k)) % 100, Light: "green"})
				}
				c.Sent = n * int64(i)
				s.Resources = append(s.Resources, c)
			}
			for i := range agents {
				s.Agents = append(s.Agents, sluice.AgentStatus{
					Name: name(i), Class: "p1", User: "u", Machine: "m", Resource: api(i), Allocated: 20, Used: (n + int64(i)) % 20, State: []string{"active", "waiting", "limited", "held"}[i%4],
					LeaseExpiresAt: in(now, 5*time.Minute), Leased: true, PauseChain: []string{},
				})
			}
			return s
		case "/v1/why":
			var list []sluice.Waiting
			for i := range 1000 {
				list = append(list, sluice.Waiting{Ticket: fmt.Sprintf("%s.1-%x", api(i), i), Agent: name(i), Class: []string{"p1", "p2"}[i/50%2], Limit: "limit-1", Reason: "limit", HeldBy: []string{"a", "b"}, Position: i/resources + 1, ExpectedAt: in(now, time.Duration(i)*time.Second)})
			}
			return map[string]any{"waiting": list, "more": queued - 1000}
		}
		return nil
	}
	b := r.open(chromedp.EmulateViewport(1440, 900))
	b.do(`window.faster = 4`)
	b.until(live)
	b.until(fmt.Sprintf(`document.querySelectorAll('.rows .agent').length === %d && document.querySelectorAll('.card').length === %d`, agents, resources))
	b.until(`document.querySelector('.queue td:last-child')?.textContent.startsWith('later than')`) // those at the end are not listed
	if text := b.text(`document.getElementById('glance').textContent`); !strings.Contains(text, "10,000") {
		t.Errorf("the queue is not shown whole: %s", text)
	}
	b.do(`document.querySelector('.card details').setAttribute('open', '')`)
	b.until(`document.querySelector('.card .waiters').childElementCount > 10 && /and \d+ more/.test(document.querySelector('.card details').textContent)`)
	if rows := b.text(`document.querySelectorAll('.waiters li').length`); rows == "0" || len(rows) > 2 {
		t.Errorf("%s who wait are drawn", rows)
	}
	first := b.text(`window.slowest`)
	b.do(`window.slowest = 0; window.row = document.querySelector('.rows .agent')`)
	was := r.asked.Load()
	soon(b.ctx, t, "it is drawn again and again", func() bool { return r.asked.Load() >= was+5 })
	t.Logf("milliseconds that drawing keeps the browser busy: %s at first, then %s (0: less than 50)", first, b.text(`window.slowest`))
	if !b.is(`window.row.isConnected`) {
		t.Error("rows are made anew with every answer")
	}
	// Charts out of sight are left alone.
	if drawn := b.text(`[...document.querySelectorAll('canvas')].filter(c => c.width !== 300).length`); drawn == "0" || drawn == strconv.Itoa(resources) {
		t.Errorf("%s of %d charts are drawn", drawn, resources)
	}
}
