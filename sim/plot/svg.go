package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// svg is a drawing as text. The style sheet formats its elements by their classes.
type svg struct{ strings.Builder }

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(s, "<line class=%q x1=%q y1=%q x2=%q y2=%q/>\n", class, px(x1), px(y1), px(x2), px(y2))
}

func (s *svg) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(s, "<rect class=%q x=%q y=%q width=%q height=%q/>\n", class, px(x), px(y), px(w), px(h))
}

func (s *svg) text(class string, x, y float64, text string) {
	fmt.Fprintf(s, "<text class=%q x=%q y=%q>%s</text>\n", class, px(x), px(y), escaped(text))
}

func (s *svg) path(class string, d string) {
	if d != "" {
		fmt.Fprintf(s, "<path class=%q d=%q/>\n", class, d)
	}
}

// writeTo writes the drawing as a complete document.
func (s *svg) writeTo(w io.Writer, width, height float64, title, description string) error {
	var head strings.Builder
	fmt.Fprintf(&head, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img" aria-labelledby="title desc">`+"\n",
		px(width), px(height))
	fmt.Fprintf(&head, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", escaped(title), escaped(description))
	head.WriteString("<style>" + style + "</style>\n")
	fmt.Fprintf(&head, "<rect class=\"paper\" width=%q height=%q/>\n", px(width), px(height))
	_, err := io.WriteString(w, head.String()+s.String()+"</svg>\n")
	return err
}

// px formats a coordinate to a tenth of a pixel.
func px(x float64) string {
	s := strconv.FormatFloat(x, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder never fails
	return b.String()
}
