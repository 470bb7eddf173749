//go:build slow && linux

package matrix_test

// Variables by which users of clients name a private authority.
const (
	trustNode   = "NODE_EXTRA_CA_CERTS"
	trustPython = "REQUESTS_CA_BUNDLE"
	trustOthers = "SSL_CERT_DIR"
)

// Models that clients know.
const (
	gpt    = "gpt-5.4"
	claude = "claude-sonnet-4-6"
	flash  = "gemini-2.5-flash"
)

const prompt = "Say something about herons."

// packed is a set-up with the package that its client comes in.
type packed struct {
	setup
	from source
	// broken says why it works without the gate no more than with it.
	broken string
}

// agentsOf lists the agents.
func agentsOf() []packed {
	agent := func(name, client, provider string, from source, args ...string) packed {
		trust := trustNode
		if from.manager == fromPyPI {
			trust = trustPython
		}
		model := map[string]string{"openai": gpt, "anthropic": claude, "gemini": flash}[provider]
		return packed{setup{name: name, client: client, provider: provider, model: model, args: args, agent: true, trust: trust}, from, ""}
	}
	npm := func(name, program string) source { return source{manager: fromNPM, name: name, program: program} }

	codex := agent("Codex", "codex", "openai", npm("@openai/codex", "codex"))
	codex.trust = trustOthers
	codex.setting = &setting{files: map[string]string{".codex/config.toml": "openai_base_url = \"{gate}/v1\"\n"}}
	gemini := agent("Gemini CLI", "gemini-cli", "gemini", npm("@google/gemini-cli", "gemini"))
	gemini.setting = &setting{
		env:   []string{"GOOGLE_GEMINI_BASE_URL={gate}"},
		files: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`},
	}
	claudeCode := agent("Claude Code", "claude-code", "anthropic", npm("@anthropic-ai/claude-code", "claude"))
	qwen := agent("Qwen Code", "qwen-code", "openai", npm("@qwen-code/qwen-code", "qwen"))
	copilot := agent("Copilot CLI, a provider of its own", "copilot", "openai", npm("@github/copilot", "copilot"))
	copilot.env = []string{"COPILOT_PROVIDER_API_KEY={key}"}

	opencode := npm("opencode-ai", "opencode")
	kilo := npm("@kilocode/cli", "kilo")
	pi := npm("@mariozechner/pi-coding-agent", "pi")
	cn := npm("@continuedev/cli", "cn")
	cline := npm("cline", "cline")
	crush := npm("@charmland/crush", "crush")
	aider := source{manager: fromPyPI, name: "aider-chat", program: "aider"}
	llm := source{manager: fromPyPI, name: "llm", with: []string{"llm-anthropic", "llm-gemini"}, program: "llm"}

	llmGemini := agent("llm", "llm", "gemini", llm, "-m", "gemini/"+flash, prompt)
	llmGemini.env = []string{"LLM_GEMINI_KEY={key}"}

	gh := agent("gh", "gh", "github", source{manager: fromAPT, name: "gh", program: "gh"}, "api", "repos/cli/cli", "--jq", ".full_name")
	gh.want, gh.trust, gh.env = "cli/cli", trustOthers, []string{"GH_TOKEN={key}"}

	continued := agent("Continue", "continue", "anthropic", cn, "-p", prompt, "--config", "config.yaml")
	continued.files = map[string]string{"config.yaml": "name: matrix\nversion: 1.0.0\nschema: v1\nmodels:\n  - {name: m, provider: anthropic, model: " + claude + ", apiKey: " + key + ", roles: [chat]}\n"}
	continuedOpenAI := agent("Continue", "continue", "openai", cn, "-p", prompt, "--config", "config.yaml")
	continuedOpenAI.files = map[string]string{"config.yaml": "name: matrix\nversion: 1.0.0\nschema: v1\nmodels:\n  - {name: m, provider: openai, model: " + gpt + ", apiKey: " + key + ", roles: [chat]}\n"}

	aiderArgs := func(model string) []string {
		return []string{"--no-git", "--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--model", model, "--message", prompt}
	}
	return []packed{
		codex, gemini, claudeCode, qwen, copilot,
		agent("opencode", "opencode", "openai", opencode, "run", "-m", "openai/"+gpt, prompt),
		agent("opencode", "opencode", "anthropic", opencode, "run", "-m", "anthropic/"+claude, prompt),
		agent("Kilo", "kilo", "openai", kilo, "run", "-m", "openai/"+gpt, prompt),
		agent("Kilo", "kilo", "anthropic", kilo, "run", "-m", "anthropic/"+claude, prompt),
		agent("pi", "pi", "openai", pi, "-p", "--provider", "openai", "--model", gpt, prompt),
		agent("pi", "pi", "anthropic", pi, "-p", "--provider", "anthropic", "--model", claude, prompt),
		agent("pi", "pi", "gemini", pi, "-p", "--provider", "google", "--model", flash, prompt),
		continued, continuedOpenAI,
		agent("Cline", "cline", "anthropic", cline, "-P", "anthropic", "-k", key, "-m", claude, prompt),
		agent("Cline", "cline", "openai", cline, "-P", "openai-native", "-k", key, "-m", gpt, prompt),
		agent("Crush", "crush", "anthropic", crush, "run", "-q", prompt),
		agent("Crush", "crush", "openai", crush, "run", "-q", prompt),
		agent("aider", "aider", "openai", aider, aiderArgs("gpt-4o-mini")...),
		agent("aider", "aider", "anthropic", aider, aiderArgs("anthropic/"+claude)...),
		agent("aider", "aider", "gemini", aider, aiderArgs("gemini/"+flash)...),
		agent("llm", "llm", "openai", llm, "-m", "gpt-4o-mini", prompt),
		agent("llm", "llm", "anthropic", llm, "-m", "claude-sonnet-4.5", prompt),
		llmGemini,
		gh,
	}
}

// librariesOf lists the SDKs and frameworks.
func librariesOf() []packed {
	library := func(name, client, provider, program string, from source) packed {
		models := map[string]string{
			"openai": gpt, "anthropic": claude, "gemini": flash, "groq": "llama-3.3-70b-versatile", "mistral": "mistral-small-latest",
			"xai": "grok-4", "cohere": "command-a-03-2025", "bedrock": "amazon.nova-lite-v1:0",
		}
		trust := map[string]string{fromNPM: trustNode, fromPyPI: trustPython}[from.manager]
		if trust == "" {
			trust = trustOthers
		}
		s := setup{name: name, client: client, provider: provider, model: models[provider], args: []string{program}, trust: trust}
		switch provider {
		case "gemini": // its SDKs disagree about the name
			s.env = []string{"GOOGLE_GENERATIVE_AI_API_KEY={key}", "GOOGLE_API_KEY={key}"}
		case "cohere": // the AI SDK and others take this name
			s.env = []string{"COHERE_API_KEY={key}"}
		}
		return packed{s, from, ""}
	}
	npm := func(name string, with ...string) source { return source{manager: fromNPM, name: name, with: with} }
	pip := func(name string, with ...string) source { return source{manager: fromPyPI, name: name, with: with} }
	whole := func(p packed) packed { p.whole = true; return p }

	var all []packed
	add := func(p ...packed) { all = append(all, p...) }

	add(
		library("openai (chat)", "sdk-openai", "openai", "openai", npm("openai")),
		library("openai (responses)", "sdk-openai", "openai", "responses", npm("openai")),
		library("@anthropic-ai/sdk", "sdk-anthropic", "anthropic", "anthropic", npm("@anthropic-ai/sdk")),
		library("@google/genai", "sdk-gemini", "gemini", "genai", npm("@google/genai")),
		library("@google/generative-ai", "sdk-gemini-old", "gemini", "generative-ai", npm("@google/generative-ai")),
		library("@mistralai/mistralai", "sdk-mistral", "mistral", "mistral", npm("@mistralai/mistralai")),
		library("groq-sdk", "sdk-groq", "groq", "groq", npm("groq-sdk")),
		library("cohere-ai", "sdk-cohere", "cohere", "cohere", npm("cohere-ai")),
	)
	octokit := whole(library("@octokit/rest", "sdk-github", "github", "octokit", npm("@octokit/rest")))
	octokit.want = "cli/cli"
	add(octokit)
	aiSDK := npm("ai", "@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/google", "@ai-sdk/groq", "@ai-sdk/mistral", "@ai-sdk/xai", "@ai-sdk/cohere")
	for _, provider := range []string{"openai", "anthropic", "gemini", "groq", "mistral", "xai", "cohere"} {
		add(library("AI SDK", "ai-sdk", provider, "ai", aiSDK))
	}
	langchain := npm("@langchain/openai", "@langchain/core", "@langchain/anthropic", "@langchain/google-genai")
	for _, provider := range []string{"openai", "anthropic", "gemini"} {
		add(library("LangChain (JavaScript)", "langchain", provider, "langchain", langchain))
	}
	add(library("@openai/agents", "openai-agents", "openai", "agents", npm("@openai/agents", "zod")))
	for _, provider := range []string{"openai", "anthropic"} {
		add(library("@mastra/core", "", provider, "mastra", npm("@mastra/core", "zod")))
		add(library("LlamaIndex (JavaScript)", "", provider, "llamaindex", npm("llamaindex", "@llamaindex/openai", "@llamaindex/anthropic")))
	}

	add(
		library("openai (Python, chat)", "sdk-openai", "openai", "openai", pip("openai")),
		library("openai (Python, responses)", "sdk-openai", "openai", "responses", pip("openai")),
		library("anthropic (Python)", "sdk-anthropic", "anthropic", "anthropic", pip("anthropic")),
		library("google-genai", "sdk-gemini", "gemini", "genai", pip("google-genai")),
		library("mistralai", "sdk-mistral", "mistral", "mistral", pip("mistralai")),
		library("groq (Python)", "sdk-groq", "groq", "groq", pip("groq")),
		library("cohere (Python)", "sdk-cohere", "cohere", "cohere", pip("cohere")),
		whole(library("boto3", "boto3", "bedrock", "boto3", pip("boto3"))),
	)
	for _, provider := range []string{"openai", "anthropic", "gemini", "groq", "mistral", "xai"} {
		add(library("LiteLLM", "litellm", provider, "litellm", pip("litellm")))
	}
	for _, provider := range []string{"openai", "anthropic", "gemini"} {
		add(library("LangChain (Python)", "langchain", provider, "langchain", pip("langchain", "langchain-openai", "langchain-anthropic", "langchain-google-genai")))
	}
	for _, provider := range []string{"openai", "anthropic", "gemini", "groq", "mistral"} {
		add(library("Pydantic AI", "pydantic-ai", provider, "pydantic", pip("pydantic-ai", "pydantic-ai-slim[groq,mistral]")))
	}
	add(library("openai-agents (Python)", "openai-agents", "openai", "agents", pip("openai-agents")))
	add(library("LlamaIndex (Python)", "", "openai", "llamaindex", pip("llama-index-core", "llama-index-llms-openai")))
	llamaIndex := library("LlamaIndex (Python)", "", "anthropic", "llamaindex", pip("llama-index-core", "llama-index-llms-anthropic"))
	llamaIndex.broken = "it does not go together with the current SDK of Anthropic (TypeError before any call)"
	add(llamaIndex)
	crewai := library("CrewAI", "", "openai", "crewai", pip("crewai"))
	crewai.env = []string{"CREWAI_DISABLE_TELEMETRY=true", "OTEL_SDK_DISABLED=true"}
	crewai.model = "gpt-4o-mini"
	add(
		library("smolagents", "", "openai", "smolagents", pip("smolagents", "openai")), crewai,
		whole(library("DSPy", "", "openai", "dspy", pip("dspy"))),
		whole(library("Instructor", "", "openai", "instructor", pip("instructor"))),
	)

	inGo := func(name string) source {
		s := source{manager: fromGo, name: name}
		for _, module := range []string{"github.com/openai/openai-go/v3", "github.com/anthropics/anthropic-sdk-go", "google.golang.org/genai", "github.com/sashabaranov/go-openai"} {
			if module != name {
				s.with = append(s.with, module)
			}
		}
		return s
	}
	spring := library("Spring AI", "spring-ai", "openai", "", source{manager: fromMaven, name: "spring-ai-openai"})
	spring.env = []string{"SPRING_AI_OPENAI_API_KEY={key}"}
	add(
		library("openai-go", "sdk-openai", "openai", "openai", inGo("github.com/openai/openai-go/v3")),
		library("anthropic-sdk-go", "sdk-anthropic", "anthropic", "anthropic", inGo("github.com/anthropics/anthropic-sdk-go")),
		library("genai (Go)", "sdk-gemini", "gemini", "genai", inGo("google.golang.org/genai")),
		library("go-openai", "", "openai", "go-openai", inGo("github.com/sashabaranov/go-openai")),
		spring,
		library("async-openai (Rust)", "sdk-openai", "openai", "", source{manager: fromCargo, name: "async-openai"}),
	)
	return all
}
