module github.com/sluicehq/sluice/compare

go 1.26.0

replace github.com/sluicehq/sluice => ../

require github.com/sluicehq/sluice v0.0.0-00010101000000-000000000000

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
)
