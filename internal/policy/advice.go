package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	throttledFrom = 2    // refusals per week that raise an advice
	outsideFrom   = 0.01 // fraction of a limit from which use outside Sluice is reported
	slowFrom      = 0.02 // fraction of the window that a strict guard may cost
	usual         = 95   // percent of a limit to use if nothing better is known
	leastUse      = 50
)

// Facts are the figures of one resource that advice is based on. A zero field means that there is nothing to report.
type Facts struct {
	Resource    string
	Provider    string // of the resource, in the configuration; empty: none
	Throttled7d int64  // refusals (429) in the last seven days
	Observed    bool   // the gate only counts and holds no request

	Outside      float64 // largest fraction of a limit that was used outside Sluice
	OutsideLimit string
	OutsideFlow  bool  // the limit is a flow, which has no reserve
	Slack        int64 // microseconds: the widest slack after unexplained refusals
	SlackLimit   string
	Cut          int64 // thousandths by which unexplained refusals have cut a limit
	CutLimit     string

	Recounted string // a limit that responses show to be counted differently than assumed
	Assumed   string // the assumption, in words
	Counted   string // how the limit is counted now
	CountedAs Stated // what to configure to keep that

	// A limit of which responses state that nearly all is free, while the gate counts it as used.
	Free       string
	FreeStated string // what they state, in words
	FreeHeld   string // what the gate counts, in words
	FreeAs     Stated // what to configure if the provider has a bucket; without a size: not known

	// A limit that unanswered tickets leave without room, with its model.
	Unanswered     string
	UnansweredHold string   // what holds it, in words
	UnansweredOf   []string // the agents of the tickets, most first
	TTL            int64    // microseconds: how long tickets live

	Unknown []Stated // limits whose size is neither configured nor stated; one without a name if there are no limits
	Use     int      // percent; 0 means 100
	Audit   Audit
	Over    int64  // microseconds: the window of the quota that the audit is about; at most a minute counts as one
	Fullest string // the limit that the audit's ratio is about; empty: its quota
	Callers int    // callers in the audit
	Urgent  string // a caller that a higher class may help; empty: none
	Highest string // the highest class
	Sent    int64  // by these callers
	Refused int64  // of these sends, by the provider (429)

	GuardOff    bool
	GuardStrict bool
	HeaderTime  int64 // microseconds until a response usually begins
	Window      int64 // the shortest guarded window

	BreakerLimit string // the limit with a tripped breaker
	BreakerUntil string // the reset at which it closes, for display
	Cycles       [][]string
	Others       []string // configured agents that the last agent of the first cycle waits for besides
}

// Advice is a setting worth changing, and the reason.
type Advice struct {
	Setting string // such as resources.github.use
	Text    string
	// YAML is the change as a line of a configuration, complete by itself. It is empty if no setting helps.
	YAML string
}

// topic is one possible advice: it returns what was found. An empty setting means no advice. Each setting is mentioned
// once.
type topic func(f *Facts) finding

// finding is what was observed and what to do about it, each without a full stop.
type finding struct{ setting, seen, do, yaml string }

// topics are all topics, the most important first.
var topics = []topic{cycles, unanswered, unknown, outside, recounted, free, guardOff, contention, breaker, slack, cut, strict, quota}

// causes are the topics that explain refusals, the best explanation first.
var causes = []topic{observed, outside, recounted, guardOff, slack, unknown, use}

// Advise returns what is worth changing, the most important first. [AdviseOnRefusals] comes before all others.
func Advise(f Facts) []Advice {
	var all []Advice
	said := make(map[string]bool)
	if a, ok := AdviseOnRefusals(f); ok {
		all, said[a.Setting] = append(all, a), true
	}
	for _, about := range topics {
		if a, ok := about.advice(&f, ""); ok && !said[a.Setting] {
			all, said[a.Setting] = append(all, a), true
		}
	}
	return all
}

