package config

import "slices"

// masked is shown in place of secrets.
const masked = "***"

// Public returns [File.Show] for everyone who may read a daemon's state. It also masks the hashes of tokens. The result
// cannot be parsed again.
func (f *File) Public() ([]byte, error) {
	shown := *f
	shown.Tokens = slices.Clone(f.Tokens)
	for i := range shown.Tokens {
		shown.Tokens[i].Hash = masked
	}
	return shown.Show()
}
