// Package docs checks the documentation against the repository: links, paths, tests, functions and configurations that it names
// exist, and the picture of the layers is current.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Root is the repository, from this package's directory.
const Root = "../.."

// A Page is a Markdown file.
type Page struct {
	Path string // relative to the repository
	Text string
}

// Pages reads every page that is written for people: those at the root, in docs and of the clients. The changelog speaks of what
// once was.
func Pages() (pages []Page, err error) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "clients/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(Root, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(Root, file)
		if err != nil {
			return nil, err
		}
		if path = filepath.ToSlash(path); path != "CHANGELOG.md" {
			pages = append(pages, Page{path, string(text)})
		}
	}
	return pages, nil
}

// A Block is a fenced block of a page.
type Block struct {
	Language, Text string
	Line           int // of its first line
}

// Split takes a page apart: its prose, with empty lines in place of blocks, and its fenced blocks.
func (p Page) Split() (prose string, blocks []Block) {
	var b strings.Builder
	inside, indent := false, 0
	for i, line := range strings.Split(p.Text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(trimmed, "```"):
			if inside = !inside; inside {
				indent = len(line) - len(trimmed)
				blocks = append(blocks, Block{Language: strings.TrimPrefix(trimmed, "```"), Line: i + 2})
			}
			line = ""
		case inside:
			last := &blocks[len(blocks)-1]
			last.Text += strings.TrimPrefix(line, strings.Repeat(" ", indent)) + "\n"
			line = ""
		}
		b.WriteString(line + "\n")
	}
	return b.String(), blocks
}

var span = regexp.MustCompile("`([^`]+)`")

// Spans returns what stands between backquotes in prose.
func Spans(prose string) (spans []string) {
	for _, m := range span.FindAllStringSubmatch(prose, -1) {
		spans = append(spans, strings.Join(strings.Fields(m[1]), " "))
	}
	return spans
}

var heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)

// Anchors returns the names of a page's headings, as GitHub makes them.
func (p Page) Anchors() map[string]bool {
	prose, _ := p.Split()
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(prose, -1) {
		anchors[slug(m[1])] = true
	}
	return anchors
}

func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(title)) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}
