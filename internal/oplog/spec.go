package oplog

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// specLayout is the first byte of a spec. It changes with the layout.
const specLayout = 2

// Flags of a spec.
const (
	lightStatic uint8 = 1 << iota
	lightAll
	breakerOpen
	withShares
	withPace
	onlyLook
	restates

	specFlags = 1<<iota - 1
)

// Flags of a limit.
const (
	limitLate uint8 = 1 << iota
	limitGuess
	limitRough
	limitPlan

	limitFlags = 1<<iota - 1
)

const (
	// Maximum sizes of a spec, a limit and a class, without their strings.
	specFixed  = 3 + 2*maxCount + 14*maxVarint + 2*maxCount
	limitFixed = 4 + 2*maxCount + 5*maxVarint
	classFixed = maxCount + maxVarint

	// Minimum sizes of a limit and a class.
	limitLeast = 11
	classLeast = 2
)

func specFits(s *store.Spec) bool {
	return len(s.Limits) <= store.MaxLimits && len(s.Classes) <= store.MaxClasses
}

func boundSpec(s *store.Spec) uint64 {
	n := specFixed + size(s.Name) + size(s.Member)
	for i := range s.Limits {
		n += limitFixed + size(s.Limits[i].Name) + size(s.Limits[i].Unit)
	}
	for i := range s.Classes {
		n += classFixed + size(s.Classes[i].Name)
	}
	return n
}

// AppendSpec appends only a spec, without frame or checksum. It appends nothing if the spec has more limits or
// classes than a pool can have.
func AppendSpec(dst []byte, s *store.Spec) []byte {
	if !specFits(s) {
		return dst
	}
	flags := bit(s.Light.Static, lightStatic) | bit(s.Light.All, lightAll) | bit(s.Breaker.Open, breakerOpen) |
		bit(s.Shares, withShares) | bit(s.Pace, withPace) | bit(s.ReadOnly, onlyLook) | bit(s.Restate, restates)
	dst = append(dst, specLayout, flags, uint8(s.Order))
	dst = appendString(dst, s.Name)
	dst = appendVarint(dst, int64(s.MaxWaiting))
	dst = appendVarint(dst, int64(s.MaxMeters))
	dst = appendBackoff(dst, &s.Throttle)
	dst = appendBackoff(dst, &s.Overload)
	dst = appendVarint(dst, s.Light.Green)
	dst = appendVarint(dst, s.Light.Red)
	dst = appendVarint(dst, int64(s.Breaker.Within))
	dst = appendVarint(dst, int64(s.Breaker.Samples))
	dst = appendVarint(dst, s.Reserve)
	dst = appendVarint(dst, int64(s.Lease))
	dst = appendString(dst, s.Member)
	dst = appendUvarint(dst, uint64(len(s.Limits)))
	for i := range s.Limits {
		dst = appendLimit(dst, &s.Limits[i])
	}
	dst = appendUvarint(dst, uint64(len(s.Classes)))
	for i := range s.Classes {
		dst = appendString(dst, s.Classes[i].Name)
		dst = appendVarint(dst, s.Classes[i].Weight)
	}
	return dst
}

func appendBackoff(dst []byte, b *store.Backoff) []byte {
	dst = appendVarint(dst, int64(b.Start))
	dst = appendVarint(dst, b.Factor)
	return appendVarint(dst, int64(b.Cap))
}

func appendLimit(dst []byte, l *store.Limit) []byte {
	flags := bit(l.Late, limitLate) | bit(l.SizeIsDefault, limitGuess) | bit(l.Estimated, limitRough) | bit(l.Plan, limitPlan)
	dst = append(dst, flags, uint8(l.Kind), uint8(l.Per), uint8(l.Guard))
	dst = appendString(dst, l.Name)
	dst = appendString(dst, l.Unit)
	dst = appendVarint(dst, l.Size)
	dst = appendVarint(dst, l.Burst)
	dst = appendVarint(dst, int64(l.Window))
	dst = appendVarint(dst, int64(l.Slack))
	return appendVarint(dst, int64(l.Reset))
}

// DecodeSpec decodes what [AppendSpec] wrote. It returns [ErrCorrupt] if src is not exactly one spec.
func DecodeSpec(src []byte) (store.Spec, error) {
	r := reader{b: src}
	s := readSpec(&r)
	if r.bad || len(r.b) > 0 {
		return store.Spec{}, ErrCorrupt
	}
	return s, nil
}

func readSpec(r *reader) (s store.Spec) {
	if r.byte() != specLayout {
		r.fail()
		return s
	}
	flags := r.flags(specFlags)
	s.Light.Static, s.Light.All = flags&lightStatic != 0, flags&lightAll != 0
	s.Breaker.Open = flags&breakerOpen != 0
	s.Shares, s.Pace, s.ReadOnly = flags&withShares != 0, flags&withPace != 0, flags&onlyLook != 0
	s.Restate = flags&restates != 0
	s.Order = store.Order(r.byte())
	s.Name = r.string()
	s.MaxWaiting = r.int()
	s.MaxMeters = r.int()
	readBackoff(r, &s.Throttle)
	readBackoff(r, &s.Overload)
	s.Light.Green, s.Light.Red = r.varint(), r.varint()
	s.Breaker.Within = time.Duration(r.varint())
	s.Breaker.Samples = r.int()
	s.Reserve = r.varint()
	s.Lease = time.Duration(r.varint())
	s.Member = r.string()
	if n := r.count(store.MaxLimits, limitLeast); n > 0 {
		s.Limits = make([]store.Limit, n)
	}
	for i := range s.Limits {
		readLimit(r, &s.Limits[i])
	}
	if n := r.count(store.MaxClasses, classLeast); n > 0 {
		s.Classes = make([]store.Class, n)
	}
	for i := range s.Classes {
		s.Classes[i] = store.Class{Name: r.string(), Weight: r.varint()}
	}
	return s
}

func readBackoff(r *reader, b *store.Backoff) {
	b.Start = time.Duration(r.varint())
	b.Factor = r.varint()
	b.Cap = time.Duration(r.varint())
}

func readLimit(r *reader, l *store.Limit) {
	flags := r.flags(limitFlags)
	l.Late, l.SizeIsDefault, l.Estimated = flags&limitLate != 0, flags&limitGuess != 0, flags&limitRough != 0
	l.Plan = flags&limitPlan != 0
	l.Kind, l.Per, l.Guard = store.Kind(r.byte()), store.Scope(r.byte()), store.Guard(r.byte())
	l.Name, l.Unit = r.string(), r.string()
	l.Size, l.Burst = r.varint(), r.varint()
	l.Window, l.Slack = time.Duration(r.varint()), time.Duration(r.varint())
	l.Reset = store.Time(r.varint())
}
