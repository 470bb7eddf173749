package config_test

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/config"
)

func ExampleParse() {
	src := []byte(`
resources:
  search:
    ttl: ${TTL:-30s}
    limits:
      - {name: minute, size: 80/min}
`)
	none := func(string) (string, bool) { return "", false } // os.LookupEnv, where there is an environment
	file, err := config.Parse("sluice.yaml", src, none)
	if err != nil {
		fmt.Println(err)
		return
	}
	gate, err := file.GateConfig(time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	search := gate.Resources["search"]
	fmt.Println(search.TTL, search.Limits[0].Size, search.Limits[0].Window)
	// Output: 30s 80 1m0s
}

func ExampleParse_mistake() {
	src := []byte("resources:\n  search:\n    limts: []\n")
	_, err := config.Parse("sluice.yaml", src, nil)
	fmt.Println(err)
	// Output: sluice.yaml:3:5: resources.search: unknown field "limts"; did you mean "limits"?
}
