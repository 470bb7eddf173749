package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// messageLines reads a client's messages, one per line, and passes on only the valid ones. It answers the others with an
// error, as JSON-RPC asks for. Without it the SDK ends the conversation at the first bad line.
type messageLines struct {
	in   *bufio.Reader
	end  io.Closer
	out  io.Writer
	rest []byte // of the current line
}

func readMessages(in io.ReadCloser, out io.Writer) *messageLines {
	return &messageLines{in: bufio.NewReaderSize(in, maxMessage), end: in, out: out}
}

func (m *messageLines) Close() error { return m.end.Close() }

func (m *messageLines) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			err = m.skipLine()
			line = nil
			m.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has at most %d bytes, on one line", maxMessage))
		case len(bytes.TrimSpace(line)) == 0:
			line = nil
		case !json.Valid(line):
			line = nil
			m.refuse(jsonrpc.CodeParseError, "this line is not JSON: send one message per line")
		default:
			if _, bad := jsonrpc.DecodeMessage(line); bad != nil {
				line = nil
				m.refuse(jsonrpc.CodeInvalidRequest, "this line is not a JSON-RPC 2.0 message: send one message per line, no batches")
			}
		}
		if m.rest = line; len(line) == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// skipLine reads to the end of a line that is too long.
func (m *messageLines) skipLine() error {
	for {
		if _, err := m.in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// refuse answers a line whose id is not known. If it cannot be written, the next answer fails too and ends the
// conversation.
func (m *messageLines) refuse(code int, why string) {
	_, _ = fmt.Fprintf(m.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, why)
}

// oneAtATime is an output for several writers, each of whose writes stays whole.
type oneAtATime struct {
	io.WriteCloser

	mu sync.Mutex
}

func (w *oneAtATime) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
