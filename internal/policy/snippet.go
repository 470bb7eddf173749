package policy

import (
	"encoding/json"
	"regexp"
	"strings"
)

// mostStated bounds the limits of one line.
const mostStated = 3

// Stated is a limit as a configuration states it.
type Stated struct {
	Name string
	Size string // such as 80/min
	Kind string // empty: the usual one
	Unit string // empty: requests
}

// String returns the limit as YAML.
func (l Stated) String() string {
	text := "{name: " + Word(l.Name) + ", size: " + l.Size
	if l.Kind != "" {
		text += ", kind: " + l.Kind
	}
	if l.Unit != "" {
		text += ", unit: " + Word(l.Unit)
	}
	return text + "}"
}

// limits returns the line of a configuration that states limits of the resource.
func (f *Facts) limits(all ...Stated) string {
	var list []string
	for _, l := range all {
		list = append(list, l.String())
	}
	return f.yaml("limits", "["+strings.Join(list, ", ")+"]")
}

// yaml returns the line of a configuration that sets a field of the resource.
func (f *Facts) yaml(field, value string) string {
	return ResourceYAML(f.Resource, f.Provider, field, value)
}

// ResourceYAML returns the line of a configuration that sets a field of a resource to a value, which is YAML. A built-in
// resource that a file names keeps its provider only if the file states it.
func ResourceYAML(resource, provider, field, value string) string {
	if provider != "" {
		provider = "provider: " + Word(provider) + ", "
	}
	return "resources: {" + Word(resource) + ": {" + provider + field + ": " + value + "}}"
}

// agentYAML returns the line of a configuration that sets a field of an agent to a value, which is YAML.
func agentYAML(agent, field, value string) string {
	return "agents: {" + Word(agent) + ": {" + field + ": " + value + "}}"
}

// list returns a list of names as YAML.
func list(names []string) string {
	var quoted []string
	for _, n := range names {
		quoted = append(quoted, Word(n))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// plainWord matches names that YAML takes for text as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// Word returns a name as YAML: quoted, if it may mean something else.
func Word(name string) string {
	switch strings.ToLower(name) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
	default:
		if plainWord.MatchString(name) {
			return name
		}
	}
	quoted, err := json.Marshal(name) // JSON is YAML
	if err != nil {
		return `""`
	}
	return string(quoted)
}
