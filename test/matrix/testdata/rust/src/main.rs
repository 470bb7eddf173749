//! ask makes ASK_CALLS calls of each kind at once with async-openai, whole and streamed, and prints every answer as a line of JSON.
use async_openai::types::chat::{ChatCompletionRequestUserMessageArgs, CreateChatCompletionRequest, CreateChatCompletionRequestArgs};
use async_openai::Client;
use futures::future::join_all;
use futures::{FutureExt, StreamExt};
use std::error::Error;

fn request(stream: bool) -> Result<CreateChatCompletionRequest, Box<dyn Error>> {
    let message = ChatCompletionRequestUserMessageArgs::default().content("Say something about herons.").build()?;
    Ok(CreateChatCompletionRequestArgs::default().model(std::env::var("ASK_MODEL")?).messages([message.into()]).stream(stream).build()?)
}

async fn whole() -> Result<String, Box<dyn Error>> {
    let answer = Client::new().chat().create(request(false)?).await?;
    Ok(answer.choices[0].message.content.clone().unwrap_or_default())
}

async fn streamed() -> Result<String, Box<dyn Error>> {
    let mut stream = Client::new().chat().create_stream(request(true)?).await?;
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        for choice in event?.choices {
            text += &choice.delta.content.unwrap_or_default();
        }
    }
    Ok(text)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let n: usize = std::env::var("ASK_CALLS")?.parse()?;
    let calls = (0..n).flat_map(|_| [whole().map(|a| ("whole", a)).boxed_local(), streamed().map(|a| ("streamed", a)).boxed_local()]);
    let mut failed = false;
    for (kind, answer) in join_all(calls).await {
        match answer {
            Ok(text) => println!("{}", serde_json::json!({"kind": kind, "text": text})),
            Err(error) => {
                failed = true;
                eprintln!("{kind} {error}");
            }
        }
    }
    std::process::exit(failed as i32)
}
