// Package chart checks deploy/helm/sluice with Helm itself, and what it makes against the schemas of Kubernetes, KEDA and the
// Prometheus operator.
package chart

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const chart = "../../deploy/helm/sluice"

func run(t *testing.T, stdin string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func must(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	out, err := run(t, stdin, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func sets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(chart + "/ci/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d sets of values (%v)", len(files), err)
	}
	return files
}

func TestLint(t *testing.T) {
	for _, values := range sets(t) {
		must(t, "", "go", "tool", "helm", "lint", "--strict", chart, "--values", values)
	}
}

// What the chart makes is what Kubernetes takes.
func TestManifests(t *testing.T) {
	schemas := t.TempDir()
	kubernetes(t, schemas)
	crds(t, schemas, "github.com/kedacore/keda/v2", "v2.21.0", "config/crd/bases/keda.sh_*.yaml")
	crds(t, schemas, "github.com/prometheus-operator/prometheus-operator", "v0.85.0", "example/prometheus-operator-crd/*.yaml")
	check := func(t *testing.T, made string) {
		t.Helper()
		must(t, made, "go", "tool", "kubeconform", "-strict", "-summary", "-schema-location", schemas+"/{{.ResourceKind}}{{.KindSuffix}}.json", "-")
	}
	for _, file := range []string{"kubernetes/sidecar.yaml", "kubernetes/node.yaml", "keda/scaledobject.yaml"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		check(t, string(text))
	}
	for _, values := range sets(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			made := must(t, "", "go", "tool", "helm", "template", "gate", chart, "--kube-version", "1.34.0", "--namespace", "agents", "--values", values)
			check(t, made)
		})
	}
}

// Values that cannot work are refused with a sentence that says what to do.
func TestRefusals(t *testing.T) {
	for set, want := range map[string]string{
		"":                               "sluice token new NAME",
		"tokens.list[0].name=a":          "hashKey",
		"replicas=0":                     "replicas",
		"store.kind=memory":              "store.kind",
		"store.redis.url=localhost:6379": "store.redis.url",
		"konfig.resources=1":             "konfig",
		"tokens.secret=s,tokens.list[0].name=a,tokens.list[0].hashKey=a,serviceMonitor.enabled=true": "serviceMonitor.tokenSecret",
	} {
		args := []string{"tool", "helm", "template", "gate", chart, "--kube-version", "1.34.0"}
		if set != "" {
			args = append(args, "--set", set)
		}
		out, err := run(t, "", "go", args...)
		if said := strings.ReplaceAll(out, "/", "."); err == nil || !strings.Contains(said, want) {
			t.Errorf("%q: %v, want something about %q:\n%s", set, err, want, out)
		}
	}
}

