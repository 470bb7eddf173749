package plot

import "strings"

// palette holds the colours of one mode. Blue and vermilion stay distinct for readers who cannot tell red from green.
type palette struct{ paper, band, ink, muted, rule, accepted, refused, left, ideal string }

var (
	light = palette{
		paper: "#ffffff", band: "#eef4fb", ink: "#1f2328", muted: "#636c76", rule: "#d4dae0",
		accepted: "#2b7bba", refused: "#d55e00", left: "#1a7f5a", ideal: "#8250df",
	}
	dark = palette{
		paper: "#0d1117", band: "#16202e", ink: "#e6edf3", muted: "#9198a1", rule: "#3a424c",
		accepted: "#58a6e8", refused: "#ff8b4d", left: "#3fb98a", ideal: "#b392f0",
	}
)

// style is the style sheet. Colours are written out for both modes. Variables would be shorter, but not every viewer
// supports them.
var style = shapes + light.rules() + "@media (prefers-color-scheme: dark) {\n" + dark.rules() + "}\n"

const shapes = `
text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 12px; font-variant-numeric: tabular-nums; }
.title { font-size: 20px; font-weight: 600; }
.about, .name { font-size: 13px; }
.strong, .bad { font-weight: 600; }
.head, .small, .hour, .ideal-label { font-size: 11px; }
.tick { font-size: 10px; }
.end, .tick { text-anchor: end; }
.hour, .ideal-label { text-anchor: middle; }
.share { text-anchor: start; }
.rule { stroke-width: 1; }
.left { fill: none; stroke-width: 1.3; stroke-linejoin: round; }
.halo { fill: none; stroke-width: 3.5; stroke-linejoin: round; stroke-opacity: 0.75; }
.limit { stroke-width: 1; stroke-dasharray: 5 3; }
.ideal { stroke-width: 1.2; stroke-dasharray: 2 2; }
.gave-up { stroke-width: 1.3; }
.over { paint-order: stroke; stroke-width: 3; stroke-linejoin: round; }
`

func (c palette) rules() string {
	return strings.NewReplacer(
		"PAPER", c.paper, "BAND", c.band, "INK", c.ink, "MUTED", c.muted, "RULE", c.rule,
		"ACCEPTED", c.accepted, "REFUSED", c.refused, "LEFT", c.left, "IDEAL", c.ideal,
	).Replace(`text, .done { fill: INK; }
.paper, .cut, .gave-up { fill: PAPER; }
.band { fill: BAND; }
.about, .head, .small, .hour, .tick { fill: MUTED; }
.accepted { fill: ACCEPTED; }
.refused, .bad { fill: REFUSED; }
.gave-up { stroke: REFUSED; }
.share { fill: LEFT; }
.left { stroke: LEFT; }
.halo, .over { stroke: PAPER; }
.rule { stroke: RULE; }
.limit { stroke: INK; }
.ideal { stroke: IDEAL; }
.ideal-label { fill: IDEAL; }
`)
}
