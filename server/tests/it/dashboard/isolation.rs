//! Isolation of accounts on the dashboard. A user sees and changes nothing of another account, even with its ids and
//! tracking numbers, and a visitor who is not signed in sees nothing.

use parcelo::Environment;
use parcelo_server::internals::{
    Actor, ApiKeyScope, Caller, CarrierScope, EndpointRequest, Tenant, WebhookEventKinds,
};

use super::service::{NOW, TestService, marked_order};

const NUMBER: &str = "SB-SUCCESS-0001";

/// Creates another account that has one of everything.
async fn other_account(service: &TestService) -> (Caller, [&'static str; 6]) {
    service.set_password("neighbour").await;
    let caller = service.key_named("neighbour", Environment::Sandbox, "CanaryKey").await;
    let (order, marks) = marked_order(NUMBER);
    let request = EndpointRequest {
        tenant: caller.tenant(),
        url: "https://neighbour.example/CanaryHook".to_owned(),
        kinds: WebhookEventKinds::default(),
        allowed_hosts: parcelo_server::internals::AllowedHosts::PublicAndLoopback,
    };
    service.service.endpoints(Actor::Server).set(request, NOW).await.unwrap();
    service.create(&caller, &order).await;
    let issued = service
        .service
        .issuer(Actor::Server)
        .issue::<CarrierScope>("CanaryCarrier".to_owned(), Environment::Sandbox, NOW)
        .await
        .unwrap();
    let carrier = service
        .service
        .authenticate_carrier(Environment::Sandbox, Some(issued.0.secret()))
        .await
        .unwrap();
    let event = serde_json::json!({ "events": [{ "eventId": "1", "trackingNumber": NUMBER,
        "status": "DELIVERED", "occurredAt": "2026-01-30T15:20:00Z", "location": "CanaryPlace" }] });
    service.service.push_carrier_events(&carrier, &event).await.unwrap();
    service.service.count_legacy_use(&caller, NOW);
    (caller, marks)
}

/// Returns every page about that account's data.
fn pages(caller: &Caller) -> Vec<String> {
    let mut pages: Vec<_> = [
        "/dashboard",
        "/dashboard/keys",
        "/dashboard/webhooks/sandbox",
        "/dashboard/parcels?environment=sandbox",
        "/dashboard/exceptions",
        "/dashboard/legacy",
    ]
    .map(str::to_owned)
    .into();
    pages.push(format!("/dashboard/keys/{}/revoke", caller.key.id));
    for file in ["", "/label.png", "/label.pdf", "/label.zpl"] {
        pages.push(format!("/dashboard/parcels/sandbox/{NUMBER}{file}"));
    }
    pages
}

#[tokio::test]
async fn no_page_shows_data_of_another_account() {
    let service = TestService::new().await;
    let (caller, marks) = other_account(&service).await;
    let (owner, stranger) = (service.member("neighbour").await, service.member("default").await);
    let canaries =
        ["CanaryKey", "CanaryHook", "CanaryCarrier", "CanaryPlace", NUMBER, &caller.key.id];
    let mut seen = String::new();
    for path in pages(&caller) {
        let own = owner.get(&path).await;
        assert_eq!(own.status, 200, "{path}");
        seen.push_str(&own.text());
        let foreign = stranger.get(&path).await;
        let named = path.contains(NUMBER) || path.contains("/revoke");
        assert_eq!(foreign.status, if named { 404 } else { 200 }, "{path}");
        // The link to the other language repeats the visitor's own text.
        let text = foreign.text().replace(&path, "");
        for canary in canaries.iter().chain(&marks) {
            assert!(!text.contains(canary), "{path}: {canary}");
        }
    }
    for canary in canaries {
        assert!(seen.contains(canary), "the owner sees {canary}");
    }
}

#[tokio::test]
async fn no_form_changes_data_of_another_account() {
    let service = TestService::new().await;
    let (caller, _) = other_account(&service).await;
    let stranger = service.member("default").await;
    let tenant: Tenant = caller.tenant();
    let store = service.service.store();
    let event = format!("evt_{}", store.deliveries(tenant, 1).await.unwrap()[0].event);
    let state = async || {
        format!(
            "{:?} {:?} {:?}",
            store.credentials::<ApiKeyScope>().await.unwrap(),
            store.endpoint(tenant).await.unwrap(),
            store.deliveries(tenant, 9).await.unwrap()
        )
    };
    let before = state().await;
    let revoke = format!("/dashboard/keys/{}/revoke", caller.key.id);
    assert_eq!(stranger.post(&revoke, &[]).await.status, 404);
    for action in ["test", "enable", "disable", "rotate", "replay", "remove"] {
        let path = format!("/dashboard/webhooks/sandbox/{action}");
        assert_eq!(stranger.post(&path, &[("event", &event)]).await.status, 303, "{action}");
        let html = stranger.page("/dashboard/webhooks/sandbox").await;
        assert!(html.contains("Nothing was changed"), "{action}");
    }
    let found = stranger.post("/dashboard/parcels", &[("number", NUMBER)]).await;
    assert_eq!((found.status, found.header("location")), (400, ""));
    assert_eq!(state().await, before);
    // Even if the visitor has a webhook, the other account's event cannot be sent.
    let set = [("url", "https://shop.example/hook")];
    assert_eq!(stranger.post("/dashboard/webhooks/sandbox", &set).await.status, 200);
    let replay = "/dashboard/webhooks/sandbox/replay";
    assert_eq!(stranger.post(replay, &[("event", &event)]).await.status, 404);
    assert_eq!(state().await, before);
}

#[tokio::test]
async fn no_page_is_shown_without_signing_in() {
    let service = TestService::new().await;
    let (caller, _) = other_account(&service).await;
    let mut visitor = service.visitor();
    for session in [None, Some("guess".to_owned())] {
        visitor.session = session;
        for path in pages(&caller) {
            let response = visitor.get(&path).await;
            assert_eq!(response.status, 303, "{path}");
            assert!(response.header("location").starts_with("/dashboard/sign-in"), "{path}");
            assert!(response.bytes.is_empty(), "{path}");
        }
        let posted = visitor.post_raw("/dashboard/keys", &[("name", "Shop")]).await;
        assert_eq!(posted.status, 401);
        assert!(posted.text().contains("action=\"/dashboard/sign-in\""));
    }
}

#[tokio::test]
async fn a_parcel_is_visible_in_its_environment_only() {
    let service = TestService::new().await;
    let (caller, _) = other_account(&service).await;
    let owner = service.member("neighbour").await;
    assert_eq!(caller.tenant().environment, Environment::Sandbox);
    for path in [NUMBER, "SB-SUCCESS-0001/label.png"] {
        let response = owner.get(&format!("/dashboard/parcels/production/{path}")).await;
        assert_eq!(response.status, 404);
    }
    assert_eq!(owner.get("/dashboard/parcels/mars/SB-SUCCESS-0001").await.status, 404);
    assert_eq!(owner.get("/dashboard/parcels/sandbox/SB-SUCCESS-0001/label.exe").await.status, 404);
}
