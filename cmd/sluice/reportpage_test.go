package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// pageHTML returns the page of a report as text. The page must be well-formed and load nothing from elsewhere.
func pageHTML(t *testing.T, r *reportJSON) string {
	t.Helper()
	var b bytes.Buffer
	if err := pageOf(r, noon).writeTo(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if found := regexp.MustCompile(`(?i)<script|<link|<img|<iframe|\s(src|href|on\w+)=|url\(|@import|https?:`).FindString(text); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, part := range regexp.MustCompile(`(?s)<svg.*?</svg>|<table>.*?</table>`).FindAllString(text, -1) {
		if err := xml.Unmarshal([]byte(part), new(struct{})); err != nil {
			t.Errorf("%v in %.200s", err, part)
		}
	}
	return text
}

func TestReportPage(t *testing.T) {
	t.Parallel()
	r := someReport(220, 11, 3)
	total := &r.Resources[0].Total
	total.Minutes = map[time.Time]int64{noon.Add(-3 * time.Minute): 200, noon.Add(-time.Minute): 20}
	total.Models = map[string]inspect.ModelReport{"opus": {Sends: 20, Units: map[string]int64{"input_tokens": 1234}}, "haiku": {Sends: 200, Retries: 11}}
	total.Held, total.HeldMicros, total.Micros, total.RetryMicros = 40, 800_000, 4_400_000, 220_000
	*total = withMoney(total.CallerReport)
	r.Resources[0].throttled = map[time.Time]int64{noon.Add(-2 * time.Minute): 3}
	text := pageHTML(t, r)
	for _, want := range []string{
		`<dt>requests sent</dt><dd class="value">220</dd>`, `<dt>refused by the provider (429)</dt><dd class="value bad">3</dd>`, `<dd>5% of what was sent</dd>`,
		`<dt>spent (usd)</dt><dd class="value">4.40</dd><dd>list prices; 0.22 of it for retries</dd>`, `<dt>price of held requests (usd)</dt><dd class="value">0.80</dd>`,
		`<title>2026-03-01 11:57 UTC, 1 min: 200 sent</title>`, `<title>2026-03-01 11:58 UTC, 1 min: 3 refused (429)</title>`,
		`aria-label="220 requests sent and 3 refused, in steps of 1 min"`, `<td class="">indexer</td>`, `<td class="n">1234</td>`, "No request reached: quiet",
		"prefers-color-scheme: dark", "2026-02-28 12:00 UTC to 2026-03-01 12:00 UTC",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Index(text, "haiku") > strings.Index(text, "opus") {
		t.Error("the model with most sends is not first")
	}
	if strings.Contains(text, "output tokens") {
		t.Error("a column without a figure is shown")
	}
	r.Against = compare(someReport(400, 100, 90), r, nil)
	if text := pageHTML(t, r); !strings.Contains(text, "anthropic: before and after") || !strings.Contains(text, `<td class="n good">-97%</td>`) {
		t.Error("the comparison is missing")
	}
	if text := pageHTML(t, &reportJSON{Since: noon}); !strings.Contains(text, "No request was sent in this period") {
		t.Error(text)
	}
}

// Names from clients stay text, and the page stays small.
func TestReportPageOfHostileNames(t *testing.T) {
	t.Parallel()
	nasty := "</title></text><script>alert(1)</script>\"' onload=x <!-- ]]> {{.}} \x1b[2J\u202e"
	r := &reportJSON{Since: noon.Add(-400 * 24 * time.Hour)}
	for i := range 2 * pageResources {
		name := fmt.Sprint(nasty, i)
		c := callerReport{CallerReport: inspect.NewCallerReport(name)}
		c.FirstSends, c.Throttled, c.Minutes = 500, 1, map[time.Time]int64{}
		for day := range 400 {
			c.Minutes[noon.AddDate(0, 0, -day)] = 1
		}
		for k := range 2 * pageModels {
			c.Models[fmt.Sprint(nasty, k)] = inspect.ModelReport{Sends: 1, Requested: []string{nasty}}
		}
		one := resourceReportJSON{Name: name, Since: r.Since, Total: c, throttled: map[time.Time]int64{noon: 1}}
		for k := range 2 * manyCallers {
			caller := c
			caller.Name = fmt.Sprint(strings.Repeat(nasty, 50), k)
			one.Callers = append(one.Callers, caller)
		}
		r.Resources = append(r.Resources, one)
	}
	r.Against = compare(r, r, nil)
	text := pageHTML(t, r)
	if strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, "&lt;script&gt;") {
		t.Error("names are not shown as harmless text")
	}
	if len(text) > 12<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
	for _, want := range []string{"100 more resources", "50 more callers", "50 more models"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}

// Every text of a page is escaped, wherever it stands: in text, in an attribute, in a title.
func TestReportPageEscapesEveryText(t *testing.T) {
	t.Parallel()
	p := &page{Resources: []pageResource{{Plot: &pagePlot{Bars: make([]pageBar, 1), Times: make([]pageTime, 1)}}}, More: 1}
	table := func() pageTable {
		return pageTable{Heads: make([]pageCell, 2), Rows: [][]pageCell{make([]pageCell, 2)}}
	}
	p.Foot, p.Figures, p.Against = make([]string, 2), make([]pageFigure, 1), []pageComparison{{Figures: table(), Confidence: table()}}
	one := &p.Resources[0]
	one.Callers, one.Models, one.Notes = table(), table(), make([]string, 2)
	places := 0
	fillStrings(reflect.ValueOf(p).Elem(), func() string {
		places++
		return fmt.Sprintf("<b%d>\"'&\x00", places)
	})
	var b bytes.Buffer
	if err := p.writeTo(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if found := regexp.MustCompile("<b[0-9]|b[0-9]+(>|&gt;)([\"']|&#34;')|\x00").FindString(text); found != "" {
		t.Errorf("%q is not escaped", found)
	}
	for i := range places {
		if want := fmt.Sprintf("&lt;b%d&gt;&#34;&#39;&amp;\ufffd", i+1); !strings.Contains(text, want) {
			t.Errorf("text %d of %d is not on the page", i+1, places)
		}
	}
}

// fillStrings sets every string in v.
func fillStrings(v reflect.Value, next func() string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(next())
	case reflect.Pointer:
		fillStrings(v.Elem(), next)
	case reflect.Slice:
		for i := range v.Len() {
			fillStrings(v.Index(i), next)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fillStrings(v.Field(i), next)
		}
	}
}

// The number of bars is bounded for every period, and none is lost at its ends.
func TestReportPlotKeepsItsBounds(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{0, time.Minute, 238 * time.Minute, 239 * time.Minute, 240 * time.Minute, 7 * 24 * time.Hour, 240 * 24 * time.Hour, 50 * 365 * 24 * time.Hour} {
		minutes := map[time.Time]int64{noon.Add(-length): 2}
		minutes[noon] += 3
		a := axisOf([]*resourceReportJSON{{Name: "api", Total: callerReport{CallerReport: inspect.CallerReport{Minutes: minutes}}}})
		sum := int64(0)
		for _, n := range a.sums(minutes) {
			sum += n
		}
		if a.bars > pageBars || sum != 5 {
			t.Errorf("%v: %d bars of %v, %d sends in them", length, a.bars, a.step, sum)
		}
	}
}
