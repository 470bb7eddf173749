package provider

import "strings"

// anthropicClass returns the unit in which Anthropic limits models: all Opus 4 and all Sonnet 4 models together,
// others separately. Snapshots of a model, which differ in their dates, count as one.
func anthropicClass(_, model string) string {
	bare := bareModel(model)
	var family string
	var space [4]string
	version := space[:0]
	for w := range strings.FieldsFuncSeq(bare, func(c rune) bool { return c == '-' || c == '.' }) {
		switch {
		case w == "claude" || w == "latest" || w == "preview" || w == "thinking" || w == "v1" || w == "v2":
		case isDigits(w) && len(w) <= 2:
			version = append(version, w)
		case isDigits(w): // a date
		case family == "":
			family = w
		}
	}
	if family == "" || len(version) == 0 {
		return bare
	}
	if version[0] == "4" && (family == "opus" || family == "sonnet") {
		version = version[:1]
	}
	return family + "-" + strings.Join(version, "-")
}

// datedModel returns a model's name without the date of a snapshot, for providers that limit each model.
func datedModel(_, model string) string {
	m := strings.TrimPrefix(strings.ToLower(model), "models/")
	if n := len(m) - len("-2006-01-02"); n > 0 && m[n] == '-' && isDigits(m[n+1:n+5]) && m[n+5] == '-' && isDigits(m[n+6:n+8]) && m[n+8] == '-' && isDigits(m[n+9:]) {
		return m[:n]
	}
	return m
}

// bareModel returns a model's name without its maker, its host and its variant.
func bareModel(model string) string {
	m := strings.TrimPrefix(strings.ToLower(model), "ft:") // fine-tuned
	m = m[strings.LastIndexByte(m, '/')+1:]
	for _, maker := range [...]string{"anthropic.", "amazon.", "meta.", "mistral.", "cohere.", "openai.", "deepseek."} {
		if _, rest, ok := strings.Cut(m, maker); ok {
			m = rest
			break
		}
	}
	if i := strings.IndexAny(m, "@[:"); i > 0 {
		m = m[:i]
	}
	return m
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// pathWord returns segment i of a path, counted from 0, or an empty string if there is none.
func pathWord(path string, i int) string {
	for word := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if i == 0 {
			if len(word) > maxName || !printable(word) {
				return ""
			}
			return word
		}
		i--
	}
	return ""
}
