package pool

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// maxWaiting bounds the queue so that its arithmetic cannot overflow.
const maxWaiting = 1 << 20

func checkSpec(s *store.Spec) error {
	switch {
	case s.Name == "" || len(s.Name) > store.MaxName:
		return fmt.Errorf("pool name %.40q: must be 1 to %d bytes", s.Name, store.MaxName)
	case len(s.Limits) > store.MaxLimits:
		return fmt.Errorf("%d limits: at most %d", len(s.Limits), store.MaxLimits)
	case len(s.Classes) == 0 || len(s.Classes) > store.MaxClasses:
		return fmt.Errorf("%d classes: must be 1 to %d", len(s.Classes), store.MaxClasses)
	case s.MaxWaiting < 0 || s.MaxWaiting > maxWaiting:
		return fmt.Errorf("max waiting %d: must be between 0 and %d", s.MaxWaiting, maxWaiting)
	case s.MaxMeters < 0 || s.MaxMeters > store.MaxMeters:
		return fmt.Errorf("max meters %d: must be between 0 and %d", s.MaxMeters, store.MaxMeters)
	case s.Order > store.FIFO:
		return errors.New("order: must be fair, strict or fifo")
	}
	for _, c := range s.Classes {
		if c.Weight < 1 || c.Weight > 1000 {
			return fmt.Errorf("class %q: weight %d must be 1 to 1000", c.Name, c.Weight)
		}
	}
	for _, b := range []store.Backoff{s.Throttle, s.Overload} {
		if b.Start <= 0 || b.Factor < 1 || b.Factor > 100 || b.Cap < b.Start || b.Cap > store.MaxTTL {
			return fmt.Errorf("backoff %+v: start and factor must be positive, cap between start and %v", b, store.MaxTTL)
		}
	}
	if err := checkPolicy(s); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, l := range s.Limits {
		if err := checkLimit(&l); err != nil {
			return fmt.Errorf("limit %q: %w", l.Name, err)
		}
		if seen[l.Name] {
			return fmt.Errorf("limit %q: the name is taken by another limit of this pool", l.Name)
		}
		seen[l.Name] = true
	}
	return nil
}

func checkPolicy(s *store.Spec) error {
	switch l, b := s.Light, s.Breaker; {
	case l.Green < 0 || l.Green >= store.Whole || l.Red < 0 || l.Red > l.Green:
		return fmt.Errorf("light: green %d and red %d must be thousandths, red at most green", l.Green, l.Red)
	case s.Reserve < 0 || s.Reserve >= store.Whole:
		return fmt.Errorf("reserve %d: must be 0 to %d thousandths", s.Reserve, store.Whole-1)
	case b.Samples < 0 || b.Samples > store.MaxSamples || b.Samples > 0 && b.Samples < 3:
		return fmt.Errorf("breaker: %d samples must be 3 to %d", b.Samples, store.MaxSamples)
	case b.Within < 0 || b.Within > store.MaxTTL:
		return fmt.Errorf("breaker: within %v must be at most %v", b.Within, store.MaxTTL)
	case s.Lease > store.MaxTTL || s.Lease > 0 && s.Lease < time.Second:
		return fmt.Errorf("lease %v: must be 1s to %v", s.Lease, store.MaxTTL)
	}
	return nil
}

func checkLimit(l *store.Limit) error {
	switch {
	case l.Name == "" || len(l.Name) > store.MaxName:
		return fmt.Errorf("the name must be 1 to %d bytes", store.MaxName)
	case l.Kind > store.Concurrency || l.Guard > store.GuardOff:
		return errors.New("unknown kind or guard")
	case l.Size < 0 || l.Size > store.MaxAmount:
		return fmt.Errorf("size %d: must be between 0 and %d", l.Size, int64(store.MaxAmount))
	case l.Burst < 0 || l.Burst > store.MaxAmount:
		return fmt.Errorf("burst %d: must be between 0 and %d", l.Burst, int64(store.MaxAmount))
	case l.Reset < 0:
		return errors.New("reset: must not be negative")
	}
	return nil
}

// checkMeters sets up a trial meter for every limit and returns the first error. Reform calls it before it changes
// anything, so that a pool never takes on half of a spec.
func checkMeters(s *store.Spec) error {
	for i := range s.Limits {
		l := &s.Limits[i]
		d, err := compile(l)
		if err == nil {
			err = new(meter.Meter).Resize(&d, l.Size, l.Burst)
		}
		if err != nil {
			return fmt.Errorf("limit %q: %w", l.Name, err)
		}
	}
	return nil
}

// resize applies a limit's new size to all its meters. A size that the provider stated stays if it is smaller, or if the
// limit's own size is only a default.
func (p *Pool) resize(limit int) error {
	l := &p.spec.Limits[limit]
	for i := int32(1); i < p.insts.End(); i++ {
		in := p.insts.At(i)
		if !in.used || int(in.limit) != limit {
			continue
		}
		p.touch(i)
		size := l.Size
		if in.stated && in.Cap > 0 && p.defOf(in).Kind != meter.Bucket {
			size = min(size, in.Cap)
			if l.SizeIsDefault {
				size = in.Cap
			}
		}
		before := in.Cap
		if err := in.Resize(p.defOf(in), size, l.Burst); err != nil {
			return err
		}
		if in.Cap > before {
			p.lose(i)
		}
	}
	return nil
}
