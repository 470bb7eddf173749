package main

import (
	"debug/buildinfo"
	"encoding/json"
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
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

// property keeps the sum that go.sum has for a module. It is a hash of a directory's listing, so it is none of CycloneDX's hashes.
type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOf writes the bill of a binary.
func billOf(out io.Writer, binary string, r *release) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.version, "v")
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: about{
			Timestamp: r.made.Format(time.RFC3339),
			Component: part{Type: "application", Name: info.Main.Path, Version: number, PURL: "pkg:golang/" + info.Main.Path + "@" + r.version},
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
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(b)
}
