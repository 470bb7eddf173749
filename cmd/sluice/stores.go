package main

// The stores that this program knows.
import (
	_ "github.com/sluicehq/sluice/store/filestore"
	_ "github.com/sluicehq/sluice/store/memstore"
)

// storeSchemes are what their addresses begin with.
var storeSchemes = []string{"mem", "file"}
