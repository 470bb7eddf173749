package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

type hinted struct{ error }

func (hinted) Hint() string { return "do this" }

func TestFailKnowsHowToEnd(t *testing.T) {
	for err, want := range map[error]int{
		sluice.ErrUnknownResource: 64, sluice.ErrInvalid: 64, sluice.ErrEnded: 64, sluice.ErrUnknownTicket: 64, sluice.ErrStore: 69,
		sluice.ErrClosed: 70, errors.New("something else"): 70, sluice.ErrNotNow: 75, sluice.ErrDeadline: 75, sluice.ErrFull: 75, sluice.ErrSlots: 75,
		sluice.ErrAttempts: 75, sluice.ErrCapacity: 77, sluice.ErrClass: 77, sluice.ErrBilling: 77,
	} {
		for _, err := range []error{err, &sluice.Error{Err: err}, fmt.Errorf("around: %w", err)} {
			if f := asFailure(fail(err)); f.code != want {
				t.Errorf("%v: exit code %d, want %d", err, f.code, want)
			}
		}
	}
	if fail(nil) != nil {
		t.Error("nothing is a failure")
	}
	if f := (&failure{code: 3}); fail(fmt.Errorf("around: %w", f)) != error(f) {
		t.Error("a failure does not stay what it is")
	}
}

func TestFailCarriesWhatIsKnown(t *testing.T) {
	at := time.Date(2026, 3, 4, 13, 0, 0, 0, time.FixedZone("", 3600))
	f := asFailure(fail(&sluice.Error{Err: sluice.ErrNotNow, Limit: "minute", RetryAt: at, Hint: "wait"}))
	f.chain = []string{"a", "b"}
	e := f.json()
	if e.Code != 75 || *e.Limit != "minute" || e.RetryAt.Format(time.RFC3339) != "2026-03-04T12:00:00Z" || e.Hint != "wait" || len(e.Chain) != 2 {
		t.Errorf("got %+v", e)
	}
	if e := (&failure{}).json(); e.Limit != nil || e.RetryAt != nil || e.Chain == nil {
		t.Errorf("got %+v", e)
	}
	if f := asFailure(fail(fmt.Errorf("%w: %w", sluice.ErrStore, hinted{errors.New("x")}))); f.code != 69 || f.hint != "do this" {
		t.Errorf("got %+v", f)
	}
}

// An error about a name that is too long says what to do.
func TestALongNameHasAHint(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	args := []string{"acquire", "github", "--store", "file:" + t.TempDir(), "--agent", strings.Repeat("a", 300)}
	if code := run(args, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "300 bytes long, at most 256 are allowed\nhint: ") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
