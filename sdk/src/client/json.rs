//! Calls whose response is JSON: with or without `success` beside the data, or in an envelope.

use serde::de::DeserializeOwned;

use super::{
    Client, Error, Reply,
    body::BodyReader,
    call::Call,
    reply::{self, Enveloped, HasSuccess},
    request::UnsentRequest,
};

impl<T: DeserializeOwned + 'static> Call<Reply<T>> {
    /// Returns a call whose response is JSON.
    pub(super) fn json(client: &Client, request: Result<UnsentRequest, Error>) -> Self
    where
        T: HasSuccess,
    {
        Self::new(client.clone(), request, |client, request| Box::pin(client.json(request)))
    }

    /// Returns a call whose response is JSON in an envelope.
    pub(super) fn enveloped(client: &Client, request: Result<UnsentRequest, Error>) -> Self {
        Self::new(client.clone(), request, |client, request| Box::pin(client.enveloped(request)))
    }
}

impl Client {
    /// Sends a request whose response is JSON.
    pub(super) async fn json<T: DeserializeOwned + HasSuccess>(
        self,
        request: UnsentRequest,
    ) -> Result<Reply<T>, Error> {
        let (response, mut execution) = self.execute(request, BodyReader::read_all).await?;
        let reply = reply::parse_reply(execution.operation, response, &execution.state);
        if reply.as_ref().err().is_none_or(Error::is_executed) {
            execution.mark_executed();
        }
        execution.finish(reply.as_ref().err());
        reply
    }

    /// Sends a request whose response is JSON in an envelope.
    pub(super) async fn enveloped<T: DeserializeOwned>(
        self,
        request: UnsentRequest,
    ) -> Result<Reply<T>, Error> {
        let reply: Reply<Enveloped<T>> = self.json(request).await?;
        Ok(reply.map(|response| response.data))
    }
}
