// Package strictyaml reads YAML files that people write. For every error it says where it is, what was expected, and
// what to do.
//
// It is strict where YAML libraries are lenient. An unknown field, a duplicate key, 1.9 instead of a whole number,
// and a second document are errors. No input makes it slow or large. Variables are inserted into values after
// parsing, so their values can never become structure, and they appear in no message.
package strictyaml
