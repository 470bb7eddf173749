package provider

import "sync"

// Bounds of the scanner.
const (
	maxDepth = 512 // levels of nesting; deeper documents are not read
	maxPath  = 8   // names kept on the path to a value
	maxKey   = 48  // bytes of a name
	maxHead  = 512 // bytes kept of a value
)

// sink receives what a scanner finds.
type sink interface {
	// scalar receives a string, a number, true, false or null, at the scanner's path.
	scalar(s *scanner)
	// closed is called when the object at the scanner's path is complete.
	closed(s *scanner)
	// done is called when a whole document is complete.
	done()
}

// scanner reads JSON in pieces of any length and reports every value with its path. It keeps only the names on the
// path and the beginning of the value, so a document may have any length. Arrays are not part of the path. Invalid
// JSON stops the scanner, without an error, until it is restarted: the client parses the document properly.
type scanner struct {
	to    sink
	state scanState
	depth int
	isObj [maxDepth / 64]uint64 // which levels are objects; the others are arrays
	objs  int                   // number of levels that are objects
	keys  [maxPath]name         // names of the outermost of them

	isKey   bool // the string is a name
	escaped bool // the next byte is part of an escape
	quoted  bool // the value is a string
	long    bool // the value has escapes
	size    int  // length of the value in bytes, with escapes
	head    [maxHead]byte
}

// name is the name of a member. A name that is too long is stored as empty, which matches nothing.
type name struct {
	b [maxKey]byte
	n int
}

type scanState uint8

const (
	wantValue  scanState = iota // or the end of an array
	wantName                    // or the end of an object
	wantColon                   //
	wantComma                   // or an end
	inString                    //
	inAtom                      // a number, true, false, null
	afterwards                  // between documents
	lost                        // after invalid JSON
)

func newScanner(to sink) *scanner { return &scanner{to: to, state: afterwards} }

// scanners pools scanners that are needed only during a call, because they are large.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

// anew resets a used scanner.
func (s *scanner) anew(to sink) { *s = scanner{to: to, state: afterwards} }

// restart discards an unfinished document.
func (s *scanner) restart() {
	s.state, s.depth, s.objs = afterwards, 0, 0
}

// at returns the name at a level of the path, counted from 0, or empty if it is not kept.
func (s *scanner) at(level int) string {
	if level >= s.objs || level >= maxPath {
		return ""
	}
	return string(s.keys[level].b[:s.keys[level].n])
}

// is reports whether the name at a level is want, without allocating.
func (s *scanner) is(level int, want string) bool {
	return level < s.objs && level < maxPath && string(s.keys[level].b[:s.keys[level].n]) == want
}

// value returns the value, or its beginning.
func (s *scanner) value() []byte { return s.head[:min(s.size, maxHead)] }

// write reads the next piece.
func (s *scanner) write(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case inString:
			p = s.str(p)
		case inAtom:
			p = s.atom(p)
		case lost:
			return
		default:
			s.mark(p[0])
			p = p[1:]
		}
	}
}

// mark reads one byte between values.
func (s *scanner) mark(c byte) {
	switch {
	case c == ' ' || c == '\n' || c == '\r' || c == '\t':
	case s.state == afterwards && (c == 0xEF || c == 0xBB || c == 0xBF): // a byte order mark
	case c == '"' && s.state == wantName:
		s.begin(inString, true)
	case s.state == wantColon:
		s.next(c == ':', wantValue)
	case c == '}':
		s.end(s.state != wantValue && s.state != afterwards && s.inObject())
	case c == ']':
		s.end((s.state == wantValue || s.state == wantComma) && s.depth > 0 && !s.inObject())
	case s.state == wantComma && s.inObject():
		s.next(c == ',', wantName)
	case s.state == wantComma:
		s.next(c == ',', wantValue)
	case s.state == wantName:
		s.state = lost
	case c == '{' || c == '[':
		s.open(c == '{')
	case c == '"':
		s.begin(inString, false)
	case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == 'N' || c == 'I': // Python writes NaN and Infinity
		s.begin(inAtom, false)
		s.keep(c)
	default:
		s.state = lost
	}
}

func (s *scanner) next(ok bool, state scanState) {
	if s.state = state; !ok {
		s.state = lost
	}
}

func (s *scanner) begin(state scanState, isKey bool) {
	s.state, s.isKey, s.escaped, s.quoted, s.long, s.size = state, isKey, false, state == inString, false, 0
}

func (s *scanner) keep(c byte) {
	if s.size < maxHead {
		s.head[s.size] = c
	}
	s.size++
}

func (s *scanner) inObject() bool {
	return s.depth > 0 && s.isObj[(s.depth-1)/64]&(1<<((s.depth-1)%64)) != 0
}

func (s *scanner) open(object bool) {
	if s.depth == maxDepth {
		s.state = lost
		return
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	s.depth++
	if !object {
		s.isObj[word] &^= bit
		s.state = wantValue
		return
	}
	s.isObj[word] |= bit
	s.state = wantName
	if s.objs < maxPath {
		s.keys[s.objs].n = 0
	}
	s.objs++
}

// end closes an object or an array.
func (s *scanner) end(ok bool) {
	if !ok {
		s.state = lost
		return
	}
	object := s.inObject()
	s.depth--
	if object {
		s.objs--
		s.to.closed(s)
	}
	s.valued()
}

// valued continues after a value.
func (s *scanner) valued() {
	if s.state = wantComma; s.depth == 0 {
		s.state = afterwards
		s.to.done()
	}
}

// str continues reading a string.
func (s *scanner) str(p []byte) []byte {
	i := 0
	if s.escaped {
		s.escaped = false
		s.keep(p[0])
		i = 1
	}
	from := i
	for i < len(p) && p[i] != '"' && p[i] != '\\' {
		i++
	}
	if s.size < maxHead {
		copy(s.head[s.size:], p[from:i])
	}
	s.size += i - from
	if i == len(p) {
		return nil
	}
	if p[i] == '\\' {
		s.escaped, s.long = true, true
		s.keep('\\')
		return p[i+1:]
	}
	if s.isKey {
		s.named()
	} else {
		s.to.scalar(s)
		s.valued()
	}
	return p[i+1:]
}

// named stores the name of a member, with escapes decoded.
func (s *scanner) named() {
	s.state = wantColon
	if s.objs > maxPath {
		return
	}
	k := &s.keys[s.objs-1]
	b := s.value()
	if s.long {
		b = unescape(b)
	}
	if k.n = 0; len(b) <= maxKey && s.size <= maxHead {
		k.n = copy(k.b[:], b)
	}
}

// atom continues reading a number or a word.
func (s *scanner) atom(p []byte) []byte {
	for i, c := range p {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '.', c == '-', c == '+', c >= 'A' && c <= 'Z':
			s.keep(c)
		default:
			s.to.scalar(s)
			s.valued()
			return p[i:]
		}
	}
	return nil
}
