package pool

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// answers counts what the provider has answered to requests for one model lately. Rejections are its answers to requests
// that are wrong, such as 404. They say nothing about limits, but a person has to know if there is nothing else.
type answers struct {
	model    int32 // name; 0: requests that name none
	cause    int32 // name: what is known about the latest rejection
	last     int64 // time of the latest answer; 0: the record is new
	rejected int64 // time of the latest rejection
	spans    [answerSpans]answerSpan
}

// answerSpan counts the answers of some seconds.
type answerSpan struct {
	at       uint32 // its number
	all      uint32
	rejected uint32
	status   int32 // of the latest rejection
	mixed    bool  // rejections had several statuses
}

const (
	spanLength  = 10 * second
	answerSpans = 7  // the current one, and those of a whole minute before
	maxAnswers  = 16 // models with counts of their own; further models are counted together
)

// answersOf returns the record that counts the answers for a model. It replaces the record of a model without answers in
// the last minute, if it needs one. The record that counts further models together stays.
func (p *Pool) answersOf(model int32) *answers {
	if i := p.answered; i != 0 && p.answers.At(i).model == model {
		return p.answers.At(i)
	}
	oldest := int32(0)
	for i := int32(1); i < p.answers.End(); i++ {
		a := p.answers.At(i)
		if a.model == model {
			p.answered = i
			return a
		}
		if a.model != p.other && (oldest == 0 || a.last < p.answers.At(oldest).last) {
			oldest = i
		}
	}
	switch {
	case p.answers.Len() < maxAnswers || model == p.other && p.answers.Len() == maxAnswers:
		p.answered = p.answers.New()
	case p.answers.At(oldest).last > p.now-answerSpans*spanLength:
		return p.answersOf(p.other)
	default:
		p.answered = oldest
	}
	a := p.answers.At(p.answered)
	p.names.Drop(a.model)
	p.names.Drop(a.cause)
	*a = answers{model: p.names.Keep(model)}
	return a
}

// span returns the counts of the current seconds.
func (a *answers) span(now int64) *answerSpan {
	at := uint32(now / spanLength)
	s := &a.spans[at%answerSpans]
	if s.at != at {
		*s = answerSpan{at: at}
	}
	return s
}

// countAccepted counts n answers for a model that are no rejections.
func (p *Pool) countAccepted(model int32, n uint32) {
	a := p.answersOf(model)
	a.last = p.now
	a.span(p.now).all += n
}

// countAnswer counts an answer.
func (p *Pool) countAnswer(model int32, op *store.Op) {
	if op.Verdict == store.VerdictNone || op.Verdict == store.VerdictUnreachable {
		return // it may be no answer
	}
	if op.Rejected == 0 {
		p.countAccepted(model, 1)
		return
	}
	a := p.answersOf(model)
	a.last, a.rejected = p.now, p.now
	s := a.span(p.now)
	status := int32(op.Rejected)
	s.mixed = s.mixed || s.rejected > 0 && s.status != status
	s.all++
	s.rejected++
	s.status = status
	old := a.cause
	a.cause = p.names.Hold(op.Cause[:min(len(op.Cause), store.MaxName)])
	p.names.Drop(old)
}

// rejections returns the counts of all requests, and of each model with rejections. The list is empty if there are none.
func (p *Pool) rejections() []store.Rejections {
	var list []store.Rejections
	all, latest := store.Rejections{}, int64(0)
	for i := int32(1); i < p.answers.End(); i++ {
		a := p.answers.At(i)
		r := store.Rejections{Model: p.names.Text(a.model), Cause: p.names.Text(a.cause), Last: store.Time(a.rejected)}
		at := uint32(p.now / spanLength)
		for k := uint32(answerSpans); k > 0; k-- { // the oldest first
			s := &a.spans[(at+1+answerSpans-k)%answerSpans]
			if s.at > at || s.at+answerSpans <= at {
				continue
			}
			r.Answers += int64(s.all)
			if s.rejected == 0 {
				continue
			}
			r.Mixed = r.Mixed || s.mixed || r.Rejected > 0 && r.Status != int(s.status)
			r.Rejected += int64(s.rejected)
			r.Status = int(s.status)
		}
		all.Answers += r.Answers
		if r.Rejected == 0 {
			continue
		}
		all.Mixed = all.Mixed || r.Mixed || all.Rejected > 0 && all.Status != r.Status
		all.Rejected += r.Rejected
		if a.rejected >= latest {
			latest = a.rejected
			all.Status, all.Cause, all.Last = r.Status, r.Cause, r.Last
		}
		if a.model != 0 && a.model != p.other {
			list = append(list, r)
		}
	}
	if all.Rejected == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b store.Rejections) int { return cmp.Compare(a.Model, b.Model) })
	return append([]store.Rejections{all}, list...)
}
