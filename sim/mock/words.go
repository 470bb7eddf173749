package mock

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// seed determines the whole answer.
type seed [sha256.Size]byte

// seedOf hashes the parts of a request that determine its answer.
func seedOf(parts ...[]byte) seed {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts { // with its length, so that different lists have different hashes
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return seed(h.Sum(nil))
}

// id returns an identifier that is the same for the same request.
func (s seed) id(prefix string) string { return prefix + hex.EncodeToString(s[:12]) }

// number returns a number below n. which selects one of four independent draws.
func (s seed) number(which int, n uint64) uint64 {
	return binary.BigEndian.Uint64(s[8*(which%4):]) % n
}

// Tokens returns the number of tokens in that many bytes of JSON: one for every four, rounded up.
func Tokens(bytes int64) int64 { return (bytes + 3) / 4 }

// tokensOf counts the tokens of JSON values, which must be compact.
func tokensOf(parts ...[]byte) int64 {
	total := int64(0)
	for _, p := range parts {
		total += int64(len(p))
	}
	return Tokens(total)
}

// Bounds on the number of words in an answer
const (
	leastWords = 5
	mostWords  = 200
)

// vocabulary lists the words of answers. Every word is one output token.
var vocabulary = strings.Fields(`the gate holds water until its turn comes and then lets one boat pass to a wider river while
	others wait in line for their share of light rain flows over stone slowly under bridges where nobody counts drops but
	every lock keeps level with what came before`)

// pieceWords is the number of words in one piece of a stream.
const pieceWords = 8

// answer is the content of a response.
type answer struct {
	seed   seed
	pieces []piece
	tokens int64
	cut    bool  // the request's own maximum cut it off
	tool   *call // called instead of a text; nil: text
}

// piece is the part of an answer that a stream sends in one event.
type piece struct {
	text   string
	tokens int64
}

// call is a call of a tool.
type call struct {
	name      string
	arguments string // JSON
}

func (a *answer) text() string {
	var b strings.Builder
	for _, p := range a.pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// respond makes an answer that calls a tool, or one of text if t is nil.
func (s *Server) respond(by seed, t *tool, most int64) *answer {
	switch {
	case t != nil:
		return useTool(by, t, most)
	case s.opts.Says != "":
		return say(by, strings.Fields(s.opts.Says), most)
	}
	return write(by, most)
}

// write makes an answer of words that the seed chooses.
func write(s seed, most int64) *answer {
	words := make([]string, leastWords+s.number(0, mostWords-leastWords+1))
	r := rand.New(rand.NewPCG(s.number(1, 1<<63), s.number(2, 1<<63)))
	for i := range words {
		words[i] = vocabulary[r.IntN(len(vocabulary))]
	}
	return say(s, words, most)
}

// say makes an answer of words, at most most of them. 0: no maximum.
func say(s seed, words []string, most int64) *answer {
	a := &answer{seed: s, tokens: int64(len(words))}
	if most > 0 && most < a.tokens {
		a.tokens, a.cut = most, true
	}
	for done := int64(0); done < a.tokens; {
		n := min(pieceWords, a.tokens-done)
		text := strings.Join(words[done:done+n], " ")
		if done > 0 {
			text = " " + text
		}
		a.pieces = append(a.pieces, piece{text, n})
		done += n
	}
	return a
}

// useTool makes an answer that calls a tool. Its arguments count like input: one token for four bytes.
func useTool(s seed, t *tool, most int64) *answer {
	c := &call{name: t.name, arguments: string(encode(t.arguments(s)))}
	a := &answer{seed: s, tool: c, tokens: Tokens(int64(len(c.arguments)))}
	if most > 0 {
		a.tokens = min(a.tokens, most)
	}
	const bytes = 16
	for at, left := 0, a.tokens; at < len(c.arguments); at += bytes {
		end := min(at+bytes, len(c.arguments))
		n := min(left, Tokens(int64(end-at)))
		a.pieces = append(a.pieces, piece{c.arguments[at:end], n})
		left -= n
	}
	return a
}

// tool is a tool that a request offers.
type tool struct {
	name   string
	schema json.RawMessage
}

// arguments returns a value for each property of the schema, by its type.
func (t *tool) arguments(s seed) obj {
	var schema struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(t.schema, &schema) // without a schema there are no arguments
	args := obj{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		p := schema.Properties[name]
		var value any = vocabulary[s.number(len(args), uint64(len(vocabulary)))]
		switch {
		case len(p.Enum) > 0:
			value = p.Enum[0]
		case p.Type == "integer" || p.Type == "number":
			value = int64(s.number(len(args), 100))
		case p.Type == "boolean":
			value = true
		case p.Type == "array":
			value = []any{}
		case p.Type == "object":
			value = obj{}
		}
		args = append(args, field{name, value})
	}
	return args
}
