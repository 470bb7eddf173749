package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/scripts/commit"
)

// licenceOfAll is the file in archives with the licences of everything that is linked in.
const licenceOfAll = "THIRD_PARTY_LICENSES.txt"

// linked is a module that is in the binary, or Go's own library, with the texts of its licences.
type linked struct {
	name, version string
	licence       string // in SPDX's language
	texts         []text
}

// text is a file that has to go with the binary.
type text struct {
	file    string // below the module
	content string
}

// licenceFile matches the names of licences, and of what licences want to be passed on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// linkedIn finds what the packages of the command come from, and its licences: those of the module, and those of directories in it that
// hold code of others. A module without a licence that spdx knows is an error.
func linkedIn(ctx context.Context, system, arch string) ([]linked, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-tags", tags, "-f",
		"{{.Dir}}\t{{with .Module}}{{if not .Main}}{{with or .Replace .}}{{.Dir}}\t{{.Path}}\t{{.Version}}{{end}}{{end}}{{end}}", "./cmd/sluice")
	cmd.Env = buildEnv(system, arch)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := commit.Output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, err := commit.Output(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	modules := map[string]*linked{"std": {name: "std", version: strings.TrimPrefix(version, "go")}}
	seen := map[string]bool{}
	if err := modules["std"].take(root, root, seen); err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			continue // a package of Go, or of this module
		}
		dir, top := fields[0], fields[1]
		m := modules[fields[2]]
		if m == nil {
			m = &linked{name: fields[2], version: fields[3]}
			modules[m.name] = m
		}
		for ; len(dir) >= len(top); dir = filepath.Dir(dir) {
			if err := m.take(top, dir, seen); err != nil {
				return nil, err
			}
		}
	}
	var all []linked
	for _, m := range modules {
		if m.licence, err = licenceOf(m.texts); err != nil {
			return nil, fmt.Errorf("%s %s: %w", m.name, m.version, err)
		}
		slices.SortFunc(m.texts, func(a, b text) int { return strings.Compare(a.file, b.file) })
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b linked) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// take adds the licences that are in a directory of the module at top, unless it was seen.
func (m *linked) take(top, dir string, seen map[string]bool) error {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !f.Type().IsRegular() || !licenceFile.MatchString(f.Name()) || filepath.Ext(f.Name()) == ".go" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		m.texts = append(m.texts, text{filepath.ToSlash(name), strings.Trim(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n")})
	}
	return nil
}

// licenceOf names the licences of all texts, such as "Apache-2.0 AND BSD-3-Clause".
func licenceOf(texts []text) (string, error) {
	var ids []string
	for _, t := range texts {
		base := strings.ToLower(t.file[strings.LastIndex(t.file, "/")+1:])
		if !strings.HasPrefix(base, "licen") && !strings.HasPrefix(base, "copying") {
			continue // a notice, or a grant of patents
		}
		found := spdx(t.content)
		if len(found) == 0 {
			return "", fmt.Errorf("%s is a licence that scripts/release does not know: read it, and add it to spdx", t.file)
		}
		ids = append(ids, found...)
	}
	if len(ids) == 0 {
		return "", errors.New("it has no licence")
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND "), nil
}

// spdx names the licences that a text contains, by sentences that only they have.
func spdx(content string) (ids []string) {
	plain := strings.ToLower(strings.Join(strings.Fields(content), " "))
	if strings.Contains(plain, "apache license version 2.0, january 2004") {
		ids = append(ids, "Apache-2.0")
	}
	if strings.Contains(plain, "permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation") {
		ids = append(ids, "MIT")
	}
	if strings.Contains(plain, "permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted") {
		ids = append(ids, "ISC")
	}
	if strings.Contains(plain, "redistribution and use in source and binary forms") {
		if strings.Contains(plain, "endorse or promote products derived from") {
			ids = append(ids, "BSD-3-Clause")
		} else {
			ids = append(ids, "BSD-2-Clause")
		}
	}
	return ids
}

// writeLicences lists what is linked in, and then each text once, below the components that have it.
func writeLicences(out io.Writer, all []linked, program string) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s contains the following, besides code of its own, whose licence is the file LICENSE.\n\n", program)
	var order []string
	of := map[string][]string{}
	for _, m := range all {
		fmt.Fprintf(w, "%s %s: %s\n", m.name, m.version, m.licence)
		for _, t := range m.texts {
			if of[t.content] == nil {
				order = append(order, t.content)
			}
			of[t.content] = append(of[t.content], fmt.Sprintf("%s %s: %s", m.name, m.version, t.file))
		}
	}
	for _, content := range order {
		fmt.Fprintf(w, "\n%s\n%s\n%[1]s\n\n%[3]s\n", strings.Repeat("=", 80), strings.Join(of[content], "\n"), content)
	}
	return w.Flush()
}
