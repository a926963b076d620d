//! `api`: a call by method and path, for what has no command of its own.

use bytes::Bytes;
use parcelo::Client;

use super::service;
use crate::{
    failure::Failure,
    output,
    results::{Done, Results},
    resume::Resume,
    texts,
};

/// What is called.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
}

pub(super) async fn call(client: &Client, request: Request) -> Result<Done, Failure> {
    let Request { method, path, body } = request;
    let resume = if method == "GET" { Resume::Reads } else { Resume::SameRequest };
    let answer = service::answer(client.raw(&method, &path, body), resume).await?.into_inner();
    let kind = answer.content_type.as_deref().unwrap_or_default();
    let is_text = kind.starts_with("text/") || kind.contains("json");
    if !is_text && output::is_terminal() {
        return Err(Failure::usage(texts::NOT_TEXT, texts::REDIRECT_ONLY));
    }
    let mut content = answer.body.to_vec();
    if is_text && !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    Ok(Done::with(Results::File(content)))
}
