package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// words are the prefixes of a command's lines, by level.
var words = map[slog.Level]string{slog.LevelInfo: "sluice", slog.LevelWarn: "warning", slog.LevelError: "error"}

// Plain returns a logger for people at a command line: "warning: ..." on w, without the time.
func Plain(w io.Writer) *slog.Logger { return slog.New(&plain{w: w, mu: new(sync.Mutex)}) }

type plain struct {
	w     io.Writer
	mu    *sync.Mutex
	attrs string
}

// Enabled implements slog.Handler.
func (*plain) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (p *plain) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s%s", words[r.Level], Safe(r.Message), p.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(text(a))
		return true
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := io.WriteString(p.w, b.String()+"\n")
	return err
}

func text(a slog.Attr) string { return fmt.Sprintf("; %s %s", a.Key, Safe(a.Value.String())) }

// WithAttrs implements slog.Handler.
func (p *plain) WithAttrs(attrs []slog.Attr) slog.Handler {
	q := *p
	for _, a := range attrs {
		q.attrs += text(a)
	}
	return &q
}

// WithGroup implements slog.Handler. Groups are not shown.
func (p *plain) WithGroup(string) slog.Handler { return p }
