package config

import _ "embed"

//go:embed init.yaml
var starter []byte

// Init returns a file to start from, with comments.
func Init() []byte { return append([]byte(nil), starter...) }
