//! Explains every statement that the tests of this engine send, on tables as large as in production, and checks that
//! none reads a growing table from end to end or parses a list for each row. Also checks that the tests send every
//! statement of this engine.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tokio_postgres::Client;

use crate::postgres::test_util::cluster::{client, database};
use crate::postgres::test_util::statements::STATEMENTS_FILE;
use crate::{Store, tests::conformance::SECRET};

/// Tests that are skipped in the run that collects statements: this one, and tests of connections, which take long and
/// send the same statements as others.
const SKIPPED_TESTS: [&str; 6] = [
    "no_statement_reads_a_growing_table_from_end_to_end",
    "tests::cuts",
    "tests::dropped",
    "tests::encrypted",
    "tests::pooler",
    "tests::snapshots",
];

/// Tables that do not grow with parcels and deliveries: reading one as a whole is cheap, and often intended.
const SMALL_TABLES: [&str; 30] = [
    "accounts",
    "admin_tokens",
    "api_key_old_secrets",
    "api_keys",
    "carrier_keys",
    "carriers",
    // Written and deleted by servers of the previous version, beside which this one may run.
    "dashboard_flashes",
    "dashboard_passwords",
    // One row for a reset, deleted within minutes.
    "ended_generations",
    // One row for a sandbox.
    "generations",
    "key_uses",
    "legacy_uses",
    "lease_numbers",
    // One row for each failure within an hour, and for each network that signed in.
    "login_failures",
    "login_networks",
    "mail_since",
    // One row for an account.
    "mails_off",
    "meta",
    // Unsent events.
    "outbox_undone",
    // Changes that were not merged in the last second.
    "parcel_count_changes",
    // Servers, and keys of this second.
    "rate_limit_servers",
    "rate_limit_windows",
    "schema_migrations",
    "shops",
    // Parcels that are in no run yet; some dozens of runs; a single row.
    "term_queue",
    "term_runs",
    "term_sweep",
    "webhook_endpoints",
    "webhook_old_secrets",
    "webhook_successes",
];

/// Beginnings of statements that are intended to read a table as a whole.
const INTENDED_FULL_SCANS: [&str; 2] = [
    // The keys of all parcels, which only test servers read.
    "SELECT tenant, public_id, number, created_at, state, order_json",
    // A test damages parcels with it.
    "UPDATE parcels SET country = '?' WHERE number LIKE ",
];

/// Inserts 300,000 parcels of 300 tenants, and rows that belong to some of them.
const INSERT_SAMPLE_ROWS: &str = "
INSERT INTO parcels (id, version, tenant, created_at, updated_at, step_due, promised_day,
  label_version, last_sequence, environment, state, step_index, country, number, public_id, origin,
  destination, external_order_id)
SELECT 1000000 + g, 1, g % 300, 1760000000000 + g * 20000::bigint, 1760000000000 + g * 20000::bigint,
  CASE WHEN g % 100 = 1 THEN 1760000000000 + g * 20000::bigint END, 20000, 1, 3, g % 2, 1 + g % 8, 0,
  (ARRAY['EC', 'CO', 'PE', 'MX'])[1 + g % 4], 'EC' || upper(substr(md5(g::text), 1, 13)),
  decode(md5(g::text), 'hex'), 'Miami, US', 'Quito, EC', CASE WHEN g % 2 = 1 THEN 'order-' || g END
FROM generate_series(1, 300000) AS g;
INSERT INTO orders (parcel, order_json) SELECT id, '{\"customerReference\": \"a\"}' FROM parcels;
INSERT INTO term_runs (level, first, last, is_live, target)
SELECT g % 3, g * 7000, g * 7000 + 6999, g % 10 > 1, CASE WHEN g % 10 = 0 THEN g + 2 END FROM generate_series(1, 45) AS g;
INSERT INTO term_pieces (run, first, entries)
SELECT 1 + g % 45, decode(md5(g::text), 'hex'), decode(repeat(md5(g::text), 20), 'hex') FROM generate_series(1, 60000) AS g;
DELETE FROM term_queue WHERE parcel % 2000 > 0;
INSERT INTO events (parcel, sequence, state, at, location)
SELECT id, 3, 3, created_at, 'Miami, US' FROM parcels WHERE id % 3 = 0;
INSERT INTO parcel_counts (tenant, day, state, country, total)
SELECT tenant, created_at / 86400000, state, country, count(*) FROM parcels GROUP BY 1, 2, 3, 4;
INSERT INTO parcel_count_changes (tenant, day, state, country, difference)
SELECT g % 300, 20000, 2, 'EC', 1 FROM generate_series(1, 2000) AS g;
INSERT INTO idempotency (key, tenant, first_seen, fingerprint, body)
SELECT public_id, tenant, created_at, public_id, public_id FROM parcels WHERE id % 3 = 0;
INSERT INTO manifests (tenant, awb, public_id, submitted_at, document)
SELECT tenant, id::text, public_id, created_at, '{}' FROM parcels WHERE id % 10 = 0;
INSERT INTO manifest_parcels (parcel, manifest, label_version)
SELECT p.id, m.id, 1 FROM parcels AS p JOIN manifests AS m ON m.awb = ((p.id / 10) * 10)::text
WHERE p.id % 3 = 0;
INSERT INTO carriers (environment, name) VALUES (0, 'A'), (1, 'A'), (0, 'B'), (1, 'B');
INSERT INTO carrier_events (carrier, event_id, parcel, sequence)
SELECT 1 + id % 4, id::text, id, 3 FROM parcels WHERE id % 3 = 0;
INSERT INTO carrier_exceptions (tenant, carrier, event_id, parcel, from_state, state, at, location, refused_at)
SELECT tenant, 1 + id % 4, id::text, id, 3, 4, created_at, 'Miami, US', created_at FROM parcels
WHERE id % 10 = 0;
INSERT INTO outbox (tenant, event_id, parcel, sequence, happened_at, created_at, due, after_lease,
  kind, state)
