package topview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/internal/show"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) *time.Time {
	t := noon.Add(d)
	return &t
}

// still is a source that tells what it was asked to do.
type still struct {
	data Data
	err  error
	did  []string
}

func (s *still) Read(context.Context) (Data, error) { return s.data, s.err }

func (s *still) Pause(_ context.Context, resource string, d time.Duration) error {
	s.did = append(s.did, fmt.Sprintf("pause %s %v", resource, d))
	return s.err
}

func (s *still) Resume(_ context.Context, resource string) error {
	s.did = append(s.did, "resume "+resource)
	return s.err
}

// fleet returns a state with an example of everything.
func fleet() Data {
	limit := func(name, unit, kind, scope string, used, size, outside int64, reset *time.Time) inspect.LimitStatus {
		return inspect.LimitStatus{Name: name, Kind: kind, Unit: unit, Scope: scope, Limit: size, Used: used, Remaining: size - used, Outside: outside, ResetAt: reset, Light: "green"}
	}
	return Data{
		Classes: []string{"p0", "p1", "p2"},
		Status: inspect.Status{
			Store: "file:/home/me/.local/state/sluice",
			Resources: []inspect.ResourceStatus{
				{
					Name: "anthropic", Mode: "gate", State: "paused", Reason: "HTTP 429 rate_limit_error", Light: "amber", Waiting: map[string]int{"p0": 0, "p1": 2, "p2": 5}, InFlight: 12, Consecutive429: 2,
					PausedUntil: after(42 * time.Second), PauseReason: "HTTP 429",
					Gates:        []inspect.PauseStatus{{Phase: "paused", Until: after(42 * time.Second), Cause: "HTTP 429 rate_limit_error"}},
					CallerStatus: inspect.CallerStatus{Sent: 1240, Throttled: 2, Retried: 5},
					Limits: []inspect.LimitStatus{
						limit("minute", "requests", "rolling", "", 64, 80, 0, nil),
						limit("tokens", "input_tokens", "bucket", "", 39_000, 40_000, 2000, nil),
						limit("day", "requests", "fixed", "", 5000, 10_000, 0, after(12*time.Hour)),
						limit("each", "work", "bucket", "agent=indexer", 3, 50, 0, nil),
					},
				},
				{
					Name: "github", Mode: "observe", State: "flowing", Light: "green", Waiting: map[string]int{"p0": 0, "p1": 0, "p2": 0},
					CallerStatus: inspect.CallerStatus{Sent: 300},
					Limits:       []inspect.LimitStatus{limit("core", "core", "fixed", "", 300, 5000, 0, after(724*time.Second))},
				},
			},
			Agents: []inspect.AgentStatus{
				{
					Name: "indexer", Class: "p2", User: "me", Machine: "laptop", Resource: "anthropic", Allocated: 40, Used: 38, State: "limited",
					LeaseExpiresAt: after(4 * time.Minute), Leased: true,
				},
				{
					Name: "planner", Class: "p1", User: "me", Machine: "laptop", Resource: "anthropic", Allocated: 40, Used: 2, State: "held",
					LeaseExpiresAt: after(5 * time.Minute), Leased: true, PauseChain: []string{"planner", "writer", "indexer"}, WaitsFor: []string{"writer"},
				},
				{Name: "web", Class: "p0", Resource: "github", Allocated: inspect.Unknown, State: "active", LeaseExpiresAt: after(30 * time.Second)},
			},
		},
		Waiting: []Waiting{
			{"anthropic", inspect.Waiting{Ticket: "anthropic.1-1", Agent: "indexer", Class: "p2", Limit: "minute", HeldBy: []string{"web", "planner"}, Position: 1, ExpectedAt: after(42 * time.Second), Reason: "paused"}},
			{"anthropic", inspect.Waiting{Ticket: "anthropic.1-2", Agent: "writer", Class: "p1", Limit: "tokens", Position: 2, ExpectedAt: after(60 * time.Second), Reason: "limit"}},
			{"anthropic", inspect.Waiting{Ticket: "anthropic.1-3", Agent: "indexer", Class: "p2", Position: 3, Reason: "order"}},
		},
	}
}

// feed sends messages to a model and returns the result. It does not run the commands that the model starts.
func feed(m Model, msgs ...tea.Msg) Model {
	for _, msg := range msgs {
		next, _ := m.Update(msg)
		m = next.(Model)
	}
	return m
}

