package topview

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/show"
)

// Keys act on the resource of the selection, in every list.
func TestPauseOfWhatIsSelected(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"p y":               "pause anthropic 1m0s",
		"down p y":          "pause github 1m0s",
		"tab end p y":       "pause github 1m0s", // web's
		"tab r y":           "resume anthropic",
		"tab tab down p y":  "pause anthropic 1m0s",
		"tab / z enter p y": "", // there is no such agent
	} {
		src := &still{}
		m := busy(show.Style{}, 80, 24)
		m.src = src
		for _, msg := range press(keys) {
			next, cmd := m.Update(msg)
			m = next.(Model)
			if cmd != nil && m.asked == nil {
				cmd()
			}
		}
		if got := strings.Join(src.did, ","); got != want {
			t.Errorf("%s: %q, want %q", keys, got, want)
		}
	}
}

// The head counts the whole queue although only its first requests are listed.
func TestTheHeadCountsAll(t *testing.T) {
	t.Parallel()
	m := busy(show.Style{}, 120, 24)
	if head := m.header(); !strings.Contains(head, "7 waiting") {
		t.Error(head)
	}
}

func TestAgentsByClass(t *testing.T) {
	t.Parallel()
	m := feed(busy(show.Style{}, 80, 24), press("tab s s s")...)
	if got := m.keys(agents); !slices.Equal(got, []string{"web", "planner", "indexer"}) {
		t.Errorf("%v", got)
	}
	m = feed(m, press("/ h e l d enter")...)
	if got := m.keys(agents); !slices.Equal(got, []string{"planner"}) {
		t.Errorf("filtered by state: %v", got)
	}
}

// What is used up is named, also if it has no end.
func TestWhatIsUsedUpIsShown(t *testing.T) {
	t.Parallel()
	m := busy(show.Style{}, 120, 24)
	github := &m.data.Status.Resources[1]
	github.Reason = "no request was sent in the last minute; the budget all is used up"
	shown := func() bool { return strings.Contains(strings.Join(m.details(github), "\n"), github.Reason) }
	if shown() {
		t.Error("a calm resource has a reason")
	}
	if github.UsedUp = true; !shown() {
		t.Error("it is not shown")
	}
}

// A light that holds classes back is shown next to what else holds the resource; one that binds nothing is not.
func TestALightThatBindsIsShown(t *testing.T) {
	t.Parallel()
	m := busy(show.Style{}, 120, 24)
	anthropic, github := &m.data.Status.Resources[0], &m.data.Status.Resources[1]
	github.Light = "amber"
	if got := m.condition(github).Text; got != "observed" {
		t.Errorf("a light that binds nothing: %q", got)
	}
	anthropic.LightBinds, github.LightBinds, github.Mode = true, true, "gate"
	if a, b := m.condition(anthropic).Text, m.condition(github).Text; a != "light amber, paused 42s" || b != "light amber" {
		t.Errorf("lights that bind: %q and %q", a, b)
	}
}
