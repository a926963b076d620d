//! Tests of verification: published vectors, an independent implementation in both directions, and random input, which
//! must be neither accepted nor cause a panic.

use chrono::DateTime;
use http::{HeaderMap, HeaderValue};
use parcelo_types::{
    Environment, ParcelStatus,
    internal::EventKind,
    model::{EventData, MaybeKnown, WebhookEvent},
};
use proptest::prelude::*;

use super::*;

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const EVENT: &str = "evt_01JH8Z0000000000000000000A";
const SENT: i64 = 1_768_057_500;
const BODY: &str = r#"{"id":"evt_01JH8Z0000000000000000000A","event":"parcel.status_changed","environment":"sandbox","timestamp":"2026-01-10T15:05:00.000Z","data":{"trackingNumber":"SB-SUCCESS-0001","previousStatus":"LABEL_GENERATED","newStatus":"CUSTOMS_CLEARANCE","location":"Quito, EC","sequence":3}}"#;
const TAG: &str = "v1,FdHpYjN6v42rMKE/8YLu7C3ajLmVifvym09ztUFTRwE=";

type Named<'v> = (&'static str, &'v str);

fn at(seconds: i64) -> chrono::DateTime<chrono::Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn headers<'v>(timestamp: &'v str, signature: &'v str) -> [Named<'v>; 3] {
    [(ID, EVENT), (TIMESTAMP, timestamp), (SIGNATURE, signature)]
}

fn verify(headers: &[Named<'_>], now: i64) -> Result<String, WebhookError> {
    let verified = Webhook::new([SECRET])?.verify_at(headers, BODY, at(now))?;
    Ok(verified.id().to_owned())
}

#[test]
fn published_test_vectors_have_the_published_signature() {
    let table = [
        (SECRET, EVENT, SENT, BODY, TAG),
        (
            OTHER_SECRET,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
    ];
    for (secret, id, timestamp, body, signature) in table {
        let secret = Secret::parse(secret).unwrap();
        assert_eq!(secret.sign(id, timestamp, body.as_bytes()), signature);
    }
    assert_eq!(verify(&headers("1768057500", TAG), SENT).as_deref(), Ok(EVENT));
}

#[test]
fn an_independent_implementation_agrees_in_both_directions() {
    let theirs = standardwebhooks::Webhook::new(SECRET).unwrap();
    let ours = Secret::parse(SECRET).unwrap();
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
    for body in ["", "{}", BODY, "ñ\u{0}\r\n"] {
        let signature = theirs.sign(EVENT, now, body.as_bytes()).unwrap();
        assert_eq!(ours.sign(EVENT, now, body.as_bytes()), signature);
        let mut map = HeaderMap::new();
        map.insert(ID, HeaderValue::from_static(EVENT));
        map.insert(TIMESTAMP, now.into());
        map.insert(SIGNATURE, HeaderValue::from_str(&format!("v1,AAAA {signature}")).unwrap());
        theirs.verify(body.as_bytes(), &map).unwrap();
        let verified = Webhook::new([SECRET]).unwrap().verify(&map, body).unwrap().timestamp();
        assert_eq!(verified, now);
    }
}

#[test]
fn an_event_is_read_from_the_verified_body() {
    let webhook = Webhook::new([Secret::parse(SECRET).unwrap()]).unwrap();
    let verified = webhook.verify_at(&headers("1768057500", TAG)[..], BODY, at(SENT)).unwrap();
    let event = verified.event().unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), BODY, "it is written as it was read");
    assert_eq!(event.environment, Environment::Sandbox);
    let EventData::StatusChanged(change) = event.data else { panic!("{event:?}") };
    assert_eq!(change.new_status, ParcelStatus::CustomsClearance);
}

