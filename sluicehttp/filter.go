package sluicehttp

import "bytes"

// maxEvent is the longest event that is held back to decide whether to remove it. An event with only usage is short.
const maxEvent = 64 << 10

// filter removes events from a stream of server-sent events and changes nothing else. It holds back only the event that
// has not ended yet.
type filter struct {
	only func(data []byte) bool
	held []byte // the event that has begun
	scan int    // how much of held was searched for the end of the event
	long bool   // the event is too long to hold: the rest of it passes
	out  []byte // what the client can read
	off  int    // how much of out it has read
	err  error  // how the stream ended
}

func (f *filter) read(p []byte) int {
	n := copy(p, f.out[f.off:])
	if f.off += n; f.off == len(f.out) {
		f.out, f.off = f.out[:0], 0
	}
	return n
}

func (f *filter) write(p []byte) {
	f.held = append(f.held, p...)
	begin := 0
	for {
		end := f.eventEnd(begin)
		if end < 0 {
			break
		}
		f.pass(f.held[begin:end])
		begin, f.long = end, false
	}
	rest := f.held[begin:]
	if f.long || len(rest) > maxEvent {
		// Line breaks at the end may belong to the end of the event. The byte before them shows that the line is not
		// empty.
		n := max(len(bytes.TrimRight(rest, "\r\n"))-1, 0)
		f.out = append(f.out, rest[:n]...)
		rest, f.long, begin = rest[n:], true, begin+n
	}
	f.scan = max(f.scan-begin, 0)
	f.held = append(f.held[:0], rest...)
}

// pass forwards an event, unless it is to be removed.
func (f *filter) pass(event []byte) {
	if !f.long {
		if data := eventData(event); len(data) > 0 && f.only(data) {
			return
		}
	}
	f.out = append(f.out, event...)
}

// end forwards an event that the end of the stream cut off.
func (f *filter) end(err error) {
	if len(f.held) > 0 {
		f.pass(f.held)
	}
	f.held, f.err = nil, err
}

// eventEnd returns the end of the event that starts at begin, after its empty line; -1 if it has not ended yet.
func (f *filter) eventEnd(begin int) int {
	for i := max(f.scan, begin); ; {
		n := bytes.IndexByte(f.held[i:], '\n')
		if n < 0 {
			return -1
		}
		i += n + 1
		f.scan = i // need not be searched again
		line := f.held[begin : i-1]
		if k := bytes.LastIndexByte(line, '\n'); len(bytes.TrimSuffix(line[k+1:], []byte("\r"))) == 0 {
			return i
		}
	}
}

// eventData returns the data of an event.
func eventData(event []byte) []byte {
	var data []byte
	several := false
	for len(event) > 0 {
		line, rest, _ := bytes.Cut(event, []byte("\n"))
		event = rest
		value, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\r")), []byte("data:"))
		if !ok {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case data == nil:
			data = value
		case !several: // data is a part of event, which must not be modified
			several = true
			data = append(append(bytes.Clone(data), '\n'), value...)
		default:
			data = append(append(data, '\n'), value...)
		}
	}
	return data
}
