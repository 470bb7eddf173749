package provider

import "encoding/binary"

// events extracts the data of server-sent events and passes it on as it arrives: an event may have any length.
type events struct {
	to   *scanner
	line lineState
	n    int  // bytes of the field's name read so far
	data bool // the event has data
}

type lineState uint8

const (
	inName lineState = iota
	inData
	inOther
)

const dataField = "data:"

func (e *events) write(p []byte) {
	for len(p) > 0 {
		switch e.line {
		case inName:
			e.field(p[0])
			p = p[1:]
		default:
			p = e.rest(p)
		}
	}
}

// field reads the beginning of a line. A blank line ends the event.
func (e *events) field(c byte) {
	switch {
	case c == '\r' && e.n == 0: // of a line that ends in \r\n
	case c == '\n':
		if e.n == 0 && e.data {
			e.data = false
			e.to.restart()
		}
		e.n = 0
	case e.n < len(dataField) && c == dataField[e.n]:
		if e.n++; e.n == len(dataField) {
			e.line, e.data = inData, true
		}
	default:
		e.line = inOther
	}
}

// rest reads to the end of a line.
func (e *events) rest(p []byte) []byte {
	i := 0
	for i < len(p) && p[i] != '\n' {
		i++
	}
	if e.line == inData {
		e.to.write(p[:i])
	}
	if i == len(p) {
		return nil
	}
	if e.line == inData {
		e.to.write(p[i : i+1])
	}
	e.line, e.n = inName, 0
	return p[i+1:]
}

// frames parses Amazon's event stream. A frame has two lengths and their checksum, headers, a payload, and a
// checksum. The client verifies the checksums.
type frames struct {
	to    *scanner
	lens  [8]byte
	n     int // bytes of lens read so far
	skip  int // bytes to skip
	body  int // bytes of the payload that follow
	after int // bytes after the payload
	bad   bool
}

const frameBytes = 16 // bytes of a frame besides headers and payload
const maxFrame = 24 << 20

func (f *frames) write(p []byte) {
	for len(p) > 0 && !f.bad {
		switch {
		case f.skip > 0:
			n := min(f.skip, len(p))
			f.skip, p = f.skip-n, p[n:]
		case f.body > 0:
			n := min(f.body, len(p))
			f.to.write(p[:n])
			if f.body, p = f.body-n, p[n:]; f.body == 0 {
				f.to.restart()
			}
		case f.after > 0:
			n := min(f.after, len(p))
			f.after, p = f.after-n, p[n:]
		default:
			f.lens[f.n] = p[0]
			p = p[1:]
			if f.n++; f.n == len(f.lens) {
				f.begin()
			}
		}
	}
}

func (f *frames) begin() {
	total, headers := binary.BigEndian.Uint32(f.lens[:4]), binary.BigEndian.Uint32(f.lens[4:])
	f.n = 0
	if total > maxFrame || headers > maxFrame || total < headers+frameBytes {
		f.bad = true
		return
	}
	f.skip = 4 + int(headers) // the checksum of the lengths comes first
	f.body = int(total-headers) - frameBytes
	f.after = 4
}
