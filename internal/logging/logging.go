// Package logging creates the program's loggers. Every entry is one line of bounded length, without terminal control
// codes and without text that looks like a key.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

// Formats lists the log formats.
var Formats = []string{"text", "json"}

// Levels lists the log levels, the most verbose first.
var Levels = []string{"debug", "info", "warn", "error"}

// maxValue bounds the bytes of one value.
const maxValue = 1024

// Shared makes w safe for use by several loggers.
func Shared(w io.Writer) io.Writer { return &shared{w: w} }

type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// New returns a logger that writes to w in one of Formats, beginning at one of Levels.
func New(w io.Writer, format, level string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil || !isLevel(level) {
		return nil, fmt.Errorf("unknown level %.80q", level)
	}
	o := &slog.HandlerOptions{Level: least, ReplaceAttr: replace}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("unknown format %.80q", format)
}

// isLevel reports whether name is one of Levels. slog would also accept info+3.
func isLevel(name string) bool {
	for _, l := range Levels {
		if strings.EqualFold(l, name) {
			return true
		}
	}
	return false
}

// replace makes a value safe to log. Names come from clients, and errors from anywhere.
func replace(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Safe(v.String()))
	case slog.KindAny:
		switch x := v.Any().(type) {
		case error:
			a.Value = slog.StringValue(Safe(x.Error()))
		case fmt.Stringer:
			a.Value = slog.StringValue(Safe(x.String()))
		case []string:
			a.Value = slog.StringValue(Safe(strings.Join(x, ", ")))
		}
	}
	return a
}

// secrets matches keys of providers and Sluice's own tokens. A name or an address may hold one by mistake.
var secrets = lazyregexp.New(`(?i)` + strings.Join([]string{
	`\b(?:sk|rk|pk)-[\w-]{12,}`,                                   // OpenAI, Anthropic, OpenRouter, DeepSeek
	`\b(?:sk|rk|pk|whsec)_(?:live_|test_)?\w{12,}`,                // Stripe
	`\bgh[a-z]_\w{16,}`, `\bgithub_pat_\w{16,}`, `\bglpat-[\w-]+`, // GitHub, GitLab
	`\bAIza[\w-]{20,}`, `\bya29\.[\w.-]+`, // Google
	`\b(?:gsk|xai|sluice|hf|secret|ntn)[_-][\w-]{20,}`,               // Groq, xAI, Sluice, Hugging Face, Notion
	`\b(?:AKIA|ASIA)[A-Z0-9]{12,}`,                                   // AWS
	`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`,                              // a signed token
	`\b(?:bearer|basic|token)\s+[\w.~+/=-]{8,}`,                      // a header
	`(?:\bkey|api[_-]?key|access[_-]?token|secret|password)=[^&\s]+`, // a query
	`://[^/\s:@]*:[^/\s@]+@`,                                         // an address with a password
}, "|"))

// marks lists substrings, in lower case, of which every match of secrets contains one. Most values contain none, and
// this search is a hundred times faster.
var marks = []string{
	"sk-", "rk-", "pk-", "sk_", "rk_", "pk_", "whsec", "gh", "github_pat", "glpat", "aiza", "ya29", "gsk", "xai", "sluice_", "sluice-", "hf", "secret", "ntn", "akia", "asia",
	"eyj", "bearer", "basic", "token", "://",
}

// suspect reports whether a text may contain a key.
func suspect(text string) bool {
	if strings.Contains(text, "=") {
		return true
	}
	if len(text) < 8 {
		return false
	}
	text = strings.ToLower(text)
	for _, m := range marks {
		if strings.Contains(text, m) {
			return true
		}
	}
	return false
}

// Safe returns text without control characters, direction marks and keys, cut to a bounded length.
func Safe(text string) string {
	if len(text) > 4*maxValue { // before anything reads all of it
		text = text[:4*maxValue]
	}
	if suspect(text) {
		text = secrets.ReplaceAllString(text, "[redacted]")
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029':
			return utf8.RuneError
		}
		return r
	}, text)
	if len(text) <= maxValue {
		return text
	}
	end := maxValue
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
