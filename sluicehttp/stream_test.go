package sluicehttp

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/provider"
)

// filterAll feeds text in pieces of any length, and collects what comes out.
func filterAll(t *rapid.T, text string, f *filter) string {
	var out bytes.Buffer
	p := make([]byte, rapid.IntRange(1, 300).Draw(t, "reads"))
	drain := func() {
		for n := f.read(p); n > 0; n = f.read(p) {
			out.Write(p[:n])
		}
	}
	for rest := text; len(rest) > 0; {
		n := min(rapid.IntRange(1, 200).Draw(t, "piece"), len(rest))
		f.write([]byte(rest[:n]))
		rest = rest[n:]
		drain()
	}
	f.end(io.EOF)
	drain()
	return out.String()
}

func TestFilterCutsOutNothingElse(t *testing.T) {
	only := func(data []byte) bool { return string(data) == "only" }
	rapid.Check(t, func(t *rapid.T) {
		var text, want strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
			event := rapid.SampledFrom([]string{
				"data: only$", "data:only$", "event: x$data: only$id: 3$", "data: on$data: ly$", "data: other only$", ": comment$", "", "data: [DONE]$",
				"data: " + strings.Repeat("long", 100) + "$",
			}).Draw(t, "event")
			event = strings.ReplaceAll(event+"$", "$", end)
			text.WriteString(event)
			if plain := strings.ReplaceAll(event, "\r", ""); !strings.Contains(plain, "data: only\n") && !strings.Contains(plain, "data:only\n") {
				want.WriteString(event)
			}
		}
		tail := rapid.SampledFrom([]string{"", "data: x", "data: x\n", "\n"}).Draw(t, "tail")
		if got := filterAll(t, text.String()+tail, &filter{only: only}); got != want.String()+tail {
			t.Fatalf("%q became %q, want %q", text.String()+tail, got, want.String()+tail)
		}
	})
}

// Events that are too long to hold pass, and later ones are still filtered.
func TestFilterDoesNotHoldLongEvents(t *testing.T) {
	f := &filter{only: func(data []byte) bool { return string(data) == "only" }}
	var out bytes.Buffer
	p := make([]byte, 4096)
	write := func(s string) {
		f.write([]byte(s))
		for n := f.read(p); n > 0; n = f.read(p) {
			out.Write(p[:n])
		}
	}
	for range 100 {
		write("data: " + strings.Repeat("x", 10_000) + "\n")
		if len(f.held) > maxEvent+10_100 || cap(f.out) > 4*maxEvent {
			t.Fatalf("%d bytes are held, %d are ready", len(f.held), cap(f.out))
		}
	}
	write("data: only\n") // of the same event
	write("\n")
	before := out.Len()
	write("data: only\n\ndata: y\n\n")
	if got := out.String()[before:]; got != "data: y\n\n" || before != 100*10_007+12 {
		t.Errorf("%d bytes before, then %q", before, got)
	}
}

// textReader keeps all that it reads.
type textReader struct{ bytes.Buffer }

func (r *textReader) Write(p []byte)                 { r.Buffer.Write(p) }
func (*textReader) Usage() provider.Usage            { return provider.Usage{} }
func (*textReader) Failed() (o provider.Observation) { return o }

func TestInflaterReadsWhatWasCompressed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var packed, plain bytes.Buffer
		for range rapid.IntRange(1, 3).Draw(t, "members") {
			z := gzip.NewWriter(&packed)
			for range rapid.IntRange(0, 5).Draw(t, "parts") {
				part := strings.Repeat(rapid.StringN(0, 20, -1).Draw(t, "part"), rapid.IntRange(0, 3000).Draw(t, "times"))
				fmt.Fprint(z, part)
				plain.WriteString(part)
				_ = z.Flush()
			}
			_ = z.Close()
		}
		broken := rapid.IntRange(0, 4).Draw(t, "broken") == 0
		text := packed.Bytes()
		if broken { // whatever is made of that, it ends
			text = append(text[:rapid.IntRange(0, len(text)).Draw(t, "from")], "garbage"...)
		}
		to := &textReader{}
		i := newInflater(to, maxInflated)
		for len(text) > 0 {
			n := min(rapid.IntRange(1, 5000).Draw(t, "piece"), len(text))
			i.write(text[:n])
			text = text[n:]
		}
		i.close()
		if !broken && !bytes.Equal(to.Bytes(), plain.Bytes()) {
			t.Fatalf("%d bytes, want %d", to.Len(), plain.Len())
		}
	})
}

// A small body that expands to a huge one is decompressed only in part.
func TestInflaterIsBounded(t *testing.T) {
	const most = 1 << 20
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.CopyN(z, endless{}, 10*most); err != nil {
		t.Fatal(err)
	}
	_ = z.Close()
	to := &counting{}
	i := newInflater(to, most)
	i.write(packed.Bytes())
	i.close()
	if to.n < most || to.n > 2*most {
		t.Errorf("%d bytes were read", to.n)
	}
	if plain, whole := unzip(packed.Bytes(), 1000); len(plain) != 1000 || whole {
		t.Errorf("%d bytes, whole %v", len(plain), whole)
	}
}

type counting struct {
	textReader
	n int
}

func (c *counting) Write(p []byte) { c.n += len(p) }

// A long response passes without being held in memory.
func TestLongAnswerTakesLittleMemory(t *testing.T) {
	const size = 128 << 20
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.CopyN(w, endless{}, size) })
	resp, err := x.RoundTrip(get(t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, resp.Body)
	runtime.ReadMemStats(&after)
	if n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
	x.wantQuiet(t)
}
