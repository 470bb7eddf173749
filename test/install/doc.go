// Package install follows docs/install.md: what is published is built, compared, installed and run, also on a bare Debian: with -tags slow.
package install
