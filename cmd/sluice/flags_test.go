package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
)

func TestTimeFlag(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "2m": 2 * time.Minute, "1h30m": 90 * time.Minute} {
		var d timeFlag
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%q is %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
	for _, text := range []string{"", "soon", "-1", "-1s", "NaN", "Inf", "1e300", "999999h", "5 m"} {
		var d timeFlag
		if err := d.Set(text); err == nil {
			t.Errorf("%q is taken for %v", text, time.Duration(d))
		}
	}
	for d, want := range map[time.Duration]string{0: "0", time.Minute: "1m", 2 * time.Hour: "2h", 90 * time.Second: "1m30s", 30 * time.Second: "30s", 10 * time.Minute: "10m"} {
		if f := timeFlag(d); f.String() != want {
			t.Errorf("%v is shown as %q, want %q", d, f.String(), want)
		}
	}
}

func TestAmountsFlag(t *testing.T) {
	var a amounts
	for _, text := range []string{"requests=1", " input_tokens=20, output_tokens=0"} {
		if err := a.Set(text); err != nil {
			t.Error(err)
		}
	}
	if a.String() != "requests=1,input_tokens=20,output_tokens=0" {
		t.Errorf("got %q", a.String())
	}
	for _, text := range []string{"", "x", "=1", "x=", "x=a", "x=-1", "x=9999999999999", "requests=2", "x=1,", strings.Repeat("x", 300) + "=1"} {
		if err := a.Set(text); err == nil {
			t.Errorf("%q is taken for %v", text, a)
		}
	}
	var many amounts
	if err := many.Set("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1"); err == nil {
		t.Error("17 units are taken")
	}
}

// A request to GitHub has a default cost.
func TestUsualCost(t *testing.T) {
	for model, want := range map[string]string{
		"": "core=1,points=1", "core": "core=1,points=1", "search": "search=1,points=1", "code_search": "code_search=1,points=1",
		"graphql": "graphql=1,graphql_points=1", "anything": "core=1,points=1",
	} {
		part, cost := provider.Usual(provider.GitHub{}, model)
		a := amounts(cost)
		if a.String() != want || model != "" && part != model || model == "" && part != "core" {
			t.Errorf("%q is part %q and costs %s, want %s", model, part, a.String(), want)
		}
	}
}

func TestConcerns(t *testing.T) {
	req := sluice.Request{Agent: "a", Model: "m,x", User: ""}
	for scope, want := range map[string]bool{
		"": true, "agent=a": true, "agent=ab": false, "agent=b": false, "agent=a,model=m,x": true, "model=m": false, "agent=a,model=y": false,
	} {
		if got := req.In(scope); got != want {
			t.Errorf("%q: %v, want %v", scope, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	if got := clip("a\nb\tc"); got != "a b c" {
		t.Errorf("got %q", got)
	}
	if got := []rune(clip(strings.Repeat("ü", 200))); len(got) != 79 || got[78] != '…' {
		t.Errorf("got %q", string(got))
	}
}
