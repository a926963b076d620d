//! What shippers try and must not get: orders that break a rule, keys and numbers that are taken, what is another's, and
//! labels of voided parcels.

use fastrand::Rng;
use parcelo::{
    CountryCode, ErrorKind, LabelFormat, ManifestRequest, OrderRequest, TrackingNumber, VoidRequest,
};

use super::{calls::CALL, clients::Worker};

/// Longer than any reference may be.
const TOO_LONG: usize = 300;

impl Worker {
    /// Creates an order that breaks a rule, and then the same without the fault, under the same key.
    pub(super) async fn correct(&mut self) {
        let order = self.order();
        let mut wrong = order.clone();
        wrong.external_order_id = None;
        // The one cannot be read; the other could be stored.
        if self.rng.bool() {
            wrong.receiver.phone = "12".to_owned();
        } else {
            wrong.customer_reference = Some("x".repeat(TOO_LONG));
        }
        self.must_fail(&wrong, "invalid-accepted").await;
        if self.shipper == 0 {
            self.ship_elsewhere(&order).await;
        }
        self.create_order(order, false).await;
    }

    /// The first shipper's key is for one country: another is refused whatever else is wrong.
    async fn ship_elsewhere(&self, order: &OrderRequest) {
        let mut elsewhere = order.clone();
        elsewhere.external_order_id = None;
        elsewhere.receiver.address.country = CountryCode::CO;
        let call = self.world.next_call();
        match CALL.scope(call, self.client.orders().create(&elsewhere)).await {
            Ok(_) => self.world.violated("country-accepted", "an order to Colombia"),
            Err(error) => {
                self.failed(call, &error);
                let is_judged = error.kind() == ErrorKind::Validation;
                self.world.check(!is_judged, "country-accepted", || error.to_string());
            }
        }
    }

    async fn must_fail(&self, order: &OrderRequest, name: &'static str) {
        let call = self.world.next_call();
        match CALL.scope(call, self.client.orders().create(order)).await {
            Ok(_) => self.world.violated(name, order.idempotency_key.as_str()),
            Err(error) => self.failed(call, &error),
        }
    }

    /// Another order under a key that has one.
    pub(super) async fn reuse_key(&mut self) {
        let fresh = &self.numbers[self.fresh_from..];
        let Some((id, _)) = self.rng.choice(fresh).cloned() else { return };
        let mut order = self.order();
        order.idempotency_key = self.key_of(&id);
        self.must_fail(&order, "fingerprint-ignored").await;
    }

    /// Another order asks for the number of one that is there.
    pub(super) async fn take_number(&mut self) {
        let fresh = &self.numbers[self.fresh_from..];
        let Some((_, number)) = self.rng.choice(fresh).cloned() else { return };
        let mut order = self.order();
        order.tracking_number = Some(number);
        self.must_fail(&order, "tracking-reused").await;
    }

    /// What another shipper has is not there.
    pub(super) async fn read_another(&mut self) {
        let Some(number) = self.number_of_another() else { return };
        let (call, number) = (self.world.next_call(), TrackingNumber::parse(&number).unwrap());
        let key = self.key();
        let is_refused = match self.rng.u32(..4) {
            0 => {
                let tracking = self.client.tracking().get(&number);
                CALL.scope(call, async { tracking.await.is_err() }).await
            }
            1 => {
                let label = self.client.labels().download(&number, LabelFormat::Zpl).bytes();
                CALL.scope(call, label).await.is_err()
            }
            2 => {
                let request = VoidRequest::new(key, [&number]);
                CALL.scope(call, self.client.orders().void(&request)).await.is_err()
            }
            _ => {
                let request = ManifestRequest::new(key, some_awb(&mut self.rng), [&number]);
                CALL.scope(call, self.client.manifests().submit(&request)).await.is_err()
            }
        };
        self.world.check(is_refused, "other-tenant", || number.to_string());
    }

    fn number_of_another(&mut self) -> Option<String> {
        let facts = self.world.facts();
        let others = facts.orders.values().filter(|order| order.shipper != self.shipper);
        let living = others.filter(|order| !order.voided);
        let numbers: Vec<_> = living.filter_map(|order| order.acknowledged.clone()).collect();
        drop(facts);
        self.rng.choice(numbers)
    }

    /// A parcel that was voided has no label.
    pub(super) async fn print_voided(&self, number: &TrackingNumber) {
        let call = self.world.next_call();
        let label = self.client.labels().download(number, LabelFormat::Zpl).bytes();
        let is_refused = CALL.scope(call, label).await.is_err();
        self.world.check(is_refused, "label-of-voided", || number.to_string());
    }
}

/// The number of an air waybill, with its check digit.
pub(super) fn some_awb(rng: &mut Rng) -> parcelo::Awb {
    let serial = rng.u32(..9_999_999);
    parcelo::Awb::parse(&format!("176-{serial:07}{}", serial % 7)).unwrap()
}
