package golua

import (
	"os"
	"testing"
)

// The script is the pool: who changes one without the other is told here.
func TestTheScriptIsUpToDate(t *testing.T) {
	out, err := Generate("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lua/pool.lua": out.File(), "layout.go": out.Layout.File()} {
		got, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the pool translates to: run go generate ./store/redisstore", name)
		}
	}
}
