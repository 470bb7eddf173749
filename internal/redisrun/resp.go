package redisrun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	doWithin   = 15 * time.Second // if the context has no deadline
	mostBytes  = 64 << 20         // of one string
	mostItems  = 1 << 20          // of one list
	mostNested = 8
)

// ReplyError is an error reply of the server, such as "MOVED 3999 127.0.0.1:6381".
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// reply is a string, a number as text, or a list. A nil reply is the empty text.
type reply struct {
	text string
	list []reply
}

// Do sends one command on its own connection and returns the reply as text. The items of a list are separated by
// line breaks, and a nil reply is "". An error reply is a ReplyError. Without a deadline it gives up after doWithin.
func (s *Server) Do(ctx context.Context, args ...string) (string, error) {
	r, err := s.ask(ctx, args...)
	if err != nil {
		return "", err
	}
	var items []string
	r.flatten(&items)
	return strings.Join(items, "\n"), nil
}

func (r reply) flatten(items *[]string) {
	if r.list == nil {
		*items = append(*items, r.text)
		return
	}
	for _, item := range r.list {
		item.flatten(items)
	}
}

func (s *Server) ask(ctx context.Context, args ...string) (reply, error) {
	if len(args) == 0 {
		return reply{}, errors.New("no command")
	}
	r, err := s.exchange(ctx, args)
	var refused ReplyError
	if err != nil && !errors.As(err, &refused) {
		// Only the first word: the others may contain a password.
		err = fmt.Errorf("%s to redis-server on %s: %w", args[0], s.Addr(), err)
	}
	return r, err
}

func (s *Server) exchange(ctx context.Context, args []string) (reply, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, doWithin)
		defer cancel()
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = conn.Close() }()
	// Closing the connection unblocks reads and writes.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

	var out []byte
	if s.password != "" {
		out = appendCommand(out, "AUTH", s.password)
	}
	out = appendCommand(out, args...)
	if _, err := conn.Write(out); err != nil {
		return reply{}, timedOut(ctx, err)
	}
	in := bufio.NewReader(conn)
	if s.password != "" {
		if _, err := readReply(in, 0); err != nil {
			return reply{}, fmt.Errorf("AUTH: %w", timedOut(ctx, err))
		}
	}
	r, err := readReply(in, 0)
	return r, timedOut(ctx, err)
}

// timedOut replaces the error of a closed connection if the time is up.
func timedOut(ctx context.Context, err error) error {
	var refused ReplyError
	if err != nil && !errors.As(err, &refused) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func appendCommand(out []byte, args ...string) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(args))
	for _, arg := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out
}

// readReply reads one value of RESP version 2.
func readReply(in *bufio.Reader, depth int) (reply, error) {
	line, err := readLine(in)
	if err != nil {
		return reply{}, err
	}
	if line == "" {
		return reply{}, errors.New("an empty line where an answer should begin")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return reply{text: rest}, nil
	case '-':
		return reply{}, ReplyError(rest)
	case '$':
		n, err := length(rest, mostBytes)
		if err != nil || n < 0 {
			return reply{}, err
		}
		// The buffer grows with the data received, not with the announced length.
		text, err := io.ReadAll(io.LimitReader(in, int64(n)+2))
		if err != nil {
			return reply{}, err
		}
		if len(text) != n+2 {
			return reply{}, io.ErrUnexpectedEOF
		}
		return reply{text: string(text[:n])}, nil
	case '*':
		n, err := length(rest, mostItems)
		if err != nil || n < 0 {
			return reply{}, err
		}
		if depth == mostNested {
			return reply{}, errors.New("lists within lists: too deep")
		}
		r := reply{list: []reply{}}
		for range n {
			item, err := readReply(in, depth+1)
			if refused, ok := errors.AsType[ReplyError](err); ok { // an item like the others
				item, err = reply{text: refused.Error()}, nil
			}
			if err != nil {
				return reply{}, err
			}
			r.list = append(r.list, item)
		}
		return r, nil
	default:
		return reply{}, fmt.Errorf("an answer that begins with %q", kind)
	}
}

func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if err != nil { // includes bufio.ErrBufferFull: no line is that long
		return "", cut(err)
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

// length reads the length of a string or list. -1 means nil.
func length(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n > most {
		return 0, fmt.Errorf("an answer of the length %q", text)
	}
	return n, nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
