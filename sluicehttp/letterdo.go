package sluicehttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/upstream"
)

// Do calls [sluice.Gate.Do], and keeps the HTTP request as a dead letter if Do gives it up: after the last attempt, at the deadline,
// at a billing stop, or when its turn does not come. It keeps nothing if ctx was cancelled, if an error of send is final, or if the
// resource only observes. Do returns what Gate.Do returns.
//
// The body comes from r.GetBody, which [http.NewRequest] sets for buffers and strings. A body without GetBody is not kept, and such a
// dead letter cannot be sent again. Do does not send r: send does. r may be nil; then nothing is kept.
//
// Most callers want a [Transport], which does all of this for an HTTP client.
func (l *Letters) Do(ctx context.Context, g *sluice.Gate, req sluice.Request, r *http.Request, send func(context.Context, sluice.Ticket) (sluice.Answer, error)) error {
	start := time.Now()
	sent := 0
	var answers []deadletter.Answer
	err := g.Do(ctx, req, func(ctx context.Context, t sluice.Ticket) (sluice.Answer, error) {
		a, err := send(ctx, t)
		sent++
		heard := deadletter.Answer{Time: time.Now().UTC().Truncate(time.Millisecond), Status: a.Status}
		if a.Status != 0 {
			heard.Verdict = a.Verdict.String()
		} else if kind := upstream.Kind(err); kind != "" && kind != upstream.Other {
			heard.Error = upstream.Words(err)
		} else { // the text of any other error comes from send, and may hold secrets
			heard.Error = "no answer"
		}
		if answers = append(answers, heard); len(answers) > deadletter.MaxAnswers {
			answers = answers[1:]
		}
		return a, err
	})
	var e *sluice.Error
	if r == nil || !errors.As(err, &e) || !gaveUp(e) || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	body, whole := l.bodyOf(r)
	l.Keep(r, body, whole, answers, deadletter.Entry{
		Resource: req.Resource, Agent: req.Agent, Class: req.Class, User: req.User, Tool: req.Tool, Model: req.Model, Key: req.Key,
		Emergency: req.Emergency, Attempts: sent, First: start, Reason: e.Error(),
	})
	return err
}

// bodyOf reads the body of a request once more, up to the length that can be kept.
func (l *Letters) bodyOf(r *http.Request) (body []byte, whole bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	from, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	defer func() { _ = from.Close() }() // opened for reading only
	body, err = io.ReadAll(io.LimitReader(from, l.most()+1))
	return body, err == nil // if it is one byte too long, NewRequest leaves it out
}
