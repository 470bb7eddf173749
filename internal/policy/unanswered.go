package policy

import (
	"strings"
	"time"
)

// CloseTickets says what to do about unanswered tickets of agents that hold a limit. It names at most three agents.
func CloseTickets(agents []string) string {
	const do = "close tickets once they are answered (sluice release), or give them a shorter ttl"
	if len(agents) == 0 {
		return do
	}
	return "let " + AgentsText(agents) + " " + do
}

// AgentsText lists up to three agents.
func AgentsText(agents []string) string {
	const most = 3
	if len(agents) > most {
		return strings.Join(agents[:most], ", ") + " and others"
	}
	return strings.Join(agents, ", ")
}

func unanswered(f *Facts) (x finding) {
	if f.Unanswered == "" {
		return x
	}
	x = finding{
		setting: f.of("ttl"), seen: "the limit " + f.Unanswered + " is full, " + f.UnansweredHold,
		do: CloseTickets(f.UnansweredOf) + ". A larger quota would be held as well",
	}
	if half := (time.Duration(f.TTL) * time.Microsecond / 2).Round(time.Second); half > 0 {
		x.yaml = f.yaml("ttl", half.String())
	}
	return x
}
