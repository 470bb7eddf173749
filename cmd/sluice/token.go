package main

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/lazyregexp"
)

func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make tokens that let programs send through the gate",
		Long: `With tokens in the configuration, the proxy and the API need one. A token bounds its bearer's class and
can name its agent.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenNew())
	return cmd
}

// tokenJSON is a new token. Only its hash is ever stored.
type tokenJSON struct {
	Token string `json:"token"`
	Hash  string `json:"hash"`
	Name  string `json:"name"`
	Class string `json:"class"`
	Agent string `json:"agent"`
	Line  string `json:"line"` // for the list tokens of the configuration
}

func newTokenNew() *cobra.Command {
	var class, agent string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Print a new token and its line for the configuration",
		Long: `New prints a random token once, with its line for tokens: in the configuration. The line holds the
token's SHA-256; Sluice does not store the token. Give it to a program as its API key, in the header
X-Sluice-Token, or as SLUICE_TOKEN.`,
		Example: "  sluice token new ci --class p2\n" +
			"  sluice token new nightly --class p1 --agent indexer --json",
		Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := makeToken(cmd, args[0], class, agent)
			if err != nil {
				return err
			}
			return printLine(cmd, t, "token: %s\n\nThis is the only time that it is shown. Add to the configuration:\n\ntokens:\n  %s\n\n"+
				"Bearers send it as their API key, as the header X-Sluice-Token, or set SLUICE_TOKEN.", t.Token, t.Line)
		},
	}
	cmd.Flags().StringVar(&class, "class", "", "highest `CLASS` of its bearer; else the lowest class")
	cmd.Flags().StringVar(&agent, "agent", "", "bind the token to agent `NAME`")
	completeFlag(cmd, "class", completeClasses)
	completeFlag(cmd, "agent", completeAgents)
	return cmd
}

// makeToken returns a new token that is valid for the configuration of the command line.
func makeToken(cmd *cobra.Command, name, class, agent string) (tokenJSON, error) {
	f, err := selectedConfig(cmd, nil)
	if err != nil {
		return tokenJSON{}, err
	}
	for what, n := range map[string]string{"NAME": name, "--agent": agent} {
		if !config.IsName(n) && (n != "" || what == "NAME" || cmd.Flags().Changed("agent")) {
			return tokenJSON{}, &failure{
				code: exitUsage, message: fmt.Sprintf("%s: %.80q is not a name", what, n), hint: "a name is 1 to 64 letters, digits, and any of . _ @ + -, a letter or digit first",
			}
		}
	}
	class = cmp.Or(class, f.Classes[len(f.Classes)-1].Name)
	if err := checkClass(f, class); err != nil {
		return tokenJSON{}, err
	}
	if slices.ContainsFunc(f.Tokens, func(t config.Token) bool { return t.Name == name }) {
		return tokenJSON{}, &failure{code: exitUsage, message: fmt.Sprintf("there is a token called %.80q already", name), hint: "give another name, or remove the old line first"}
	}
	t := tokenJSON{Name: name, Class: class, Agent: agent}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	t.Token = "sluice_" + base64.RawURLEncoding.EncodeToString(random)
	sum := sha256.Sum256([]byte(t.Token))
	t.Hash = hex.EncodeToString(sum[:])
	t.Line = fmt.Sprintf("- {name: %s, class: %s, ", yamlWord(name), yamlWord(class))
	if agent != "" {
		t.Line += "agent: " + yamlWord(agent) + ", "
	}
	t.Line += "hash: " + t.Hash + "}"
	return t, nil
}

// plainWord matches text that needs no quotes in YAML.
var plainWord = lazyregexp.New(`^[a-z][a-z0-9_-]*$`)

// yamlWord returns a name as one value of YAML.
func yamlWord(text string) string {
	switch text {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return strconv.Quote(text)
	}
	if plainWord.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