func press(keys string) (msgs []tea.Msg) {
	for key := range strings.FieldsSeq(keys) {
		msgs = append(msgs, keyMsg(key))
	}
	return msgs
}

func keyMsg(key string) tea.KeyPressMsg {
	codes := map[string]rune{
		"tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace,
		"end": tea.KeyEnd, "home": tea.KeyHome, "left": tea.KeyLeft, "right": tea.KeyRight, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
	}
	if code, ok := codes[key]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	switch key {
	case "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case "ctrl+c":
		return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	}
	r := []rune(key)[0]
	return tea.KeyPressMsg{Code: r, Text: key}
}

func started(style show.Style, width, height int) Model {
	m := New(context.Background(), &still{}, style, noon)
	return feed(m, tea.WindowSizeMsg{Width: width, Height: height})
}

// busy returns a model after twenty seconds of the fleet.
func busy(style show.Style, width, height int) Model {
	m := started(style, width, height)
	for i := range 21 {
		data := fleet()
		data.Status.Resources[0].Sent += int64(i*i - i%3*7)
		m = feed(m, dataMsg{noon.Add(time.Duration(i-20) * time.Second), data, nil})
	}
	return m
}

// troubled returns a model of a fleet with one resource without a store, and with agents that wait for each other.
func troubled(style show.Style, width, height int) Model {
	data := fleet()
	data.Status.Resources[1].Outage = &inspect.OutageStatus{Mode: "share", Why: "connection refused"}
	data.Status.Resources[1].State, data.Status.Resources[1].Reason = inspect.StateDegraded, "the store is out of reach: connection refused; this process goes on within its share"
	data.Status.Cycles = [][]string{{"planner", "writer"}, {"a", "b"}}
	return feed(feed(started(style, width, height), dataMsg{noon, data, nil}), press("down")...)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if os.Getenv("SLUICE_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	plain := show.Style{}
	colour := show.Style{Colour: true}
	stale := errors.New("dial tcp 127.0.0.1:6379: connection refused")
	for name, m := range map[string]Model{
		"80x24":      busy(plain, 80, 24),
		"120x40":     busy(plain, 120, 40),
		"40x15":      busy(plain, 40, 15),
		"80x10":      feed(busy(plain, 80, 10), press("tab")...),
		"colour":     busy(colour, 80, 24),
		"ascii":      busy(show.Style{ASCII: true}, 80, 24),
		"agents":     feed(busy(plain, 80, 24), press("tab down")...),
		"agent":      feed(busy(plain, 100, 24), press("tab")...),
		"trouble":    troubled(plain, 80, 24),
		"sorted":     feed(busy(plain, 80, 24), press("s shift+tab s")...),
		"filtered":   feed(busy(plain, 80, 24), press("/ w e b")...),
		"no-match":   feed(busy(plain, 80, 24), press("/ z enter")...),
		"pause":      feed(busy(plain, 80, 24), press("down p +")...),
		"resume":     feed(busy(plain, 80, 24), press("r")...),
		"help":       feed(busy(plain, 80, 24), press("?")...),
		"reading":    started(plain, 80, 24),
		"no-answer":  feed(started(plain, 80, 24), tickMsg(noon.Add(4*time.Second))),
		"failing":    feed(started(plain, 80, 24), dataMsg{noon, Data{}, stale}),
		"stale":      feed(busy(plain, 80, 24), dataMsg{noon, Data{}, stale}, tickMsg(noon.Add(7*time.Second))),
		"slow":       feed(busy(plain, 80, 24), tickMsg(noon.Add(time.Second)), tickMsg(noon.Add(6*time.Second))),
		"empty":      feed(started(plain, 80, 24), dataMsg{noon, Data{}, nil}),
		"paused-now": feed(busy(plain, 80, 24), doneMsg{"github paused for 1m00s", nil}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, m.Frame())
		})
	}
}

