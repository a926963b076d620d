//! GET /api/v1/parcels.

use std::time::Duration;

use parcelo_server::mock::MockServer;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send, with},
    embedded::start_with_key,
};

const LIST: &str = "/api/v1/parcels";

async fn advance_a_minute(server: &MockServer) {
    server.clock().advance(Duration::from_secs(60)).await;
}

async fn list(api: &Api, query: &str) -> HttpResponse {
    api.get(&format!("{LIST}{query}")).await
}

/// Returns `page/limit/total/totalPages` and the tracking numbers of a page.
async fn page(api: &Api, query: &str) -> (String, Vec<String>) {
    let response = list(api, query).await;
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    let body = response.json();
    let meta = &body["meta"];
    assert_eq!(body["success"], true);
    assert_eq!(meta["requestId"], response.header("x-request-id"));
    let counts = ["page", "limit", "total", "totalPages"].map(|name| meta[name].to_string());
    let numbers = body["data"].as_array().unwrap().iter().map(|item| &item["trackingNumber"]);
    (counts.join("/"), numbers.map(|number| number.as_str().unwrap().to_owned()).collect())
}

async fn numbers(api: &Api, query: &str) -> Vec<String> {
    page(api, query).await.1
}

#[tokio::test]
async fn an_item_has_everything_but_personal_data() {
    let (server, api) = start_with_key().await;
    let order = with(
        order_with_number("order-0001", "SB-SUCCESS-0001"),
        "/externalOrderId",
        json!("SHOP-1"),
    );
    let created = api.create(&with(order, "/customerReference", json!("PO 7"))).await.json();
    server.clock().advance(Duration::from_secs(300)).await;
    let response = list(&api, "").await;
    let expected = json!({
        "id": created["parcel"]["id"], "trackingNumber": "SB-SUCCESS-0001",
        "status": "CUSTOMS_CLEARANCE", "statusName": "In customs clearance",
        "externalOrderId": "SHOP-1", "customerReference": "PO 7", "destinationCountry": "EC",
        "labelUrl": created["parcel"]["labelUrl"], "manifestId": null, "awbNumber": null,
        "arrival": { "kind": "EXPECTED", "date": "2026-01-13" },
        "createdAt": "2026-01-05T08:00:00.000Z", "updatedAt": "2026-01-05T08:05:00.000Z"
    });
    assert_eq!(response.json()["data"], json!([expected]));
    for personal in ["Ana Ruiz", "Muñoz", "Amazonas", "1714307103", "+593"] {
        assert!(!response.text().contains(personal), "{personal}");
    }
    let spanish = send(api.request("GET", LIST).header("Accept-Language", "es")).await.json();
    assert_eq!(spanish["data"][0]["statusName"], "En trámite aduanero");
}

#[tokio::test]
async fn pages_are_newest_first_and_have_each_parcel_once() {
    let (server, api) = start_with_key().await;
    assert_eq!(page(&api, "").await, ("1/20/0/0".to_owned(), vec![]));
    let mut created = Vec::new();
    for index in 0..45 {
        created.push(api.create_parcel(&order(&format!("order-{index:04}"))).await);
        if index % 3 == 0 {
            advance_a_minute(&server).await;
        }
    }
    created.reverse();
    assert_eq!(page(&api, "").await, ("1/20/45/3".to_owned(), created[..20].to_vec()));
    assert_eq!(page(&api, "?page=3").await, ("3/20/45/3".to_owned(), created[40..].to_vec()));
    assert_eq!(page(&api, "?page=4").await, ("4/20/45/3".to_owned(), vec![]));
    assert_eq!(page(&api, "?page=4294967295").await.0, "4294967295/20/45/3");
    assert_eq!(page(&api, "?limit=45").await, ("1/45/45/1".to_owned(), created.clone()));
    assert_eq!(page(&api, "?limit=100&page=1").await.0, "1/100/45/1");
    let last = ("45/1/45/45".to_owned(), created[44..].to_vec());
    assert_eq!(page(&api, "?limit=1&page=45").await, last);
}

#[tokio::test]
async fn an_invalid_page_is_refused_and_never_clamped() {
    let (_server, api) = start_with_key().await;
    let query = "?createdFrom=x&page=0&limit=101&status=x&country=x&createdTo=%00&externalOrderId=";
    let faults = [
        "page OUT_OF_RANGE",
        "limit OUT_OF_RANGE",
        "status UNKNOWN_VALUE",
        "country UNKNOWN_VALUE",
        "externalOrderId TOO_SHORT",
        "createdFrom INVALID_FORMAT",
        "createdTo INVALID_FORMAT",
    ];
    assert_eq!(list(&api, query).await.faults(), faults);
}

