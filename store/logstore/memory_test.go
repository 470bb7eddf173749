package logstore_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store/logstore"
)

// afterAppend is an engine that calls a function once, after the first entry of its process was appended and before the process
// knows that.
type afterAppend struct {
	sharedlog.Engine
	call func()
}

func (a *afterAppend) Log(pool string) sharedlog.Log { return &afterAppendLog{a.Engine.Log(pool), a} }

type afterAppendLog struct {
	sharedlog.Log
	of *afterAppend
}

func (l *afterAppendLog) Append(ctx context.Context, at sharedlog.Position, entry []byte) (sharedlog.Entries, error) {
	got, err := l.Log.Append(ctx, at, entry)
	if call := l.of.call; err == nil && call != nil {
		l.of.call = nil
		call()
	}
	return got, err
}

// A machine remembers how far a log has come. That another process of it has gone on and remembers more than a newcomer has
// read is no loss.
func TestANewcomerIsNotAheadOfItsMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		server, _ := gathering(t, 0)
		memory := logstore.WithMemory(dir, "engine")
		old := joinOn(t, server.Connect(), 1, memory)
		old.takes(1, 1, 0)
		engine := &afterAppend{Engine: server.Connect()}
		engine.call = func() {
			old.takes(4, 4, 0)
			if err := old.pool.Close(); err != nil { // it remembers how far it has come
				t.Error(err)
			}
		}
		joinOn(t, engine, 1, memory).takes(20, 15, 0)
		if engine.call != nil {
			t.Error("the other process has done nothing meanwhile")
		}
	})
}
