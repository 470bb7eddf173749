package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store/memstore"
)

func TestDbg(t *testing.T) {
	clock := NewClock(Start)
	h := Harness{Store: memstore.New(memstore.WithClock(clock)), Advance: clock.Advance}
	m := join(t, h, spec(bucket(10, 20), bucket(10, 20)))
	var small []*stream
	for a := range 3 {
		small = append(small, m.stream(want(fmt.Sprint("left", a), 1, 0), 20), m.stream(want(fmt.Sprint("right", a), 0, 1), 20))
	}
	m.pass(5 * time.Second)
	start := m.elapsed()
	big := m.queue(want("big", 18, 18))
	for range 40 {
		m.pass(100 * time.Millisecond)
		if m.wasGranted(big) {
			break
		}
		s := ""
		for _, x := range small {
			s += fmt.Sprint(" ", x.granted)
		}
		fmt.Println(m.elapsed()-start, s, m.snapshot().Queue[0].Agent, m.limit(0).Used, m.limit(1).Used, m.snapshot().Queue[0].Expected.Sub(m.now()))
	}
}
