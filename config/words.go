package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/nearest"
	"github.com/sluicehq/sluice/internal/strictyaml"
)

// Types whose value is one of a few words.
type (
	StoreFailure string // what a process does while it cannot reach the store
	Order        string // which request is next
	Switch       string // on or off
	Mode         string // hold callers, or only count them
	Guard        string // how arrivals are bounded
	Bind         string // where the light binds
	LightMode    string // whether the light's thresholds shrink
	BreakerMode  string // what the breaker does
	Split        string // what pools are split by
	Abort        string // what happens to a concurrency slot when its client goes away
	Kind         string // when a charge is returned
	Scope        string // what a limit is scoped by
	SlotOwner    string // whose agents share slots
	BudgetOwner  string // who has a budget
	Over         string // what happens when a budget is exceeded
	Interception string // which calls of a command are intercepted
)

// The values of a Switch.
const (
	On  Switch = "on"
	Off Switch = "off"
)

// The values of an Interception.
const (
	InterceptAuto Interception = "auto" // of clients that need it
	InterceptOn   Interception = "on"   // of every command
	InterceptOff  Interception = "off"  // of none
)

func (StoreFailure) words() []string { return []string{"share", "closed", "open"} }
func (Order) words() []string        { return []string{"fair", "strict", "fifo"} }
func (Switch) words() []string       { return []string{"on", "off"} }
func (Mode) words() []string         { return []string{"gate", "observe"} }
func (Guard) words() []string        { return []string{"auto", "strict", "off"} }
func (Bind) words() []string         { return []string{"stocks", "all"} }
func (LightMode) words() []string    { return []string{"shrink", "static"} }
func (BreakerMode) words() []string  { return []string{"glide", "open", "off"} }
func (Split) words() []string        { return []string{"key"} }
func (Abort) words() []string        { return []string{"free", "hold"} }
func (Kind) words() []string         { return []string{"bucket", "rolling", "fixed", "concurrency"} }
func (Scope) words() []string        { return []string{"agent", "user", "model", "tool", "key"} }
func (SlotOwner) words() []string    { return []string{"user"} }
func (BudgetOwner) words() []string  { return []string{"agent", "user", "fleet"} }
func (Over) words() []string         { return []string{"deny", "slow", "downgrade", "reroute", "alert"} }
func (Interception) words() []string { return []string{"auto", "on", "off"} }

// UnmarshalText implements [encoding.TextUnmarshaler]: the text must be one of the words of the type.
func (v *StoreFailure) UnmarshalText(text []byte) error { return oneOf(v, text) }

func (v *Order) UnmarshalText(text []byte) error       { return oneOf(v, text) }
func (v *Mode) UnmarshalText(text []byte) error        { return oneOf(v, text) }
func (v *Guard) UnmarshalText(text []byte) error       { return oneOf(v, text) }
func (v *Bind) UnmarshalText(text []byte) error        { return oneOf(v, text) }
func (v *LightMode) UnmarshalText(text []byte) error   { return oneOf(v, text) }
func (v *BreakerMode) UnmarshalText(text []byte) error { return oneOf(v, text) }
func (v *Split) UnmarshalText(text []byte) error       { return oneOf(v, text) }
func (v *Abort) UnmarshalText(text []byte) error       { return oneOf(v, text) }
func (v *Kind) UnmarshalText(text []byte) error        { return oneOf(v, text) }
func (v *Scope) UnmarshalText(text []byte) error       { return oneOf(v, text) }
func (v *SlotOwner) UnmarshalText(text []byte) error   { return oneOf(v, text) }
func (v *BudgetOwner) UnmarshalText(text []byte) error { return oneOf(v, text) }
func (v *Over) UnmarshalText(text []byte) error        { return oneOf(v, text) }

// UnmarshalText also accepts true and false, because YAML 1.1 reads on and off as truth values.
func (v *Switch) UnmarshalText(text []byte) error {
	return oneOf(v, []byte(switched(string(text))))
}

// UnmarshalText also accepts true and false, as [Switch] does.
func (v *Interception) UnmarshalText(text []byte) error {
	return oneOf(v, []byte(switched(string(text))))
}

func switched(s string) string {
	switch s {
	case "true":
		return "on"
	case "false":
		return "off"
	}
	return s
}

type word interface {
	~string
	words() []string
}

func oneOf[T word](v *T, text []byte) error {
	words := (*v).words()
	if !slices.Contains(words, string(text)) {
		return notOneOf(string(text), words)
	}
	*v = T(text)
	return nil
}

func notOneOf(s string, words []string) error {
	if len(words) == 1 {
		return fmt.Errorf("%.80q is not %s, which is all it can be", s, words[0])
	}
	message := fmt.Sprintf("%.80q is not one of %s", s, strings.Join(words, ", "))
	if meant := nearest.Name(s, words); meant != "" {
		return &strictyaml.Mistake{Message: message, Hint: didYouMean(meant)}
	}
	return errors.New(message)
}

func didYouMean(name string) string { return fmt.Sprintf("did you mean %q?", name) }

// UnmarshalText reads "off" instead of the fields.
func (l *Light) UnmarshalText(text []byte) error   { return offable(&l.Off, text) }
func (b *Breaker) UnmarshalText(text []byte) error { return offable(&b.Off, text) }
func (l *Leases) UnmarshalText(text []byte) error  { return offable(&l.Off, text) }

// UnmarshalText reads "off" instead of the fields. Slots are off by default, so "on" means the default number.
func (s *Slots) UnmarshalText(text []byte) error {
	err := offable(&s.Off, text)
	if err == nil && !s.Off {
		s.Max = defaultSlots
	}
	return err
}

func offable(off *bool, text []byte) error {
	switch switched(string(text)) {
	case "on":
		*off = false
	case "off":
		*off = true
	default:
		return fmt.Errorf("%.80q is neither off nor a mapping of fields", text)
	}
	return nil
}

// MarshalText returns "off", or nothing if the fields have to be written.
func (l Light) MarshalText() ([]byte, error)   { return offText(l.Off), nil }
func (b Breaker) MarshalText() ([]byte, error) { return offText(b.Off), nil }
func (l Leases) MarshalText() ([]byte, error)  { return offText(l.Off), nil }
func (s Slots) MarshalText() ([]byte, error)   { return offText(s.Off), nil }

func offText(off bool) []byte {
	if off {
		return []byte(Off)
	}
	return nil
}