// A frame fits the screen exactly, whatever its size.
func TestFrameFitsTheScreen(t *testing.T) {
	t.Parallel()
	data := fleet()
	nasty := strings.Repeat("\u202e\x1b[2J<b>\u4e16\u0301\u0301\u0301\u0301", 1000)
	data.Status.Resources[1].Name = nasty
	data.Status.Agents[0].Name, data.Status.Agents[0].Machine = nasty, nasty
	data.Waiting[0].Agent = nasty
	for i := range 200 {
		a := data.Status.Agents[i%3]
		a.Name = fmt.Sprintf("agent-%03d", i)
		data.Status.Agents = append(data.Status.Agents, a)
	}
	for _, style := range []show.Style{{}, {ASCII: true}, {Colour: true}} {
		for _, width := range []int{1, 5, 20, 39, 80, 200} {
			for _, height := range []int{1, 2, 3, 5, 12, 15, 24, 60} {
				for _, keys := range []string{"", "tab end", "tab tab pgdown", "?", "p", "/ a", "s s s"} {
					m := feed(started(style, width, height), dataMsg{noon, data, nil})
					m = feed(m, press(keys)...)
					frame := m.Frame()
					lines := strings.Split(frame, "\n")
					if len(lines) != height {
						t.Fatalf("%dx%d %q: %d lines", width, height, keys, len(lines))
					}
					for _, line := range lines {
						if show.Width(line) > width {
							t.Fatalf("%dx%d %q: %q is %d wide", width, height, keys, line, show.Width(line))
						}
						if strings.Contains(line, "\x1b[2J") || strings.Contains(line, "\u202e") {
							t.Fatalf("%q steers the terminal", line)
						}
					}
				}
			}
		}
	}
}

func TestSelectionStaysWithItsRow(t *testing.T) {
	t.Parallel()
	m := feed(busy(show.Style{}, 80, 24), press("down")...)
	if got := m.resource(); got != "github" {
		t.Fatalf("%q is selected", got)
	}
	data := fleet()
	data.Status.Resources = append([]inspect.ResourceStatus{{Name: "aaa"}}, data.Status.Resources...)
	m = feed(m, dataMsg{noon, data, nil})
	if got := m.resource(); got != "github" {
		t.Errorf("with another before it %q is selected", got)
	}
	data.Status.Resources = data.Status.Resources[:2]
	if m = feed(m, dataMsg{noon, data, nil}); m.resource() != "aaa" {
		t.Errorf("when it has gone, %q is selected", m.resource())
	}
	if m = feed(m, dataMsg{noon, Data{}, nil}); m.resource() != "" {
		t.Errorf("of nothing %q is selected", m.resource())
	}
	if m = feed(m, press("p")...); m.asked != nil || !strings.Contains(m.Frame(), "no resource") {
		t.Errorf("a pause of nothing: %s", m.Frame())
	}
}

func TestPauseAndResumeNeedAYes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys string
		want string
	}{
		{"p n", ""}, {"p esc", ""}, {"p q", ""}, {"p x", ""}, {"r n", ""},
		{"p y", "pause anthropic 1m0s"}, {"p enter", "pause anthropic 1m0s"}, {"p - - - y", "pause anthropic 10s"},
		{"p + + + + + y", "pause anthropic 1h0m0s"}, {"down p y", "pause github 1m0s"}, {"r y", "resume anthropic"},
	} {
		src := &still{data: fleet()}
		m := busy(show.Style{}, 80, 24)
		m.src = src
		var cmd tea.Cmd
		for _, msg := range press(c.keys) {
			var next tea.Model
			next, cmd = m.Update(msg)
			m = next.(Model)
		}
		if len(src.did) != 0 {
			t.Errorf("%s: it acted in the loop", c.keys)
		}
		if cmd != nil {
			m = feed(m, cmd())
		}
		if got := strings.Join(src.did, ","); got != c.want {
			t.Errorf("%s: %q, want %q", c.keys, got, c.want)
		}
		if c.want != "" && (m.asked != nil || m.note == "") {
			t.Errorf("%s: nothing was said", c.keys)
		}
	}
	m := feed(busy(show.Style{}, 80, 24), doneMsg{"github paused", errors.New("no store")})
	if !strings.Contains(m.Frame(), "that failed: no store") {
		t.Errorf("a failure is not told:\n%s", m.Frame())
	}
}

