package replica

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Most operations of a process are alike: the same kind, model, key and limits, with other numbers. What they have in
// common is a shape. An entry has it once, and refers to it by a number from then on. A shape begins with the set of the
// fields that its operations have. The constant ones follow; the others come with each operation.
const (
	// These come with each operation.
	hasSession uint32 = 1 << iota // another process's
	hasN
	hasAgent
	hasUser
	hasWait
	hasTTL
	hasAlive
	hasRetryAfter
	hasShare
	hasUntil
	hasCause
	hasWaitsFor
	hasAge

	// These are constant.
	hasModel
	hasKey
	hasTool
	hasMachine
	hasClass
	hasTie
	hasVerdict
	hasScope
	hasRejected
	hasAmounts
	hasObserved
	hasSlots
	sameWait
	sameTTL
	sameAlive
	isRetry
	isEmergency
	isForced
	isSpent // the 32nd
)

// Bounds of what entries carry. Where a pool refuses more, they allow one more, so that it does.
const (
	maxText     = store.MaxName + 1
	maxAmounts  = store.MaxAmounts + 1
	maxWaits    = store.MaxWaits + 1
	maxObserved = 4 * store.MaxLimits
	maxShape    = 64 << 10 // bytes
	maxAge      = uint64(store.MaxAge / ageUnit)
	ageUnit     = time.Millisecond
)

// shape is what the operations of a kind have in common.
type shape struct {
	code string // its bytes
	has  uint32
	op   store.Op // the constant fields, with the names in Amounts and Observed
}

// isRound reports whether a duration belongs to the shape, because others are likely to be the same.
func isRound(d time.Duration) bool { return d%time.Second == 0 || d == -1 }

func bit(set bool, b uint32) uint32 {
	if set {
		return b
	}
	return 0
}

// eitherBit returns the bit of a duration: in the shape or with the operation.
func eitherBit(d time.Duration, same, own uint32) uint32 {
	switch {
	case d == 0:
		return 0
	case isRound(d):
		return same
	}
	return own
}

// fieldsOf returns the fields of an operation. foreign says that its session is another process's.
func fieldsOf(op *store.Op, foreign bool) uint32 {
	return bit(foreign, hasSession) |
		bit(op.ID.N != 0, hasN) |
		bit(op.Agent != "", hasAgent) |
		bit(op.User != "", hasUser) |
		eitherBit(op.Wait, sameWait, hasWait) |
		eitherBit(op.TTL, sameTTL, hasTTL) |
		eitherBit(op.Alive, sameAlive, hasAlive) |
		bit(op.RetryAfter != 0, hasRetryAfter) |
		bit(op.Share != 0, hasShare) |
		bit(op.Until != 0, hasUntil) |
		bit(op.Cause != "", hasCause) |
		bit(len(op.WaitsFor) > 0, hasWaitsFor) |
		bit(op.Age >= ageUnit, hasAge) |
		bit(op.Model != "", hasModel) |
		bit(op.Key != "", hasKey) |
		bit(op.Tool != "", hasTool) |
		bit(op.Machine != "", hasMachine) |
		bit(op.Class != 0, hasClass) |
		bit(op.Tie != 0, hasTie) |
		bit(op.Verdict != 0, hasVerdict) |
		bit(op.Scope != 0, hasScope) |
		bit(op.Rejected != 0, hasRejected) |
		bit(len(op.Amounts) > 0, hasAmounts) |
		bit(len(op.Observed) > 0, hasObserved) |
		bit(op.Slots != store.Slots{}, hasSlots) |
		bit(op.Retry, isRetry) |
		bit(op.Emergency, isEmergency) |
		bit(op.Force, isForced) |
		bit(op.Spent, isSpent)
}

