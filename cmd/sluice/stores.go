package main

// The stores that this program knows.
import (
	_ "github.com/sluicehq/sluice/store/filestore"
	_ "github.com/sluicehq/sluice/store/memstore"
	_ "github.com/sluicehq/sluice/store/redisstore"
	_ "github.com/sluicehq/sluice/store/remotestore"
)
