package reading_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/reading"
)

func never(reading.Last[time.Time]) reading.Use { return reading.Refuse }

// slow returns a function that takes a second to return when it began.
func slow(reads *atomic.Int32) func(context.Context) (time.Time, error) {
	var running atomic.Int32
	return func(context.Context) (time.Time, error) {
		if running.Add(1) > 1 {
			return time.Time{}, errors.New("two readings at a time")
		}
		defer running.Add(-1)
		reads.Add(1)
		began := time.Now()
		time.Sleep(time.Second)
		return began, nil
	}
}

func TestCallersAtTheSameTimeShareAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			s     reading.Shared[time.Time]
			reads atomic.Int32
			all   sync.WaitGroup
		)
		read := slow(&reads)
		for i := range 100 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				asked := time.Now()
				if began, err := s.Get(t.Context(), read, never); err != nil || began.Before(asked) {
					t.Errorf("asked at %v, read at %v: %v", asked, began, err)
				}
			})
		}
		all.Wait()
		if n := reads.Load(); n != 2 {
			t.Errorf("%d readings, want one for the first caller and one for the others", n)
		}
	})
}

func TestAReadingOutlivesTheCallerThatBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			s     reading.Shared[time.Time]
			reads atomic.Int32
			all   sync.WaitGroup
		)
		read := slow(&reads)
		ctx, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := s.Get(ctx, read, never); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := s.Get(t.Context(), read, never); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		leave()
		all.Wait()
		failed := errors.New("no store")
		if _, err := s.Get(t.Context(), func(context.Context) (time.Time, error) { return time.Time{}, failed }, never); !errors.Is(err, failed) {
			t.Error(err)
		}
	})
}

func TestTheLastValueMaySuffice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			s     reading.Shared[time.Time]
			reads atomic.Int32
		)
		read := slow(&reads)
		for range 10 {
			_, err := s.Get(t.Context(), read, func(l reading.Last[time.Time]) reading.Use {
				if l.Took != time.Second || l.Age != time.Since(l.Value) || l.Busy {
					t.Errorf("%+v", l)
				}
				if l.Age < 3*l.Took {
					return reading.Keep
				}
				return reading.Refuse
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := reads.Load(); n != 5 {
			t.Errorf("%d readings, want 5", n)
		}
	})
}

// A caller that renews the last value does not wait, and no second reading begins beside the one in progress.
func TestTheLastValueIsRenewedWithoutAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			s     reading.Shared[time.Time]
			reads atomic.Int32
		)
		read := slow(&reads)
		first, err := s.Get(t.Context(), read, never)
		if err != nil {
			t.Fatal(err)
		}
		renew := func(reading.Last[time.Time]) reading.Use { return reading.Renew }
		asked := time.Now()
		for range 3 {
			if v, err := s.Get(t.Context(), read, renew); err != nil || !v.Equal(first) || time.Since(asked) != 0 {
				t.Errorf("%v after %v: %v", v, time.Since(asked), err)
			}
		}
		time.Sleep(2 * time.Second)
		if v, err := s.Get(t.Context(), read, func(l reading.Last[time.Time]) reading.Use { return reading.Keep }); err != nil || !v.Equal(asked) || reads.Load() != 2 {
			t.Errorf("%v by %d readings: %v", v, reads.Load(), err)
		}
	})
}

// Between readings the source is left to others. Whoever asks meanwhile shares the next reading.
func TestTheSourceRestsAfterAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reading.Shared[time.Time]{Rest: func(took time.Duration) time.Duration { return 2 * took }}
		var reads atomic.Int32
		read := slow(&reads)
		first, err := s.Get(t.Context(), read, never)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 900 * time.Millisecond)
				if v, err := s.Get(t.Context(), read, never); err != nil || v.Sub(first) != 3*time.Second {
					t.Errorf("%v after the first: %v", v.Sub(first), err)
				}
			})
		}
		all.Wait()
		if reads.Load() != 2 {
			t.Errorf("read %d times", reads.Load())
		}
		time.Sleep(time.Minute)
		asked := time.Now()
		if v, err := s.Get(t.Context(), read, never); err != nil || !v.Equal(asked) {
			t.Errorf("a minute later it began %v after the call: %v", v.Sub(asked), err)
		}
	})
}

// After Forget, neither the last value nor that of a reading in progress is used.
func TestForgottenValuesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			s     reading.Shared[time.Time]
			reads atomic.Int32
		)
		read := slow(&reads)
		keep := func(reading.Last[time.Time]) reading.Use { return reading.Keep }
		for _, running := range []bool{false, true} {
			if _, err := s.Get(t.Context(), read, never); err != nil {
				t.Fatal(err)
			}
			if running {
				_, _ = s.Get(t.Context(), read, func(reading.Last[time.Time]) reading.Use { return reading.Renew })
				time.Sleep(time.Second / 2)
			}
			s.Forget()
			forgotten := time.Now()
			time.Sleep(time.Second)
			if v, err := s.Get(t.Context(), read, keep); err != nil || v.Before(forgotten) {
				t.Errorf("running %v: read at %v, forgotten at %v: %v", running, v, forgotten, err)
			}
		}
	})
}
