//! Layers around a client's transport, in the manner of tower.

use std::{fmt, sync::Arc};

use super::{ClientBuilder, Transport};

type Wrap = dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + Send + Sync;

/// Makes a transport around another one.
#[derive(Clone)]
pub(super) struct Layer(Arc<Wrap>);

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Layer")
    }
}

/// A transport within its layers, the first of them outermost.
pub(super) fn wrap_in_layers(
    transport: Arc<dyn Transport>,
    layers: &[Layer],
) -> Arc<dyn Transport> {
    layers.iter().rev().fold(transport, |inner, Layer(wrap)| wrap(inner))
}

impl ClientBuilder {
    /// A transport of your own around the client's, over HTTP or as [`transport`](Self::transport) sets it:
    /// it can add to a request, look at it, or refuse it. Of several layers the first that is added sees a
    /// request first and its answer last, as in tower's `ServiceBuilder`.
    ///
    /// A layer meets each attempt, those to label hosts too, with the bytes and headers that are sent; HTTP
    /// itself adds `host`, `content-length`, `accept` and, for gzip, `accept-encoding`. The API key is marked as sensitive, so `Debug` does not show it; the body of a request holds names, telephone numbers and
    /// national ids, and `Debug` shows it: do not log a request whole. The
    /// time that a layer takes is the attempt's. To refuse a request, answer with
    /// [`Phase::Refused`](crate::client::Phase::Refused), which ends the call, or with
    /// [`Phase::NotSent`](crate::client::Phase::NotSent), after which it is tried again; both say that nothing was
    /// sent, so never answer so once the inner transport was asked.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use bytes::Bytes;
    /// use futures_util::{FutureExt, future::BoxFuture};
    /// use parcelo::{Client, ErrorKind};
    /// use parcelo::transport::{BodyStream, Phase, Transport, TransportError};
    ///
    /// #[derive(Debug)]
    /// struct ReadOnly<T>(T);
    ///
    /// impl<T: Transport> Transport for ReadOnly<T> {
    ///     fn send(
    ///         &self,
    ///         request: http::Request<Bytes>,
    ///     ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>> {
    ///         if request.method() == http::Method::GET {
    ///             return self.0.send(request);
    ///         }
    ///         let refused = TransportError::new(Phase::Refused, "this program only reads");
    ///         async { Err(refused) }.boxed()
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let (key, address) = (server.key().issue(), server.url());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// let client = Client::builder(key).base_url(address)?.layer(ReadOnly).build()?;
    /// client.health().await?;
    /// let error = client.orders().create(&order).await.unwrap_err();
    /// assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Config, false));
    /// # Ok(())
    /// # }
    /// ```
    pub fn layer<T: Transport>(
        mut self,
        wrap: impl Fn(Arc<dyn Transport>) -> T + Send + Sync + 'static,
    ) -> Self {
        self.layers.push(Layer(Arc::new(move |inner| Arc::new(wrap(inner)))));
        self
    }
}
