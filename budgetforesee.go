package sluice

import (
	"context"
	"errors"
	"time"
)

// foreseePaid is foresee for requests that cost money. It takes the steps of tryPaid, and nothing else.
func (r *resource) foreseePaid(ctx context.Context, asked *Request, within time.Duration) (paid bool, err error) {
	asked, c := r.claimOf(asked)
	if asked.Unpaid && !c.costs {
		return false, nil
	}
	req, b := *asked, r.budgets
	x, err := b.billOf(ctx, req.Agent, req.User)
	switch {
	case err != nil && (b.goesOn || !c.costs) && errors.Is(err, ErrStore):
		return false, nil
	case err != nil:
		return true, err
	case x == nil || !c.costs && !b.chargesAtTheEnd(ctx, r, x):
		return false, nil
	}
	x.foreseen = true
	if err := b.beforehand(ctx, r, x, &req, c.micros); err != nil {
		return true, err
	}
	for _, i := range x.slowOrder() {
		if err := b.foreseeSlow(ctx, r, x, i, &req, c.micros, within); err != nil {
			return true, err
		}
	}
	if err := r.foreseeAny(ctx, &req, within); err != nil {
		return true, err
	}
	used, err := b.used(ctx, x, true)
	if err != nil && b.goesOn {
		return true, nil
	}
	if err != nil {
		return true, err
	}
	for i := range x.lines {
		if l := &x.lines[i]; !l.Force && l.LacksRoom(used[i], charge(c.micros)) {
			return true, b.refusal(r, x, i, &req, used[i], c.micros)
		}
	}
	return true, nil
}

// foreseeSlow returns the error that slowOne would return for a try.
func (b *budgets) foreseeSlow(ctx context.Context, r *resource, x *bill, i int, req *Request, estimate int64, within time.Duration) error {
	if r.settings.isHighest(req) {
		return nil
	}
	l := &x.lines[i]
	p, err := b.pacer(ctx, &l.Pot, hashWho(l.Who))
	if err == nil && p == nil {
		return nil
	}
	if err == nil {
		b.catchUp(ctx, p, l)
		ask := p.asks(r, req, charge(estimate))
		err = p.foreseeAny(ctx, &ask, within)
	}
	switch {
	case err == nil, errors.Is(err, ErrStore) && b.goesOn && ctx.Err() == nil:
		return nil
	case errors.Is(err, ErrCapacity):
		return b.refusal(r, x, i, req, b.usedNow(ctx, x, i), estimate)
	}
	return b.slowed(ctx, r, x, i, req, err)
}
