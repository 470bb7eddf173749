package policy

// DefaultTools returns the default costs of tools, in the unit work.
func DefaultTools() map[string]int64 {
	return map[string]int64{"web_search": 1, "read_page": 1, "llm_call": 3, "code_execute": 5, "image_generate": 10}
}
