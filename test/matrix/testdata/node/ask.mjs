// ask LIBRARY makes CALLS calls of each kind at once with a library, whole and streamed, and prints every answer as a line of JSON.
// Where to send, and the key, the libraries find in the environment, or they know.
const provider = process.env.ASK_PROVIDER;
const model = process.env.ASK_MODEL;
const prompt = "Say something about herons.";
const messages = [{ role: "user", content: prompt }];

const join = async (stream, piece) => {
  let text = "";
  for await (const event of stream) text += piece(event) ?? "";
  return text;
};

const libraries = {
  async openai() {
    const { default: OpenAI } = await import("openai");
    const client = new OpenAI();
    return {
      whole: async () => (await client.chat.completions.create({ model, messages })).choices[0].message.content,
      streamed: async () => join(await client.chat.completions.create({ model, messages, stream: true }), (e) => e.choices[0]?.delta.content),
    };
  },
  async responses() {
    const { default: OpenAI } = await import("openai");
    const client = new OpenAI();
    return {
      whole: async () => (await client.responses.create({ model, input: prompt })).output_text,
      streamed: async () => join(await client.responses.create({ model, input: prompt, stream: true }), (e) => (e.type === "response.output_text.delta" ? e.delta : "")),
    };
  },
  async anthropic() {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    const client = new Anthropic();
    const request = { model, max_tokens: 500, messages };
    return {
      whole: async () => (await client.messages.create(request)).content[0].text,
      streamed: () => client.messages.stream(request).finalText(),
    };
  },
  async genai() {
    const { GoogleGenAI } = await import("@google/genai");
    const client = new GoogleGenAI({ apiKey: process.env.GEMINI_API_KEY });
    return {
      whole: async () => (await client.models.generateContent({ model, contents: prompt })).text,
      streamed: async () => join(await client.models.generateContentStream({ model, contents: prompt }), (e) => e.text),
    };
  },
  async "generative-ai"() {
    const { GoogleGenerativeAI } = await import("@google/generative-ai");
    const client = new GoogleGenerativeAI(process.env.GEMINI_API_KEY).getGenerativeModel({ model });
    return {
      whole: async () => (await client.generateContent(prompt)).response.text(),
      streamed: async () => join((await client.generateContentStream(prompt)).stream, (e) => e.text()),
    };
  },
  async mistral() {
    const { Mistral } = await import("@mistralai/mistralai");
    const client = new Mistral({ apiKey: process.env.MISTRAL_API_KEY });
    return {
      whole: async () => (await client.chat.complete({ model, messages })).choices[0].message.content,
      streamed: async () => join(await client.chat.stream({ model, messages }), (e) => e.data.choices[0]?.delta.content),
    };
  },
  async groq() {
    const { default: Groq } = await import("groq-sdk");
    const client = new Groq();
    return {
      whole: async () => (await client.chat.completions.create({ model, messages })).choices[0].message.content,
      streamed: async () => join(await client.chat.completions.create({ model, messages, stream: true }), (e) => e.choices[0]?.delta.content),
    };
  },
  async cohere() {
    const { CohereClientV2 } = await import("cohere-ai");
    const client = new CohereClientV2({ token: process.env.CO_API_KEY });
    return {
      whole: async () => (await client.chat({ model, messages })).message.content[0].text,
      streamed: async () => join(await client.chatStream({ model, messages }), (e) => e.delta?.message?.content?.text),
    };
  },
  async ai() {
    const { generateText, streamText } = await import("ai");
    const models = await import(`@ai-sdk/${provider === "gemini" ? "google" : provider}`);
    const chosen = models[provider === "gemini" ? "google" : provider](model);
    return {
      whole: async () => (await generateText({ model: chosen, prompt })).text,
      streamed: async () => {
        let failed;
        const text = await join(streamText({ model: chosen, prompt, onError: ({ error }) => (failed = error) }).textStream, (e) => e);
        if (failed) throw failed;
        return text;
      },
    };
  },
  async langchain() {
    const [name, kind] = { openai: ["openai", "ChatOpenAI"], anthropic: ["anthropic", "ChatAnthropic"], gemini: ["google-genai", "ChatGoogleGenerativeAI"] }[provider];
    const { [kind]: Chat } = await import(`@langchain/${name}`);
    const chat = new Chat({ model });
    return {
      whole: async () => (await chat.invoke(prompt)).text,
      streamed: async () => join(await chat.stream(prompt), (e) => e.text),
    };
  },
  async agents() {
    const { Agent, run, setTracingDisabled } = await import("@openai/agents");
    setTracingDisabled(true);
    const agent = new Agent({ name: "herons", model });
    return {
      whole: async () => (await run(agent, prompt)).finalOutput,
      streamed: async () => {
        const result = await run(agent, prompt, { stream: true });
        const text = await join(result.toTextStream(), (e) => e);
        await result.completed;
        return text;
      },
    };
  },
  async mastra() {
    const { Agent } = await import("@mastra/core/agent");
    const agent = new Agent({ id: "herons", name: "herons", instructions: "Be brief.", model: `${provider}/${model}` });
    return {
      whole: async () => (await agent.generate(prompt)).text,
      streamed: async () => join((await agent.stream(prompt)).textStream, (e) => e),
    };
  },
  async llamaindex() {
    const { [provider]: make } = await import(`@llamaindex/${provider}`);
    const chat = make({ model });
    return {
      whole: async () => {
        const { content } = (await chat.chat({ messages })).message; // a text, or its parts
        return typeof content === "string" ? content : content.map((part) => part.text).join("");
      },
      streamed: async () => join(await chat.chat({ messages, stream: true }), (e) => e.delta),
    };
  },
  async octokit() {
    const { Octokit } = await import("@octokit/rest");
    const client = new Octokit({ auth: process.env.GITHUB_TOKEN, baseUrl: process.env.GITHUB_API_URL });
    return { whole: async () => (await client.repos.get({ owner: "cli", repo: "cli" })).data.full_name };
  },
};

const { whole, streamed } = await libraries[process.argv[2]]();
const calls = [];
for (let i = 0; i < Number(process.env.ASK_CALLS); i++) {
  calls.push(["whole", whole]);
  if (streamed) calls.push(["streamed", streamed]);
}
const answers = await Promise.allSettled(calls.map(([, call]) => call()));
for (const [i, answer] of answers.entries()) {
  if (answer.status === "rejected") console.error(calls[i][0], answer.reason);
  else console.log(JSON.stringify({ kind: calls[i][0], text: answer.value ?? "" }));
}
process.exit(answers.some((answer) => answer.status === "rejected") ? 1 : 0);
