//! Isolation of tenants: to another account, or in the other environment, every operation responds as if the data did
//! not exist, and leaves it unchanged.

use parcelo::{ApiKey, Operation};
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, send, with},
    running::{RunningServer, TestSetup},
};

/// The account whose data must stay private.
struct Owner {
    api: Api,
    number: String,
    manifested: String,
    manifest: String,
}

/// A caller of another tenant, who uses the owner's identifiers.
struct Stranger {
    api: Api,
    /// A carrier key that does not belong to the called environment.
    carrier: String,
    /// The expected status and code for a create with the owner's tracking number.
    taken: (u16, &'static str),
}

impl Owner {
    async fn with_data(api: Api, [number, manifested]: [&str; 2]) -> Self {
        for number in [number, manifested] {
            let order = with(order(&format!("order-{number}")), "/trackingNumber", json!(number));
            api.create_parcel(&order).await;
        }
        let body = json!({ "idempotencyKey": "man-0001", "awbNumber": "176-12345675", "trackingNumbers": [manifested] });
        let manifest = api.post(Operation::SubmitManifest.path(), &body).await.json();
        let manifest = manifest["data"]["manifestId"].as_str().unwrap().to_owned();
        Self { api, number: number.to_owned(), manifested: manifested.to_owned(), manifest }
    }

