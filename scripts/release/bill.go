package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// bill is a bill of materials in the CycloneDX format: what is in a binary, as the binary itself says it.
type bill struct {
	Format     string `json:"bomFormat"`
	Spec       string `json:"specVersion"`
	Version    int    `json:"version"`
	Metadata   about  `json:"metadata"`
	Components []part `json:"components"`
}

type about struct {
	Timestamp string `json:"timestamp"`
	Component part   `json:"component"`
}

type part struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Licences   []licence  `json:"licenses"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

// licence is an expression in SPDX's language.
type licence struct {
	Expression string `json:"expression"`
}

// property keeps the sum that go.sum has for a module. It is a hash of a directory's listing, so it is none of CycloneDX's hashes.
type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOf writes the bill of a binary. Each of its components must be among parts, which has its licence.
func billOf(out io.Writer, binary string, parts []linked, r *release) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	licences := map[string][]licence{}
	for _, p := range parts {
		licences[p.name+"@"+p.version] = []licence{{p.licence}}
	}
	number := strings.TrimPrefix(r.version, "v")
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: about{
			Timestamp: r.made.Format(time.RFC3339),
			Component: part{Type: "application", Name: info.Main.Path, Version: number, PURL: "pkg:golang/" + info.Main.Path + "@" + r.version, Licences: []licence{{"Apache-2.0"}}},
		},
		Components: []part{{Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, part{
			Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version,
			Properties: []property{{"go:sum", m.Sum}},
		})
	}
	for i, c := range b.Components {
		if b.Components[i].Licences = licences[c.Name+"@"+c.Version]; b.Components[i].Licences == nil {
			return fmt.Errorf("%s %s is linked in, but its licence was not found", c.Name, c.Version)
		}
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(b)
}
