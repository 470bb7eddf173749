package flat

import "fmt"

// A space never shrinks: freed memory is kept for later use. CopyTo copies a large space with little left in it to a
// small one. Records keep their numbers, because other records refer to them by number. So a slab needs room up to
// its highest record in use. Free numbers below that are reused from the lowest up, so that the highest ones become
// free sooner.

// CopyTo copies everything to an empty space that was opened in the same way, perhaps on the heap. Blocks of
// [Space.Keep] must be copied by their owner.
func (s *Space) CopyTo(d *Space) error {
	if len(s.views) != len(d.views) || !s.onHeap() && !d.onHeap() && s.layout != d.layout {
		return ErrLayout
	}
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
	d.setHead(end, 0)
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

// copyTo does nothing: the slab and the index of names are copied by themselves.
func (n *Names) copyTo(view) error { return nil }
