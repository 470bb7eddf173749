package flat

import (
	"fmt"
	"reflect"
)

// A space never gets smaller: what is freed is kept for the next one. CopyTo makes a small one of a large
// one in which little is left. Records keep their numbers, since others refer to them by these. So a slab
// needs room up to its highest record in use. Free numbers below that are handed out from the lowest
// on, and the highest ones are free the sooner.

// CopyTo copies everything to an empty space that was opened in the same way. Blocks of [Space.Keep] are
// their owner's to copy.
func (s *Space) CopyTo(d *Space) error {
	if s.layout != d.layout || len(s.views) != len(d.views) {
		return ErrLayout
	}
	first := pad(int64(reflect.TypeFor[spaceHead]().Size()))
	copy(d.mem[first:s.next], s.mem[first:s.next])
	for i, v := range s.views {
		d.views[i].reset()
		if err := v.copyTo(d.views[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Slab[T]) copyTo(to view) error {
	d, ok := to.(*Slab[T])
	if !ok {
		return ErrLayout
	}
	*d.head = slabHead{}
	free := make([]bool, s.head.used)
	for i := s.head.free; i != 0; i = *s.link(i) {
		if int(i) >= len(free) || free[i] {
			return fmt.Errorf("a list of free records goes in circles at %d", i)
		}
		free[i] = true
	}
	end := s.head.used
	for end > 1 && free[end-1] {
		end--
	}
	d.SetHead([3]int32{end, 0, 0})
	for i := end - 1; i > 0; i-- {
		if free[i] {
			d.Recycle(i)
		} else {
			*d.At(i) = *s.At(i)
		}
	}
	return nil
}

func (x *Index) copyTo(to view) error {
	d, ok := to.(*Index)
	if !ok {
		return ErrLayout
	}
	*d.head = indexHead{}
	for _, s := range x.slots {
		if s.rec != 0 {
			d.Add(s.hash, s.rec)
		}
	}
	return nil
}

// copyTo has nothing to do: what names consist of is copied by itself.
func (n *Names) copyTo(view) error { return nil }
