package sim

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed scenarios/*.yaml
var builtin embed.FS

// Builtin returns the scenarios that come with the simulator, by name.
func Builtin() []*Scenario {
	files, err := builtin.ReadDir("scenarios")
	if err != nil {
		panic(err)
	}
	var all []*Scenario
	for _, f := range files {
		sc, err := Load(strings.TrimSuffix(f.Name(), ".yaml"))
		if err != nil {
			panic(err)
		}
		all = append(all, sc)
	}
	slices.SortFunc(all, func(a, b *Scenario) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// UnknownScenario is the error of [Load] for an unknown name.
type UnknownScenario struct {
	Name  string
	Known []string
}

func (e *UnknownScenario) Error() string { return fmt.Sprintf("there is no scenario %q", e.Name) }

// Load returns the built-in scenario with that name.
func Load(name string) (*Scenario, error) {
	f, err := builtin.Open(path.Join("scenarios", name+".yaml"))
	if err != nil || strings.ContainsAny(name, `/\`) {
		unknown := &UnknownScenario{Name: name}
		files, _ := builtin.ReadDir("scenarios")
		for _, f := range files {
			unknown.Known = append(unknown.Known, strings.TrimSuffix(f.Name(), ".yaml"))
		}
		return nil, unknown
	}
	defer f.Close() //nolint:errcheck // it was only read
	return Parse(name+".yaml", f)
}
