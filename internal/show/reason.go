package show

// Waits describes why a request waits. scope is what the pause covers that holds it, such as model=opus; empty for the
// whole resource.
func Waits(code, limit, scope string) string {
	if code == "paused" && scope != "" {
		return scope + " is paused"
	}
	return Reason(code, limit)
}

// Reason describes why a request waits, from the reason's code and the limit that holds it.
func Reason(code, limit string) string {
	the := "a limit"
	if limit != "" {
		the = "the limit " + limit
	}
	switch code {
	case "limit":
		return the + " is full"
	case "order":
		return "others are before it"
	case "paused":
		return "the resource is paused"
	case "probe":
		return "one request probes after a pause"
	case "ramp":
		return "few at first after a pause"
	case "light":
		return the + " is kept for higher classes"
	case "share":
		return the + ": the rest is other classes' share"
	case "reserve":
		return the + ": the rest is kept for a person"
	case "pace":
		return the + " is paced while the highest class is alive"
	case "breaker":
		return the + " would be gone before its reset"
	case "capacity":
		return "it costs more than " + the + " can ever hold"
	case "deadline":
		if limit == "" { // a pause, or the queue
			return "its turn would come after its deadline"
		}
		return the + " has no room before the deadline"
	case "full":
		return "too many wait already"
	case "budget":
		return "the budget " + limit + " has no room"
	case "slowed":
		return "slowed by budget " + limit + ", which has to last until its reset"
	case "slots":
		return "its user runs as many agents as the slots allow"
	case "", "none":
		return "its turn comes next"
	}
	if limit != "" {
		return code + ": " + the
	}
	return code
}

// Refusal describes why a request was refused, from the reason's code, the code of what it would have waited for, and
// the limit that would have held it.
func Refusal(code, behind, limit string) string {
	switch {
	case behind == "" || behind == "none":
	case code == "full":
		return Reason(code, limit) + ": " + Reason(behind, limit)
	case code == "deadline" && behind != "limit":
		return Reason(behind, limit) + ", past its deadline"
	}
	return Reason(code, limit)
}
