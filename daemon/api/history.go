package api

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/history"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// Bounds on queries about the past.
const (
	usualHistory  = time.Hour
	longest       = (history.Days + 1) * 24 * time.Hour
	usualSeries   = 500
	usualEvents   = 200
	usualRequests = 100
	maxRequests   = 512
)

// history returns what happened, minute by minute.
func (a *API) history(c *call) error {
	v := c.r.URL.Query()
	now := time.Now()
	q := history.Query{Since: now.Add(-usualHistory), Until: now, Kind: v.Get("kind")}
	var err error
	if text := v.Get("since"); text != "" {
		if q.Since, err = since(text); err != nil {
			return err
		}
	}
	if text := v.Get("until"); text != "" {
		if q.Until, err = time.Parse(time.RFC3339, text); err != nil {
			return &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("until: %.80q is no time", text), Hint: "2026-11-15T00:00:00Z"}
		}
	}
	if now.Sub(q.Since) > longest {
		q.Since = now.Add(-longest)
	}
	length := max(q.Until.Sub(q.Since), 0)
	q.Step = history.Usual(length)
	if text := v.Get("step"); text != "" {
		step, err := time.ParseDuration(text)
		if err != nil || step < time.Minute || step%time.Minute != 0 || length/step > history.MaxPoints {
			return &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("step: %.40q does not fit", text), Hint: fmt.Sprintf("whole minutes such as 5m, and at most %d of them", history.MaxPoints)}
		}
		q.Step = step
	}
	if q.Most, err = number(v.Get("limit"), "limit", usualSeries, 1, history.MaxSeries); err != nil {
		return err
	}
	if q.Events, err = number(v.Get("events"), "events", usualEvents, 0, history.MaxEvents); err != nil {
		return err
	}
	points := v.Get("points")
	if !v.Has("points") {
		points = "resources"
	}
	for kind := range strings.SplitSeq(points, ",") {
		switch kind {
		case "resources":
			q.Resources = true
		case "models":
			q.Models = true
		case "agents":
			q.Agents = true
		case "":
		default:
			return &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("points: %.40q is unknown", kind), Hint: "resources, models, agents, or several of them with commas"}
		}
	}
	if a.History == nil {
		return c.reply(&history.Answer{
			Since: q.Since.UTC(), Until: q.Until.UTC(), StepMS: q.Step.Milliseconds(),
			Resources: []history.Series{}, Models: []history.Series{}, Agents: []history.Series{}, Events: []inspect.Event{},
		})
	}
	answer, err := a.History.Read(q)
	if err != nil {
		return &Problem{Status: http.StatusServiceUnavailable, Detail: "the history cannot be read: " + err.Error(), Hint: "it is in the directory history of the daemon's state directory"}
	}
	return c.reply(answer)
}

// number reads a whole number between least and most; an empty text means usual.
func number(text, field string, usual, least, most int) (int, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s: %.40q is out of range", field, text), Hint: fmt.Sprintf("%d to %d", least, most)}
	}
	return n, nil
}

// recent returns the last requests and the figures of the last minute.
func (a *API) recent(c *call) error {
	n, err := number(c.r.URL.Query().Get("limit"), "limit", usualRequests, 0, maxRequests)
	if err != nil {
		return err
	}
	if a.History == nil {
		return c.reply(history.Now{Time: time.Now().UTC(), Requests: []history.Request{}, Resources: []history.LastMinute{}, Agents: []history.LastMinute{}})
	}
	return c.reply(a.History.Now(n))
}

// Served is a resource that the proxy reaches, with its provider.
type Served struct {
	Resource string `json:"resource"`
	Provider string `json:"provider"`
}

// config returns the configuration in effect, the resources served, and the version.
func (a *API) config(c *call) error {
	text, served, version := []byte{}, a.Served, ""
	if a.Config != nil {
		var err error
		if text, err = a.Config(); err != nil {
			return &Problem{Status: http.StatusInternalServerError, Detail: "the configuration cannot be shown"}
		}
	}
	if served == nil {
		served = []Served{}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return c.reply(struct {
		YAML    string   `json:"yaml"`
		Served  []Served `json:"served"`
		Version string   `json:"version"`
	}{string(text), served, version})
}

// report returns what was sent since a moment.
func (a *API) report(c *call) error {
	q := c.r.URL.Query()
	from, err := since(q.Get("since"))
	if err != nil {
		return err
	}
	minutes, err := truth(q.Get("minutes"), "minutes")
	if err != nil {
		return err
	}
	a.nameLog(c)
	return c.result(a.Report(c.r.Context(), from, minutes))
}

// nameLog says which events an answer is made from.
func (a *API) nameLog(c *call) {
	if a.EventLog != nil {
		c.w.Header().Set(wire.EventLogHeader, a.EventLog())
	}
}