SELECT tenant, public_id, id, 2, created_at, created_at,
  CASE WHEN id % 50 = 1 THEN created_at END, 1, 1,
  CASE WHEN id % 50 = 1 THEN 1 WHEN id % 50 = 2 THEN 0 WHEN id % 500 = 3 THEN 3
  WHEN id % 500 = 4 THEN 4 ELSE 2 END FROM parcels
WHERE id % 3 > 0;
INSERT INTO webhook_attempts (outbox, number, at, millis, status)
SELECT id, 1, created_at, 9, 200 FROM outbox WHERE state IN (2, 3) AND id % 2 = 0;
INSERT INTO webhook_endpoints (tenant, url, kinds, secret, enabled, created_at)
SELECT g, 'https://example.com', 255, '\\x00', true, 0 FROM generate_series(0, 299) AS g;
INSERT INTO generations SELECT g, g FROM generate_series(1, 299, 2) AS g;
INSERT INTO audit_log (at, account, actor, action, subject)
SELECT created_at, tenant / 2, 'session', 'shop.set', '' FROM parcels WHERE id % 3 = 0;
INSERT INTO dashboard_sessions (hash, account, ends_at)
SELECT public_id, tenant / 2, created_at FROM parcels WHERE id % 10 = 0;
INSERT INTO mails (parcel, sequence, recipient, kind, created_at, due, status)
SELECT id, 3, 0, id % 6, created_at, CASE WHEN id % 1000 = 0 THEN created_at END, CASE WHEN id % 1000 = 0 THEN 0 ELSE 1 END
FROM parcels WHERE id % 5 = 0;
INSERT INTO mail_optouts (address, why, at) SELECT public_id, 0, created_at FROM parcels WHERE id % 50 = 0;
INSERT INTO mail_counts (whose, since, mails) SELECT public_id, created_at, 1 FROM parcels WHERE id % 5 = 0;
ANALYZE;
";

/// Returns the statements that this engine's tests send. They are read from the file that an earlier run of all tests
/// has written, as in CI. Without that file, the tests run once more in separate processes.
fn read_sent_statements() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let existing = env::var_os(STATEMENTS_FILE).map(PathBuf::from);
    let file = existing.unwrap_or_else(|| run_tests(folder.path().join("statements")));
    let all = fs::read_to_string(file).unwrap();
    all.split('\0').filter(|sql| reads_or_writes_rows(sql)).map(str::to_owned).collect()
}

/// Runs this engine's tests, including those of the service, and returns the file to which they wrote their statements.
fn run_tests(file: PathBuf) -> PathBuf {
    let mut store = Command::new(env::current_exe().unwrap());
    store.arg("postgres").args(SKIPPED_TESTS.iter().flat_map(|test| ["--skip", test]));
    let of_crate = |package: &str, filter: &str| {
        let mut tests = Command::new(env!("CARGO"));
        let features = format!("{package}/postgres");
        tests.args(["test", "--locked", "-p", package, "--features", &features, "--lib", filter]);
        tests
    };
    let (service, process) =
        (of_crate("parcelo-service", "service::"), of_crate("parcelo-process", "sign_in::"));
    let mut written = 0;
    for mut tests in [store, service, process] {
        let ran = tests.env(STATEMENTS_FILE, &file).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
        let length = fs::metadata(&file).unwrap().len();
        assert!(length > written, "no statement was sent: {tests:?}");
        written = length;
    }
    file
}

