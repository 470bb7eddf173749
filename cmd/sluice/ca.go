package main

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/proxy/forward"
)

func newCA() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "Show or replace the certificate authority of the forward proxy",
		Long: `The forward proxy of sluice serve (--forward-listen) decrypts connections to gated hosts with certificates
of its own authority. Certificate and key are in ca.pem of the state directory, for its user alone.
Clients trust the certificate; its name constraints allow only the gated hosts.

sluice run --intercept needs none of this: each run has an authority of its own.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCAShow(), newCARotate())
	return cmd
}

// caJSON describes an authority, without its key.
type caJSON struct {
	Certificate string    `json:"certificate"` // PEM
	SHA256      string    `json:"sha256"`
	Name        string    `json:"name"`
	NotBefore   time.Time `json:"not_before"`
	NotAfter    time.Time `json:"not_after"`
	Hosts       []string  `json:"hosts"`
	File        string    `json:"file"`
}

func newCAShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the certificate that clients trust",
		Long: `Show prints the authority's certificate in PEM, after lines with its fingerprint, validity and hosts. Programs
that read certificates skip these lines. It never prints the key.

Exit codes: 0; 69 there is no authority yet, or it cannot be read.`,
		Example: "  sluice ca show > gate-ca.pem\n  sluice ca show --json",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, dir, err := caPlace(cmd)
			if err != nil {
				return err
			}
			f, err := forward.LoadFile(dir)
			if err != nil {
				return authorityFailure(err)
			}
			return printCA(cmd, f)
		},
	}
}

func newCARotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Replace the authority with a new one",
		Long: `Rotate makes a new authority for the hosts that the configuration gates now, and prints its certificate. A
running sluice serve takes it within seconds. Clients have to be given the new certificate: until then
they refuse connections to gated hosts. The old key is gone.

Exit codes: 0; 69 the state directory cannot be written; 78 bad configuration.`,
		Example: "  sluice ca rotate --config fleet.yaml > gate-ca.pem",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			hosts, dir, err := caPlace(cmd)
			if err != nil {
				return err
			}
			f, err := forward.Rotate(dir, authorityName, hosts)
			if err != nil {
				return authorityFailure(err)
			}
			return printCA(cmd, f)
		},
	}
}

// caPlace returns the hosts that the configuration gates, and the directory of the authority.
func caPlace(cmd *cobra.Command) (hosts []string, dir string, err error) {
	f, err := configOf(cmd)
	if err != nil {
		return nil, "", err
	}
	at, err := placeOf(cmd, f)
	if err != nil {
		return nil, "", err
	}
	if at.dir == "" {
		return nil, "", noStateDir()
	}
	f.AddPresets()
	all, err := daemon.Origins(f, nil)
	if err != nil {
		return nil, "", &failure{code: exitConfig, message: err.Error(), hint: "docs/configuration.md describes every field"}
	}
	return all.Hosts(), at.dir, nil
}

func noStateDir() error {
	return &failure{code: exitUnavailable, message: "no directory for the certificate authority: this user has no state directory", hint: "set HOME or XDG_STATE_HOME, or use --store file:PATH"}
}

// authorityFailure returns the failure for a missing or unreadable authority.
func authorityFailure(err error) error {
	f := &failure{code: exitUnavailable, message: "the certificate authority: " + err.Error(), hint: "sluice ca rotate makes a new one"}
	if errors.Is(err, fs.ErrNotExist) {
		f.message = "there is no certificate authority yet"
		f.hint = "sluice ca rotate makes one, and so does sluice serve --forward-listen"
	}
	return f
}

func printCA(cmd *cobra.Command, f *forward.File) error {
	a := f.Authority()
	from, until := a.Valid()
	c := caJSON{
		Certificate: string(a.Certificate()), SHA256: a.Fingerprint(), Name: a.Name(), NotBefore: from.UTC(), NotAfter: until.UTC(), Hosts: a.Hosts(), File: f.Path(),
	}
	return printLine(cmd, c, "# %s, valid until %s\n# SHA-256 %s\n# for %s\n%s",
		c.Name, c.NotAfter.Format(time.DateOnly), c.SHA256, strings.Join(c.Hosts, ", "), strings.TrimSuffix(c.Certificate, "\n"))
}
