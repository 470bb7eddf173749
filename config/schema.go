package config

import _ "embed"

//go:generate go test -run ^TestSchemaIsCurrent$ -update .

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema of the file, for editors. It is generated from the types of this package, so it lacks
// the rules that relate several fields.
func Schema() ([]byte, error) { return append([]byte(nil), schema...), nil }
