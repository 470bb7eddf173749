// Command ask makes ASK_CALLS calls of each kind at once with a library, whole and streamed, and prints every answer as a line of JSON.
// Where to send, and the key, the libraries find in the environment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	older "github.com/sashabaranov/go-openai"
	"google.golang.org/genai"
)

const prompt = "Say something about herons."

var (
	ctx   = context.Background()
	model = os.Getenv("ASK_MODEL")
)

type call func() (string, error)

func main() {
	whole, streamed := map[string]func() (call, call){
		"openai": withOpenAI, "anthropic": withAnthropic, "genai": withGemini, "go-openai": withOlder,
	}[os.Args[1]]()
	n, _ := strconv.Atoi(os.Getenv("ASK_CALLS"))
	var all sync.WaitGroup
	var mu sync.Mutex
	failed := false
	for range n {
		for kind, do := range map[string]call{"whole": whole, "streamed": streamed} {
			all.Go(func() {
				text, err := do()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = true
					fmt.Fprintln(os.Stderr, kind, err)
					return
				}
				_ = json.NewEncoder(os.Stdout).Encode(map[string]string{"kind": kind, "text": text})
			})
		}
	}
	all.Wait()
	if failed {
		os.Exit(1)
	}
}

func withOpenAI() (call, call) {
	client := openai.NewClient()
	body := openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
	return func() (string, error) {
			c, err := client.Chat.Completions.New(ctx, body)
			if err != nil {
				return "", err
			}
			return c.Choices[0].Message.Content, nil
		}, func() (text string, err error) {
			s := client.Chat.Completions.NewStreaming(ctx, body)
			for s.Next() {
				if e := s.Current(); len(e.Choices) > 0 {
					text += e.Choices[0].Delta.Content
				}
			}
			return text, s.Err()
		}
}

func withAnthropic() (call, call) {
	client := anthropic.NewClient()
	body := anthropic.MessageNewParams{Model: anthropic.Model(model), MaxTokens: 500, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))}}
	return func() (string, error) {
			m, err := client.Messages.New(ctx, body)
			if err != nil {
				return "", err
			}
			return m.Content[0].Text, nil
		}, func() (string, error) {
			s := client.Messages.NewStreaming(ctx, body)
			var m anthropic.Message
			for s.Next() {
				if err := m.Accumulate(s.Current()); err != nil {
					return "", err
				}
			}
			if err := s.Err(); err != nil {
				return "", err
			}
			return m.Content[0].Text, nil
		}
}

func withGemini() (call, call) {
	client, err := genai.NewClient(ctx, nil)
	if err != nil {
		panic(err)
	}
	return func() (string, error) {
			r, err := client.Models.GenerateContent(ctx, model, genai.Text(prompt), nil)
			if err != nil {
				return "", err
			}
			return r.Text(), nil
		}, func() (text string, err error) {
			for r, err := range client.Models.GenerateContentStream(ctx, model, genai.Text(prompt), nil) {
				if err != nil {
					return text, err
				}
				text += r.Text()
			}
			return text, nil
		}
}

func withOlder() (call, call) {
	config := older.DefaultConfig(os.Getenv("OPENAI_API_KEY"))
	config.BaseURL = os.Getenv("OPENAI_BASE_URL") // it reads no variable by itself
	client := older.NewClientWithConfig(config)
	body := older.ChatCompletionRequest{Model: model, Messages: []older.ChatCompletionMessage{{Role: "user", Content: prompt}}}
	return func() (string, error) {
			c, err := client.CreateChatCompletion(ctx, body)
			if err != nil {
				return "", err
			}
			return c.Choices[0].Message.Content, nil
		}, func() (text string, err error) {
			s, err := client.CreateChatCompletionStream(ctx, body)
			if err != nil {
				return "", err
			}
			defer s.Close()
			for {
				e, err := s.Recv()
				if errors.Is(err, io.EOF) {
					return text, nil
				}
				if err != nil {
					return text, err
				}
				if len(e.Choices) > 0 {
					text += e.Choices[0].Delta.Content
				}
			}
		}
}
