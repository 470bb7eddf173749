package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisurl"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// format is that of the keys. Another one is refused.
const format = "log-1"

// tries bounds how often a call begins anew because other processes changed the log meanwhile.
const tries = 10

// maxOffset is that of positions.
const maxOffset = 1 << 62

// head is the hash of a log.
type head struct {
	now         store.Time
	there       bool // the segment that was asked about
	incarnation uint64
	segment     int64
	snapshot    string // its number
	size        int
	origin      sharedlog.Position
	run         string // of the server on which the incarnation began; empty: it is not known
	moved       bool   // this is another one, or it was restarted
}

// look reads the hash. An incarnation of 0 means that there is none.
func (l *log) look(ctx context.Context, segment string) (h head, err error) {
	if l.bad != nil {
		return h, l.bad
	}
	reply, err := l.run(ctx, headScript, []string{l.head(), segment})
	if err != nil {
		return h, err
	}
	list, err := reply.ToArray()
	if err != nil || len(list) != 4 {
		return h, l.odd("the script returned something else")
	}
	now, err := list[0].AsInt64()
	there, err2 := list[1].AsInt64()
	fields, err3 := list[2].AsStrSlice()
	run, err4 := list[3].ToString()
	if err != nil || err2 != nil || err3 != nil || err4 != nil || len(fields) != 8 {
		return h, l.odd("the script returned something else")
	}
	if h, err = readHead(fields); errors.Is(err, sharedlog.ErrFormat) {
		return h, &Error{kind: err, at: l.name, what: fmt.Sprintf("%s was written by another version of Sluice, in the format %.20q", l.head(), fields[0]),
			hint: "use the same version of Sluice everywhere, or give this one a prefix of its own: ?prefix=NAME"}
	} else if err != nil {
		return h, l.odd("the key " + l.head() + " is damaged: it is not a hash as Sluice writes it")
	}
	h.now, h.there = store.Time(now), there == 1
	h.moved = h.run != "" && run != "" && h.run != run
	return h, nil
}

// readHead reads the fields of a hash in the order of headScript. All are empty if there is none.
func readHead(fields []string) (h head, err error) {
	switch {
	case fields[7] == "0":
		return h, nil
	case fields[0] != "" && fields[0] != format:
		return h, sharedlog.ErrFormat
	}
	var errs [4]error
	h.incarnation, errs[0] = strconv.ParseUint(fields[1], 10, 64)
	h.segment, errs[1] = strconv.ParseInt(fields[2], 10, 64)
	h.run = fields[6]
	if h.snapshot = fields[3]; fields[4] != "" {
		h.size, errs[2] = strconv.Atoi(fields[4])
	}
	if fields[5] != "" {
		h.origin, errs[3] = sharedlog.ParsePosition(fields[5])
	}
	if errors.Join(errs[:]...) != nil || h.incarnation == 0 || h.segment < 0 || h.segment > maxOffset || h.size < 0 || h.size > sharedlog.MaxSnapshot {
		return head{}, sharedlog.ErrDamaged
	}
	return h, nil
}

func (l *log) odd(what string) error {
	return &Error{kind: sharedlog.ErrDamaged, at: l.name, what: what, hint: "did something else write to keys that begin with " + l.head() + "?"}
}

// fate returns why a call at a position found no segment.
func (l *log) fate(ctx context.Context, at sharedlog.Position) error {
	h, err := l.look(ctx, l.key("s:", at.Incarnation, at.Segment))
	if err != nil {
		return err
	}
	return l.fateIn(ctx, h, at)
}

func (l *log) fateIn(ctx context.Context, h head, at sharedlog.Position) error {
	switch {
	case h.incarnation == 0:
		return l.lost(ctx, h.there)
	case h.incarnation < at.Incarnation: // it was begun after what is left
		return l.lostEnd()
	case h.incarnation != at.Incarnation:
		return &Error{kind: sharedlog.ErrIncarnationOver, at: l.name, what: fmt.Sprintf("the log goes on as incarnation %d", h.incarnation)}
	case h.segment > at.Segment:
		return &Error{kind: sharedlog.ErrSegmentEnded, at: l.name, what: fmt.Sprintf("the segment at %d has ended", at.Segment)}
	case h.segment == at.Segment && !h.there:
		return l.lost(ctx, true)
	}
	return l.lostEnd()
}

func (l *log) lostEnd() error {
	return &Error{kind: sharedlog.ErrLost, at: l.name, what: "the log lacks its end", hint: "Redis failed over to a replica that lagged behind, or loaded an old file"}
}

// marked marks entries as moved if they can come from another server than the one on which their incarnation began. That can
// only be if a connection was made since this process last looked. Only the latest call of a caller counts: it looks after
// it has got them.
func (l *log) marked(ctx context.Context, got sharedlog.Entries) (sharedlog.Entries, error) {
	dials := l.dials.Load()
	if l.looked.Load() == dials {
		return got, nil
	}
	h, err := l.look(ctx, l.segment(got.At).key)
	switch {
	case err != nil:
		return got, err
	case h.incarnation != got.At.Incarnation:
		return got, l.fateIn(ctx, h, got.At)
	}
	l.note(h, dials)
	got.Moved = h.moved
	return got, nil
}

