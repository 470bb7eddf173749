package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// hostile are names that a client could have.
var hostile = []string{
	"a\nlevel=ERROR msg=forged", "a\r\n{\"msg\":\"forged\"}", "a\x1b[2Jb", "a\u202eb", "a\u2028b", "\xff\xfe", "a\x00b", `a"b`, "a=b c", strings.Repeat("x", 1<<20),
	strings.Repeat("é", 2000),
}

// keys are what must not be found in a log. None of them is real.
var keys = []string{
	"sk-ant-api03-AAAAAAAAAAAAAAAAAAAA-BBBB", "sk-proj-AAAAAAAAAAAAAAAAAAAAAAAA", "ghp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	"github_pat_11AAAAAAA0AAAAAAAAAAAAAA", "AIzaSyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "gsk_AAAAAAAAAAAAAAAAAAAAAAAA",
	"xai-AAAAAAAAAAAAAAAAAAAAAAAA", "sluice_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AKIAAAAAAAAAAAAAAAAA", "hf_AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	"Bearer AAAAAAAAAAAA", "sk_live_AAAAAAAAAAAAAAAA", "?key=AAAA&x=1", "api_key=AAAA", "redis://me:AAAA@host", "eyJAAAAAAAAA.AAAAAAAAAAAA.AAAA",
}

func TestLinesAreOneLine(t *testing.T) {
	for _, format := range Formats {
		for _, name := range hostile {
			var b bytes.Buffer
			log, err := New(&b, format, "info")
			if err != nil {
				t.Fatal(err)
			}
			log.Info("request "+name, "agent", name, "err", errors.New(name), "names", []string{name}, slog.Group("in", "agent", name))
			line, ok := strings.CutSuffix(b.String(), "\n")
			if !ok || strings.ContainsAny(line, "\n\r\x00\x1b\u202e\u2028") || !utf8.ValidString(line) || len(line) > 16<<10 {
				t.Errorf("%s of %.40q: %.400q", format, name, line)
			}
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); format == "json" && (err != nil || fields["level"] != "INFO") {
				t.Errorf("%.40q: %v in %.400q", name, err, line)
			}
		}
	}
	var b bytes.Buffer
	Plain(&b).With("agent", "a\nb").Warn("a\nb", "c", "d\ne")
	if b.String() != "warning: a b; agent a b; c d e\n" {
		t.Errorf("%q", b.String())
	}
}

func TestKeysAreNotLogged(t *testing.T) {
	for _, key := range keys {
		for _, format := range Formats {
			var b bytes.Buffer
			log, _ := New(&b, format, "debug")
			log.Debug("unknown resource "+key, "agent", key, "path", "/x/"+key+"/y", "err", fmt.Errorf("no %s", key), "names", []string{key})
			Plain(&b).Error(key, "k", key)
			if strings.Contains(b.String(), "AAAA") {
				t.Errorf("%s: %s", key, b.String())
			}
		}
	}
	for _, name := range []string{"claude-sonnet-4-5-20250929", "claude-code-0d9f3b2a", "gpt-4o-mini-2024-07-18", "search-api", "search-api.aa18caf94cd50001-1", "req_011CSHoEeqs5C35K2UUqR7Fy", "http://127.0.0.1:7979", "/v1/models"} {
		if Safe(name) != name {
			t.Errorf("%s became %s", name, Safe(name))
		}
	}
}

func TestLevelsAndFormats(t *testing.T) {
	for _, level := range Levels {
		var b bytes.Buffer
		log, err := New(&b, "text", level)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("d")
		log.Info("i")
		log.Warn("w")
		log.Error("e")
		if got, want := strings.Count(b.String(), "\n"), map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1}[level]; got != want {
			t.Errorf("%s: %d lines, want %d", level, got, want)
		}
	}
	for _, bad := range [][2]string{{"xml", "info"}, {"text", "loud"}, {"text", "info+3"}, {"", ""}} {
		if _, err := New(&bytes.Buffer{}, bad[0], bad[1]); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// stuck is a writer that nobody reads until it is let go.
type stuck struct {
	open chan struct{}
	got  bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.open
	return s.got.Write(p)
}

func TestNobodyWaitsForALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{open: make(chan struct{})}
		a := NewAsync(w, 10)
		synctest.Wait()
		for i := range 100 {
			fmt.Fprintf(a, "line %d\n", i)
		}
		if lost := a.Lost(); lost < 89 || lost > 90 { // one may be on its way
			t.Errorf("%d lines were lost", lost)
		}
		began := time.Now()
		a.Close()
		if took := time.Since(began); took != closeWithin {
			t.Errorf("it waited %v for nobody", took)
		}
		fmt.Fprintln(a, "too late")
		close(w.open)
		synctest.Wait()
		if got := w.got.String(); !strings.HasPrefix(got, "line 0\nline 1\n") || strings.Contains(got, "too late") {
			t.Errorf("%q", got)
		}
		a.Close()
	})
}
