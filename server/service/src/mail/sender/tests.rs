//! Tests of which recipients get e-mails, on a clock that only the test moves.

use std::sync::Mutex;

use futures_util::FutureExt;
use parcelo_domain::{
    Millis,
    mail::{BURST_DELAY_MILLIS, MAX_DAILY_PER_ADDRESS},
    sample,
};
use parcelo_system::clock::{Clock, ManualClock};
use parcelo_wire::CarrierOutcome;
use serde_json::json;

use super::*;
use crate::{
    mail::allow_list::AllowedRecipient,
    service::tests::{caller_in, carrier, service},
};

const RECEIVER: &str = "luis@example.org";

/// The subjects of the e-mails that were sent.
#[derive(Debug, Default)]
struct Subjects(Mutex<Vec<String>>);

impl MailTransport for Subjects {
    fn send<'a>(&'a self, mail: &'a Mail) -> BoxFuture<'a, MailOutcome> {
        self.0.lock().unwrap().push(mail.subject.clone());
        std::future::ready(MailOutcome::Sent).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// Creates a parcel that its carrier has just picked up. All of these parcels have the same receiver.
async fn create_picked_up_parcel(service: &Service, environment: Environment, number: &str) {
    let caller = caller_in(service, environment).await;
    let mut order = sample::order();
    order["idempotencyKey"] = json!(number);
    order["trackingNumber"] = json!(number);
    order["receiver"]["email"] = json!(RECEIVER);
    service.create_order(&caller, &order, None).await.unwrap();
    let event = json!({
        "eventId": number, "trackingNumber": number, "status": "PICKED_UP",
        "occurredAt": service.now().to_utc().to_rfc3339(), "location": "Quito, EC"
    });
    let events = json!({ "events": [event] });
    let pushed = service.push_carrier_events(&carrier(1, environment), &events).await.unwrap();
    assert_eq!(pushed.results[0].outcome, CarrierOutcome::Applied);
}

/// Returns the e-mails sent for one parcel in production and, in the sandbox, one more than the daily limit of an
/// address.
async fn sent_subjects(allowed: &[&str]) -> Vec<String> {
    let clock = Arc::new(ManualClock::at(Millis(1_767_600_000_000)));
    let service = Arc::new(service(&clock));
    service.enable_mails(Millis(0)).await.unwrap();
    for index in 0..=MAX_DAILY_PER_ADDRESS {
        let number = format!("SB-NORMAL-{index:04}");
        create_picked_up_parcel(&service, Environment::Sandbox, &number).await;
    }
    create_picked_up_parcel(&service, Environment::Production, "EC-NORMAL-0001").await;
    clock.set(clock.now().plus(BURST_DELAY_MILLIS));
    let subjects = Arc::new(Subjects::default());
    let allowed = allowed.iter().map(|text| AllowedRecipient::parse(text).unwrap());
    let list = SandboxRecipients::Listed(AllowList::new(allowed.collect()));
    let transport: Arc<dyn MailTransport> = subjects.clone();
    MailSender::new(Arc::clone(&service), transport, list, 4).send_due().await.unwrap();
    subjects.0.lock().unwrap().clone()
}

const PRODUCTION_SUBJECT: &str = "Su paquete está en camino: EC-NORMAL-0001";

#[tokio::test]
async fn sandbox_e_mails_do_not_use_up_productions_limit() {
    assert_eq!(sent_subjects(&[]).await, [PRODUCTION_SUBJECT]);
}

#[tokio::test]
async fn the_sandbox_and_production_have_separate_limits() {
    let sent = sent_subjects(&["@example.org"]).await;
    let is_production = |subject: &&String| *subject == PRODUCTION_SUBJECT;
    let production_mails = sent.iter().filter(is_production).count();
    let limit = usize::try_from(MAX_DAILY_PER_ADDRESS).unwrap();
    assert_eq!((sent.len() - production_mails, production_mails), (limit, 1), "{sent:?}");
}
