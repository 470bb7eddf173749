// Package strictyaml reads the YAML files that people write, and says of what is wrong
// with them where it is, what was expected, and what to do.
//
// It is strict where YAML libraries are kind: a field that there is not, a key that is
// there twice, 1.9 where a whole number is wanted, a second document, are all errors and
// not guesses. No input makes it slow or large. Variables are put into values after
// parsing, so that what they hold can never become structure, and what they
// hold is in no message.
package strictyaml
