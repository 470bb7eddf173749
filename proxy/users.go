package proxy

import (
	"maps"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
)

// Users holds the users that callers of the highest class speak for. A token below that class that is not bound to an
// agent or user must not speak for them: it would take their slots and spend their budgets. The zero value is empty.
type Users struct {
	mu sync.Mutex
	at map[string]time.Time // when each was last named
}

const (
	usersFor = 24 * time.Hour // how long a user is remembered
	maxUsers = 10_000         // only callers of the highest class add users
)

// Note records a user that a caller of the highest class has named.
func (u *Users) Note(user string, now time.Time) {
	if u == nil || user == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == nil {
		u.at = map[string]time.Time{}
	}
	if _, known := u.at[user]; !known && len(u.at) >= maxUsers {
		maps.DeleteFunc(u.at, func(_ string, at time.Time) bool { return now.Sub(at) >= usersFor })
		if len(u.at) >= maxUsers {
			return
		}
	}
	u.at[user] = now
}

func (u *Users) has(user string, now time.Time) bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	at, known := u.at[user]
	return known && now.Sub(at) < usersFor
}

// Speaker describes the bearer of a token who speaks for an agent and a user.
type Speaker struct {
	Agent, User string // that its token is bound to
	Highest     int    // index of the highest class that it may use
}

// May returns the user that a caller belongs to, or in why the reason that it must not speak for this agent or user.
func (u *Users) May(g *sluice.Gate, s Speaker, agent, user string, now time.Time) (as, why string) {
	switch {
	case s.User != "":
		if user != "" && user != s.User {
			return "", "the token is user " + s.User + "'s, not " + quoted(user) + "'s"
		}
		return s.User, ""
	case s.Agent != "":
		return "", "" // the configuration names the agent's user
	case s.Highest == 0:
		u.Note(user, now)
	case inside.Of(g).AgentAbove(agent, s.Highest):
		return "", "agent " + quoted(agent) + " is of a higher class than the token allows"
	case user != "" && (inside.Of(g).UserAbove(user, s.Highest) || u.has(user, now)):
		return "", "user " + quoted(user) + " is one of a higher class than the token allows"
	}
	return user, ""
}

// HintOfUser says how to let a token speak for a user.
const HintOfUser = "leave the user out, or add `user:` to the token in the configuration"
