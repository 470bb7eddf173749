package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestEverythingLinkedInHasItsLicence(t *testing.T) {
	t.Chdir("../..")
	all, err := linkedIn(t.Context(), "linux", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var out bytes.Buffer
	if err := writeLicences(&out, all, "sluice v1.2.3"); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		got[m.name] = m.licence
		for _, text := range m.texts {
			if !strings.Contains(out.String(), "\n"+text.content+"\n") {
				t.Errorf("%s of %s is not in the file", text.file, m.name)
			}
			if !strings.Contains(out.String(), "\n"+m.name+" "+m.version+": "+text.file+"\n") {
				t.Errorf("%s of %s is not told", text.file, m.name)
			}
		}
	}
	if len(all) < 50 {
		t.Errorf("only %d modules were found", len(all))
	}
	// Go's library, a module with code of another one in it, and one whose notice has to go along.
	for name, want := range map[string]string{
		"std":                                    "BSD-3-Clause",
		"github.com/prometheus/client_golang":    "Apache-2.0 AND BSD-3-Clause",
		"github.com/spf13/pflag":                 "BSD-3-Clause",
		"github.com/coder/websocket":             "ISC",
		"github.com/goccy/go-yaml":               "MIT",
		"google.golang.org/grpc":                 "Apache-2.0",
		"github.com/redis/rueidis":               "Apache-2.0",
		"github.com/sluicehq/sluice":             "",
		"github.com/anishathalye/porcupine":      "",
		"golang.org/x/crypto/x509roots/fallback": "BSD-3-Clause",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	for _, file := range []string{"google.golang.org/grpc v1", "github.com/prometheus/client_golang v1", "github.com/redis/rueidis v1"} {
		if _, rest, ok := strings.Cut(out.String(), "\n"+file); !ok || !strings.Contains(rest, "NOTICE") {
			t.Errorf("the notice of %s is missing", file)
		}
	}
}

func TestLicencesAreToldApart(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	const mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software and associated documentation files"
	const bsd = "Redistribution and use in source and binary forms, with or\n // without modification, are permitted"
	for name, of := range map[string]struct {
		texts []text
		want  string
	}{
		"one":              {[]text{{"LICENSE", string(apache)}}, "Apache-2.0"},
		"two in one file":  {[]text{{"LICENSE.md", string(apache) + mit}}, "Apache-2.0 AND MIT"},
		"one in two files": {[]text{{"LICENSE", mit}, {"b/LICENCE.txt", mit}}, "MIT"},
		"with a notice":    {[]text{{"COPYING", bsd}, {"NOTICE", "Copyright"}, {"PATENTS", "A grant"}}, "BSD-2-Clause"},
		"three clauses":    {[]text{{"LICENSE", bsd + " used to\n endorse or promote products derived\n from"}}, "BSD-3-Clause"},
		"none":             {nil, ""},
		"only a notice":    {[]text{{"NOTICE", "Copyright"}}, ""},
		"one not known":    {[]text{{"LICENSE", "You may not."}}, ""},
		"one of two known": {[]text{{"LICENSE", mit}, {"sub/LICENSE", "You may not."}}, ""},
	} {
		got, err := licenceOf(of.texts)
		if got != of.want || (err != nil) != (of.want == "") {
			t.Errorf("%s: %q (%v), want %q", name, got, err, of.want)
		}
	}
}