// With its namespace outside the network policy, Prometheus scraped nothing.
func TestTheNetworkPolicyLetsPrometheusIn(t *testing.T) {
	made := must(t, "", "go", "tool", "helm", "template", "gate", chart, "--kube-version", "1.34.0", "--values", chart+"/ci/redis.yaml",
		"--set", "networkPolicy.from=null", "--set", "serviceMonitor.namespace=observability")
	for _, text := range strings.Split(made, "\n---\n") {
		var doc struct {
			Kind string
			Spec struct {
				Ingress []struct {
					From []struct {
						NamespaceSelector *struct{ MatchLabels map[string]string }
						PodSelector       *struct{}
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Kind != "NetworkPolicy" {
			continue
		}
		var own, prometheus bool
		for _, peer := range doc.Spec.Ingress[0].From {
			own = own || peer.PodSelector != nil && peer.NamespaceSelector == nil
			prometheus = prometheus || peer.NamespaceSelector != nil && peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] == "observability"
		}
		if !own || !prometheus {
			t.Errorf("pods of the namespace: %v, Prometheus: %v\n%s", own, prometheus, text)
		}
		return
	}
	t.Fatalf("no network policy:\n%s", made)
}

// built returns the path of the command.
func built(t *testing.T) string {
	t.Helper()
	sluice := filepath.Join(t.TempDir(), "sluice")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags=grpcnotrace", "-o", sluice, "./cmd/sluice")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return sluice
}

// The notes that Helm prints named /page, which no gate has.
func TestTheNotesNameThePage(t *testing.T) {
	notes, err := os.ReadFile(chart + "/templates/NOTES.txt")
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`http://127\.0\.0\.1:7979(/\S*)`).FindSubmatch(notes)
	if page == nil {
		t.Fatalf("no page in\n%s", notes)
	}
	serve := exec.CommandContext(t.Context(), built(t), "serve", "--store", "mem:", "--listen", "127.0.0.1:0")
	serve.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	said, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	gate := regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
	if gate == "" {
		t.Fatalf("it says %q (%v)", line, err)
	}
	answer, err := http.Get(gate + string(page[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%s gets %s, %s", page[1], answer.Status, answer.Header.Get("Content-Type"))
	}
}

// The gate accepts the configuration that the chart writes. Services, policies and scalers select the chart's pods.
func TestTheGateTakesTheConfiguration(t *testing.T) {
	sluice := built(t)
	const node = "../../deploy/kubernetes/node.yaml"
	for _, values := range append(sets(t), node) {
		var made string
		if values == node {
			text, err := os.ReadFile(node)
			if err != nil {
				t.Fatal(err)
			}
			made = string(text)
		} else {
			made = must(t, "", "go", "tool", "helm", "template", "gate", chart, "--kube-version", "1.34.0", "--namespace", "agents", "--values", values)
		}
		var labels map[string]any
		var selectors []map[string]any
		for _, text := range strings.Split(made, "\n---\n") {
			var doc map[string]any
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatal(err)
			}
			spec, _ := doc["spec"].(map[string]any)
			switch doc["kind"] {
			case "ConfigMap":
				file := filepath.Join(t.TempDir(), "sluice.yaml")
				if err := os.WriteFile(file, []byte(doc["data"].(map[string]any)["sluice.yaml"].(string)), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), sluice, "config", "check", file)
				hash := strings.Repeat("ab", 32)
				cmd.Env = append(os.Environ(), "SLUICE_TOKEN_HASH="+hash, "SLUICE_TOKEN_HASH_0="+hash, "SLUICE_TOKEN_HASH_1="+strings.Repeat("cd", 32), "ANTHROPIC_API_KEY=x")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", values, err, out)
				}
			case "Deployment", "StatefulSet", "DaemonSet":
				labels = spec["template"].(map[string]any)["metadata"].(map[string]any)["labels"].(map[string]any)
				selectors = append(selectors, spec["selector"].(map[string]any)["matchLabels"].(map[string]any))
			case "Service":
				selectors = append(selectors, spec["selector"].(map[string]any))
			case "NetworkPolicy":
				selectors = append(selectors, spec["podSelector"].(map[string]any)["matchLabels"].(map[string]any))
			case "ScaledObject":
				trigger := spec["triggers"].([]any)[0].(map[string]any)["metadata"].(map[string]any)
				if at := trigger["scalerAddress"]; at != "gate-sluice.agents.svc.cluster.local:6000" {
					t.Errorf("%s: the scaler is at %v", values, at)
				}
			}
		}
		if len(selectors) < 2 {
			t.Errorf("%s: %d selectors", values, len(selectors))
		}
		for _, s := range selectors {
			for k, v := range s {
				if labels[k] != v {
					t.Errorf("%s: %v selects no pod with %v", values, s, labels)
				}
			}
		}
	}
}

// kubernetes brings the schemas of Kubernetes, which a package for Python has.
func kubernetes(t *testing.T, to string) {
	dir := t.TempDir()
	must(t, "", "python3", "-m", "pip", "download", "-q", "--no-deps", "--dest", dir, "kubernetes-validate==1.37.0")
	wheels, _ := filepath.Glob(dir + "/*.whl")
	r, err := zip.OpenReader(wheels[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read := func(name string) (schema map[string]any) {
		in, err := r.Open("kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte(`"/api/_definitions.json#`), []byte(`"#`)) // they become part of each schema
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		return schema
	}
	definitions := read("_definitions.json")["$defs"]
	for _, kind := range []string{
		"configmap-v1", "deployment-apps-v1", "statefulset-apps-v1", "daemonset-apps-v1", "service-v1", "serviceaccount-v1", "networkpolicy-networking-v1", "poddisruptionbudget-policy-v1",
	} {
		schema := read(kind + ".json")
		schema["$defs"] = definitions
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, kind+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// crds brings the schemas of a module's own resources.
func crds(t *testing.T, to, module, version, files string) {
	var at struct{ Dir string }
	if err := json.Unmarshal([]byte(must(t, "", "go", "mod", "download", "-json", module+"@"+version)), &at); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(at.Dir, files))
	if len(found) == 0 {
		t.Fatalf("%s has no %s", module, files)
	}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema map[string]any }
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			schema, err := json.Marshal(v.Schema.OpenAPIV3Schema)
			if err != nil {
				t.Fatal(err)
			}
			group, _, _ := strings.Cut(crd.Spec.Group, ".")
			name := strings.ToLower(crd.Spec.Names.Kind) + "-" + group + "-" + v.Name + ".json"
			if err := os.WriteFile(filepath.Join(to, name), schema, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
