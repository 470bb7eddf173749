package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxFile is the largest scenario file that is read.
const maxFile = 256 << 10

// maxNesting is how deeply brackets may be nested: far more than any scenario needs.
const maxNesting = 100

// ParseError says where a scenario file is wrong.
type ParseError struct {
	File         string
	Line, Column int    // from 1; 0: the file as a whole
	Field        string // such as agents[2].class; may be empty
	Message      string
	Excerpt      string // the lines around it with a mark; may be empty
}

func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// The file format: what Parse reads into before it checks and converts.
type (
	fileScenario struct {
		Name     string       `yaml:"name"`
		About    string       `yaml:"about"`
		Provider fileProvider `yaml:"provider"`
		Price    float64      `yaml:"price"`
		Walls    fileWalls    `yaml:"walls"`
		Horizon  string       `yaml:"horizon"`
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
		Every        string  `yaml:"every"`
		Workers      int     `yaml:"workers"`
		Does         string  `yaml:"does"`
		Model        string  `yaml:"model"`
		InputTokens  int64   `yaml:"input_tokens"`
		OutputTokens int64   `yaml:"output_tokens"`
		Spread       float64 `yaml:"spread"`
	}
)

// Parse reads a scenario from a file that calls itself name. What is wrong with it
// is told as a [*ParseError].
func Parse(name string, r io.Reader) (*Scenario, error) {
	src, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(src) > maxFile {
		return nil, &ParseError{File: name, Message: fmt.Sprintf("a scenario is at most %d bytes long", maxFile)}
	}
	if nested(src) > maxNesting {
		return nil, &ParseError{File: name, Message: "its brackets are nested too deeply"}
	}
	var f fileScenario
	dec := yaml.NewDecoder(bytes.NewReader(src), yaml.Strict())
	if err := dec.Decode(&f); err != nil {
		return nil, located(name, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, &ParseError{File: name, Message: "there is a second document in it: a file holds one scenario"}
	}
	c := &checker{file: name, src: src}
	sc := c.scenario(&f)
	if c.err != nil {
		return nil, c.err
	}
	return sc, nil
}

// nested is how deeply brackets are nested. The YAML reader takes time and memory with
// the square of it, so it is looked at before; brackets in text count as well.
func nested(src []byte) int {
	depth, most := 0, 0
	for _, c := range src {
		switch c {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return most
}

// located turns an error of the YAML reader into one of ours.
func located(name string, err error) error {
	pe := &ParseError{File: name, Message: err.Error()}
	if errors.Is(err, io.EOF) {
		pe.Message = "there is nothing in it"
		return pe
	}
	var ye yaml.Error
	if errors.As(err, &ye) {
		pe.Message = ye.GetMessage()
		var wrong *yaml.TypeError
		if errors.As(err, &wrong) {
			pe.Message = "this has to be " + expected(wrong.DstType.Kind())
		}
		if tk := ye.GetToken(); tk != nil && tk.Position != nil {
			pe.Line, pe.Column = tk.Position.Line, tk.Position.Column
		}
		if _, excerpt, ok := strings.Cut(ye.FormatError(false, true), "\n"); ok {
			pe.Excerpt = strings.TrimRight(excerpt, "\n ")
		}
	}
	return pe
}

// expected names a kind of value without the words of Go.
func expected(k reflect.Kind) string {
	switch k {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	}
	return "a mapping of fields"
}
