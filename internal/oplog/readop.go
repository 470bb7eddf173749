package oplog

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// readOp reads what appendOp wrote.
func (e *Entry) readOp(r *reader, op *store.Op) {
	*op = store.Op{}
	v := r.uvarint()
	if v >= uint64(endOfOp) {
		r.fail()
		return
	}
	has := uint32(v)
	op.Spent, op.Retry, op.Emergency, op.Force = has&isSpent != 0, has&isRetry != 0, has&isEmergency != 0, has&isForced != 0
	if has&hasSession != 0 {
		op.ID.Session = r.uvarint()
	}
	if has&hasN != 0 {
		op.ID.N = r.uvarint()
	}
	if has&hasAgent != 0 {
		op.Agent = e.text(r)
	}
	if has&hasClass != 0 {
		op.Class = r.byte()
	}
	if has&hasAmounts != 0 {
		op.Amounts = e.readAmounts(r)
	}
	if has&hasWait != 0 {
		op.Wait = time.Duration(r.varint())
	}
	if has&hasTTL != 0 {
		op.TTL = time.Duration(r.varint())
	}
	if has < oneByte {
		return
	}
	if has&hasKind != 0 {
		op.Kind = store.OpKind(r.byte())
	}
	if has&hasModel != 0 {
		op.Model = e.text(r)
	}
	if has&hasKey != 0 {
		op.Key = e.text(r)
	}
	if has&hasVerdict != 0 {
		op.Verdict = store.Verdict(r.byte())
	}
	if has&hasObserved != 0 {
		op.Observed = e.readObserved(r)
	}
	if has&hasAlive != 0 {
		op.Alive = time.Duration(r.varint())
	}
	if has >= twoBytes {
		e.readRare(r, op, has)
	}
}

func (e *Entry) readRare(r *reader, op *store.Op, has uint32) {
	if has&hasUser != 0 {
		op.User = e.text(r)
	}
	if has&hasTool != 0 {
		op.Tool = e.text(r)
	}
	if has&hasRetryAfter != 0 {
		op.RetryAfter = time.Duration(r.varint())
	}
	if has&hasScope != 0 {
		op.Scope = store.Scope(r.byte())
	}
	if has&hasCause != 0 {
		op.Cause = e.text(r)
	}
	if has&hasMachine != 0 {
		op.Machine = e.text(r)
	}
	if has&hasWaitsFor != 0 {
		op.WaitsFor = e.readWaits(r)
	}
	if has&hasSlotsMax != 0 {
		op.Slots.Max = r.int()
	}
	if has&hasSlotsTTL != 0 {
		op.Slots.TTL = time.Duration(r.varint())
	}
	if has&hasShare != 0 {
		op.Share = r.varint()
	}
	if has&hasUntil != 0 {
		op.Until = store.Time(r.varint())
	}
	if has&hasTie != 0 {
		op.Tie = store.Tie(r.byte())
	}
	if has&hasRejected != 0 {
		op.Rejected = r.int()
	}
	if has&hasAge != 0 {
		op.Age = time.Duration(r.varint())
	}
}

// readAmounts reads into one array for all ops of the entry, like readObserved.
func (e *Entry) readAmounts(r *reader) []store.Amount {
	v, from := r.uvarint(), len(e.amounts)
	single := v&1 != 0
	for range r.fits(v>>1, maxAmounts, amountLeast) {
		a := store.Amount{Unit: e.unitName(r)}
		if single {
			a.Limit = e.limitName(r)
		}
		a.N = r.varint()
		e.amounts = append(e.amounts, a)
	}
	return some(e.amounts, from)
}

// unitName reads what appendUnitName wrote.
func (e *Entry) unitName(r *reader) string { return e.text(r) }

// limitName reads what appendLimitName wrote.
func (e *Entry) limitName(r *reader) string { return e.text(r) }

// readObserved reads into one array for all ops of the entry. If the array grows, earlier slices stay valid.
func (e *Entry) readObserved(r *reader) []store.Observed {
	n, from := r.count(MaxObserved, observedLeast), len(e.observed)
	for range n {
		e.observed = append(e.observed, store.Observed{
			Limit:     e.limitName(r),
			Size:      r.varint(),
			Remaining: r.varint(),
			ResetIn:   time.Duration(r.varint()),
			Slop:      time.Duration(r.varint()),
			Whole:     r.varint(),
		})
	}
	return some(e.observed, from)
}

func (e *Entry) readWaits(r *reader) []string {
	n, from := r.count(maxWaits, 1), len(e.waits)
	for range n {
		e.waits = append(e.waits, e.text(r))
	}
	return some(e.waits, from)
}

// some returns what was appended to s since from, or nil if nothing was.
func some[T any](s []T, from int) []T {
	if from == len(s) {
		return nil
	}
	return s[from:len(s):len(s)]
}
