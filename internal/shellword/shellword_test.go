package shellword_test

import (
	"testing"

	"github.com/sluicehq/sluice/internal/shellword"
)

func TestCommandLinesAreShownAsAShellTakesThem(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"echo", "a-b_c=d", ""}, `echo a-b_c=d ''`},
		{[]string{"sh", "-c", "echo 'x' | cat"}, `sh -c 'echo '\''x'\'' | cat'`},
		{[]string{"\x1b[31m", "naïve"}, `$'\x1b[31m' 'naïve'`},
		{[]string{"it's\xff\\"}, `$'it\'s\xff\\'`},
		{[]string{"a\u202eb"}, `$'a\xe2\x80\xaeb'`},
		{[]string{"/home/a b/sluice.yaml", "/run/sluice.sock"}, `'/home/a b/sluice.yaml' /run/sluice.sock`},
		{[]string{"$HOME", "~", "a;b", "x^y"}, `'$HOME' '~' 'a;b' 'x^y'`},
	} {
		if got := shellword.Line(c.args); got != c.want {
			t.Errorf("%q: got %s, want %s", c.args, got, c.want)
		}
	}
}