    /// Returns the responses to all reads, without their request ids.
    async fn read_all(&self) -> Vec<Value> {
        let mut paths = vec![
            Operation::ListParcels.path().to_owned(),
            Operation::GetManifest.path_of(&self.manifest),
        ];
        for number in [&self.number, &self.manifested] {
            paths.push(Operation::GetTracking.path_of(number) + "?includeHistory=true");
            paths.push(Operation::GetLabel.path_of(number));
        }
        let mut view = Vec::new();
        for path in paths {
            let response = self.api.get(&path).await;
            assert_eq!(response.status, 200, "{path}: {}", response.text());
            let mut body = response.json();
            body.as_object_mut().unwrap().remove("meta");
            view.push(body);
        }
        view
    }
}

/// Returns the status of a response, and its error code or that of its first item.
fn status_and_code(response: &HttpResponse) -> (u16, String) {
    let body = response.json();
    let pointers = [
        "/error/details/errors/0/code",
        "/error/code",
        "/error",
        "/data/results/0/error/code",
        "/tracking/0/error",
    ];
    let code = pointers.into_iter().find_map(|pointer| body.pointer(pointer)?.as_str());
    (response.status, code.unwrap_or("nothing").to_owned())
}

/// Calls an operation as the stranger, with the owner's identifiers.
async fn call_operation(operation: Operation, stranger: &Stranger, owner: &Owner) -> (u16, String) {
    let (api, path, number) = (&stranger.api, operation.path(), &owner.number);
    let of = |parameter: &str| operation.path_of(parameter);
    let keyed = |body: Value| {
        with(body, "/idempotencyKey", json!(format!("stranger-{}", operation.name())))
    };
    let response = match operation {
        Operation::CreateOrder => {
            api.create(&with(keyed(order("")), "/trackingNumber", json!(number))).await
        }
        Operation::VoidOrders => {
            api.post(path, &keyed(json!({ "trackingNumbers": [number] }))).await
        }
        Operation::SubmitManifest => {
            let body = json!({ "awbNumber": "176-12345675", "trackingNumbers": [number] });
            api.post(path, &keyed(body)).await
        }
        Operation::BatchTracking | Operation::BatchLabels => {
            api.post(path, &json!({ "trackingNumbers": [number] })).await
        }
        Operation::ReprintLabel => api.post(&of(number), &keyed(json!({}))).await,
        Operation::GetManifest => api.get(&of(&owner.manifest)).await,
        Operation::GetTracking
        | Operation::GetLabel
        | Operation::DownloadLabel
        | Operation::GetOrder
        | Operation::DownloadInvoice => api.get(&of(number)).await,
        Operation::PushCarrierEvents => {
            let event = json!({ "eventId": "e-1", "trackingNumber": number, "status": "IN_TRANSIT",
                "occurredAt": "2026-01-05T08:00:00Z", "location": "Quito, EC" });
            let request = api.request("POST", path).header("x-carrier-key", &stranger.carrier);
            let request = request.header("content-type", "application/json");
            send(request.body(json!({ "events": [event] }).to_string())).await
        }
        Operation::LegacyCreateOrder => {
            let body = json!({ "tracking_number": number, "reference": "PO-1", "sender_name": "Ana Ruiz",
                "sender_phone": "+13055550100", "sender_address": "8400 NW 25th St", "sender_city": "Miami",
                "sender_country": "US", "receiver_name": "Luis Paredes", "receiver_phone": "+593991234567",
                "receiver_document": "1714307103", "receiver_address": "Av. Amazonas", "receiver_city": "Quito",
                "receiver_province": "Pichincha", "receiver_zip": "170515", "receiver_country": "EC",
                "weight_kg": 1, "value": 5 });
            api.post(path, &body).await
        }
        Operation::LegacyCancelOrder => send(api.request("POST", &of(number))).await,
        Operation::LegacyTracking => api.get(&format!("{path}?number={number}")).await,
        Operation::LegacyLabel => api.get(&of(&format!("{number}.pdf"))).await,
        Operation::Health
        | Operation::ListParcels
        | Operation::PublicTracking
        | Operation::ResetSandbox => {
            unreachable!("{operation:?} names no one's data, or is public")
        }
        _ => panic!("{operation:?} is not covered: add the expected response to a stranger"),
    };
    status_and_code(&response)
}

/// Returns the expected status and code for a stranger.
fn expected_response(operation: Operation, stranger: &Stranger) -> Option<(u16, &'static str)> {
    Some(match operation {
        // The legacy error format has no code for each field.
        Operation::LegacyCreateOrder if stranger.taken.0 == 400 => (400, "VALIDATION_FAILED"),
        Operation::CreateOrder | Operation::LegacyCreateOrder => stranger.taken,
        Operation::SubmitManifest | Operation::BatchLabels => (409, "PARCEL_NOT_FOUND"),
        Operation::BatchTracking | Operation::LegacyTracking => (200, "PARCEL_NOT_FOUND"),
        Operation::GetManifest => (404, "MANIFEST_NOT_FOUND"),
        Operation::PushCarrierEvents => (401, "CARRIER_AUTH_FAILED"),
        Operation::Health
        | Operation::ListParcels
        | Operation::PublicTracking
        | Operation::ResetSandbox => return None,
        _ => (404, "PARCEL_NOT_FOUND"),
    })
}

async fn try_every_operation(stranger: &Stranger, owner: &Owner) {
    let before = owner.read_all().await;
    for operation in Operation::ALL {
        if let Some((status, code)) = expected_response(*operation, stranger) {
            let answered = call_operation(*operation, stranger, owner).await;
            assert_eq!(answered, (status, code.to_owned()), "{operation:?}");
        }
    }
    // For a stranger, the owner's keys and air waybills have no meaning.
    let own = stranger.api.create_parcel(&order(&format!("order-{}", owner.number))).await;
    let body = json!({ "idempotencyKey": "man-0001", "awbNumber": "176-12345675", "trackingNumbers": [own] });
    assert_eq!(stranger.api.post(Operation::SubmitManifest.path(), &body).await.status, 201);
    let listed = stranger.api.get(Operation::ListParcels.path()).await.json();
    assert_eq!(listed["meta"]["total"], 1);
    assert_eq!(listed["data"][0]["trackingNumber"], own);
    let number = &owner.number;
    for query in
        [format!("search={number}"), format!("reference={number}"), "search=176".to_owned()]
    {
        let found = stranger.api.get(&format!("{}?{query}", Operation::ListParcels.path())).await;
        assert!(!found.text().contains(number.as_str()), "{query}: {}", found.text());
    }
    assert_eq!(owner.read_all().await, before);
}

struct TestServers {
    setup: TestSetup,
    running: RunningServer,
}

impl TestServers {
    fn new() -> Self {
        let setup = TestSetup::new();
        let running =
            setup.start(&["--sandbox-rate-limit", "10000", "--production-rate-limit", "10000"]);
        Self { setup, running }
    }

