package keda_test

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
)

// manifests are the documents of a file, by kind.
func manifests(tb testing.TB, file string) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	for part := range strings.SplitSeq(text(tb, file), "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(part), &head); err != nil || head.Kind == "" {
			tb.Fatalf("%s: %v in %s", file, err, part)
		}
		all[head.Kind] = []byte(part)
	}
	return all
}

// The files in deploy/keda are what KEDA takes, and its client gets with them what docs/keda.md promises of a quota
// that nobody has used. Only the address is another here.
func TestDeployedFiles(t *testing.T) {
	parts := manifests(t, "../../deploy/keda/scaledobject.yaml")
	var object v1alpha1.ScaledObject
	var auth v1alpha1.TriggerAuthentication
	if err := yaml.UnmarshalStrict(parts["ScaledObject"], &object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(parts["TriggerAuthentication"], &auth); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.ValidateTriggers(object.Spec.Triggers); err != nil {
		t.Error(err)
	}
	if err := v1alpha1.CheckReplicaCountBoundsAreValid(&object); err != nil {
		t.Error(err)
	}
	if err := v1alpha1.CheckFallbackValid(&object); err != nil {
		t.Error(err)
	}
	trigger := object.Spec.Triggers[0]
	if trigger.AuthenticationRef == nil || trigger.AuthenticationRef.Name != auth.Name || object.Namespace != auth.Namespace {
		t.Fatalf("the trigger's authentication is %+v, and there is %s", trigger.AuthenticationRef, auth.Name)
	}
	certs := authority(t)
	params := map[string]string{}
	for _, ref := range auth.Spec.SecretTargetRef {
		value, ok := secret(t, certs)[ref.Key]
		if !ok || ref.Name != "sluice-keda-client" {
			t.Errorf("%+v is not in the Secret", ref)
		}
		params[ref.Parameter] = value
	}
	var pairs []string
	for key, value := range trigger.Metadata {
		pairs = append(pairs, key, value)
	}
	github, _ := provider.Preset("github")
	r := startWith(t, map[string]sluice.Resource{"github": github}, withTLS(t, certs, true))
	r.triggerWith(params, pairs...).want("of an unused quota", 8)
	p := r.push(params, pairs...)
	p.want("of an unused quota", true)
}

// The example of the documentation, number by number.
func TestDocumentedNumbers(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| ([0-9,]+)(?:, (amber|red))? \| ([0-9]+) min \| ([0-9]+) \|$`)
	rows := row.FindAllStringSubmatch(text(t, "../../docs/keda.md"), -1)
	if len(rows) < 6 {
		t.Fatalf("%d rows in the example", len(rows))
	}
	github, _ := provider.Preset("github")
	limit := github.Limits[0]
	for _, m := range rows {
		remaining, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		minutes, _ := strconv.Atoi(m[3])
		want, _ := strconv.ParseInt(m[4], 10, 64)
		r := startWith(t, map[string]sluice.Resource{"github": github}, nil)
		r.stated("github", sluice.ObservedLimit{Limit: limit.Name, Size: 5000, Remaining: remaining, ResetIn: time.Duration(minutes) * time.Minute})
		if light := r.resource("github").Light; light != cmp.Or(m[2], "green") {
			t.Errorf("%s: the light is %s", m[0], light)
		}
		r.trigger("resource", "github", "target", "10").want(m[0], want)
	}
}

// The formula of the documentation is one that KEDA takes.
func TestDocumentedFormula(t *testing.T) {
	docs := text(t, "../../docs/keda.md")
	_, block, ok := strings.Cut(docs, "```yaml\nadvanced:")
	block, _, _ = strings.Cut(block, "```")
	if !ok {
		t.Fatal("there is no example of a formula")
	}
	var object v1alpha1.ScaledObject
	if err := yaml.UnmarshalStrict([]byte("advanced:"+block), &object.Spec); err != nil {
		t.Fatal(err)
	}
	if _, err := v1alpha1.ValidateAndCompileScalingModifiers(&object); err != nil {
		t.Error(err)
	}
	if err := v1alpha1.ValidateTriggers(object.Spec.Triggers); err != nil {
		t.Error(err)
	}
	r := start(t, nil)
	for _, trigger := range object.Spec.Triggers {
		var pairs []string
		for key, value := range trigger.Metadata {
			if key == "resource" {
				value = "flow"
			}
			pairs = append(pairs, key, value)
		}
		r.trigger(pairs...).replicas()
	}
}
