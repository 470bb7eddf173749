// Package dashboard serves the live page: hand-written files that a browser runs as they are. They only read the
// daemon's API, so a viewer without access to it sees an empty page.
package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var files embed.FS

// policy lets the page load its own files and call its own daemon. Agents choose their names freely. If a name ever got
// into the page as markup, this policy still keeps it from running.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types lists the media types of the files, because the system's own table may be wrong.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is one file, ready to be sent.
type asset struct {
	body []byte
	kind string
	etag string
}

// Handler serves the page at / and its files under /page/; other paths get a 404. It does not check access, because the
// files contain nothing secret.
func Handler() http.Handler {
	return handler(load())
}

// load reads the files, by the path that serves them.
func load() map[string]asset {
	all := map[string]asset{}
	list, err := files.ReadDir("page")
	if err != nil {
		panic("dashboard: the page is not embedded: " + err.Error()) // cannot happen: the compiler embeds it
	}
	for _, f := range list {
		kind, ok := types[path.Ext(f.Name())]
		if !ok {
			continue
		}
		body, err := files.ReadFile("page/" + f.Name())
		if err != nil {
			panic("dashboard: " + err.Error())
		}
		sum := sha256.Sum256(body)
		at := "/page/" + f.Name()
		if f.Name() == "index.html" {
			at = "/"
		}
		all[at] = asset{body: body, kind: kind, etag: `"` + hex.EncodeToString(sum[:16]) + `"`}
	}
	return all
}

type handler map[string]asset

// ServeHTTP serves one file.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	a, ok := h[r.URL.Path]
	if !ok {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
		return
	}
	head.Set("Content-Type", a.kind)
	if !strings.HasPrefix(a.kind, "text/html") {
		// The browser caches the file, but revalidates it every time: the page of a new daemon must not run old
		// modules.
		head.Set("Cache-Control", "no-cache")
		head.Set("Etag", a.etag)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}
