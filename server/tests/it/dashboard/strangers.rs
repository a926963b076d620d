//! No one sees or touches what another account has, whatever they know of its ids and numbers; and
//! without a sign-in there is nothing to see.

use parcelo::Environment;
use parcelo_server::internals::{
    Actor, ApiKeyScope, Caller, CarrierScope, EndpointRequest, Kinds, Tenant,
};

use super::house::{House, NOW, marked};

const NUMBER: &str = "SB-SUCCESS-0001";

/// Another account with one of everything.
async fn neighbour(house: &House) -> (Caller, [&'static str; 6]) {
    house.open("neighbour").await;
    let caller = house.key_named("neighbour", Environment::Sandbox, "CanaryKey").await;
    let (order, marks) = marked(NUMBER);
    let request = EndpointRequest {
        tenant: caller.tenant(),
        url: "https://neighbour.example/CanaryHook".to_owned(),
        kinds: Kinds::default(),
        reach: parcelo_server::internals::AllowedHosts::Here,
    };
    house.service.endpoints(Actor::Server).set(request, NOW).await.unwrap();
    house.create(&caller, &order).await;
    let issued = house
        .service
        .issuer(Actor::Server)
        .issue::<CarrierScope>("CanaryCarrier".to_owned(), Environment::Sandbox, NOW)
        .await
        .unwrap();
    let carrier = house
        .service
        .authenticate_carrier(Environment::Sandbox, Some(issued.0.secret()))
        .await
        .unwrap();
    let event = serde_json::json!({ "events": [{ "eventId": "1", "trackingNumber": NUMBER,
        "status": "DELIVERED", "occurredAt": "2026-01-30T15:20:00Z", "location": "CanaryPlace" }] });
    house.service.push_carrier_events(&carrier, &event).await.unwrap();
    house.service.count_legacy_use(&caller, NOW);
    (caller, marks)
}

/// Every page there is of it.
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
async fn no_page_shows_what_another_account_has_and_the_owner_sees_it_all() {
    let house = House::new().await;
    let (caller, marks) = neighbour(&house).await;
    let (owner, stranger) = (house.member("neighbour").await, house.member("default").await);
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
        // What the stranger typed is in the link to the other language.
        let told = foreign.text().replace(&path, "");
        for canary in canaries.iter().chain(&marks) {
            assert!(!told.contains(canary), "{path}: {canary}");
        }
    }
    for canary in canaries {
        assert!(seen.contains(canary), "the owner sees {canary}");
    }
}

#[tokio::test]
async fn no_form_touches_what_another_account_has() {
    let house = House::new().await;
    let (caller, _) = neighbour(&house).await;
    let stranger = house.member("default").await;
    let tenant: Tenant = caller.tenant();
    let store = house.service.store();
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
    // With a webhook of their own, they still cannot send the neighbour's event.
    let set = [("url", "https://shop.example/hook")];
    assert_eq!(stranger.post("/dashboard/webhooks/sandbox", &set).await.status, 200);
    let replay = "/dashboard/webhooks/sandbox/replay";
    assert_eq!(stranger.post(replay, &[("event", &event)]).await.status, 404);
    assert_eq!(state().await, before);
}

#[tokio::test]
async fn nobody_sees_anything_without_signing_in() {
    let house = House::new().await;
    let (caller, _) = neighbour(&house).await;
    let mut visitor = house.visitor();
    for session in [None, Some("guess".to_owned())] {
        visitor.session = session;
        for path in pages(&caller) {
            let answer = visitor.get(&path).await;
            assert_eq!(answer.status, 303, "{path}");
            assert!(answer.header("location").starts_with("/dashboard/sign-in"), "{path}");
            assert!(answer.bytes.is_empty(), "{path}");
        }
        let posted = visitor.post_raw("/dashboard/keys", &[("name", "Shop")]).await;
        assert_eq!(posted.status, 401);
        assert!(posted.text().contains("action=\"/dashboard/sign-in\""));
    }
}

#[tokio::test]
async fn an_environments_parcel_is_not_the_others() {
    let house = House::new().await;
    let (caller, _) = neighbour(&house).await;
    let owner = house.member("neighbour").await;
    assert_eq!(caller.tenant().environment, Environment::Sandbox);
    for path in [NUMBER, "SB-SUCCESS-0001/label.png"] {
        let answer = owner.get(&format!("/dashboard/parcels/production/{path}")).await;
        assert_eq!(answer.status, 404);
    }
    assert_eq!(owner.get("/dashboard/parcels/mars/SB-SUCCESS-0001").await.status, 404);
    assert_eq!(owner.get("/dashboard/parcels/sandbox/SB-SUCCESS-0001/label.exe").await.status, 404);
}
