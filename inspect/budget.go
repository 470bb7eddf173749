package inspect

import "time"

// BudgetState is what the budgets say about one caller.
type BudgetState struct {
	// Over is set if one of the caller's budgets is used up. Policy is what happens then: the strictest of deny, slow,
	// reroute, downgrade and alert. Budget is the budget with that policy.
	Over     bool       `json:"over"`
	Policy   string     `json:"policy"`
	Budget   string     `json:"budget"`
	UsedUSD  float64    `json:"used_usd"`
	SizeUSD  float64    `json:"size_usd"`
	ResetsAt *time.Time `json:"resets_at"`
	Policies []string   `json:"policies"` // of all budgets that are used up
}

// BudgetStatus is one account of a budget.
type BudgetStatus struct {
	Name         string     `json:"name"`
	Per          string     `json:"per"`
	Who          string     `json:"who"` // empty for a shared account, and before anything is spent
	SizeUSD      float64    `json:"size_usd"`
	UsedUSD      float64    `json:"used_usd"` // including reservations of running requests
	RemainingUSD float64    `json:"remaining_usd"`
	UnpricedUSD  float64    `json:"unpriced_usd"` // the part of UsedUSD that is a guess, for models without a price
	Period       string     `json:"period"`
	ResetsAt     *time.Time `json:"resets_at"`
	Over         string     `json:"over"` // the policy when it is used up
	// Slowing is set while a budget with over: slow holds lower classes back. Waiting counts the requests that wait for
	// it, by class. Both are empty for other budgets.
	Slowing bool           `json:"slowing"`
	Waiting map[string]int `json:"waiting"`
	// Uncounted lists what callers stated this month and no budget counts, because it has no price: resource and unit,
	// such as "search credits". It is the same for all budgets.
	Uncounted []string `json:"uncounted"`
}

// Alert reports that a budget is used up. The first process that notices sends one per account and period.
type Alert struct {
	Time     time.Time  `json:"time"`
	Budget   string     `json:"budget"`
	Per      string     `json:"per"`
	Who      string     `json:"who"` // the account's owner, if each has its own
	Over     string     `json:"over"`
	SizeUSD  float64    `json:"size_usd"`
	UsedUSD  float64    `json:"used_usd"`
	Period   string     `json:"period"`
	ResetsAt *time.Time `json:"resets_at"`
	Resource string     `json:"resource"` // of the request that found the budget used up
	Agent    string     `json:"agent"`
	User     string     `json:"user"`
	Text     string     `json:"text"` // the same in words
}