    fn api(&self, environment: &str, account: &str) -> Api {
        let key = self.new_key(environment, account);
        Api::with_key(self.running.url(environment), &key)
    }

    fn new_key(&self, environment: &str, account: &str) -> ApiKey {
        self.setup.new_key_with(environment, &["--account", account]).1
    }

    fn create_carrier_key(&self, environment: &str) -> String {
        let created = self
            .setup
            .admin("carriers", &["create", "--environment", environment, "--name", "Andes"]);
        created["key"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn another_account_sees_and_changes_nothing() {
    let servers = TestServers::new();
    let table = [
        ("sandbox", "production", ["SB-OWNED-0001", "SB-OWNED-0002"]),
        ("production", "sandbox", ["EC-OWNED-0001", "EC-OWNED-0002"]),
    ];
    for (environment, other, numbers) in table {
        let owner = Owner::with_data(servers.api(environment, "owner"), numbers).await;
        let stranger = Stranger {
            api: servers.api(environment, "stranger"),
            carrier: servers.create_carrier_key(other),
            taken: (409, "PARCEL_DUPLICATE_TRACKING"),
        };
        try_every_operation(&stranger, &owner).await;
        let before = owner.read_all().await;
        let reset = stranger.api.post(Operation::ResetSandbox.path(), &json!({})).await;
        let status = if environment == "sandbox" { 200 } else { 403 };
        assert_eq!(reset.status, status, "{}", reset.text());
        assert_eq!(owner.read_all().await, before, "a reset is of one account's sandbox");
    }
}

#[tokio::test]
async fn the_other_environment_sees_and_changes_nothing() {
    let servers = TestServers::new();
    let table = [
        ("sandbox", "production", ["SB-OWNED-0001", "SB-OWNED-0002"]),
        ("production", "sandbox", ["EC-OWNED-0001", "EC-OWNED-0002"]),
    ];
    for (environment, other, numbers) in table {
        // Each round has accounts of its own, because a round leaves data in both environments.
        let account = format!("owner of {environment}");
        let owner = Owner::with_data(servers.api(environment, &account), numbers).await;
        let stranger = Stranger {
            api: servers.api(other, &account),
            carrier: servers.create_carrier_key(environment),
            taken: (400, "NOT_SUPPORTED"),
        };
        try_every_operation(&stranger, &owner).await;
        let seen = stranger.api.get(&Operation::PublicTracking.path_of(&owner.number)).await;
        assert_eq!(seen.refusal(), (404, "PARCEL_NOT_FOUND"));
        // A key is invalid at the address of the other environment.
        let key = servers.new_key(environment, &account);
        let misled = Api::with_key(servers.running.url(other), &key);
        for operation in
            Operation::ALL.iter().filter(|one| one.auth() == parcelo_types::internal::Auth::ApiKey)
        {
            let request =
                misled.request(operation.method().as_str(), &operation.path_of("SB-OWNED-0001"));
            let refused = send(request).await;
            assert_eq!(refused.status, 401, "{operation:?}");
            assert!(refused.text().contains("AUTH_INVALID_API_KEY"), "{operation:?}");
        }
        let label = owner.api.get(&Operation::GetLabel.path_of(&owner.number)).await.json();
        let link = label["data"]["labelUrl"].as_str().unwrap();
        let there = link.replace(servers.running.url(environment), servers.running.url(other));
        assert_eq!(Api::new("").get(link).await.status, 200);
        assert_eq!(Api::new("").get(&there).await.status, 404, "it opens nothing elsewhere");
    }
}
