package oplog

import (
	"github.com/sluicehq/sluice/store"
)

// An op begins with the set of its non-zero fields, which follow in this order. Flags are only in the set. The
// fields of most acquires come first, then those of most answers and closes, so that their sets take one and two
// bytes.
const (
	hasSession uint32 = 1 << iota
	hasN
	hasAgent
	hasClass
	hasAmounts
	hasWait
	hasTTL

	hasKind
	hasModel
	hasKey
	hasVerdict
	hasObserved
	hasAlive
	isSpent

	hasUser
	hasTool
	isRetry
	isEmergency
	isForced
	hasRetryAfter
	hasScope
	hasCause
	hasMachine
	hasWaitsFor
	hasSlotsMax
	hasSlotsTTL
	hasShare
	hasUntil
	hasTie
	hasRejected
	hasAge

	endOfOp
)

const (
	oneByte  = hasKind // sets below this take one byte
	twoBytes = hasUser // sets below this take two bytes

	// maxWaits and maxAmounts are one more than an operation may have: enough to be refused again on replay.
	maxWaits   = store.MaxWaits + 1
	maxAmounts = store.MaxAmounts + 1

	// opFixed bounds the size of an op without strings, statements and waits.
	opFixed = maxCount + // the set
		5 + // class, kind, verdict, scope, tie
		2*maxVarint + // id
		10*maxVarint + // wait, TTL, alive, retry after, slots, share, until, rejected, age
		7*maxCount + // lengths of strings
		3*maxCount // counts of amounts, statements and names

	amountFixed   = 2*maxCount + maxVarint
	amountLeast   = 2
	observedFixed = maxCount + 5*maxVarint
	observedLeast = 6
)

func boundOp(op *store.Op) uint64 {
	n := uint64(opFixed) + size(op.Agent) + size(op.User) + size(op.Model) + size(op.Tool) + size(op.Key) +
		size(op.Cause) + size(op.Machine)
	for i := range amountsOf(op) {
		n += amountFixed + size(op.Amounts[i].Unit) + size(op.Amounts[i].Limit)
	}
	for i := range op.Observed {
		n += observedFixed + size(op.Observed[i].Limit)
	}
	for _, name := range waitsOf(op) {
		n += maxCount + size(name)
	}
	return n
}

// size returns the length of s as a uint64, so that sums do not overflow.
func size(s string) uint64 { return uint64(len(s)) }

func waitsOf(op *store.Op) []string { return op.WaitsFor[:min(len(op.WaitsFor), maxWaits)] }

func amountsOf(op *store.Op) []store.Amount { return op.Amounts[:min(len(op.Amounts), maxAmounts)] }

func fieldsOf(op *store.Op) uint32 {
	return bit(op.ID.Session != 0, hasSession) |
		bit(op.ID.N != 0, hasN) |
		bit(op.Agent != "", hasAgent) |
		bit(op.Class != 0, hasClass) |
		bit(len(op.Amounts) > 0, hasAmounts) |
		bit(op.Wait != 0, hasWait) |
		bit(op.TTL != 0, hasTTL) |
		bit(op.Kind != 0, hasKind) |
		bit(op.Model != "", hasModel) |
		bit(op.Key != "", hasKey) |
		bit(op.Verdict != 0, hasVerdict) |
		bit(len(op.Observed) > 0, hasObserved) |
		bit(op.Alive != 0, hasAlive) |
		bit(op.Spent, isSpent) |
		bit(op.User != "", hasUser) |
		bit(op.Tool != "", hasTool) |
		bit(op.Retry, isRetry) |
		bit(op.Emergency, isEmergency) |
		bit(op.Force, isForced) |
		bit(op.RetryAfter != 0, hasRetryAfter) |
		bit(op.Scope != 0, hasScope) |
		bit(op.Cause != "", hasCause) |
		bit(op.Machine != "", hasMachine) |
		bit(len(op.WaitsFor) > 0, hasWaitsFor) |
		bit(op.Slots.Max != 0, hasSlotsMax) |
		bit(op.Slots.TTL != 0, hasSlotsTTL) |
		bit(op.Share != 0, hasShare) |
		bit(op.Until != 0, hasUntil) |
		bit(op.Tie != 0, hasTie) |
		bit(op.Rejected != 0, hasRejected) |
		bit(op.Age != 0, hasAge)
}

