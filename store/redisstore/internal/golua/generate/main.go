// Command generate translates the pool into the script of the Redis store.
package main

import (
	"log"
	"os"

	"github.com/sluicehq/sluice/store/redisstore/internal/golua"
)

func main() {
	out, err := golua.Generate("../..")
	if err == nil {
		err = os.WriteFile("lua/pool.lua", []byte(out.File()), 0o600)
	}
	if err == nil {
		err = os.WriteFile("layout.go", []byte(out.Layout.File()), 0o600)
	}
	if err != nil {
		log.Fatal(err)
	}
}
