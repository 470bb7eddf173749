package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/filelock"
	"github.com/sluicehq/sluice/internal/statedir"
)

// A file of figures begins with a line that identifies it. Frames follow: a length, a checksum, and a minute. An
// incomplete frame ends the file, and the next writer cuts it off.
const (
	family   = "sluice history "
	magic    = family + "1\n"
	frameTop = 8
	maxFrame = 1 << 20
	maxLine  = 4096
	dayForm  = "20060102"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errOther means that the file is left alone: its minutes are neither shown nor extended.
var errOther = errors.New("it was written by another version of Sluice; use that version, or move the file away")

// files are the files of one directory. The lock makes sure that one process writes them; others read.
type files struct {
	dir  string
	lock *os.File // nil: another process writes

	day   string // the day of names and size
	names *names
	size  int64 // size of the intact part of the day's file
	swept string
}

var errBusy = errors.New("another process keeps the history in this directory")

func openFiles(dir string) (*files, error) {
	f := &files{dir: dir}
	if err := openDir(dir); err != nil {
		return nil, err
	}
	l, err := statedir.Open(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := filelock.Try(l, true); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		_ = l.Close()
		return f, fmt.Errorf("%s: %w; this daemon shows that history", dir, errBusy)
	}
	f.lock = l
	return f, nil
}

func (f *files) close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

func (f *files) figures(day string) string { return filepath.Join(f.dir, "minutes-"+day+".bin") }
func (f *files) events(day string) string  { return filepath.Join(f.dir, "events-"+day+".jsonl") }

// sweep removes old files, once a day.
func (f *files) sweep(today time.Time) {
	day := today.Format(dayForm)
	if f.swept == day {
		return
	}
	f.swept = day
	oldest := today.AddDate(0, 0, -Days).Format(dayForm)
	list, err := os.ReadDir(f.dir)
	if err != nil {
		return // the next day tries again
	}
	for _, e := range list {
		if d, ok := dayOf(e.Name()); ok && d < oldest {
			_ = os.Remove(filepath.Join(f.dir, e.Name()))
		}
	}
}

// dayOf returns the day of a file.
func dayOf(name string) (string, bool) {
	for _, form := range [...][2]string{{"minutes-", ".bin"}, {"events-", ".jsonl"}} {
		if rest, ok := strings.CutPrefix(name, form[0]); ok {
			day, ok := strings.CutSuffix(rest, form[1])
			_, err := time.Parse(dayForm, day)
			return day, ok && err == nil
		}
	}
	return "", false
}

// add appends a minute to the file of its day.
func (f *files) add(m *minute) error {
	if f.lock == nil || m.empty() {
		return nil
	}
	at := timeOf(m.at)
	day := at.Format(dayForm)
	f.sweep(at)
	if err := openDir(f.dir); err != nil { // it may have been removed
		return err
	}
	out, err := statedir.Open(f.figures(day), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the kernel has what was written
	if err := f.prepare(out, day); err != nil {
		return err
	}
	payload := encode(m, f.names)
	frame := make([]byte, frameTop, frameTop+len(payload))
	binary.LittleEndian.PutUint32(frame, uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(payload, castagnoli))
	frame = append(frame, payload...)
	if f.size == 0 {
		frame = append([]byte(magic), frame...)
	}
	if _, err := out.WriteAt(frame, f.size); err != nil {
		f.day = "" // read the file and its names again
		_ = out.Truncate(f.size)
		return err
	}
	f.size += int64(len(frame))
	f.names.fresh = nil
	return nil
}

// prepare reads the names of the day's file and cuts off a damaged end, unless that was done before.
func (f *files) prepare(out *os.File, day string) error {
	info, err := out.Stat()
	if err != nil {
		return err
	}
	if f.day == day && info.Size() == f.size {
		return nil
	}
	f.names = newNames()
	size, err := readFrames(out, f.names, func(int64) bool { return false }, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", out.Name(), err)
	}
	if size != info.Size() {
		if err := out.Truncate(size); err != nil {
			return err
		}
	}
	f.day, f.size = day, size
	return nil
}

// readFrames reads the intact part of a file of figures, and returns its size.
func readFrames(r io.Reader, known *names, at func(int64) bool, each func(int64, key, *row)) (size int64, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	top := make([]byte, max(frameTop, len(magic)))
	n, err := io.ReadFull(in, top[:len(magic)])
	switch begin := string(top[:n]); {
	case begin == magic:
	case strings.HasPrefix(magic, begin): // its writer was killed
		return 0, onlyReal(err)
	case isOther(begin): // the version that wrote it can still use it
		return 0, errOther
	default:
		return 0, onlyReal(err)
	}
	size = int64(len(magic))
	var frame []byte
	for {
		if _, err := io.ReadFull(in, top[:frameTop]); err != nil {
			return size, onlyReal(err)
		}
		length := binary.LittleEndian.Uint32(top)
		if length == 0 || length > maxFrame {
			return size, nil
		}
		if cap(frame) < int(length) {
			frame = make([]byte, length)
		}
		frame = frame[:length]
		if _, err := io.ReadFull(in, frame); err != nil {
			return size, onlyReal(err)
		}
		if crc32.Checksum(frame, castagnoli) != binary.LittleEndian.Uint32(top[4:]) || decode(frame, known, at, each) != nil {
			return size, nil
		}
		size += int64(frameTop) + int64(length)
	}
}

// isOther reports whether a file begins like that of another version: with another number.
func isOther(begin string) bool {
	rest, ok := strings.CutPrefix(begin, family)
	number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	return ok && number != "" && number != strings.TrimSpace(magic[len(family):])
}

// onlyReal returns nil for the end of a file, and other errors unchanged.
func onlyReal(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// event appends an event to the file of its day.
func (f *files) event(e *inspect.Event) error {
	if f.lock == nil {
		return nil
	}
	for _, s := range [...]*string{&e.Kind, &e.Resource, &e.Ticket, &e.Agent, &e.User, &e.Class, &e.Model, &e.Requested, &e.Tool, &e.Verdict, &e.Limit, &e.Scope, &e.Mode, &e.Machine, &e.FromMachine} {
		*s = short(*s)
	}
	e.Units = nil
	text, err := json.Marshal(e)
	if err != nil || len(text) >= maxLine {
		return nil // a time out of range, or too long
	}
	if err := openDir(f.dir); err != nil {
		return err
	}
	out, err := statedir.Open(f.events(e.Time.UTC().Format(dayForm)), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	info, err := out.Stat()
	if err != nil || info.Size()+maxLine > MaxEventsDay {
		return err
	}
	text = append(text, '\n')
	if last := make([]byte, 1); info.Size() > 0 {
		if _, err := out.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			text = append([]byte{'\n'}, text...) // the last line is incomplete
		}
	}
	_, err = out.WriteAt(text, info.Size())
	return err
}

// days returns the days between two times, oldest first.
func days(since, until time.Time) (list []string) {
	for t := since.UTC().Truncate(24 * time.Hour); !t.After(until); t = t.AddDate(0, 0, 1) {
		list = append(list, t.Format(dayForm))
	}
	return list
}

// read calls each for every row between two times.
func (f *files) read(since, until time.Time, each func(int64, key, *row)) error {
	first, last := minuteOf(since), minuteOf(until)
	within := func(at int64) bool { return at >= first && at <= last }
	for _, day := range days(since, until) {
		in, err := statedir.Open(f.figures(day), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = readFrames(in, newNames(), within, each)
		_ = in.Close()
		if err != nil && !errors.Is(err, errOther) {
			return err
		}
	}
	return nil
}

// oldest returns the first minute that has figures.
func (f *files) oldest() (time.Time, bool) {
	list, err := os.ReadDir(f.dir)
	if err != nil {
		return time.Time{}, false
	}
	for _, e := range list { // sorted by name, and so by day
		if day, ok := dayOf(e.Name()); ok && strings.HasPrefix(e.Name(), "minutes-") {
			first, found := time.Time{}, false
			in, err := statedir.Open(f.figures(day), os.O_RDONLY)
			if err != nil {
				continue
			}
			_, _ = readFrames(io.LimitReader(in, maxFrame), newNames(), func(at int64) bool {
				if !found {
					first, found = timeOf(at), true
				}
				return false
			}, nil)
			_ = in.Close()
			if found {
				return first, true
			}
		}
	}
	return time.Time{}, false
}

// readEvents calls each for every event between two times, oldest first.
func (f *files) readEvents(since, until time.Time, each func(inspect.Event)) error {
	for _, day := range days(since, until) {
		in, err := statedir.Open(f.events(day), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 0, maxLine), 2*maxLine)
		for lines.Scan() {
			var e inspect.Event
			if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 && json.Unmarshal(text, &e) == nil && !e.Time.Before(since) && !e.Time.After(until) {
				each(e)
			}
		}
		_ = in.Close()
		if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
			return err
		}
	}
	return nil
}
