//! `sandbox reset`: an empty sandbox. Whether the user is sure was asked before.

use parcelo::Client;

use super::service;
use crate::{
    failure::Failure,
    results::{Done, Results},
    resume::Resume,
};

pub(super) async fn reset(client: &Client) -> Result<Done, Failure> {
    let reset = service::answer(client.sandbox().reset(), Resume::Look).await?.into_inner();
    Ok(Done::with(Results::Reset(Box::new(reset))))
}
