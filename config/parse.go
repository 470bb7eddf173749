package config

import (
	"cmp"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/strictyaml"
)

// ParseError describes one mistake in a file: file, line, column, field, what was expected, and the lines around it.
type ParseError = strictyaml.ParseError

// Errors holds all mistakes in a file, in the order of the file. errors.As finds the first [ParseError] in it.
type Errors = strictyaml.Errors

// title is the word for the file in messages.
const title = "configuration"

// Load reads the file at path. It takes variables from the environment of the process.
func Load(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	}
	src, err := strictyaml.Read(path, title, file)
	if err != nil {
		return nil, err
	}
	f, err := Parse(path, src, os.LookupEnv)
	if err == nil {
		f.dir = filepath.Dir(path)
	}
	return f, err
}

// Parse reads a configuration from src and fills in the defaults. Messages call the file name. Variables in values are
// looked up with env. The error is a [*ParseError], or [Errors] if there are several mistakes.
func Parse(name string, src []byte, env func(name string) (value string, set bool)) (*File, error) {
	doc, err := strictyaml.Parse(name, title, src)
	if doc != nil {
		doc.Secret(secret)
		err = cmp.Or(doc.Err(), err)
	}
	if err != nil {
		return nil, err
	}
	doc.Expand(env)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	f := &File{}
	doc.Decode(f)
	unreadable := doc.Err() != nil
	c := &checker{doc: doc, file: f}
	c.sameLimits() // needs only names, so it is told together with values that cannot be read
	if unreadable {
		return nil, doc.Err()
	}
	c.stated()
	f.Defaults()
	c.related()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	f.remember(doc)
	return f, nil
}

// secret reports whether a value must not appear in messages about other lines: a key instead of its variable's name, a
// token instead of its hash, a password among the parameters of an address, or a webhook address, which is enough to
// post.
func secret(path, text string) bool {
	if strings.HasPrefix(text, "$") {
		return false // a variable gives nothing away
	}
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "store":
		return parameter.MatchString(text)
	case "env", "key_env":
		return !envRE.MatchString(text)
	case "hash":
		return !hashRE.MatchString(text)
	case "cert", "key", upstreamCA:
		return strings.Contains(text, pemBegins)
	case "upstream":
		return strings.Contains(text, "@")
	case "webhook":
		return strings.Contains(text, "://")
	}
	return false
}

// remember keeps the text of values that contain variables, as the file writes them, and where upstream_ca is.
func (f *File) remember(doc *strictyaml.Doc) {
	if f.UpstreamCA != "" {
		f.ca = doc.At(upstreamCA)
	}
	strictyaml.Encode(f, func(path, text string) (string, bool) {
		if written, ok := doc.Source(path); ok {
			if f.sources == nil {
				f.sources = map[string]source{}
			}
			f.sources[path] = source{written, text}
		}
		return "", false
	})
}

// parameter matches passwords among the parameters of an address. $$ stands for one $. Variables do not match: they
// reveal nothing.
var parameter = lazyregexp.New(`([?&][A-Za-z_]*password=)([^&#\s"'$]|\$\$)[^&#\s"']*`)

// Show returns [File.YAML] for people to read, with passwords in addresses masked. It shows only the host of an alerts
// webhook, unless a variable holds the address.
func (f *File) Show() ([]byte, error) {
	shown := *f
	if s, ok := f.sources["alerts.webhook"]; f.Alerts.Webhook != "" && (!ok || s.text != f.Alerts.Webhook) {
		shown.Alerts.Webhook = masked
		if u, err := url.Parse(f.Alerts.Webhook); err == nil && u.Host != "" {
			shown.Alerts.Webhook = u.Scheme + "://" + u.Host + "/" + masked
		}
	}
	text, err := shown.YAML()
	return parameter.ReplaceAll([]byte(strictyaml.Mask(string(text))), []byte("${1}***")), err
}

// YAML prints the configuration so that [Parse] reads the same from it. Values that came from variables are printed as
// variables, because their values may be secret.
func (f *File) YAML() ([]byte, error) {
	return strictyaml.Encode(f, func(path, text string) (string, bool) {
		s, ok := f.sources[path]
		return s.written, ok && s.text == text
	}), nil
}
