package inspect

import "time"

// Route is the model to use now, and why.
type Route struct {
	Resource string
	Model    string
	// Wait is how long a request is expected to wait; 0 if it can go now. Unknown is set if the wait cannot be
	// predicted.
	Wait       time.Duration
	Unknown    bool
	USDPerMTok float64
	Unpriced   bool // USDPerMTok is a guess
	// Code is the reason: "cheapest" (of all), "room" (cheaper models have none), "soonest" (no model has room, this
	// one will have it first) or "blind" (no model has room, and the wait is unknown). Reason says the same in words.
	Code   string
	Reason string
}
