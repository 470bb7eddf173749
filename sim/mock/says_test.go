package mock_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/sim/mock"
)

// A server can be told what to say, whatever it is asked.
func TestItSaysWhatItIsTold(t *testing.T) {
	s, err := mock.New(mock.Options{Provider: "anthropic", Says: "one two  three"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, body := range []string{
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"m","max_tokens":2,"messages":[{"role":"user","content":"hi"}]}`,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body)))
		text, _ := io.ReadAll(w.Body)
		want := `"text":"one two three"`
		if strings.Contains(body, ":2,") {
			want = `"text":"one two"`
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s", text)
		}
	}
}