// note notes that the server is the right one, as far as the connections go that there were before h was read.
func (l *log) note(h head, dials int64) {
	if !h.moved {
		l.looked.Store(dials)
	}
}

// lost returns the error for a log whose keys are gone. A part that remains was spared by chance: whoever deletes a log
// deletes all of it. If nothing remains, the server says whether it evicts keys.
func (l *log) lost(ctx context.Context, part bool) error {
	e := &Error{kind: sharedlog.ErrLost, at: l.name, what: "the log is gone", hint: "was Redis flushed, or restarted without its data?"}
	if !part && l.address.Mode != redisurl.Cluster {
		if got, err := l.do(ctx, l.client.B().Info().Section("stats").Build(), l.client.B().Info().Section("memory").Build()); err == nil {
			stats, _ := got[0].ToString()
			memory, _ := got[1].ToString()
			part = strings.Contains(stats, "evicted_keys:") && !strings.Contains(stats, "evicted_keys:0\r\n") && !strings.Contains(memory, "maxmemory_policy:noeviction")
		}
	}
	if part {
		e.cause, e.what = sharedlog.ErrEvicted, "Redis has deleted a part of the log"
		e.hint = "set maxmemory-policy noeviction, and raise maxmemory"
	}
	return e
}

// Append implements [sharedlog.Log].
func (l *log) Append(ctx context.Context, at sharedlog.Position, entry []byte) (sharedlog.Entries, error) {
	s := l.segment(at)
	switch {
	case l.bad != nil:
		return sharedlog.Entries{}, l.bad
	case len(entry) > sharedlog.MaxEntry:
		return sharedlog.Entries{}, fmt.Errorf("%w: an entry of %d bytes", sharedlog.ErrTooBig, len(entry))
	case s.length.Load() >= sharedlog.MaxSegment:
		return sharedlog.Entries{}, fmt.Errorf("%w: a segment of %d bytes", sharedlog.ErrFull, s.length.Load())
	}
	framed := sharedlog.AppendFrame(make([]byte, 0, len(entry)+3), entry)
	got, err := l.runWith(ctx, appendScript, []string{s.key}, []string{rueidis.BinaryString(framed)}, func() rueidis.Completed { return l.around(s.key, at) })
	if err != nil {
		return sharedlog.Entries{}, err
	}
	length, err := got[0].AsInt64()
	switch {
	case rueidis.IsRedisNil(err):
		return sharedlog.Entries{}, l.fate(ctx, at)
	case err != nil:
		return sharedlog.Entries{}, l.fail(err)
	}
	s.length.Store(length)
	own := at.Segment + length - sharedlog.HeaderSize - sharedlog.FrameSize(len(entry))
	raw, err := got[1].AsBytes()
	if err != nil { // it was appended, so a Read finds it
		return l.marked(ctx, sharedlog.Entries{From: at, At: at, More: true})
	}
	entries, err := sharedlog.SliceOwn(at, raw, own, len(entry))
	if err != nil {
		return entries, err
	}
	return l.marked(ctx, entries)
}

// around returns the command that reads a segment from the stamp before at on.
func (l *log) around(key string, at sharedlog.Position) rueidis.Completed {
	i := at.Index()
	return l.client.B().Getrange().Key(key).Start(i - sharedlog.StampSize).End(i + sharedlog.MaxRead - 1).Build()
}

// raw reads a segment from the stamp before at on. It returns nothing if there is none.
func (l *log) raw(ctx context.Context, key string, at sharedlog.Position) ([]byte, error) {
	if l.bad != nil {
		return nil, l.bad
	}
	got, err := l.do(ctx, l.around(key, at))
	if err != nil {
		return nil, err
	}
	raw, err := got[0].AsBytes()
	if err != nil {
		return nil, l.fail(err)
	}
	return raw, nil
}

// Read implements [sharedlog.Log].
func (l *log) Read(ctx context.Context, at sharedlog.Position) (sharedlog.Entries, error) {
	for range tries {
		key := l.segment(at).key
		raw, err := l.raw(ctx, key, at)
		if err != nil {
			return sharedlog.Entries{}, err
		}
		if len(raw) > 0 {
			got, err := sharedlog.Slice(at, raw)
			if err != nil {
				return got, err
			}
			return l.marked(ctx, got)
		}
		h, err := l.look(ctx, key)
		if err != nil {
			return sharedlog.Entries{}, err
		}
		if h.incarnation != at.Incarnation || h.segment <= at.Segment {
			return sharedlog.Entries{}, l.fateIn(ctx, h, at)
		}
		if at.Offset < h.segment {
			return l.readEnded(ctx, at, h.segment)
		}
		at = at.Moved(h.segment)
	}
	return sharedlog.Entries{}, l.restless()
}

