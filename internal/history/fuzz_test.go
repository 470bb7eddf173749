package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"
)

// FuzzFrames reads arbitrary files of figures, also as a minute with a correct checksum. What it accepts must have
// the same sums when it is written and read again.
func FuzzFrames(f *testing.F) {
	m := newMinute(28_000_000)
	r := m.row(key{resource: "api"})
	r.Sends, r.Micros, r.Slow[3] = 3, 900, 2
	r.class("p1", 3)
	m.row(key{resource: "api", model: "opus"}).Input = 100
	m.row(key{agent: "ana"}).Throttled = 1
	payload := encode(m, newNames())
	f.Add(payload)
	f.Add(framed(payload))
	f.Add(append(framed(payload), payload...))
	f.Add([]byte("sluice history 2\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		checkFrames(t, data)
		checkFrames(t, framed(data))
	})
}

// framed is a file with one minute.
func framed(payload []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(payload)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(payload, castagnoli))
	return append(out, payload...)
}

func checkFrames(t *testing.T, data []byte) {
	t.Helper()
	minutes := map[int64]*minute{}
	rows := 0
	n := newNames()
	size, err := readFrames(bytes.NewReader(data), n, func(int64) bool { return true }, func(at int64, k key, r *row) {
		rows++
		if minutes[at] == nil {
			minutes[at] = newMinute(at)
		}
		merge(minutes[at].row(k), r)
	})
	if size > int64(len(data)) || rows > len(data) || len(n.list) > maxNames || len(n.list) > len(data) {
		t.Fatalf("%d of %d bytes, %d rows, %d names", size, len(data), rows, len(n.list))
	}
	if err != nil && err.Error() == "" {
		t.Error("an error says nothing")
	}
	// A reader that begins anew finds the same.
	if again, _ := readFrames(bytes.NewReader(data[:size]), newNames(), func(int64) bool { return false }, nil); again != size {
		t.Errorf("%d bytes are sound, and then %d", size, again)
	}
	for at, m := range minutes {
		var had, has Figures
		for _, list := range m.rows {
			for _, r := range list {
				had.add(&r.Figures)
			}
		}
		text := encode(m, newNames())
		if err := decode(text, newNames(), func(got int64) bool { return got == at }, func(_ int64, _ key, r *row) { has.add(&r.Figures) }); err != nil {
			t.Errorf("written again: %v", err)
		}
		had.Slow, has.Slow = [latencyBuckets]int64{}, [latencyBuckets]int64{} // of agents the mean is enough
		if had != has {
			t.Errorf("written again: %+v, was %+v", has, had)
		}
	}
}

// FuzzQuery makes arbitrary queries. The answer is bounded, and no query is slow.
func FuzzQuery(f *testing.F) {
	dir := f.TempDir()
	now := time.Now()
	files := &files{dir: dir}
	b := Open(Options{Dir: dir})
	for i := range 20 {
		m := newMinute(minuteOf(now) - int64(i)*100)
		m.row(key{resource: "api"}).Sends = int64(i)
		m.row(key{agent: "ana"}).Sends = int64(i)
		files.lock = b.files.lock
		if err := files.add(m); err != nil {
			f.Fatal(err)
		}
	}
	f.Cleanup(func() { _ = b.Close() })
	f.Add(int64(-3600), int64(0), int64(60), 10, 10)
	f.Add(int64(-1<<40), int64(1<<40), int64(1), 0, 0)
	f.Add(int64(0), int64(-3600), int64(-60), -1, -5)
	f.Fuzz(func(t *testing.T, since, until, step int64, most, events int) {
		q := Query{Since: now.Add(time.Duration(since)), Until: now.Add(time.Duration(until)), Step: time.Duration(step), Resources: true, Models: true, Agents: true}
		q.Most, q.Events = most%(MaxSeries+1), events%(MaxEvents+1)
		if q.Since.Before(now.AddDate(0, 0, -Days-1)) || q.Until.After(now.AddDate(0, 0, 1)) { // the API asks for nothing else
			return
		}
		q.Most, q.Events = max(q.Most, 0), max(q.Events, 0)
		a, err := b.read(&q)
		if err == nil && (len(a.Events) > q.Events || len(a.Resources) > q.Most+1 || len(a.Agents) > q.Most+1) {
			t.Errorf("%d events, %d resources, %d agents for %+v", len(a.Events), len(a.Resources), len(a.Agents), q)
		}
	})
}

// The file of another version was emptied when the first minute was added.
func TestTheHistoryOfAnotherVersionIsLeftAlone(t *testing.T) {
	f, err := openFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	m := newMinute(minuteOf(now))
	m.row(key{resource: "api"}).Sends = 3
	at := f.figures(now.Format(dayForm))
	later := []byte("sluice history 2\nwhat it has counted")
	if err := os.WriteFile(at, later, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.add(m); !errors.Is(err, errOther) || !strings.Contains(err.Error(), at) {
		t.Errorf("it is added to: %v", err)
	}
	if is, err := os.ReadFile(at); err != nil || !bytes.Equal(is, later) {
		t.Errorf("it is %q, %v", is, err)
	}
	if err := f.read(now, now, func(int64, key, *row) { t.Error("it is read") }); err != nil {
		t.Errorf("other days cannot be shown: %v", err)
	}
	if err := os.WriteFile(at, []byte(magic[:5]), 0o600); err != nil { // its writer was killed
		t.Fatal(err)
	}
	if err := f.add(m); err != nil {
		t.Error(err)
	}
}