fn reads_or_writes_rows(sql: &str) -> bool {
    let verb = sql.split_whitespace().next();
    verb.is_some_and(|verb| ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&verb))
}

/// Files that are not checked: statements that run once, at a start or for a copy, and those of the other engine.
const SKIPPED_FILES: [&str; 4] = ["connection.rs", "migrations.rs", "transfer.rs", "sqlite.rs"];

/// Beginnings of statements that run only on `SQLite`.
const SQLITE_STATEMENTS: [&str; 11] = [
    "UPDATE webhook_endpoints SET next_due = (SELECT min(due) FROM outbox",
    "UPDATE leases SET last = last + 1",
    "SELECT coalesce(sum(total), 0) FROM parcel_totals",
    "DELETE FROM outbox WHERE id IN ",
    "SELECT tenant, held, events, iif(held, ",
    "UPDATE webhook_endpoints SET next_due = NULL",
    "UPDATE last_manifest SET id = $1",
    "SELECT tenant FROM webhook_endpoints WHERE enabled = 1",
    "SELECT min(next_due) FROM webhook_endpoints WHERE enabled = 1",
    "UPDATE webhook_endpoints SET last_success = $2 WHERE tenant = $1",
    "UPDATE deleted_parcels SET highest = ",
];

/// Returns the beginning of each statement in the code of this engine and of both, up to its first placeholder.
fn statements_in_code() -> Vec<String> {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = [store.join("postgres"), store];
    let mut in_code = Vec::new();
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    for file in files.map(|file| file.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if file.is_dir() || SKIPPED_FILES.contains(&name) {
            continue;
        }
        let code = fs::read_to_string(&file).unwrap();
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap();
        // A string literal that continues on the next line has a backslash at the end of its line.
        let lines: Vec<&str> = code.split("\\\n").map(str::trim_start).collect();
        let texts = lines.concat();
        let literals = texts.split('"').skip(1).step_by(2).filter(|text| {
            reads_or_writes_rows(text)
                && !SQLITE_STATEMENTS.iter().any(|beginning| text.starts_with(beginning))
        });
        in_code.extend(literals.map(|text| text.split('{').next().unwrap().to_owned()));
    }
    in_code
}

/// Returns the plan of a statement that is prepared once for all values.
async fn plan(client: &Client, sql: &str) -> String {
    client.batch_execute(&format!("PREPARE one AS {sql}")).await.unwrap();
    let count =
        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'one'";
    let parameters: i32 = client.query_one(count, &[]).await.unwrap().get(0);
    let nulls = vec!["NULL"; usize::try_from(parameters).unwrap()].join(", ");
    let arguments = if nulls.is_empty() { nulls } else { format!("({nulls})") };
    let lines = client.query(&format!("EXPLAIN EXECUTE one{arguments}"), &[]).await.unwrap();
    client.batch_execute("DEALLOCATE one").await.unwrap();
    let lines: Vec<&str> = lines.iter().map(|line| line.get(0)).collect();
    lines.join("\n")
}

/// Returns the tables that a plan reads from end to end.
fn full_scans(plan: &str) -> BTreeSet<&str> {
    plan.lines()
        .filter_map(|line| line.split_once("Seq Scan on ")?.1.split_whitespace().next())
        .filter(|table| !SMALL_TABLES.contains(table) && !table.starts_with("pg_"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts this engine's tests once more: `.ci/prove postgres` runs it"]
async fn no_statement_reads_a_growing_table_from_end_to_end() {
    let Some(address) = database() else { return };
    let statements = read_sent_statements();
    let in_code = statements_in_code();
    assert!(in_code.len() > 100, "{}", in_code.len());
    // A part of a statement may look like a statement.
    let is_sent =
        |beginning: &&String| statements.iter().any(|sql| sql.contains(beginning.as_str()));
    let unsent: Vec<_> = in_code.iter().filter(|beginning| !is_sent(beginning)).collect();
    assert!(unsent.is_empty(), "no test sends {unsent:#?}");
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    let client = client(&address).await;
    client.batch_execute(INSERT_SAMPLE_ROWS).await.unwrap();
    client.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let mut faults = Vec::new();
    for sql in &statements {
        let plan = plan(&client, sql).await;
        let scanned = full_scans(&plan);
        if !scanned.is_empty()
            && !INTENDED_FULL_SCANS.iter().any(|beginning| sql.starts_with(beginning))
        {
            faults.push(format!("{scanned:?}: {sql}\n{plan}\n"));
        }
        // In a condition it is computed for each row; a sub-select or a join computes it once, which the plan omits.
        if plan.contains("string_to_array(") {
            faults.push(format!("a list is parsed for each row: {sql}\n{plan}\n"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    store.close().await;
}