// readEnded reads the rest of a segment that has ended, where that is needed to reach the current one.
func (l *log) readEnded(ctx context.Context, at sharedlog.Position, current int64) (sharedlog.Entries, error) {
	raw, err := l.raw(ctx, l.key("e:", at.Incarnation, at.Segment), at)
	if err != nil {
		return sharedlog.Entries{}, err
	}
	if len(raw) <= sharedlog.StampSize { // gone; or at its end, and another segment lies between
		return sharedlog.Entries{}, &Error{kind: sharedlog.ErrBehind, at: l.name, what: fmt.Sprintf("the log before %d is gone", current)}
	}
	got, err := sharedlog.Slice(at, raw)
	if got.At.Offset >= current {
		got.At = got.At.Moved(current)
	}
	got.More = true
	if err != nil {
		return got, err
	}
	return l.marked(ctx, got)
}

func (l *log) restless() error {
	return &Error{kind: sharedlog.ErrUnavailable, at: l.name, what: "the log was changed again and again during a call", hint: "is another process compacting it without need?"}
}

// Load implements [sharedlog.Log].
func (l *log) Load(ctx context.Context, known sharedlog.Position) (got sharedlog.Loaded, err error) {
	var before head
	for try := range tries {
		dials := l.dials.Load()
		h, err := l.look(ctx, l.head())
		if err != nil {
			return got, err
		}
		if h.incarnation == 0 {
			if known.Incarnation != 0 {
				return got, l.lost(ctx, false)
			}
			if got.Created, err = l.create(ctx, h.now); err != nil {
				return got, err
			}
			continue
		}
		if try > 0 && h.incarnation == before.incarnation && h.segment == before.segment && !got.Created {
			return got, l.lost(ctx, true) // nothing changed, and yet it was not there
		}
		before = h
		if done, err := l.loadAt(ctx, h, &got); done || err != nil {
			l.missed.Store(0)
			l.note(h, dials)
			got.Moved = h.moved
			return got, err
		}
	}
	return got, l.restless()
}

// awaitSurvivors is how long a process that finds no log leaves it to those that listen and so have used one: they know what
// was in it.
const awaitSurvivors = time.Second

// create makes a log with nothing in it. It reports false if another process was first.
func (l *log) create(ctx context.Context, now store.Time) (bool, error) {
	if l.survived(ctx, now) {
		return false, &Error{kind: sharedlog.ErrLost, at: l.name, what: "the log is gone, and processes that have used it are about to write it again"}
	}
	incarnation := uint64(max(now, 1))
	reply, err := l.run(ctx, createScript, []string{l.head(), l.key("s:", incarnation, 0), l.posts()},
		format, strconv.FormatUint(incarnation, 10), rueidis.BinaryString(sharedlog.Header(0)), millis(sharedlog.KeepNew))
	if err != nil {
		return false, err
	}
	switch said, _ := reply.ToString(); said {
	case "ok":
		return true, nil
	case "taken":
		return false, nil
	case "lost":
		return false, &Error{kind: sharedlog.ErrLost, at: l.name, what: "the log is gone, and processes that know it are about to write it again"}
	}
	return false, l.odd("the script returned something else")
}

// survived wakes all that use the log, and reports whether there are any that have not had their time yet to write it again.
// In a Cluster it sees only those that listen at the same node.
func (l *log) survived(ctx context.Context, now store.Time) bool {
	got, err := l.do(ctx, l.client.B().Publish().Channel(l.everybody()).Message("").Build())
	if err != nil {
		return false
	}
	listeners, err := got[0].AsInt64()
	if err != nil || listeners == 0 {
		return false
	}
	l.missed.CompareAndSwap(0, int64(now))
	return now.Sub(store.Time(l.missed.Load())) < awaitSurvivors
}

// loadAt reads what a hash names. It reports false if that is gone.
func (l *log) loadAt(ctx context.Context, h head, got *sharedlog.Loaded) (bool, error) {
	at := sharedlog.Position{Incarnation: h.incarnation, Segment: h.segment, Offset: h.segment}
	commands := []rueidis.Completed{l.around(l.key("s:", h.incarnation, h.segment), at)}
	if h.size > 0 {
		commands = append(commands, l.part(h, 0))
	}
	replies, err := l.do(ctx, commands...)
	if err != nil {
		return false, err
	}
	raw, err := replies[0].AsBytes()
	if err != nil {
		return false, l.fail(err)
	}
	if len(raw) < sharedlog.StampSize {
		return false, nil
	}
	snapshot := make([]byte, 0, h.size)
	for h.size > 0 {
		part, err := replies[len(replies)-1].AsBytes()
		if err != nil {
			return false, l.fail(err)
		}
		snapshot = append(snapshot, part...)
		if len(part) == 0 || len(snapshot) >= h.size {
			break
		}
		if replies, err = l.do(ctx, l.part(h, len(snapshot))); err != nil {
			return false, err
		}
	}
	if len(snapshot) != h.size {
		return false, nil
	}
	at.Stamp = sharedlog.ReadStamp(raw)
	got.Snapshot, got.Origin, got.Now = snapshot, h.origin, h.now
	got.Entries, err = sharedlog.Slice(at, raw)
	return true, err
}