// AdviseOnRefusals returns the setting that best fits two or more refusals in a week. ok is false if there were fewer.
func AdviseOnRefusals(f Facts) (a Advice, ok bool) {
	if f.Throttled7d < throttledFrom {
		return a, false
	}
	prefix := fmt.Sprintf("%d requests were refused (429) in the last 7 days, and ", f.Throttled7d)
	for _, cause := range causes {
		if a, ok = cause.advice(&f, prefix); ok {
			break
		}
	}
	return a, ok
}

func (about topic) advice(f *Facts, prefix string) (a Advice, ok bool) {
	found := about(f)
	if found.setting == "" {
		return a, false
	}
	return Advice{found.setting, sentence(prefix+found.seen) + " " + sentence(found.do), found.yaml}, true
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// of returns the full name of a setting of the resource.
func (f *Facts) of(setting string) string { return "resources." + f.Resource + "." + setting }

func observed(f *Facts) (x finding) {
	if !f.Observed {
		return x
	}
	setting := f.of("mode")
	return finding{
		setting, "the gate only observes this resource", fmt.Sprintf("to hold requests until there is room for them, set %s: gate", setting),
		f.yaml("mode", "gate"),
	}
}

func outside(f *Facts) (x finding) {
	if !(f.Outside >= outsideFrom) {
		return x
	}
	part := math.Ceil(min(f.Outside, 1) * 100)
	seen := fmt.Sprintf("callers outside this gate used %.0f%% of the limit %s with the same key", part, f.OutsideLimit)
	if f.OutsideFlow {
		setting, left := f.of("use"), fmt.Sprintf("%.0f%%", max(100-part, leastUse))
		return finding{
			setting, seen,
			fmt.Sprintf("find them and send their requests through this gate. Sluice subtracts such use when responses show it; if that is too late, set %s: %s", setting, left),
			f.yaml("use", left),
		}
	}
	setting, reserve := f.of("reserve"), fmt.Sprintf("%.0f%%", min(math.Ceil(part/5)*5, 90))
	return finding{
		setting, seen, fmt.Sprintf("find them and send their requests through this gate, or leave them a part: %s: %s", setting, reserve),
		f.yaml("reserve", reserve),
	}
}

func recounted(f *Facts) (x finding) {
	if f.Recounted == "" {
		return x
	}
	return finding{
		f.of("limits." + f.Recounted),
		fmt.Sprintf("answers contradict the assumption that the limit %s is %s: it is counted as %s", f.Recounted, f.Assumed, f.Counted),
		fmt.Sprintf("that is safe however the provider counts; to start with it, put %s into %s", f.CountedAs, f.of("limits")),
		f.limits(f.CountedAs),
	}
}

func free(f *Facts) (x finding) {
	if f.Free == "" {
		return x
	}
	do := fmt.Sprintf("the limit comes back sooner than the gate assumes: state the provider's size and window for it in %s", f.of("limits"))
	yaml := ""
	if f.FreeAs.Size != "" {
		do += fmt.Sprintf(", such as %s for a bucket", f.FreeAs)
		yaml = f.limits(f.FreeAs)
	}
	return finding{
		f.of("limits." + f.Free), fmt.Sprintf("responses state %s of the limit %s, while the gate counts %s and holds requests", f.FreeStated, f.Free, f.FreeHeld),
		do, yaml,
	}
}

func guardOff(f *Facts) (x finding) {
	if !f.GuardOff {
		return x
	}
	setting := f.of("guard")
	return finding{
		setting, "the arrival guard is off, so requests that bunch up on the way can pass a limit", fmt.Sprintf("set %s: auto", setting),
		f.yaml("guard", "auto"),
	}
}

func slack(f *Facts) (x finding) {
	if f.Slack <= 0 {
		return x
	}
	setting, wide := f.of("arrival_slack"), (time.Duration(f.Slack) * time.Microsecond).String()
	return finding{
		setting, fmt.Sprintf("refusals that nothing explains have widened the slack of the limit %s to %s", f.SlackLimit, wide),
		fmt.Sprintf("if requests can take that long to arrive, keep it: %s: %s", setting, wide), f.yaml("arrival_slack", wide),
	}
}

func unknown(f *Facts) (x finding) {
	if len(f.Unknown) == 0 {
		return x
	}
	setting := f.of("limits")
	if f.Unknown[0].Name == "" {
		example := Stated{Name: "minute", Size: "80/min"}
		return finding{
			setting, "no limit is known: none is configured, and no answer has stated one", fmt.Sprintf("state the provider's limits in %s, such as %s", setting, example),
			f.limits(example),
		}
	}
	var list []string
	for i := range f.Unknown {
		list = append(list, f.Unknown[i].Name)
	}
	return finding{
		setting, fmt.Sprintf("the size of %s is not known: no answer has stated it", names("limit", list)), fmt.Sprintf("state the size in %s, such as %s", setting, f.Unknown[0]),
		f.limits(f.Unknown[:min(len(f.Unknown), mostStated)]...),
	}
}

// use is the last resort: use less of the limits.
func use(f *Facts) finding {
	part := usual
	if f.Use > 0 && f.Use <= usual {
		part = f.Use - 5
	}
	if part < leastUse {
		setting := f.of("limits")
		return finding{
			setting, fmt.Sprintf("no more than %d%% of the limits is used as it is", f.Use), fmt.Sprintf("compare the sizes in %s with what the provider states", setting), "",
		}
	}
	setting, less := f.of("use"), strconv.Itoa(part)+"%"
	return finding{setting, "nothing that is known explains it", fmt.Sprintf("leave some room: %s: %s", setting, less), f.yaml("use", less)}
}

func cycles(f *Facts) (x finding) {
	if len(f.Cycles) == 0 || len(f.Cycles[0]) == 0 {
		return x
	}
	circle := f.Cycles[0]
	last := circle[len(circle)-1]
	setting := "agents." + last + ".waits_for"
	seen := fmt.Sprintf("agents wait for each other in a circle: %s > %s", strings.Join(short(circle), " > "), circle[0])
	if n := len(f.Cycles) - 1; n > 0 {
		seen += fmt.Sprintf(" (and %d more)", n)
	}
	return finding{
		setting, seen, fmt.Sprintf("remove %s from %s, or from what that agent states at run time", circle[0], setting), agentYAML(last, "waits_for", list(f.Others)),
	}
}

func contention(f *Facts) (x finding) {
	a := f.Audit
	if a.Verdict != VerdictContention || f.Fullest != "" && f.Fullest == f.Unanswered {
		return x
	}
	x.setting = "agents"
	one := f.Callers == 1
	it := "them"
	x.do = "they will queue: give the urgent ones a higher class under agents, spread their launches, or ask for a larger quota"
	if f.Urgent != "" && f.Highest != "" {
		x.yaml = agentYAML(f.Urgent, "class", Word(f.Highest))
	}
	if one {
		it, x.do, x.yaml = "it", "it will queue: let it send less, or ask for a larger quota", ""
	}
	if f.Observed {
		x.do = fmt.Sprintf("mode observe holds no request, so the provider may refuse some: set %s: gate, let %s send less, or ask for a larger quota", f.of("mode"), it)
		x.yaml = f.yaml("mode", "gate")
	}
	refused := ""
	if a.Ratio < contentionFrom { // the refusals tell
		refused = fmt.Sprintf("the provider refused %d of %d requests (429)", f.Refused, f.Sent)
		if !f.Observed {
			x.do, x.yaml = "compare the configured limits with the provider's, and look for other users of the key", ""
		}
		if a.QuotaPerMin == 0 {
			x.seen = refused
			return x
		}
	}
	if f.Fullest != "" && refused == "" {
		share := fmt.Sprintf("%d callers share", f.Callers)
		if one {
			share = "1 caller uses"
		}
		x.seen = fmt.Sprintf("%s the limit %s, of which %s was used at the peak", share, f.Fullest, percent(a.Ratio))
		return x
	}
	window := time.Duration(f.Over) * time.Microsecond
	per, times := Per(window)
	n := max(window, time.Minute).Minutes()
	send := fmt.Sprintf("%d callers send up to %s %s if their busiest %s coincide", f.Callers, rate(a.PeakPerMin*n), per, times)
	if one {
		send = fmt.Sprintf("1 caller sends up to %s %s", rate(a.PeakPerMin*n), per)
	}
	if refused != "" {
		x.seen = fmt.Sprintf("%s, although %s, %s of the quota of %s: requests come in bursts, or the provider allows less", refused, send, percent(a.PeakPerMin/a.QuotaPerMin), rate(a.QuotaPerMin*n))
		return x
	}
	x.seen = fmt.Sprintf("%s, %s of the quota of %s; one more like %s makes it %s", send, percent(a.Ratio), rate(a.QuotaPerMin*n), it, percent(a.OneMoreRatio))
	return x
}

// Per says in words what a quota is for, such as "a minute", and names several of these times. Less than a minute counts
// as one.
func Per(window time.Duration) (per, times string) {
	switch {
	case window <= time.Minute:
		return "a minute", "minutes"
	case window == time.Hour:
		return "an hour", "hours"
	case window == 24*time.Hour:
		return "a day", "days"
	}
	text := window.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return "in " + text, "windows"
}

func breaker(f *Facts) (x finding) {
	if f.BreakerLimit == "" {
		return x
	}
	until := "its reset"
	if f.BreakerUntil != "" {
		until += " at " + f.BreakerUntil
	}
	setting := f.of("breaker")
	return finding{
		setting, fmt.Sprintf("the limit %s would be gone before %s, so lower classes are held back until then", f.BreakerLimit, until),
		fmt.Sprintf("let them send less, or run out instead: %s: off", setting), f.yaml("breaker", "off"),
	}
}

func cut(f *Facts) (x finding) {
	if f.Cut <= 0 {
		return x
	}
	setting, part := f.of("use"), fmt.Sprintf("%d%%", min(max(100-(f.Cut+9)/10, leastUse), 99))
	return finding{
		setting, fmt.Sprintf("refusals that nothing explains have cut the limit %s by %.1f%%, of which 1%% comes back every hour", f.CutLimit, float64(f.Cut)/10),
		fmt.Sprintf("if they come again, leave that room for good: %s: %s", setting, part), f.yaml("use", part),
	}
}

func strict(f *Facts) (x finding) {
	part := float64(f.HeaderTime) / float64(max(f.Window, 1))
	if !f.GuardStrict || f.Window <= 0 || part < slowFrom {
		return x
	}
	setting := f.of("guard")
	return finding{
		setting,
		fmt.Sprintf("answers take %v to begin, and a strict guard holds a place in a window of %v for so long: about %s of the quota is lost",
			time.Duration(f.HeaderTime)*time.Microsecond, time.Duration(f.Window)*time.Microsecond, percent(part/(1+part))),
		fmt.Sprintf("set %s: auto, which bounds arrivals by arrival_slack", setting), f.yaml("guard", "auto"),
	}
}

func quota(f *Facts) (x finding) {
	if f.Callers == 0 || f.Audit.QuotaPerMin > 0 {
		return x
	}
	setting := f.of("limits")
	return finding{
		setting, fmt.Sprintf("the quota is not known, so the %s a minute that callers send at most cannot be set against it", rate(f.Audit.PeakPerMin)),
		fmt.Sprintf("state a limit on requests in %s", setting), f.limits(Stated{Name: "minute", Size: "80/min"}),
	}
}

// percent and rate format a figure for people.
func percent(part float64) string { return rate(math.Round(min(part, 1e6)*100)) + "%" }

// rate has as many digits as are significant, like the figures next to it in the output of a command.
func rate(x float64) string {
	switch x = min(x, 1e12); {
	case x <= 0:
		return "0"
	case x < 0.01:
		return "<0.01"
	case x < 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(math.Round(x), 'f', 0, 64)
}

// names lists names, shortened if there are many: the limits a and b.
func names(noun string, list []string) string {
	if len(list) == 1 {
		return "the " + noun + " " + list[0]
	}
	if list = short(list); len(list) == 2 {
		return "the " + noun + "s " + list[0] + " and " + list[1]
	}
	return "the " + noun + "s " + strings.Join(list, ", ")
}

// short shortens a long list.
func short(list []string) []string {
	const most = 8
	if len(list) <= most {
		return list
	}
	return append(list[:most-1:most-1], fmt.Sprintf("... (%d in all)", len(list)))
}
