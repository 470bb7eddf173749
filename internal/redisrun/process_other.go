//go:build !unix

package redisrun

import (
	"errors"
	"os"
)

var errSystem = errors.New("servers are started on Unix systems only")

// process lets the package compile on systems where it cannot start a server.
type process struct {
	pid  int
	done chan struct{}
}

func launch(string, []string, string, *os.File, []string) (*process, error) { return nil, errSystem }

func (p *process) ended() string { return "" }
func (p *process) failed() bool  { return false }
func (p *process) kill()         {}
func (p *process) term()         {}
func (p *process) pause() error  { return errSystem }
func (p *process) resume() error { return errSystem }
