package provider

import (
	"encoding/json"
	"strconv"
	"strings"
)

// refusalForm is the format of a provider's errors. The body may use $status, $type and $message. $message is
// replaced with its quotes.
type refusalForm struct {
	content string // empty: application/json
	body    string
	types   map[int]string
	other   string // the type for statuses that are not in types
}

// Refuse returns a refusal in the provider's own format.
func (v *vendor) Refuse(status int, message string) (contentType string, body []byte) {
	return v.refusal.write(status, message)
}

func (f *refusalForm) write(status int, message string) (contentType string, body []byte) {
	content := f.content
	if content == "" {
		content = "application/json"
	}
	kind, ok := f.types[status]
	if !ok {
		kind = f.other
	}
	quoted, err := json.Marshal(message)
	if err != nil { // a string cannot fail
		quoted = []byte(`""`)
	}
	text := strings.NewReplacer("$status", strconv.Itoa(status), "$type", kind, "$message", string(quoted)).Replace(f.body)
	return content, []byte(text)
}