// There is one read at a time, however long it takes, and the clock goes on.
func TestOneReadAtATime(t *testing.T) {
	t.Parallel()
	m := started(show.Style{}, 80, 24) // a read is under way
	for i := range 10 {
		m = feed(m, tickMsg(noon.Add(time.Duration(i)*refresh)))
	}
	if !m.begun.Equal(noon) {
		t.Errorf("another read was begun at %v", m.begun)
	}
	m = feed(m, dataMsg{noon.Add(5 * time.Second), fleet(), nil}, tickMsg(noon.Add(6*time.Second)))
	if !m.reading || !m.begun.Equal(noon.Add(6*time.Second)) {
		t.Errorf("no read was begun after that")
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	var s series
	for i, sent := range []int64{100, 110, 130} {
		s = s.add(noon.Add(time.Duration(i)*2*time.Second), sent)
	}
	s = s.add(noon.Add(4100*time.Millisecond), 1000) // too soon to count
	if fmt.Sprint(s.rates) != "[5 10]" || s.mean() != 7.5 {
		t.Errorf("%v, on average %v", s.rates, s.mean())
	}
	if s = s.add(noon.Add(6*time.Second), 3); len(s.rates) != 0 || s.mean() != 0 {
		t.Errorf("counters that began again: %v", s.rates)
	}
	for i := range 1000 {
		s = s.add(noon.Add(time.Duration(10+i)*time.Second), int64(10*i))
	}
	if len(s.rates) != maxSeries {
		t.Errorf("%d samples are kept", len(s.rates))
	}
}

func TestFilterIsBounded(t *testing.T) {
	t.Parallel()
	m := feed(busy(show.Style{}, 80, 24), append(press("/"), tea.PasteMsg{Content: strings.Repeat("x\x1b\n", 1000)})...)
	if m.filter != strings.Repeat("x", maxFilter) {
		t.Errorf("%q", m.filter)
	}
	if m = feed(m, press("backspace esc")...); m.filter != "" || m.typing {
		t.Errorf("%q", m.filter)
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	golden(t, "once", strings.TrimSuffix(Once(fleet(), show.Style{}, noon), "\n"))
	golden(t, "once-empty", strings.TrimSuffix(Once(Data{}, show.Style{}, noon), "\n"))
}

// The real program draws, reads, and leaves when it is told to.
func TestProgram(t *testing.T) {
	t.Parallel()
	in, keys := io.Pipe()
	var out bytes.Buffer
	src := &still{data: fleet()}
	m := &leaving{Model: New(context.Background(), src, show.Style{}, time.Now()), seen: make(chan struct{})}
	go func() {
		<-m.seen
		_, _ = keys.Write([]byte("q"))
	}()
	err := run(context.Background(), m, tea.WithInput(in), tea.WithOutput(&out), tea.WithWindowSize(80, 24), tea.WithoutSignals())
	_ = keys.Close()
	if err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "anthropic") || !strings.Contains(text, "\x1b[?1049l") {
		t.Errorf("it drew %q", text)
	}
}

// leaving tells when data has been taken in.
type leaving struct {
	Model
	seen chan struct{}
	told bool
}

func (l *leaving) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next, cmd := l.Model.Update(msg)
	l.Model = next.(Model)
	if !l.at.IsZero() && !l.told {
		l.told = true
		close(l.seen)
	}
	return l, cmd
}

// A panic ends the view with an error, and the terminal is restored.
func TestPanicRestoresTheTerminal(t *testing.T) {
	var out bytes.Buffer
	in, keys := io.Pipe()
	defer keys.Close()
	err := run(context.Background(), broken{New(context.Background(), &still{data: fleet()}, show.Style{}, time.Now())},
		tea.WithInput(in), tea.WithOutput(&out), tea.WithWindowSize(80, 24), tea.WithoutSignals())
	if !errors.Is(err, tea.ErrProgramPanic) {
		t.Errorf("%v", err)
	}
}

type broken struct{ Model }

func (b broken) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if _, ok := msg.(dataMsg); ok {
		panic("broken")
	}
	return b, nil
}

func BenchmarkLargeFleet(b *testing.B) {
	data := fleet()
	for i := range 10_000 {
		a := data.Status.Agents[i%3]
		a.Name = fmt.Sprintf("agent-%05d", i)
		data.Status.Agents = append(data.Status.Agents, a)
	}
	for i := range 1000 {
		w := data.Waiting[i%3]
		w.Position = i
		data.Waiting = append(data.Waiting, w)
	}
	m := feed(started(show.Style{Colour: true}, 120, 40), dataMsg{noon, data, nil})
	for b.Loop() {
		m.Frame()
	}
}
