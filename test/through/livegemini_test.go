package through_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice"
)

const livePath = "/@speaker:p1/api/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"

// turn has one turn of Gemini, and reports that it came to its end.
func (v *voice) turn(message string) error {
	v.Helper()
	v.say(message)
	for range 10_000 {
		_, message, err := v.conn.Read(v.Context())
		if err != nil {
			return err
		}
		if strings.Contains(string(message), `"turnComplete":true`) {
			return nil
		}
	}
	return errors.New("the turn does not end")
}

// Gemini's Live API: messages in binary frames, no ids, refusals by closing. It is counted to the token and held like the others.
func TestGeminiLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []sluice.Limit{
			{Name: "requests", Kind: sluice.Rolling, Size: 30, Window: time.Minute},
			{Name: "input_tokens", Kind: sluice.Rolling, Unit: "input_tokens", Size: 1 << 30, Window: time.Minute},
			{Name: "inflight", Kind: sluice.Concurrency, Size: 4},
		}
		o := strict
		o.Provider = "gemini"
		s := open(t, o, limits, nil, nil)
		v := s.connect(livePath+"?key="+liveKey, "Authorization", "")
		v.say(`{"setup":{"model":"models/gemini-3.8-live","generationConfig":{"maxOutputTokens":100}}}`)
		if _, message, err := v.conn.Read(t.Context()); err != nil || !strings.Contains(string(message), "setupComplete") {
			t.Fatalf("%s %v", message, err)
		}
		for i := range 40 {
			message := fmt.Sprintf(`{"clientContent":{"turns":[{"role":"user","parts":[{"text":"question %d"}]}],"turnComplete":true}}`, i)
			switch i % 4 {
			case 1:
				message = fmt.Sprintf(`{"realtimeInput":{"text":"question %d"}}`, i)
			case 2:
				message = `{"realtimeInput":{"activityEnd":{}}}`
			case 3:
				message = fmt.Sprintf(`{"toolResponse":{"functionResponses":[{"id":"%d","name":"f","response":{}}]}}`, i)
			}
			if i > 35 {
				message = `{"realtimeInput":{"audioStreamEnd":true}}` // the provider answers by itself
			}
			if err := v.turn(message); err != nil {
				t.Fatalf("turn %d: %v", i, err)
			}
		}
		synctest.Wait()
		s.sameBooks(40)
		for _, x := range s.responses() {
			if x.Agent != "speaker" || x.Model != "models/gemini-3.8-live" {
				t.Fatalf("%+v", x)
			}
		}
		if n := s.mock.Stats().Throttled; n != 0 {
			t.Errorf("%d refused", n)
		}
		_ = v.conn.CloseNow()
		synctest.Wait()
		s.idle()
		if strings.Contains(s.log.String(), liveKey) {
			t.Error("the key is in the log")
		}
	})
}

// Gemini refuses by closing the connection. That pauses the resource, and the client gets the same.
func TestGeminiLiveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := strict
		o.Provider, o.Requests.N = "gemini", 2
		s := open(t, o, roomy(), nil, nil)
		v := s.connect(livePath)
		v.say(`{"setup":{"model":"models/gemini-3.8-live"}}`)
		var err error
		turns := 0
		for ; err == nil && turns < 10; turns++ {
			err = v.turn(`{"clientContent":{"turns":[],"turnComplete":true}}`)
		}
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.StatusInternalError || !strings.Contains(closed.Reason, "quota") || turns != 3 {
			t.Errorf("%d turns: %v", turns, err)
		}
		synctest.Wait()
		st, err := s.gate.Resource(t.Context(), "api")
		if err != nil || len(st.Gates) == 0 && st.PausedUntil == nil {
			t.Errorf("%+v %v", st, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s.idle()
	})
}
