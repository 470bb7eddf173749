package main

// The stores that this program knows.
import (
	_ "github.com/sluicehq/sluice/store/filestore"
	_ "github.com/sluicehq/sluice/store/memstore"
	_ "github.com/sluicehq/sluice/store/redisstore"
	_ "github.com/sluicehq/sluice/store/remotestore"
)

// storeSchemes lists the URL schemes of the stores.
var storeSchemes = []string{
	"mem", "file", "redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel", "redis+unix",
	"http", "https", "http+unix",
}
