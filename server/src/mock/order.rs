//! A sample order for a tracking number.

use parcelo::{IdempotencyKey, OrderRequest, TrackingNumber};

use super::MockServer;
use crate::domain::sample;

impl MockServer {
    /// An order that keeps every rule, of a parcel with this tracking number: Miami to Quito, with the
    /// idempotency key `order-` and the number. What the number begins with chooses the parcel's journey:
    /// `SB-SUCCESS-`, `SB-FAIL-`, `SB-CUSTOMS-`, `SB-RTS-` (docs/api.md, Sandbox). A parcel with any other
    /// number stays where it is until [`MockServer::put_status`] moves it.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::ParcelStatus;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// let created = client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await?;
    /// let number = &created.parcel.tracking_number;
    /// server.clock().advance_until(number, ParcelStatus::Delivered).await?;
    /// assert_eq!(client.tracking().get(number).await?.status, ParcelStatus::Delivered);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    ///
    /// When it is no tracking number: 10-30 letters, digits and hyphens.
    pub fn order(number: &str) -> OrderRequest {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let number =
            TrackingNumber::parse(number).expect("a tracking number such as SB-SUCCESS-0001");
        Self::order_of(number)
    }

    pub(super) fn order_of(number: TrackingNumber) -> OrderRequest {
        #[expect(clippy::expect_used, reason = "the sample is an order")]
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).expect("an order");
        #[expect(
            clippy::expect_used,
            reason = "a number has at most 30 letters, digits and hyphens"
        )]
        let key = IdempotencyKey::parse(&format!("order-{number}")).expect("a key");
        order.idempotency_key = key;
        order.tracking_number = Some(number);
        order
    }
}
