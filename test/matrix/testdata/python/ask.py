"""ask LIBRARY makes ASK_CALLS calls of each kind at once with a library, whole and streamed, and prints every answer as a line of JSON.

Where to send, and the key, the libraries find in the environment, or they know."""

import asyncio
import concurrent.futures
import json
import os
import sys
import threading
import traceback

provider = os.environ["ASK_PROVIDER"]
model = os.environ["ASK_MODEL"]
prompt = "Say something about herons."
messages = [{"role": "user", "content": prompt}]


def join(stream, piece):
    return "".join(piece(event) or "" for event in stream)


def chat(client):
    create = client.chat.completions.create
    return (
        lambda: create(model=model, messages=messages).choices[0].message.content,
        lambda: join(create(model=model, messages=messages, stream=True), lambda e: e.choices[0].delta.content if e.choices else ""),
    )


def openai():
    from openai import OpenAI

    return chat(OpenAI())


def responses():
    from openai import OpenAI

    create = OpenAI().responses.create
    return (
        lambda: create(model=model, input=prompt).output_text,
        lambda: join(create(model=model, input=prompt, stream=True), lambda e: e.delta if e.type == "response.output_text.delta" else ""),
    )


def groq():
    from groq import Groq

    return chat(Groq())


def anthropic():
    from anthropic import Anthropic

    client = Anthropic()

    def streamed():
        with client.messages.stream(model=model, max_tokens=500, messages=messages) as stream:
            return join(stream.text_stream, lambda e: e)

    return lambda: client.messages.create(model=model, max_tokens=500, messages=messages).content[0].text, streamed


def genai():
    from google.genai import Client

    client = Client(api_key=os.environ["GEMINI_API_KEY"])
    return (
        lambda: client.models.generate_content(model=model, contents=prompt).text,
        lambda: join(client.models.generate_content_stream(model=model, contents=prompt), lambda e: e.text),
    )


def mistral():
    try:
        from mistralai import Mistral
    except ImportError:
        from mistralai.client import Mistral

    client = Mistral(api_key=os.environ["MISTRAL_API_KEY"])
    return (
        lambda: client.chat.complete(model=model, messages=messages).choices[0].message.content,
        lambda: join(client.chat.stream(model=model, messages=messages), lambda e: e.data.choices[0].delta.content if e.data.choices else ""),
    )


def cohere():
    from cohere import ClientV2

    client = ClientV2()
    return (
        lambda: client.chat(model=model, messages=messages).message.content[0].text,
        lambda: join(client.chat_stream(model=model, messages=messages), lambda e: e.delta.message.content.text if e.type == "content-delta" else ""),
    )


def boto3():
    import boto3

    client = boto3.client("bedrock-runtime")
    turns = [{"role": "user", "content": [{"text": prompt}]}]
    return (lambda: client.converse(modelId=model, messages=turns)["output"]["message"]["content"][0]["text"],)


def litellm():
    from litellm import completion

    name = f"{provider}/{model}"
    return (
        lambda: completion(model=name, messages=messages).choices[0].message.content,
        lambda: join(completion(model=name, messages=messages, stream=True), lambda e: e.choices[0].delta.content),
    )


def langchain():
    from langchain.chat_models import init_chat_model

    llm = init_chat_model(model, model_provider="google_genai" if provider == "gemini" else provider)
    return lambda: llm.invoke(prompt).text, lambda: join(llm.stream(prompt), lambda e: e.text)


def loop():
    """Returns what runs a coroutine on one event loop: some libraries keep their connections on the first."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return lambda coroutine: asyncio.run_coroutine_threadsafe(coroutine, loop).result()


def pydantic():
    from pydantic_ai import Agent

    run = loop()
    agent = Agent(f"{'google' if provider == 'gemini' else provider}:{model}")

    async def all():
        async with agent.run_stream(prompt) as result:
            return await result.get_output()

    return lambda: run(agent.run(prompt)).output, lambda: run(all())


def agents():
    from agents import Agent, Runner, set_tracing_disabled

    set_tracing_disabled(True)
    run = loop()
    agent = Agent(name="herons", model=model)

    async def all():
        result = Runner.run_streamed(agent, prompt)
        async for _ in result.stream_events():
            pass
        return result.final_output

    return lambda: run(Runner.run(agent, prompt)).final_output, lambda: run(all())


def llamaindex():
    if provider == "anthropic":
        from llama_index.llms.anthropic import Anthropic as LLM
    else:
        from llama_index.llms.openai import OpenAI as LLM
    llm = LLM(model=model)
    return lambda: llm.complete(prompt).text, lambda: join(llm.stream_complete(prompt), lambda e: e.delta)


def smolagents():
    from smolagents import OpenAIModel

    llm = OpenAIModel(model_id=model)
    turns = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    return lambda: llm(turns).content, lambda: join(llm.generate_stream(turns), lambda e: e.content)


def crewai():
    from crewai import LLM

    return lambda: LLM(model=f"{provider}/{model}").call(prompt), lambda: LLM(model=f"{provider}/{model}", stream=True).call(prompt)


def dspy():
    import dspy

    return (lambda: dspy.LM(f"{provider}/{model}", cache=False)(prompt)[0],)


def instructor():
    import instructor

    client = instructor.from_provider(f"{provider}/{model}")
    return (lambda: client.create(response_model=None, messages=messages).choices[0].message.content,)


kinds = dict(zip(("whole", "streamed"), globals()[sys.argv[1]]()))
calls = [(kind, call) for kind, call in kinds.items() if call] * int(os.environ["ASK_CALLS"])
with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
    answers = [(kind, pool.submit(call)) for kind, call in calls]
failed = False
print()  # some libraries leave a line unfinished
for kind, answer in answers:
    try:
        print(json.dumps({"kind": kind, "text": answer.result() or ""}))
    except Exception:
        failed = True
        print(kind, traceback.format_exc(), file=sys.stderr)
sys.stdout.flush()
os._exit(1 if failed else 0)  # some libraries leave threads behind