#[test]
fn unknown_kinds_are_kept_and_invalid_events_refused() {
    let event = |kind: &str, data: &str| {
        let body = format!(
            r#"{{"event":"{kind}","environment":"production","timestamp":"2026-01-10T15:05:00.000Z","new":1,"data":{data}}}"#
        );
        Verified::from_body(&body).event()
    };
    let unknown = event("parcel.lost", r#"{"where":"at sea"}"#).unwrap();
    assert_eq!(unknown.data.kind(), EventKind::Unknown("parcel.lost".into()));
    let EventData::Unknown { data, .. } = unknown.data else { panic!("it is known") };
    assert_eq!(data["where"], "at sea");
    assert_eq!(event("webhook.test", "{}").unwrap().data, EventData::Test);
    // If a receiver refused it, the service would resend it for days.
    for kind in ["parcel.voided", "parcel.status_changed", "parcel.created", "manifest.submitted"] {
        let odd = event(kind, r#"{"new":1}"#).unwrap().data;
        assert_eq!(odd.kind(), EventKind::from(kind));
        let EventData::Unknown { kind: known, data, .. } = odd else { panic!("it is known") };
        assert_eq!((&*known, &data["new"]), (kind, &1.into()));
    }
    let created = event(
        "parcel.created",
        r#"{"id":"x","trackingNumber":"EC7K2M9QX4T8WD0","status":"LOST","country":"XK"}"#,
    );
    let EventData::ParcelCreated(created) = created.unwrap().data else { panic!() };
    assert_eq!(created.country, MaybeKnown::Unknown("XK".into()));
    let elsewhere = r#"{"id":7,"event":"webhook.test","environment":"staging","timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;
    let elsewhere = Verified::from_body(elsewhere).event().unwrap();
    assert_eq!((elsewhere.environment.as_str(), elsewhere.id.unwrap().as_str()), ("staging", "7"));
    for nonsense in ["", "null", "[]", "{\"event\":1}", "\u{7f}"] {
        assert_eq!(Verified::from_body(nonsense).event(), Err(WebhookError::Body), "{nonsense}");
    }
}

#[test]
fn a_message_is_fresh_for_five_minutes_both_ways() {
    let table = [
        (SENT, Ok(())),
        (SENT + 300, Ok(())),
        (SENT - 300, Ok(())),
        (SENT + 301, Err(WebhookError::TooOld { seconds: 301 })),
        (SENT - 301, Err(WebhookError::TooNew { seconds: 301 })),
        (-8_000_000_000, Err(WebhookError::TooNew { seconds: 9_768_057_500 })),
    ];
    for (now, outcome) in table {
        assert_eq!(verify(&headers("1768057500", TAG), now).map(drop), outcome, "{now}");
    }
}

#[test]
fn during_a_rotation_both_secrets_are_accepted() {
    let old = Secret::parse(OTHER_SECRET).unwrap().sign(EVENT, SENT, BODY.as_bytes());
    let both = format!("{TAG} {old}");
    let check = |secrets: &[&str], signature: &str| {
        let webhook = Webhook::new(secrets.iter().copied()).unwrap();
        let headers = headers("1768057500", signature);
        webhook.verify_at(&headers[..], BODY, at(SENT)).map(drop)
    };
    let table: &[(&[&str], &str, bool)] = &[
        (&[SECRET], TAG, true),
        (&[SECRET], &old, false),
        (&[OTHER_SECRET], &both, true),
        (&[SECRET, OTHER_SECRET], &old, true),
        (&[SECRET, OTHER_SECRET], &both, true),
        (&[SECRET, OTHER_SECRET], "v1,AAAA v1a,BBBB", false),
    ];
    for (secrets, signature, is_accepted) in table {
        let outcome = if *is_accepted { Ok(()) } else { Err(WebhookError::Signature) };
        assert_eq!(check(secrets, signature), outcome, "{secrets:?} {signature}");
    }
}

#[test]
fn every_changed_byte_is_detected() {
    let webhook = Webhook::new([SECRET]).unwrap();
    let headers = headers("1768057500", TAG);
    for place in 0..BODY.len() {
        let mut body = BODY.as_bytes().to_vec();
        body[place] ^= 1;
        let outcome = webhook.verify_at(&headers[..], &body, at(SENT));
        assert_eq!(outcome, Err(WebhookError::Signature), "{place}");
    }
}

#[test]
fn hostile_headers_are_refused_by_name() {
    let long = "e".repeat(257);
    let table: &[(&[Named<'_>], WebhookError)] = &[
        (&[], WebhookError::HeaderMissing(ID)),
        (&[(ID, EVENT), (SIGNATURE, TAG)], WebhookError::HeaderMissing(TIMESTAMP)),
        (&[(ID, EVENT), (TIMESTAMP, "1768057500")], WebhookError::HeaderMissing(SIGNATURE)),
        (&[(ID, EVENT), ("Webhook-Id", EVENT)], WebhookError::HeaderRepeated(ID)),
        (&[(ID, "")], WebhookError::HeaderMalformed(ID)),
        (&[(ID, "evt 1")], WebhookError::HeaderMalformed(ID)),
        (&[(ID, "evt_ñ")], WebhookError::HeaderMalformed(ID)),
        (&[(ID, &long)], WebhookError::HeaderMalformed(ID)),
        (&[(ID, "evt_1.1768057500")], WebhookError::HeaderMalformed(ID)),
    ];
    for (headers, error) in table {
        assert_eq!(verify(headers, SENT), Err(*error), "{headers:?}");
    }
    let timestamps =
        ["", "-1", "+1768057500", "01768057500", " 1768057500", "1e9", "9223372036854775808", "٣"];
    for timestamp in timestamps {
        let error = Err(WebhookError::HeaderMalformed(TIMESTAMP));
        assert_eq!(verify(&headers(timestamp, TAG), SENT), error, "{timestamp}");
    }
    let far = verify(&headers("9223372036854775807", TAG), -1);
    assert_eq!(far, Err(WebhookError::TooNew { seconds: 1 << 63 }));
    let late = format!("{}{TAG}", "v1,AAAA ".repeat(16));
    for signature in ["", "v1", "v1,", "v2,x", &TAG[3..], &TAG[..40], ",", &late] {
        let error = Err(WebhookError::Signature);
        assert_eq!(verify(&headers("1768057500", signature), SENT), error, "{signature}");
    }
}

#[test]
fn a_replayed_message_is_refused_but_a_new_attempt_is_not() {
    let webhook = Webhook::new([SECRET]).unwrap().reject_replays(1_000);
    let secret = Secret::parse(SECRET).unwrap();
    let attempt = |timestamp: i64, now: i64| {
        let signature = secret.sign(EVENT, timestamp, BODY.as_bytes());
        let (sent, twice) = (timestamp.to_string(), format!("{signature} v1,AAAA"));
        let plain = webhook.verify_at(&headers(&sent, &signature)[..], BODY, at(now)).map(drop);
        (plain, webhook.verify_at(&headers(&sent, &twice)[..], BODY, at(now)).map(drop))
    };
    let once = (Ok(()), Err(WebhookError::Replayed));
    assert_eq!(attempt(SENT, SENT), once);
    assert_eq!(attempt(SENT + 5, SENT + 5), once, "a new attempt");
    let again = (Err(WebhookError::Replayed), Err(WebhookError::Replayed));
    assert_eq!(attempt(SENT, SENT + 300), again, "as long as it would be fresh");
}

#[test]
fn a_secret_has_24_to_64_bytes_and_is_never_shown() {
    let secret = Secret::parse(SECRET).unwrap();
    assert_eq!(secret.expose(), SECRET);
    let webhook = Webhook::new([secret]).unwrap();
    assert!(format!("{webhook:?}").contains("Secret(whsec_***)"), "{webhook:?}");
    for wrong in ["", "whsec_", "whsec_AAAA", &SECRET[6..], "whsec_ñ", &SECRET[..49]] {
        let error = Webhook::new([wrong]).unwrap_err();
        assert_eq!(
            error,
            WebhookError::Secret(parcelo_types::InvalidValue::WEBHOOK_SECRET),
            "{wrong}"
        );
        assert!(wrong.len() < 7 || !error.to_string().contains(wrong));
    }
    assert_eq!(Webhook::new([""; 0]).unwrap_err(), WebhookError::NoSecret);
    for (length, fits) in [(23, false), (24, true), (64, true), (65, false)] {
        assert_eq!(Secret::from_bytes(&vec![1; length]).is_ok(), fits, "{length}");
    }
}

proptest! {
    #[test]
    fn no_input_causes_a_panic_or_is_accepted(
        values in prop::collection::vec((0_usize..4, prop::collection::vec(any::<u8>(), 0..60)), 0..5),
        body in prop::collection::vec(any::<u8>(), 0..100),
        now in -8_000_000_000_000_i64..8_000_000_000_000,
    ) {
        let names = [ID, TIMESTAMP, SIGNATURE, "x"];
        let headers: Vec<_> = values.iter().map(|(name, value)| (names[*name], value)).collect();
        let webhook = Webhook::new([SECRET]).unwrap().reject_replays(3);
        prop_assert!(webhook.verify_at(&headers[..], &body, at(now)).is_err());
        let _read = serde_json::from_slice::<WebhookEvent>(&body);
    }
}
