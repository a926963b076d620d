//! Calls whose response is JSON: with or without `success` beside the data, or in an envelope.

use serde::de::DeserializeOwned;

use super::{
    Client, Error, Reply,
    body::BodyReader,
    call::Call,
    reply::{self, Enveloped, HasSuccess},
};

impl Client {
    /// Makes a call whose response is JSON.
    pub(super) async fn json<T: DeserializeOwned + HasSuccess>(
        &self,
        call: Call<'_>,
    ) -> Result<Reply<T>, Error> {
        let (response, mut execution) = self.execute(&call, BodyReader::read_all).await?;
        let reply = reply::parse_reply(&call, response, &execution.state);
        if reply.as_ref().err().is_none_or(Error::is_executed) {
            execution.mark_executed();
        }
        execution.finish(reply.as_ref().err());
        reply
    }

    /// Makes a call whose response is JSON in an envelope.
    pub(super) async fn enveloped<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
    ) -> Result<Reply<T>, Error> {
        let reply: Reply<Enveloped<T>> = self.json(call).await?;
        Ok(reply.map(|response| response.data))
    }
}
