package redisstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// A closed store leaves no goroutine running, whatever state it was in.
func TestNothingIsLeftRunning(t *testing.T) {
	server := redisrun.New(t, persistent...)
	before := goleak.IgnoreCurrent()
	for name, f := range map[string]func(*member){
		"idle":    func(m *member) {},
		"waiting": func(m *member) { m.take(1); m.must(waiting(ask(1)), store.Waiting) },
		"killed":  func(m *member) { m.take(1); m.must(waiting(ask(1)), store.Waiting); m.store.Kill() },
		"lost": func(m *member) {
			m.joined()
			m.store.AnswerWithin(0)
			if err := server.Pause(); err != nil {
				m.Fatal(err)
			}
			if r := m.do(waiting(ask(1))); r.State != store.Waiting {
				m.Errorf("it is %v", r.State)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := join(t, server.URL()+"?prefix="+name, poolOf(slotsOf(1)))
			f(m)
			_ = m.store.Close() // it may be that it cannot leave
			_ = server.Resume()
			if err := leaktest.Find(before); err != nil {
				t.Error(err)
			}
		})
	}
}
