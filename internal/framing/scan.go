// Package framing makes an HTTP/1 server refuse requests whose length two headers state: Transfer-Encoding and
// Content-Length. net/http follows the first and drops the second, so that no handler sees the contradiction.
package framing

// preface opens an HTTP/2 connection. HTTP/2 frames requests in its own way, and the scanner lets it pass.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// version11 is "HTTP/1.1" as the last eight bytes of a request line.
const version11 = uint64('H')<<56 | uint64('T')<<48 | uint64('T')<<40 | uint64('P')<<32 | uint64('/')<<24 | uint64('1')<<16 | uint64('.')<<8 | uint64('1')

// connect is the begin of a request that asks for a tunnel.
const connect = uint64('C')<<56 | uint64('O')<<48 | uint64('N')<<40 | uint64('N')<<32 | uint64('E')<<24 | uint64('C')<<16 | uint64('T')<<8 | uint64(' ')

// maxLength bounds the lengths of bodies and chunks, far above what net/http gets to read.
const maxLength = 1 << 58

// longest is the length of "transfer-encoding", the longest name that matters.
const longest = 17

type state uint8

const (
	beforeRequest state = iota
	inRequestLine
	atLine  // before a header field, or the blank line that ends them
	inName  // of a field
	inValue // of a field
	inBody  // of a stated length
	inChunkSize
	afterChunkSize // white space that may follow it
	inChunkExtension
	atChunkLineEnd // its LF
	inChunk
	afterChunk // its CR
	atChunkEnd // its LF
	refused
	passing
)

// scanner follows the requests of one connection. It knows where each head begins and ends, whatever bodies contain.
//
// It refuses by spoiling the bytes that net/http is about to parse: net/http then answers 400 and closes the connection.
// Nothing after the spoiled byte can become a request. The scanner is at least as strict as net/http in every byte that
// decides where a message ends. If both accept a request, they agree on its end.
type scanner struct {
	state    state
	tunnels  bool          // after the head of a CONNECT all bytes pass
	trailer  bool          // the fields follow the last chunk
	cr       bool          // the byte before was a CR
	chunked  bool          // the head has a Transfer-Encoding
	sized    bool          // the head has a Content-Length
	counting bool          // the value of Content-Length is being read
	digits   bool          // the size of a chunk has begun
	prefaced int           // bytes of the preface that have come; -1 if the connection began otherwise
	n        int           // bytes of name, where longest+1 stands for all that are longer; in a request line, bytes of begin
	begin    uint64        // first eight bytes of the request line
	name     [longest]byte // in lower case
	version  uint64        // last eight bytes of the request line
	left     int64         // of the body or chunk; or its length, while that is read
}

// scan follows p, which was read from the connection, and spoils what must not be served.
func (s *scanner) scan(p []byte) {
	for i := 0; i < len(p); {
		switch s.state {
		case passing:
			return
		case inBody, inChunk:
			n := min(s.left, int64(len(p)-i))
			s.left -= n
			i += int(n)
			if s.left > 0 {
				return
			}
			if s.state == inBody {
				s.state = beforeRequest
			} else {
				s.state = afterChunk
			}
			continue
		case refused:
		default:
			if s.accepts(p[i]) {
				i++
				continue
			}
			s.state = refused
		}
		spoil(p[i:])
		return
	}
}

// spoil overwrites p. It leaves the ends of lines, or net/http would wait for one.
func spoil(p []byte) {
	for i, b := range p {
		if b != '\n' {
			p[i] = 0
		}
	}
}

// accepts follows one byte outside bodies. It reports false if the request must be refused.
func (s *scanner) accepts(b byte) bool {
	if s.prefaced >= 0 {
		if b != preface[s.prefaced] {
			s.prefaced = -1
		} else if s.prefaced++; s.prefaced == len(preface) {
			s.state = passing
			return true
		}
	}
	switch s.state {
	case beforeRequest, inRequestLine:
		s.requestLine(b)
		return true
	case atLine, inName, inValue:
		return s.field(b)
	default:
		return s.chunk(b)
	}
}

