package inspect

import "time"

// BudgetState is what budgets say of one who asks.
type BudgetState struct {
	// Over tells that one of its budgets is used up, and Policy what is to happen, the hardest first: deny, slow,
	// reroute, downgrade, alert. Budget is the one that says so.
	Over     bool       `json:"over"`
	Policy   string     `json:"policy"`
	Budget   string     `json:"budget"`
	UsedUSD  float64    `json:"used_usd"`
	SizeUSD  float64    `json:"size_usd"`
	ResetsAt *time.Time `json:"resets_at"`
	Policies []string   `json:"policies"` // of all that are used up
}

// BudgetStatus is one account of a budget.
type BudgetStatus struct {
	Name         string     `json:"name"`
	Per          string     `json:"per"`
	Who          string     `json:"who"` // empty for a shared account, and before anything is spent
	SizeUSD      float64    `json:"size_usd"`
	UsedUSD      float64    `json:"used_usd"` // with what is reserved for requests that are under way
	RemainingUSD float64    `json:"remaining_usd"`
	UnpricedUSD  float64    `json:"unpriced_usd"` // the part of UsedUSD that is a guess: models without a price
	Period       string     `json:"period"`
	ResetsAt     *time.Time `json:"resets_at"`
	Over         string     `json:"over"` // what happens when it is used up
	// Slowing tells that a budget with over: slow holds lower classes back now, and Waiting how many requests wait for that, by class.
	// Both are empty for other budgets.
	Slowing bool           `json:"slowing"`
	Waiting map[string]int `json:"waiting"`
}

// Alert tells that a budget is used up. There is one for each account and period, from the first process that notices.
type Alert struct {
	Time     time.Time  `json:"time"`
	Budget   string     `json:"budget"`
	Per      string     `json:"per"`
	Who      string     `json:"who"` // whose account it is, where each has its own
	Over     string     `json:"over"`
	SizeUSD  float64    `json:"size_usd"`
	UsedUSD  float64    `json:"used_usd"`
	Period   string     `json:"period"`
	ResetsAt *time.Time `json:"resets_at"`
	Resource string     `json:"resource"` // of the request that found it so
	Agent    string     `json:"agent"`
	User     string     `json:"user"`
	Text     string     `json:"text"` // the same for people
}
