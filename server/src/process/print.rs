//! The process's words to people: the only place of the server that prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where the process speaks")]

use std::io::{self, IsTerminal};

use parcelo::{AdminToken, ApiKey, CarrierKey, header, model::time, webhook::Secret};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use super::Failure;
use crate::{
    core::{
        AccountRecord, CarrierKeyRecord, keys::KeyRecord, legacy::Uses, sample, to_body,
        tokens::TokenRecord, webhooks::Logged,
    },
    ids::named,
};

/// Logs go to stderr: text for people at a terminal, JSON for machines.
pub(super) fn log() {
    let filter = EnvFilter::try_from_env("PARCELO_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // A second subscriber in one process cannot be set; the first one goes on.
    let _ = if io::stderr().is_terminal() { logs.try_init() } else { logs.json().try_init() };
}

pub(super) fn failure(failure: &Failure) {
    eprintln!("parcelo-server: {failure}");
}

pub(super) fn listening(addresses: &[(&str, String)]) {
    for (what, url) in addresses {
        println!("{what:<12}{url}");
    }
}

/// The first key of a new database, and a call that works with it as it stands.
pub(super) fn first_key(key: &ApiKey, sandbox: Option<&str>) {
    println!("\nThis is a new database. Its first sandbox key, shown this once only:\n");
    println!("  {}\n", key.secret());
    if let Some(url) = sandbox {
        println!("Create a first order with it:\n");
        let path = parcelo::Operation::CreateOrder.path();
        println!("  curl -s {url}{path} -H '{}: {}' \\", header::API_KEY, key.secret());
        println!("    -H 'content-type: application/json' -d '{}'", sample::ORDER);
    }
}

/// The first password of the dashboard, and where it is.
pub(super) fn first_password(account: &str, password: &str, admin: Option<&str>) {
    let place = admin.map_or_else(String::new, |url| format!(" at {url}/dashboard"));
    println!(
        "\nThe dashboard{place}: account {account}, with this password, shown this once only:\n"
    );
    println!("  {password}\n");
    println!("`parcelo-server accounts password {account}` sets another one.");
}

/// Asks twice, so that nobody is locked out by a slip; none when the two are different.
pub(super) fn ask_password() -> io::Result<Option<String>> {
    let password = rpassword::prompt_password("New password: ")?;
    let again = rpassword::prompt_password("The same again: ")?;
    Ok((password == again).then_some(password))
}

pub(super) fn password_set(account: &str) {
    println!("{account} signs in to the dashboard with the new password; its sessions have ended.");
}

pub(super) fn json(value: &impl Serialize) {
    println!("{}", String::from_utf8_lossy(&to_body(value)));
}

pub(super) fn new_key(key: &ApiKey, record: &KeyRecord) {
    println!("{}", key.secret());
    eprintln!("{} \"{}\": keep the key above, it is shown this once only.", record.id, record.name);
}

pub(super) fn keys(records: &[KeyRecord]) {
    if records.is_empty() {
        eprintln!("There are no keys; `parcelo-server keys create` makes one.");
    }
    for record in records {
        let state = if record.revoked_at.is_some() { "revoked" } else { "active" };
        let countries = record.countries.to_wire().join(",");
        let (environment, account) = (record.tenant.environment.code(), &record.account);
        println!(
            "{}  {}…{}  {state:<8} {environment:<11} {countries:<11} {account}  {}",
            record.id,
            record.tenant.environment.key_prefix(),
            record.last4,
            record.name
        );
    }
}

pub(super) fn revoked(id: &str, name: &str) {
    println!("{id} \"{name}\" is revoked.");
}

pub(super) fn new_carrier_key(key: &CarrierKey, record: &CarrierKeyRecord) {
    println!("{}", key.secret());
    eprintln!("{} \"{}\": keep the key above, it is shown this once only.", record.id, record.name);
}

pub(super) fn carrier_keys(records: &[CarrierKeyRecord]) {
    if records.is_empty() {
        eprintln!("There are no carrier keys; `parcelo-server carriers create` makes one.");
    }
    for record in records {
        let state = if record.revoked_at.is_some() { "revoked" } else { "active" };
        let (environment, last4) = (record.environment, &record.last4);
        let prefix = CarrierKey::prefix(environment);
        println!("{}  {prefix}…{last4}  {state:<8}{environment:<11}{}", record.id, record.name);
    }
}

/// The first admin token of a new database, and a call that works with it as it stands.
pub(super) fn first_token(token: &AdminToken, admin: Option<&str>) {
    println!("\nIts first admin token, shown this once only:\n");
    println!("  {}\n", token.secret());
    if let Some(url) = admin {
        println!("List the keys with it:\n");
        println!("  curl -s {url}/admin/v1/keys -H 'Authorization: Bearer {}'", token.secret());
    }
}

pub(super) fn new_token(token: &AdminToken, record: &TokenRecord) {
    println!("{}", token.secret());
    eprintln!(
        "{} \"{}\": keep the token above, it is shown this once only.",
        record.id, record.name
    );
}

pub(super) fn tokens(records: &[TokenRecord]) {
    if records.is_empty() {
        eprintln!("There are no admin tokens; `parcelo-server tokens create` makes one.");
    }
    for record in records {
        let state = if record.revoked_at.is_some() { "revoked" } else { "active" };
        println!("{}  adm_…{}  {state:<8}{}", record.id, record.last4, record.name);
    }
}

pub(super) fn accounts(records: &[AccountRecord]) {
    if records.is_empty() {
        eprintln!("There are no accounts; `parcelo-server accounts create NAME` makes one.");
    }
    for record in records {
        println!("{}  {}", record.id, record.name);
    }
}

pub(super) fn backed_up(file: &str, bytes: u64) {
    println!("{file}: {bytes} bytes. It holds the secrets of keys and webhooks: keep it as safe.");
}

pub(super) fn webhook_secret(secret: &Secret) {
    println!("{}", secret.expose());
    eprintln!(
        "Verify webhooks with the secret above, and keep it where only the receiver reads it."
    );
}

/// The members of an object, one a line.
pub(super) fn members(value: &impl Serialize) {
    let value = serde_json::to_value(value).unwrap_or_default();
    for (name, value) in value.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(text) => println!("{name:<16}{text}"),
            None => println!("{name:<16}{value}"),
        }
    }
}

pub(super) fn deliveries(logged: &[Logged]) {
    if logged.is_empty() {
        eprintln!("There are no events yet.");
    }
    for event in logged {
        let (id, kind) = (named("evt", event.event), event.kind.to_wire());
        let number = event.tracking_number.as_deref().unwrap_or("-");
        println!("{id}  {:<9}  {kind}  {number}", event.standing.code());
        for attempt in &event.attempts {
            let at = time::to_text(attempt.at.to_utc());
            let status = attempt.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            let error = attempt.error.as_deref().unwrap_or_default();
            println!(
                "    {:>2}  {at}  {status:>3}  {} ms  {error}",
                attempt.number, attempt.millis
            );
        }
    }
}

pub(super) fn legacy_uses(uses: &[Uses]) {
    if uses.is_empty() {
        eprintln!("No key has used the legacy API.");
    }
    for Uses { key_id, name, day, requests } in uses {
        println!("{day}  {requests:>8}  {key_id}  {name}");
    }
}

/// Where the mock server is, in the form that a shell takes; a suite's own output comes after it.
pub(super) fn mock(url: &str, key: &ApiKey) {
    println!("PARCELO_BASE_URL={url}");
    println!("PARCELO_API_KEY={}", key.secret());
}
