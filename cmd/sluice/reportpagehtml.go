package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
)

//go:embed reportpage.css
var pageStyle string

// markup is HTML from this source. A string is converted to it only if it is a constant, so names cannot become markup.
type markup string

// markupWriter writes HTML. Package html/template is not used, because it makes the linker keep every exported method of the program.
type markupWriter struct{ b bytes.Buffer }

// put writes format. It escapes each value, for text and for attributes in double quotes: a format has no values elsewhere.
func (w *markupWriter) put(format markup, values ...any) {
	for i, v := range values {
		values[i] = html.EscapeString(strings.ReplaceAll(fmt.Sprint(v), "\x00", "\ufffd"))
	}
	fmt.Fprintf(&w.b, string(format), values...)
}

func (p *page) writeTo(to io.Writer) error {
	w := &markupWriter{}
	w.head(p)
	w.put("<main>\n<dl class=\"figures\">")
	for _, f := range p.Figures {
		w.figure(f)
	}
	w.put("\n</dl>")
	if len(p.Resources) == 0 {
		w.put("\n<p>No request was sent in this period.</p>")
	}
	for i := range p.Resources {
		w.resource(&p.Resources[i])
	}
	if p.More > 0 {
		w.put("\n<p>%s more resources are not listed: sluice report --json lists them all.</p>", p.More)
	}
	if p.Idle != "" {
		w.put("\n<p>No request reached: %s</p>", p.Idle)
	}
	for i := range p.Against {
		w.comparison(&p.Against[i])
	}
	w.put("\n</main>\n")
	w.foot(p.Foot)
	_, err := w.b.WriteTo(to)
	return err
}

func (w *markupWriter) head(p *page) {
	w.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s, %s to %s</title>
<style>
`, p.Title, p.Since, p.Until)
	w.b.WriteString(pageStyle)
	w.put("</style>\n</head>\n<body>\n<header>\n<h1>%s</h1>\n<p>%s to %s. ", p.Title, p.Since, p.Until)
	if p.Lead != "" {
		w.put("%s ", p.Lead)
	}
	w.put("Sluice holds requests back so that a fleet stays within its provider's rate limits.</p>\n</header>\n")
}

func (w *markupWriter) figure(f pageFigure) {
	class := "value"
	if f.Bad {
		class = "value bad"
	}
	w.put("\n<div><dt>%s</dt><dd class=\"%s\">%s</dd>", f.Name, class, f.Value)
	if f.Note != "" {
		w.put("<dd>%s</dd>", f.Note)
	}
	w.put("</div>")
}

func (w *markupWriter) resource(r *pageResource) {
	w.put("\n<section>\n<h2>%s</h2>", r.Name)
	if r.Note != "" {
		w.put("\n<p>%s</p>", r.Note)
	}
	if r.Plot != nil {
		w.plot(r.Plot)
	}
	w.table("\n<h3>By caller</h3>", &r.Callers)
	w.table("\n<h3>By model</h3>", &r.Models)
	w.paragraphs(r.Notes)
	w.put("\n</section>")
}

func (w *markupWriter) plot(p *pagePlot) {
	w.put("\n<figure>\n<svg viewBox=\"0 0 %s %s\" role=\"img\" aria-label=\"%s\">", p.Width, p.Height, p.About)
	w.put("\n<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>", p.Left, p.Zero, p.Right, p.Zero)
	label := func(y any, text string) {
		w.put("\n<text x=\"%s\" y=\"%s\" dx=\"-6\" text-anchor=\"end\">%s</text>", p.Left, y, text)
	}
	label(20, p.Most)
	label(p.Zero, "0")
	if p.Worst != "" {
		label(p.WorstY, p.Worst)
	}
	for _, b := range p.Bars {
		w.put("\n<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"><title>%s</title></rect>", b.Class, b.X, b.Y, b.W, b.H, b.Title)
	}
	for _, t := range p.Times {
		w.put("\n<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">%s</text>", t.X, t.Y, t.Anchor, t.Text)
	}
	w.put("\n</svg>\n<figcaption>%s. %s</figcaption>\n</figure>", p.About, p.Caption)
}

// table writes a heading and a table, or nothing if the table has no rows.
func (w *markupWriter) table(heading markup, t *pageTable) {
	if len(t.Rows) == 0 {
		return
	}
	w.put(heading)
	w.put("\n<div class=\"wide\"><table>\n<thead><tr>")
	for _, c := range t.Heads {
		w.put("<th scope=\"col\" class=\"%s\">%s</th>", c.Class, c.Text)
	}
	w.put("</tr></thead>\n<tbody>")
	for _, row := range t.Rows {
		w.put("\n<tr>")
		for _, c := range row {
			w.put("<td class=\"%s\">%s</td>", c.Class, c.Text)
		}
		w.put("</tr>")
	}
	w.put("\n</tbody>\n</table></div>")
}

func (w *markupWriter) comparison(c *pageComparison) {
	w.put("\n<section>\n<h2>%s</h2>", c.Name)
	w.table("", &c.Figures)
	w.table("\n<h3>How sure that is</h3>", &c.Confidence)
	w.put("\n</section>")
}

func (w *markupWriter) paragraphs(list []string) {
	for _, text := range list {
		w.put("\n<p>%s</p>", text)
	}
}

func (w *markupWriter) foot(notes []string) {
	w.put("<footer>\n<h3>How to read this page</h3>")
	w.paragraphs(notes)
	if len(notes) == 0 {
		w.put(`
<p>A retry is a request sent again after a failure. A 429 is the provider's refusal of a request over its rate limit.
Waiting time is the sum over all requests. Peak is the most in one second (or minute) of the clock; the mean covers the minutes from the first to the last
request. Dollars are list prices, from this machine's event log. Money that the gate saved is not shown: it depends on what the fleet would have repeated without it.</p>`)
	}
	w.put("\n</footer>\n</body>\n</html>\n")
}
