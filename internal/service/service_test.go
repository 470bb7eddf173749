package service

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// odd are arguments that a careless unit would take apart.
var odd = []string{"/opt/a b/sluice", "serve", "--config", `/home/me/"x" %h $HOME/\n.yaml`, "--store", "file:/tmp/a;b'c&<d>"}

// systemd accepts the unit, and the arguments are preserved.
func TestUnit(t *testing.T) {
	m := &systemd{home: t.TempDir()}
	text, err := m.Text(&Spec{Args: odd, Env: "/home/me/100%/service.env"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`ExecStart="/opt/a b/sluice" "serve" "--config" "/home/me/\"x\" %%h $$HOME/\\n.yaml" "--store" "file:/tmp/a;b'c&<d>"`,
		"EnvironmentFile=-/home/me/100%%/service.env", "Restart=on-failure", "WantedBy=default.target", mark,
	} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if _, err := m.Text(&Spec{Args: []string{"/bin/a\nExecStart=/bin/b"}}); err == nil {
		t.Error("a line break was taken")
	}
}

func TestPlist(t *testing.T) {
	m := &launchd{home: t.TempDir()}
	text, err := m.Text(&Spec{Args: odd, Env: "/e", Log: "/l & m"})
	if err != nil {
		t.Fatal(err)
	}
	var plist struct {
		Dict struct {
			Arrays []struct {
				Strings []string `xml:"string"`
			} `xml:"array"`
			Strings []string `xml:"string"`
		} `xml:"dict"`
	}
	if err := xml.Unmarshal([]byte(text), &plist); err != nil {
		t.Fatal(err)
	}
	args := plist.Dict.Arrays[0].Strings
	if got := strings.Join(args[4:], "\x00"); got != strings.Join(odd, "\x00") || args[3] != "/e" {
		t.Errorf("%q", args)
	}
	if plist.Dict.Strings[0] != label || plist.Dict.Strings[1] != "/l & m" {
		t.Errorf("%q", plist.Dict.Strings)
	}
	// The shell that launchd starts gives variables of the file to the program, and its arguments as they are.
	env := filepath.Join(t.TempDir(), "service.env")
	if err := os.WriteFile(env, []byte("THE_KEY=value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(args[0], args[1], args[2], env, "/bin/sh", "-c", `echo "$THE_KEY $1"`, "sh", "a b").CombinedOutput()
	if err != nil || string(said) != "value a b\n" {
		t.Errorf("%v: %s", err, said)
	}
}

func TestFilesOfOthersStay(t *testing.T) {
	m := &systemd{home: t.TempDir()}
	t.Setenv("XDG_CONFIG_HOME", "")
	if err := os.MkdirAll(filepath.Dir(m.File()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.File(), []byte("[Service]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(m.File(), "x"); err == nil {
		t.Error("it was written over")
	}
	if _, err := m.Remove(t.Context()); err == nil {
		t.Error("it was removed")
	}
	if got, err := os.ReadFile(m.File()); err != nil || string(got) != "[Service]\n" {
		t.Errorf("%q %v", got, err)
	}
}
