package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/provider"
)

// keyFlag adds the flag that names the API key of requests.
func keyFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "key-env", "", "environment variable `NAME` with the API key that requests are sent with, where limits are per key; else the resource's key_env")
}

// keyLabel returns the label of the key that requests to a resource are sent with: the one in the variable env, or else
// the configured one. It is empty if keys are not distinguished, or no variable is named.
func (s *session) keyLabel(cmd *cobra.Command, resource, env string) (string, error) {
	if !inside.Of(s.gate).TellsKeys(resource) {
		return "", nil
	}
	r := s.file.Resources[resource]
	name := cmp.Or(env, r.KeyEnv)
	if name == "" && len(r.Keys) > 0 { // without a key it would get limits that no key has
		return "", &failure{
			code: exitUsage, message: resource + " has several keys, and the request names none",
			hint: "name one with --key-env NAME, or send through the proxy, which takes the first that can go",
		}
	}
	if name == "" {
		return "", nil
	}
	key, err := keyIn(name, env != "")
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(r.Keys, func(k config.Key) bool { return k.Env == name }); i >= 0 && r.Keys[i].Upstream != "" {
		if u, err := url.Parse(r.Keys[i].Upstream); err == nil {
			key = keylabel.Source(u.String(), key)
		}
	}
	label, err := s.gate.KeyLabel(cmd.Context(), key)
	return label, fail(err)
}

// withOneKey returns a resource with only the first of its keys that the environment holds, for commands that send one
// request themselves.
func withOneKey(f *config.File, name string) config.Resource {
	r := f.Resources[name]
	if len(r.Keys) == 0 {
		return r
	}
	k := r.Keys[max(slices.IndexFunc(r.Keys, func(k config.Key) bool { return os.Getenv(k.Env) != "" }), 0)]
	header, prefix := provider.Auth(f.Dialect(name))
	if r.Inject != nil {
		header, prefix = r.Inject.Header, r.Inject.Prefix
	}
	if r.Inject = nil; k.Env != "" {
		r.Inject = &config.Inject{Header: header, Prefix: prefix, Env: k.Env}
	}
	r.Keys, r.Split, r.Upstream = nil, "key", cmp.Or(k.Upstream, r.Upstream)
	return r
}

// keyIn returns the key in an environment variable. Its errors show only valid variable names: if the user gives the
// key itself, it must not end up in a log.
func keyIn(name string, given bool) (string, error) {
	if !isVariable(name) {
		return "", &failure{code: exitUsage, message: "that is not the name of an environment variable", hint: "give its name, without $ and not the key itself"}
	}
	if key := os.Getenv(name); key != "" {
		return key, nil
	}
	if !given {
		return "", &failure{code: exitConfig, message: fmt.Sprintf("key_env: the environment variable %s is empty", name), hint: "set it, or name another with --key-env NAME"}
	}
	return "", &failure{code: exitUsage, message: "the environment variable of that name is empty", hint: "set it to the key; give its name, without $ and not the key itself"}
}

// isVariable reports whether a text can be the name of an environment variable.
func isVariable(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func newKey() *cobra.Command {
	return &cobra.Command{
		Use:   "key NAME",
		Short: "Print the label of the API key in an environment variable",
		Long: `Key prints the label by which Sluice tells the API key in the environment variable NAME from
others: eight hexadecimal digits, as status and why show them (key=3fa2c81b) and as the API takes
them in "key". The label is an HMAC of the key with a secret of the store's. All processes that use
the store make the same label, and the key cannot be computed from it. The key is stored nowhere.

Exit codes: 0 printed; 64 usage, the variable is empty; 69 the store cannot be reached; 78 bad
configuration.`,
		Example: `  sluice key ANTHROPIC_API_KEY
  sluice key OPENAI_API_KEY --store redis://10.0.0.5:6379 --json`,
		Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			key, err := keyIn(args[0], true)
			if err != nil {
				return err
			}
			s, err := openReadOnly(cmd)
			if err != nil {
				return err
			}
			defer s.closing(&err)
			label, err := s.gate.KeyLabel(cmd.Context(), key)
			if err != nil {
				return fail(err)
			}
			return printLine(cmd, struct {
				Name  string `json:"name"`
				Label string `json:"label"`
			}{args[0], label}, "%s", label)
		},
	}
}
