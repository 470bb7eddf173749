package inspect

import "time"

// Route is the model to use now.
type Route struct {
	Resource string
	Model    string
	// Wait is how long a request is expected to wait; 0 if it can go now. Unknown tells that nobody knows.
	Wait       time.Duration
	Unknown    bool
	USDPerMTok float64
	Unpriced   bool // USDPerMTok is a guess
	// Code is why: cheapest (of all), room (cheaper ones have none), soonest (none has room, this one will have it
	// first), blind (none has room, and nobody knows when). Reason is the same for people.
	Code   string
	Reason string
}
