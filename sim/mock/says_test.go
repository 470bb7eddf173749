package mock_test

import (
	"encoding/json"
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

// Gemini streams an array unless the request asks for events.
func TestGeminiStreamsAnArray(t *testing.T) {
	s, err := mock.New(mock.Options{Provider: "gemini", Says: strings.Repeat("word ", 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1beta/models/m:streamGenerateContent", strings.NewReader(`{"contents":[{"parts":[{"text":"hi"}]}]}`)))
	var pieces []struct {
		UsageMetadata struct{ CandidatesTokenCount int }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &pieces); err != nil || len(pieces) != 3 || pieces[2].UsageMetadata.CandidatesTokenCount != 20 {
		t.Errorf("%v: %s", err, w.Body)
	}
	if kind := w.Header().Get("Content-Type"); kind != "application/json; charset=utf-8" {
		t.Errorf("it is %s", kind)
	}
}
