//! Layers around a client's transport, as in tower.

use std::{fmt, sync::Arc};

use super::{ClientBuilder, Transport};

type WrapFn = dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + Send + Sync;

/// Wraps a transport in another one.
#[derive(Clone)]
pub(super) struct Layer(Arc<WrapFn>);

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Layer")
    }
}

/// Wraps the transport in the layers, the first of which becomes the outermost.
pub(super) fn wrap_in_layers(
    transport: Arc<dyn Transport>,
    layers: &[Layer],
) -> Arc<dyn Transport> {
    layers.iter().rev().fold(transport, |inner, Layer(wrap)| wrap(inner))
}

impl ClientBuilder {
    /// Wraps the client's transport, its own or that of [`transport`](Self::transport), in one of your own, which can
    /// change a request, log it, or refuse it. The first layer that is added sees a request first and its response
    /// last, as in tower's `ServiceBuilder`.
    ///
    /// A layer sees each attempt, including those to label hosts, with the bytes and headers that are sent; HTTP
    /// itself adds `host`, `content-length`, `accept` and, with gzip, `accept-encoding`. The time that a layer takes
    /// is part of the attempt's.
    ///
    /// Do not log a whole request: its body has names, telephone numbers and national ids, and `Debug` shows it. The
    /// API key is marked as sensitive, and `Debug` does not show that.
    ///
    /// To refuse a request, return [`Phase::Refused`](crate::client::Phase::Refused), which ends the call, or
    /// [`Phase::NotSent`](crate::client::Phase::NotSent), after which it is retried. Both state that nothing was sent,
    /// so return neither once the inner transport was called.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use parcelo::{Client, ErrorKind, bytes::Bytes};
    /// use parcelo::transport::{Phase, ResponseFuture, Transport, TransportError};
    ///
    /// #[derive(Debug)]
    /// struct ReadOnly<T>(T);
    ///
    /// impl<T: Transport> Transport for ReadOnly<T> {
    ///     fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
    ///         if request.method() == http::Method::GET {
    ///             return self.0.send(request);
    ///         }
    ///         let refused = TransportError::new(Phase::Refused, "this program only reads");
    ///         Box::pin(async { Err(refused) })
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
