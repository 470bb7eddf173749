package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

func (l *log) snapshotKey(number string) string { return l.base + "n:" + number }

// part returns the command that reads a part of a snapshot.
func (l *log) part(h head, from int) rueidis.Completed {
	return l.client.B().Getrange().Key(l.snapshotKey(h.snapshot)).Start(int64(from)).End(int64(from + sharedlog.MaxRead - 1)).Build()
}

// upload stores a snapshot in parts, so that other calls need not wait for all of it, and returns its number. It expires
// unless it becomes that of the log.
func (l *log) upload(ctx context.Context, snapshot []byte) (number string, err error) {
	number = strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // it names, it guards nothing
	key := l.snapshotKey(number)
	first := snapshot[:min(len(snapshot), sharedlog.MaxRead)]
	command := l.client.B().Set().Key(key).Value(rueidis.BinaryString(first)).PxMilliseconds(sharedlog.KeepUpload.Milliseconds()).Build()
	for rest := snapshot[len(first):]; ; {
		got, err := l.do(ctx, command)
		if err != nil {
			return "", err
		}
		if err := got[0].Error(); err != nil {
			return "", l.fail(err)
		}
		if len(rest) == 0 {
			return number, nil
		}
		part := rest[:min(len(rest), sharedlog.MaxRead)]
		rest = rest[len(part):]
		command = l.client.B().Append().Key(key).Value(rueidis.BinaryString(part)).Build()
	}
}

func tooBig(snapshot []byte) error {
	if len(snapshot) <= sharedlog.MaxSnapshot {
		return nil
	}
	return fmt.Errorf("%w: a snapshot of %d bytes", sharedlog.ErrTooBig, len(snapshot))
}

// Claim implements [sharedlog.Log].
func (l *log) Claim(ctx context.Context, at sharedlog.Position, within time.Duration) (bool, error) {
	if l.bad != nil {
		return false, l.bad
	}
	key := l.key("c:", at.Incarnation, at.Segment)
	got, err := l.do(ctx, l.client.B().Set().Key(key).Value("1").Nx().PxMilliseconds(max(within.Milliseconds(), 1)).Build())
	if err != nil {
		return false, err
	}
	if err := got[0].Error(); rueidis.IsRedisNil(err) {
		return false, nil
	} else if err != nil {
		return false, l.fail(err)
	}
	return true, nil
}

// Compact implements [sharedlog.Log].
func (l *log) Compact(ctx context.Context, at sharedlog.Position, snapshot []byte) error {
	if err := tooBig(snapshot); err != nil {
		return err
	}
	old := l.key("s:", at.Incarnation, at.Segment)
	for range tries {
		h, err := l.look(ctx, old)
		if err != nil {
			return err
		}
		if h.incarnation != at.Incarnation || h.segment != at.Segment || !h.there {
			return l.fateIn(ctx, h, at)
		}
		if at.Offset == at.Segment {
			return nil
		}
		number, err := l.upload(ctx, snapshot)
		if err != nil {
			return err
		}
		keys := []string{l.head(), old, l.key("e:", at.Incarnation, at.Segment), l.snapshotKey(number), l.key("s:", at.Incarnation, at.Offset)}
		if h.snapshot != "" {
			keys = append(keys, l.snapshotKey(h.snapshot))
		}
		done, err := l.finish(ctx, compactScript, keys,
			strconv.FormatUint(at.Incarnation, 10), strconv.FormatInt(at.Segment, 10), strconv.FormatInt(at.Offset, 10),
			strconv.FormatInt(at.Index()-sharedlog.StampSize, 10), rueidis.BinaryString(sharedlog.AppendStamp(nil, at.Stamp)), sharedlog.Magic,
			number, strconv.Itoa(len(snapshot)), millis(sharedlog.KeepEnded), millis(sharedlog.KeepUpload))
		if err != nil || done {
			return err
		}
	}
	return l.restless()
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// finish runs a script that makes an uploaded snapshot that of the log. It reports false if the log has changed, or the upload
// is gone: then the caller begins anew.
func (l *log) finish(ctx context.Context, s *script, keys []string, args ...string) (bool, error) {
	reply, err := l.run(ctx, s, keys, args...)
	if err != nil {
		return false, err
	}
	switch said, _ := reply.ToString(); said {
	case "ok":
		return true, nil
	case "taken", "again":
		return false, nil
	case "lost":
		return false, &Error{kind: sharedlog.ErrLost, at: l.name, what: "the log has other entries than this process has read"}
	}
	return false, l.odd("the script returned something else")
}

// Keep implements [sharedlog.Log].
func (l *log) Keep(ctx context.Context, at sharedlog.Position, unused time.Duration) error {
	for range tries {
		h, err := l.look(ctx, l.segment(at).key)
		if err != nil {
			return err
		}
		if h.incarnation != at.Incarnation || h.segment == at.Segment && !h.there || h.segment < at.Segment {
			return l.fateIn(ctx, h, at)
		}
		keys := []string{l.head(), l.key("s:", h.incarnation, h.segment)}
		if h.snapshot != "" {
			keys = append(keys, l.snapshotKey(h.snapshot))
		}
		done, err := l.finish(ctx, keepScript, keys, strconv.FormatUint(h.incarnation, 10), strconv.FormatInt(h.segment, 10), millis(max(unused, time.Millisecond)))
		if err != nil || done {
			return err
		}
	}
	return l.restless()
}

// Revive implements [sharedlog.Log].
func (l *log) Revive(ctx context.Context, from sharedlog.Position, snapshot []byte) (sharedlog.Position, error) {
	if err := tooBig(snapshot); err != nil {
		return sharedlog.Position{}, err
	}
	for range tries {
		h, err := l.look(ctx, l.head())
		if err != nil {
			return sharedlog.Position{}, err
		}
		if h.incarnation > from.Incarnation {
			return sharedlog.Position{}, l.fateIn(ctx, h, from)
		}
		number, err := l.upload(ctx, snapshot)
		if err != nil {
			return sharedlog.Position{}, err
		}
		began := sharedlog.Position{Incarnation: max(uint64(max(h.now, 0)), from.Incarnation+1)}
		keys := []string{l.head(), l.key("s:", began.Incarnation, 0), l.snapshotKey(number), l.posts()}
		found := []string{"", ""}
		if h.incarnation != 0 {
			found = []string{strconv.FormatUint(h.incarnation, 10), strconv.FormatInt(h.segment, 10)}
			keys = append(keys, l.key("s:", h.incarnation, h.segment))
			if h.snapshot != "" {
				keys = append(keys, l.snapshotKey(h.snapshot))
			}
		}
		done, err := l.finish(ctx, reviveScript, keys, found[0], found[1], format, strconv.FormatUint(began.Incarnation, 10),
			rueidis.BinaryString(sharedlog.Header(0)), number, strconv.Itoa(len(snapshot)), from.String(), millis(sharedlog.KeepUpload), millis(sharedlog.KeepNew))
		if err != nil || done {
			return began, err
		}
	}
	return sharedlog.Position{}, l.restless()
}
