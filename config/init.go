package config

import _ "embed"

//go:embed init.yaml
var starter []byte

// Init returns a commented configuration file to start from.
func Init() []byte { return append([]byte(nil), starter...) }
