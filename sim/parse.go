package sim

import (
	"errors"
	"io"

	"github.com/sluicehq/sluice/internal/strictyaml"
)

// ParseError says where a scenario file is wrong.
type ParseError = strictyaml.ParseError

// The file format. Parse decodes into these types before it checks and converts them.
type (
	fileScenario struct {
		Name     string       `yaml:"name"`
		About    string       `yaml:"about"`
		Provider fileProvider `yaml:"provider"`
		Price    float64      `yaml:"price"`
		Walls    fileWalls    `yaml:"walls"`
		Horizon  string       `yaml:"horizon"`
		Compare  []string     `yaml:"compare"`
		Agents   []fileAgent  `yaml:"agents"`
	}
	fileWalls struct {
		Attempts int    `yaml:"attempts"`
		Deadline string `yaml:"deadline"`
	}
	fileProvider struct {
		Preset        string      `yaml:"preset"`
		Requests      string      `yaml:"requests"`
		InputTokens   string      `yaml:"input_tokens"`
		OutputTokens  string      `yaml:"output_tokens"`
		Limits        []fileLimit `yaml:"limits"`
		RetryAfter    *bool       `yaml:"retry_after"`
		RejectedCount *bool       `yaml:"rejected_count"`
		Headers       *bool       `yaml:"headers"`
		Service       fileDelay   `yaml:"service"`
		Body          fileDelay   `yaml:"body"`
		Outside       string      `yaml:"outside"`
	}
	fileLimit struct {
		Name        string   `yaml:"name"`
		Size        string   `yaml:"size"`
		Kind        string   `yaml:"kind"`
		Burst       int64    `yaml:"burst"`
		Concurrency int64    `yaml:"concurrency"`
		Unit        string   `yaml:"unit"`
		FirstReset  string   `yaml:"first_reset"`
		Per         []string `yaml:"per"`
		Hidden      bool     `yaml:"hidden"`
		Plan        bool     `yaml:"plan"`
	}
	fileDelay struct {
		Median string  `yaml:"median"`
		Sigma  float64 `yaml:"sigma"`
	}
	fileAgent struct {
		Name         string  `yaml:"name"`
		Count        int     `yaml:"count"`
		Class        string  `yaml:"class"`
		User         string  `yaml:"user"`
		Jobs         int     `yaml:"jobs"`
		Calls        int     `yaml:"calls"`
		Start        string  `yaml:"start"`
		Within       string  `yaml:"within"`
		Machines     int     `yaml:"machines"`
		Every        string  `yaml:"every"`
		Workers      int     `yaml:"workers"`
		Does         string  `yaml:"does"`
		Model        string  `yaml:"model"`
		InputTokens  int64   `yaml:"input_tokens"`
		OutputTokens int64   `yaml:"output_tokens"`
		Spread       float64 `yaml:"spread"`
		Joined       bool    `yaml:"joined"`
		Joins        string  `yaml:"joins"`
	}
)

// Parse reads a scenario. Errors name the file as name. An invalid file gives a [*ParseError].
func Parse(name string, r io.Reader) (*Scenario, error) {
	src, err := strictyaml.Read(name, "scenario", r)
	if err != nil {
		return nil, err
	}
	doc, err := strictyaml.Parse(name, "scenario", src)
	if err != nil {
		return nil, brief(err)
	}
	if doc.Empty() {
		return nil, &ParseError{File: name, Message: "there is nothing in it"}
	}
	var f fileScenario
	doc.Decode(&f)
	if err := doc.Err(); err != nil {
		return nil, brief(err)
	}
	c := &checker{doc: doc}
	sc := c.scenario(&f)
	if c.err != nil {
		return nil, first(c.err)
	}
	return sc, nil
}

// first returns the first error of several.
func first(err error) *ParseError {
	pe, _ := errors.AsType[*ParseError](err)
	return pe
}

// brief returns the first error, without its field and hint. A scenario is short, so the line and the excerpt suffice.
func brief(err error) error {
	pe := first(err)
	pe.Field, pe.Hint = "", ""
	return pe
}