#[tokio::test]
async fn filters_narrow_the_list_and_its_total() {
    let (server, api) = start_with_key().await;
    let to_japan = |key| {
        let mut order = order(key);
        order["receiver"]["address"] =
            json!({ "line1": "1-1", "city": "Tokyo", "zipCode": "100-0001", "country": "JP" });
        order
    };
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    advance_a_minute(&server).await;
    let shop = |order: Value, id: &str| with(order, "/externalOrderId", json!(id));
    api.create_parcel(&shop(order_with_number("order-0002", "SB-SECOND-0002"), "SHOP-1")).await;
    advance_a_minute(&server).await;
    api.create_parcel(&shop(
        with(to_japan("order-0003"), "/trackingNumber", json!("SB-THIRD-0003")),
        "shop-1",
    ))
    .await;
    server.clock().advance(Duration::from_secs(180)).await;
    let (first, second, third) = ("SB-SUCCESS-0001", "SB-SECOND-0002", "SB-THIRD-0003");
    let table: [(&str, &[&str]); 13] = [
        ("?unknown=1", &[third, second, first]),
        ("?status=LABEL_GENERATED", &[third, second]),
        ("?status=CUSTOMS_CLEARANCE", &[first]),
        ("?status=VOIDED", &[]),
        ("?country=JP", &[third]),
        ("?country=EC&status=LABEL_GENERATED", &[second]),
        ("?externalOrderId=SHOP-1", &[second]),
        ("?externalOrderId=SHOP-1&country=JP", &[]),
        ("?externalOrderId=%25", &[]),
        ("?createdFrom=2026-01-05T08:01:00Z", &[third, second]),
        ("?createdTo=2026-01-05T08:01:00Z", &[first]),
        ("?createdFrom=2026-01-05T03:01:00-05:00&createdTo=2026-01-05T08:01:00.001Z", &[second]),
        ("?createdFrom=2026-01-06", &[]),
    ];
    for (query, expected) in table {
        let (meta, numbers) = page(&api, query).await;
        assert_eq!(numbers, expected, "{query}");
        let pages = usize::from(!expected.is_empty());
        assert_eq!(meta, format!("1/20/{}/{pages}", expected.len()), "{query}");
    }
    let second_page = page(&api, "?status=LABEL_GENERATED&limit=1&page=2").await;
    assert_eq!(second_page, ("2/1/2/2".to_owned(), vec![second.to_owned()]));
}

#[tokio::test]
async fn a_search_finds_parts_of_numbers_references_and_names() {
    let (server, api) = start_with_key().await;
    let named = |key, number, [reference, name]: [&str; 2]| {
        let order = with(order_with_number(key, number), "/customerReference", json!(reference));
        with(order, "/receiver/fullName", json!(name))
    };
    let (first, second) = ("SB-SUCCESS-0001", "SB-SECOND-0002");
    api.create_parcel(&named("order-0001", first, ["PO 4711", "María Núñez"])).await;
    advance_a_minute(&server).await;
    api.create_parcel(&named("order-0002", second, ["PO 9902", "Zoë Straße"])).await;
    let table: [(&str, &[&str]); 11] = [
        ("?search=nunez", &[first]),
        ("?search=N%C3%9A%C3%91EZ+maria", &[first]),
        ("?search=0002", &[second]),
        ("?search=sb-s", &[second, first]),
        ("?search=sb-s&limit=1&page=2", &[first]),
        ("?search=po+4711", &[first]),
        ("?search=002", &[]),
        ("?reference=PO-99", &[second]),
        ("?reference=maria", &[]),
        ("?search=maria&reference=9902", &[]),
        ("?search=maria&status=VOIDED", &[]),
    ];
    for (query, expected) in table {
        assert_eq!(numbers(&api, query).await, expected, "{query}");
    }
    let response = list(&api, "?search=nunez").await;
    let text = response.text();
    assert!(!text.contains("Nuñez") && !text.contains("Núñez"), "nothing personal");
    assert!(response.json()["meta"].get("isPartial").is_none(), "the result is complete");
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    assert_eq!(numbers(&other, "?search=sb-s").await, [""; 0]);
}

#[tokio::test]
async fn punctuation_is_refused_and_hostile_text_finds_nothing() {
    let (_server, api) = start_with_key().await;
    for name in ["search", "reference"] {
        let response = list(&api, &format!("?{name}=%25_%5C")).await;
        assert_eq!(response.faults(), [format!("{name} TOO_SHORT")]);
    }
    for hostile in ["'%3B+DROP+TABLE+parcels--", "%25a", "%F4%8F%BF%BFa", "%FF%FEa", "%E0%A4%BEa"] {
        assert_eq!(numbers(&api, &format!("?search={hostile}")).await, [""; 0], "{hostile}");
    }
}

#[tokio::test]
async fn a_list_has_the_parcels_of_one_tenant_only() {
    let (server, api) = start_with_key().await;
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    let mine = api.create_parcel(&order("order-0001")).await;
    let theirs = other.create_parcel(&order("order-0001")).await;
    let sibling = Api::with_key(server.url(), &server.key().issue());
    assert_eq!(numbers(&api, "").await, std::slice::from_ref(&mine));
    assert_eq!(numbers(&sibling, "").await, [mine]);
    assert_eq!(page(&other, "").await, ("1/20/1/1".to_owned(), vec![theirs.clone()]));
    assert_eq!(numbers(&other, "?country=EC").await, [theirs]);
}