func appendOp(dst []byte, op *store.Op) []byte {
	has := fieldsOf(op)
	dst = appendUvarint(dst, uint64(has))
	if has&hasSession != 0 {
		dst = appendUvarint(dst, op.ID.Session)
	}
	if has&hasN != 0 {
		dst = appendUvarint(dst, op.ID.N)
	}
	if has&hasAgent != 0 {
		dst = appendString(dst, op.Agent)
	}
	if has&hasClass != 0 {
		dst = append(dst, op.Class)
	}
	if has&hasAmounts != 0 {
		dst = appendAmounts(dst, amountsOf(op))
	}
	if has&hasWait != 0 {
		dst = appendVarint(dst, int64(op.Wait))
	}
	if has&hasTTL != 0 {
		dst = appendVarint(dst, int64(op.TTL))
	}
	if has < oneByte {
		return dst
	}
	if has&hasKind != 0 {
		dst = append(dst, uint8(op.Kind))
	}
	if has&hasModel != 0 {
		dst = appendString(dst, op.Model)
	}
	if has&hasKey != 0 {
		dst = appendString(dst, op.Key)
	}
	if has&hasVerdict != 0 {
		dst = append(dst, uint8(op.Verdict))
	}
	if has&hasObserved != 0 {
		dst = appendObserved(dst, op.Observed)
	}
	if has&hasAlive != 0 {
		dst = appendVarint(dst, int64(op.Alive))
	}
	if has < twoBytes {
		return dst
	}
	return appendRare(dst, op, has)
}

func appendRare(dst []byte, op *store.Op, has uint32) []byte {
	if has&hasUser != 0 {
		dst = appendString(dst, op.User)
	}
	if has&hasTool != 0 {
		dst = appendString(dst, op.Tool)
	}
	if has&hasRetryAfter != 0 {
		dst = appendVarint(dst, int64(op.RetryAfter))
	}
	if has&hasScope != 0 {
		dst = append(dst, uint8(op.Scope))
	}
	if has&hasCause != 0 {
		dst = appendString(dst, op.Cause)
	}
	if has&hasMachine != 0 {
		dst = appendString(dst, op.Machine)
	}
	if has&hasWaitsFor != 0 {
		names := waitsOf(op)
		dst = appendUvarint(dst, uint64(len(names)))
		for _, name := range names {
			dst = appendString(dst, name)
		}
	}
	if has&hasSlotsMax != 0 {
		dst = appendVarint(dst, int64(op.Slots.Max))
	}
	if has&hasSlotsTTL != 0 {
		dst = appendVarint(dst, int64(op.Slots.TTL))
	}
	if has&hasShare != 0 {
		dst = appendVarint(dst, op.Share)
	}
	if has&hasUntil != 0 {
		dst = appendVarint(dst, int64(op.Until))
	}
	if has&hasTie != 0 {
		dst = append(dst, byte(op.Tie))
	}
	if has&hasRejected != 0 {
		dst = appendVarint(dst, int64(op.Rejected))
	}
	if has&hasAge != 0 {
		dst = appendVarint(dst, int64(op.Age))
	}
	return dst
}

// appendAmounts writes the number of amounts, with a bit that says whether any of them concerns a single limit.
func appendAmounts(dst []byte, list []store.Amount) []byte {
	single := uint64(0)
	for i := range list {
		single |= uint64(bit(list[i].Limit != "", uint32(1)))
	}
	dst = appendUvarint(dst, uint64(len(list))<<1|single)
	for i := range list {
		dst = appendUnitName(dst, list[i].Unit)
		if single != 0 {
			dst = appendLimitName(dst, list[i].Limit)
		}
		dst = appendVarint(dst, list[i].N)
	}
	return dst
}

// appendUnitName writes the name of a unit.
func appendUnitName(dst []byte, unit string) []byte { return appendString(dst, unit) }

// appendLimitName writes the name of a limit.
func appendLimitName(dst []byte, limit string) []byte { return appendString(dst, limit) }

func appendObserved(dst []byte, list []store.Observed) []byte {
	dst = appendUvarint(dst, uint64(len(list)))
	for i := range list {
		o := &list[i]
		dst = appendLimitName(dst, o.Limit)
		dst = appendVarint(dst, o.Size)
		dst = appendVarint(dst, o.Remaining)
		dst = appendVarint(dst, int64(o.ResetIn))
		dst = appendVarint(dst, int64(o.Slop))
		dst = appendVarint(dst, o.Whole)
	}
	return dst
}
