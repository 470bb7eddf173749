package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds for one frame.
const (
	maxFrame  = 64 << 20
	maxNested = 16
)

var errFrame = errors.New("not a frame of the Redis protocol")

// readFrame reads one command or reply, of protocol 2 or 3, and returns its bytes unchanged.
func readFrame(in *bufio.Reader) ([]byte, error) { return appendFrame(nil, in, 0) }

func appendFrame(b []byte, in *bufio.Reader, nested int) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return b, err
	}
	if len(line) < 3 || nested > maxNested || len(b)+len(line) > maxFrame {
		return b, errFrame
	}
	b = append(b, line...)
	kind, text := line[0], string(bytes.TrimRight(line[1:], "\r\n"))
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return b, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > maxFrame {
		return b, fmt.Errorf("%w: length %.20q", errFrame, text)
	}
	switch kind {
	case '$', '=', '!':
		if n < 0 {
			return b, nil
		}
		at := len(b)
		b = append(b, make([]byte, n+2)...)
		_, err := io.ReadFull(in, b[at:])
		return b, err
	case '*', '~', '>':
	case '%':
		n *= 2
	case '|': // attributes precede a reply
		n = 2*n + 1
	default:
		return b, fmt.Errorf("%w: type %q", errFrame, kind)
	}
	for range n {
		if b, err = appendFrame(b, in, nested+1); err != nil {
			return b, err
		}
	}
	return b, nil
}

// command returns the name of a command.
func command(frame []byte) string {
	parts := bytes.SplitN(frame, []byte("\r\n"), 4) // *N, $L, NAME, ...
	if len(parts) < 3 {
		return ""
	}
	return strings.ToUpper(string(parts[2]))
}

// isPush reports whether a frame is a push message, which answers no command.
func isPush(frame []byte) bool { return len(frame) > 0 && frame[0] == '>' }

// isScript reports whether a command runs a script or a function.
func isScript(name string) bool {
	return strings.HasPrefix(name, "EVAL") || strings.HasPrefix(name, "FCALL")
}

// hasReply reports whether a command gets a reply. In protocol 3, subscription commands get push messages instead.
func hasReply(name string) bool { return !strings.HasSuffix(name, "SUBSCRIBE") }
