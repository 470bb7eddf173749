package scaler

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Mode is the rule that decides how many replicas there should be.
type Mode string

// The modes of a trigger.
const (
	Headroom Mode = "headroom" // as many as the remaining quota can feed until its reset
	Queue    Mode = "queue"    // as many as the waiting requests need
	Light    Mode = "light"    // a fixed number, unless the light is red
)

// Bounds on a trigger. They keep every number exact on its way through KEDA, and every text short.
const (
	maxTarget   = 1e9
	maxReplicas = 1_000_000
	maxText     = 256
)

// Trigger is the parsed metadata of a ScaledObject.
type Trigger struct {
	Resource string
	Mode     Mode
	// Class limits the trigger to one class. Empty means all classes.
	Class string
	// Target is the amount for one replica: units per minute with Headroom, waiting requests with Queue. With Light it
	// is the number of replicas.
	Target float64
	// Unit selects the limits that count. Empty means requests, or the unit of the first limit.
	Unit string
	// Model selects one model's limits where each model has its own. Empty means all models together.
	Model string
}

// fields lists the fields of a trigger.
var fields = []string{"resource", "mode", "target", "class", "unit", "model"}

// kedaFields lists fields in the same metadata that KEDA itself reads: how to reach the scaler.
var kedaFields = []string{"scalerAddress", "enableTLS", "unsafeSsl", "tlsCertFile"}

// fromEnv is the suffix of a field whose value KEDA has read from the workload's environment.
const fromEnv = "FromEnv"

// MetadataError says which field of a trigger is wrong, and why.
type MetadataError struct {
	Field string
	Text  string
}

func (e *MetadataError) Error() string { return "metadata " + e.Field + ": " + e.Text }

func wrong(field, format string, args ...any) error {
	return &MetadataError{Field: clip(field), Text: fmt.Sprintf(format, args...)}
}

// clip shortens text for messages.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}

// Parse reads a trigger from its metadata. classes lists the known classes; nil accepts any name. Resource is empty if
// the metadata names none: [Server] then uses the only one there is.
func Parse(metadata map[string]string, classes []string) (Trigger, error) {
	t := Trigger{Mode: Headroom}
	given := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(metadata)) { // sorted, so that the same mistake gets the same message
		name := strings.TrimSuffix(key, fromEnv)
		if slices.Contains(kedaFields, name) {
			continue
		}
		if !slices.Contains(fields, name) {
			return t, wrong(key, "is not known. The fields are %s", strings.Join(fields, ", "))
		}
		value := strings.TrimSpace(metadata[key])
		if _, twice := given[name]; twice {
			return t, wrong(name, "is given twice, also as %s: leave one out", name+fromEnv)
		}
		if value == "" {
			return t, wrong(key, "is empty: give a value or leave it out")
		}
		if len(value) > maxText {
			return t, wrong(key, "is %d bytes long, more than %d", len(value), maxText)
		}
		given[name] = value
	}
	t.Resource, t.Class, t.Unit, t.Model = given["resource"], given["class"], given["unit"], given["model"]
	if classes != nil && t.Class != "" && !slices.Contains(classes, t.Class) {
		return t, wrong("class", "%q is not a class. The classes are %s", t.Class, strings.Join(classes, ", "))
	}
	if m, ok := given["mode"]; ok {
		t.Mode = Mode(m)
	}
	var err error
	t.Target, err = target(t.Mode, given["target"])
	return t, err
}

// target reads the amount for one replica.
func target(m Mode, text string) (float64, error) {
	need := ""
	switch m {
	case Headroom:
		need = "how much one replica uses in a minute, such as 20"
	case Queue:
		need = "how many waiting requests one replica is worth, such as 10"
	case Light:
		if text == "" {
			return 1, nil
		}
		need = "how many replicas there are while the light is green, such as 5"
	default:
		return 0, wrong("mode", "%q is not a mode. The modes are %s, %s and %s", m, Headroom, Queue, Light)
	}
	if text == "" {
		return 0, wrong("target", "is missing: in the mode %s it is %s", m, need)
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(n):
		return 0, wrong("target", "%q is not a number: in the mode %s it is %s", text, m, need)
	case n < 1/maxTarget || n > maxTarget:
		return 0, wrong("target", "%s is out of range: it must be more than 0 and at most %.0f", text, float64(maxTarget))
	case m == Light && (n != math.Trunc(n) || n > maxReplicas):
		return 0, wrong("target", "%s is not a number of replicas: in the mode %s it is a whole number up to %d", text, m, maxReplicas)
	}
	return n, nil
}

// metricName returns the name of the trigger's metric in the cluster, which consists of letters, digits and dashes.
func (t Trigger) metricName() string {
	name := "sluice-" + string(t.Mode) + "-" + t.Resource
	if t.Class != "" {
		name += "-" + t.Class
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	const most = 63 // this length also makes the name a valid label
	return strings.Trim(name[:min(len(name), most)], "-")
}
