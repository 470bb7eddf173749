package topview

import (
	"slices"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

const maxFilter = 40 // characters

// key handles a key: an open question first, then the filter that is being typed.
func (m Model) key(msg tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	key := msg.String()
	if key == "ctrl+c" {
		return m, tea.Quit
	}
	if key == "ctrl+z" {
		return m, tea.Suspend
	}
	switch {
	case m.asked != nil:
		return m.answer(key)
	case m.typing:
		m.edit(msg)
		return m, nil
	case m.help:
		m.help = false
		if key == "q" {
			return m, tea.Quit
		}
		return m, nil
	}
	switch key {
	case "q":
		return m, tea.Quit
	case "?", "h":
		m.help = true
	case "tab", "right", "l":
		m.focus = (m.focus + 1) % panes
	case "shift+tab", "left":
		m.focus = (m.focus + panes - 1) % panes
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-10)
	case "pgdown", "space":
		m.move(10)
	case "home", "g":
		m.move(-1 << 30)
	case "end", "G":
		m.move(1 << 30)
	case "s":
		m.sorts[m.focus] = (m.sorts[m.focus] + 1) % len(orders[m.focus])
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
	case "p", "r":
		if r := m.resource(); r != "" {
			m.asked = &action{resource: r, resume: key == "r", step: usualPause}
		} else {
			m.note, m.noteTill = "no resource is selected", m.now.Add(noteFor)
		}
	}
	return m, nil
}

// answer handles the answer to the question whether to act.
func (m Model) answer(key string) (tea.Model, tea.Cmd) {
	a := *m.asked
	switch key {
	case "y", "enter":
		m.asked = nil
		return m, m.do(a)
	case "+", "up", "right":
		a.step = min(a.step+1, len(pauses)-1)
	case "-", "down", "left":
		a.step = max(a.step-1, 0)
	case "n", "q", "esc":
		m.asked = nil
		return m, nil
	}
	m.asked = &a
	return m, nil
}

// edit changes the filter.
func (m *Model) edit(msg tea.KeyPressMsg) {
	switch msg.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	case "ctrl+u":
		m.filter = ""
	default:
		m.typeIn(msg.Text)
	}
}

func (m *Model) typeIn(text string) {
	for _, r := range text {
		if unicode.IsPrint(r) && utf8.RuneCountInString(m.filter) < maxFilter {
			m.filter += string(r)
		}
	}
}

// move moves the selection.
func (m *Model) move(by int) {
	keys := m.keys(m.focus)
	if len(keys) == 0 {
		return
	}
	i := max(slices.Index(keys, m.selected[m.focus]), 0)
	m.selected[m.focus] = keys[min(max(i+by, 0), len(keys)-1)]
}

// index returns the position of a list's selection, or the top if it is gone.
func (m *Model) index(p pane, keys []string) int { return max(slices.Index(keys, m.selected[p]), 0) }

// resource returns the selected resource, or that of the selected agent or request; empty if there is none.
func (m *Model) resource() string {
	switch m.focus {
	case agents:
		if list := m.agents(); len(list) > 0 {
			return list[m.index(agents, m.keys(agents))].Resource
		}
		return ""
	case waiting:
		if list := m.waiting(); len(list) > 0 {
			return list[m.index(waiting, m.keys(waiting))].Resource
		}
		return ""
	}
	keys := m.keys(resources)
	if len(keys) == 0 {
		return ""
	}
	return keys[m.index(resources, keys)]
}