// appendShape appends the shape of an operation that has these fields.
func appendShape(b []byte, op *store.Op, has uint32) []byte {
	b = binary.AppendUvarint(b, uint64(has))
	b = append(b, uint8(op.Kind))
	for _, f := range []struct {
		bit  uint32
		text string
	}{{hasModel, op.Model}, {hasKey, op.Key}, {hasTool, op.Tool}, {hasMachine, op.Machine}} {
		if has&f.bit != 0 {
			b = appendText(b, f.text)
		}
	}
	for _, f := range []struct {
		bit uint32
		v   uint8
	}{{hasClass, op.Class}, {hasTie, uint8(op.Tie)}, {hasVerdict, uint8(op.Verdict)}, {hasScope, uint8(op.Scope)}} {
		if has&f.bit != 0 {
			b = append(b, f.v)
		}
	}
	if has&hasRejected != 0 {
		b = appendInt(b, op.Rejected)
	}
	if has&hasAmounts != 0 {
		amounts := amountsOf(op)
		b = binary.AppendUvarint(b, uint64(len(amounts)))
		for i := range amounts {
			b = appendText(appendText(b, amounts[i].Unit), amounts[i].Limit)
		}
	}
	if has&hasObserved != 0 {
		observed := observedOf(op)
		b = binary.AppendUvarint(b, uint64(len(observed)))
		for i := range observed {
			b = appendText(b, observed[i].Limit)
		}
	}
	if has&hasSlots != 0 {
		b = appendDuration(appendInt(b, op.Slots.Max), op.Slots.TTL)
	}
	for _, f := range []struct {
		bit uint32
		d   time.Duration
	}{{sameWait, op.Wait}, {sameTTL, op.TTL}, {sameAlive, op.Alive}} {
		if has&f.bit != 0 {
			b = appendDuration(b, f.d)
		}
	}
	return b
}

func amountsOf(op *store.Op) []store.Amount { return op.Amounts[:min(len(op.Amounts), maxAmounts)] }

func observedOf(op *store.Op) []store.Observed {
	return op.Observed[:min(len(op.Observed), maxObserved)]
}

// appendText appends a string, cut to one byte more than the pool accepts.
func appendText(b []byte, s string) []byte { return appendSized(b, s[:min(len(s), maxText)]) }

// readShape reads a shape. It returns nil if the bytes are none.
func readShape(code []byte) *shape {
	r := reader{b: code}
	s := &shape{code: string(code), has: uint32(r.most(math.MaxUint32))}
	op := &s.op
	op.Kind = store.OpKind(r.byte())
	for _, f := range []struct {
		bit  uint32
		text *string
	}{{hasModel, &op.Model}, {hasKey, &op.Key}, {hasTool, &op.Tool}, {hasMachine, &op.Machine}} {
		if s.has&f.bit != 0 {
			*f.text = string(r.sized(maxText))
		}
	}
	for _, f := range []struct {
		bit uint32
		v   *uint8
	}{{hasClass, &op.Class}, {hasTie, (*uint8)(&op.Tie)}, {hasVerdict, (*uint8)(&op.Verdict)}, {hasScope, (*uint8)(&op.Scope)}} {
		if s.has&f.bit != 0 {
			*f.v = r.byte()
		}
	}
	if s.has&hasRejected != 0 {
		op.Rejected = r.int()
	}
	if s.has&hasAmounts != 0 {
		op.Amounts = make([]store.Amount, r.most(maxAmounts))
		for i := range op.Amounts {
			op.Amounts[i] = store.Amount{Unit: string(r.sized(maxText)), Limit: string(r.sized(maxText))}
		}
	}
	if s.has&hasObserved != 0 {
		op.Observed = make([]store.Observed, r.most(maxObserved))
		for i := range op.Observed {
			op.Observed[i].Limit = string(r.sized(maxText))
		}
	}
	if s.has&hasSlots != 0 {
		op.Slots = store.Slots{Max: r.int(), TTL: r.duration()}
	}
	for _, f := range []struct {
		bit uint32
		d   *time.Duration
	}{{sameWait, &op.Wait}, {sameTTL, &op.TTL}, {sameAlive, &op.Alive}} {
		if s.has&f.bit != 0 {
			*f.d = r.duration()
		}
	}
	op.Retry, op.Emergency = s.has&isRetry != 0, s.has&isEmergency != 0
	op.Force, op.Spent = s.has&isForced != 0, s.has&isSpent != 0
	if r.bad || len(r.b) > 0 {
		return nil
	}
	return s
}
