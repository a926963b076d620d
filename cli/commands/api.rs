//! `api`: a call by method and path, for operations without a command.

use bytes::Bytes;
use parcelo::{Client, ErrorCode};

use super::call;
use crate::{
    failure::{Exit, Failure},
    output,
    results::{CommandOutcome, Results},
    resume::ResumeHint,
    sanitize::plain,
    texts,
};

/// The request.
#[derive(Debug)]
pub(crate) struct RawCall {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
}

/// Replaces the hint of an unknown endpoint: a wrong path is more likely than a wrong address, which the usual hint is
/// about.
fn with_unknown_call_hint(failure: Failure) -> Failure {
    let is_unknown = failure.exit == Exit::Usage || failure.code == ErrorCode::NotFound.code();
    if is_unknown { failure.hint(texts::CHECK_CALL) } else { failure }
}

pub(super) async fn call(client: &Client, request: RawCall) -> Result<CommandOutcome, Failure> {
    let RawCall { method, path, body } = request;
    let resume = if method == "GET" { ResumeHint::ReadOnly } else { ResumeHint::SameRequest };
    let response = call::execute(client.raw(&method, &path, body), resume).await;
    let response = response.map_err(with_unknown_call_hint)?.into_inner();
    let kind = response.content_type.as_deref().unwrap_or_default();
    let is_text = kind.starts_with("text/") || kind.contains("json");
    if !is_text && output::is_terminal() {
        return Err(Failure::usage(texts::BINARY_RESPONSE, texts::REDIRECT_OUTPUT));
    }
    let mut content = response.body.to_vec();
    if output::is_terminal() {
        let lines = String::from_utf8_lossy(&content);
        content = lines.lines().map(plain).collect::<Vec<_>>().join("\n").into_bytes();
    }
    if is_text && !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    Ok(CommandOutcome::with(Results::Raw(content)))
}