func (s *scanner) requestLine(b byte) {
	switch {
	case b == '\n' && s.state == inRequestLine:
		s.state, s.cr, s.trailer, s.chunked, s.sized, s.left = atLine, false, false, false, false, 0
	case b == '\r' || b == '\n': // net/http skips blank lines after a POST, and refuses others
	default:
		if s.state == beforeRequest {
			s.state, s.n, s.begin = inRequestLine, 0, 0
		}
		if s.n < 8 {
			s.n, s.begin = s.n+1, s.begin<<8|uint64(b)
		}
		s.version = s.version<<8 | uint64(b)
	}
}

// field follows a byte of the header fields or of the trailer.
func (s *scanner) field(b byte) bool {
	switch s.state {
	case atLine:
		switch {
		case b == '\n':
			s.endOfFields()
			return true
		case b == '\r' && !s.cr:
			s.cr = true
			return true
		case s.cr || !isToken(b): // white space would continue the field before (obs-fold)
			return false
		}
		s.state, s.n = inName, 0
		s.addName(b)
		return true
	case inName:
		if b == ':' {
			s.state, s.cr = inValue, false
			return s.named(string(s.name[:min(s.n, longest)]))
		}
		s.addName(b)
		return isToken(b)
	default:
		return s.value(b)
	}
}

func (s *scanner) addName(b byte) {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	if s.n < longest {
		s.name[s.n] = b
	}
	s.n = min(s.n+1, longest+1)
}

// named looks at the name of a field. HTTP/1.0 has no Transfer-Encoding, and net/http ignores it there: others may not.
func (s *scanner) named(name string) bool {
	s.counting = false
	switch {
	case s.trailer || s.n > longest:
	case name == "transfer-encoding":
		s.chunked = true
		return !s.sized && s.version == version11
	case name == "content-length": // net/http refuses a second one that differs
		s.sized, s.counting, s.left = true, true, 0
		return !s.chunked
	}
	return true
}

func (s *scanner) value(b byte) bool {
	switch {
	case b == '\n':
		s.state, s.cr = atLine, false
		return true
	case s.cr:
		return false
	case b == '\r':
		s.cr = true
		return true
	case b == ' ' || b == '\t':
		return true
	case !s.counting:
		return b > ' ' && b != 0x7f
	}
	if b < '0' || b > '9' {
		return false
	}
	s.left = s.left*10 + int64(b-'0')
	return s.left <= maxLength
}

// endOfFields decides what follows the blank line.
func (s *scanner) endOfFields() {
	switch {
	case s.trailer:
		s.state = beforeRequest
	case s.tunnels && s.begin == connect: // the server hijacks the connection or closes it
		s.state = passing
	case s.chunked:
		s.beginChunk()
	case s.left > 0:
		s.state = inBody
	default:
		s.state = beforeRequest
	}
}

func (s *scanner) beginChunk() { s.state, s.left, s.digits = inChunkSize, 0, false }

// chunk follows a byte of chunked framing.
func (s *scanner) chunk(b byte) bool {
	switch s.state {
	case inChunkSize:
		if d := unhex(b); d >= 0 {
			s.digits, s.left = true, s.left<<4|d
			return s.left <= maxLength
		}
		switch {
		case !s.digits:
			return false
		case b == ';':
			s.state = inChunkExtension
			return true
		}
		s.state = afterChunkSize
		return s.chunk(b)
	case afterChunkSize:
		if b == '\r' {
			s.state = atChunkLineEnd
		}
		return b == '\r' || b == ' ' || b == '\t'
	case inChunkExtension:
		if b == '\r' {
			s.state = atChunkLineEnd
		}
		return b != '\n'
	case atChunkLineEnd:
		if s.state = inChunk; s.left == 0 {
			s.state, s.trailer, s.cr = atLine, true, false
		}
		return b == '\n'
	case afterChunk:
		s.state = atChunkEnd
		return b == '\r'
	default: // atChunkEnd
		s.beginChunk()
		return b == '\n'
	}
}

func unhex(b byte) int64 {
	switch {
	case '0' <= b && b <= '9':
		return int64(b - '0')
	case 'a' <= b && b <= 'f':
		return int64(b-'a') + 10
	case 'A' <= b && b <= 'F':
		return int64(b-'A') + 10
	}
	return -1
}

// isToken reports whether b may be part of a field's name.
func isToken(b byte) bool {
	switch {
	case '0' <= b && b <= '9', 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z':
		return true
	}
	switch b {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return false
}
