//! The tables that are copied: the columns that both engines have, and the differences between the two. A test walks
//! both schemas, so that no table and no column is forgotten.
//!
//! A row of a table is read as a list of values in the order of `columns`, whichever engine it comes from, so that the
//! same row has the same checksum on both sides.
//!
//! - *Resets.* Generations that have ended are deleted already for every caller, so they are left behind.
//! - *Leases.* A server that was killed leaves leases behind. Their events are due when the lease would have ended.
//! - *Ids* stay as they are. Tracking numbers, tenants and histories are made of them.

use super::super::generations::is_current;

/// A table of both engines.
#[derive(Debug)]
pub(in crate::store) struct Table {
    pub(in crate::store) name: &'static str,
    pub(in crate::store) columns: &'static [&'static str],
    /// The source of the rows: the table without the rows of ended generations.
    from: &'static str,
    /// The order in which PostgreSQL's rows go into a file: that of the keys, except for idempotency records, which
    /// `SQLite` purges from its lowest id on, and so needs in the order in which they die.
    order: &'static str,
    sqlite: Overrides,
    postgres: Overrides,
}

/// Statements that an engine needs instead of the common ones.
#[derive(Debug, Clone, Copy)]
struct Overrides {
    select: Option<&'static str>,
    insert: Option<&'static str>,
}

const NOTHING: Overrides = Overrides { select: None, insert: None };

impl Table {
    /// Returns a table of both engines' schemas, all of whose rows are copied.
    const fn whole(name: &'static str, columns: &'static [&'static str]) -> Self {
        Self::some(name, columns, name)
    }

    /// Returns a table some of whose rows may be of ended generations.
    const fn some(
        name: &'static str,
        columns: &'static [&'static str],
        from: &'static str,
    ) -> Self {
        Self { name, columns, from, order: "1, 2", sqlite: NOTHING, postgres: NOTHING }
    }

    const fn in_order(self, order: &'static str) -> Self {
        Self { order, ..self }
    }

    const fn sqlite(self, select: &'static str, insert: Option<&'static str>) -> Self {
        Self { sqlite: Overrides { select: Some(select), insert }, ..self }
    }

    const fn postgres(self, select: &'static str, insert: Option<&'static str>) -> Self {
        Self { postgres: Overrides { select: Some(select), insert }, ..self }
    }

    pub(in crate::store) fn sqlite_select(&self) -> String {
        self.sqlite.select.map_or_else(|| self.select(), str::to_owned)
    }

    /// Returns PostgreSQL's SELECT. It is ordered: a file grows from its lowest key on, and becomes a third smaller
    /// that way.
    pub(in crate::store) fn postgres_select(&self) -> String {
        let select = self.postgres.select.map_or_else(|| self.select(), str::to_owned);
        format!("{select} ORDER BY {}", self.order)
    }

    pub(in crate::store) fn sqlite_insert(&self) -> String {
        if let Some(insert) = self.sqlite.insert {
            return insert.to_owned();
        }
        let places: Vec<_> = (1..=self.columns.len()).map(|place| format!("?{place}")).collect();
        let (columns, places) = (self.columns.join(", "), places.join(", "));
        format!("INSERT INTO {} ({columns}) VALUES ({places})", self.name)
    }

    /// Returns a special statement, if PostgreSQL's rows are not simply copied in.
    pub(in crate::store) const fn postgres_insert(&self) -> Option<&'static str> {
        self.postgres.insert
    }

    fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.columns.join(", "), self.from)
    }
}

/// Selects the rows of a table without those of ended generations.
macro_rules! present {
    ($table:literal) => {
        concat!($table, " WHERE ", is_current!("tenant"))
    };
}

/// Selects the rows that belong to present parcels.
macro_rules! of_present_parcels {
    ($table:literal) => {
        concat!($table, " WHERE parcel IN (SELECT id FROM ", present!("parcels"), ")")
    };
}

/// The tables in the order in which they are copied. Endpoints precede the outbox: `SQLite`'s triggers write its next
/// due time to them.
pub(in crate::store) const TABLES: &[Table] = &[
    // The secret. PostgreSQL's other rows are about servers.
    Table::whole("meta", &["name", "value"])
        .sqlite("SELECT name, value FROM meta WHERE name = 'secret'", None)
        .postgres("SELECT name, value FROM meta WHERE name = 'secret'", None),
    Table::whole("accounts", &["id", "public_id", "name", "created_at"]),
    Table::whole("generations", &["home", "current"]),
    Table::whole(
        "api_keys",
        &[
            "id", "public_id", "tenant", "name", "countries", "ip_list", "rate_limit", "hash", "last4",
            "created_at", "revoked_at", "changed",
        ],
    ),
    Table::whole("api_key_old_secrets", &["id", "key", "hash", "until"]),
    Table::whole("carriers", &["id", "environment", "name"]),
    Table::whole(
        "carrier_keys",
        &["id", "public_id", "carrier", "hash", "last4", "created_at", "revoked_at", "changed"],
    ),
    Table::whole(
        "admin_tokens",
        &["id", "public_id", "name", "hash", "last4", "created_at", "revoked_at"],
    ),
    Table::whole("shops", &["account", "name", "contact"]),
    Table::whole("audit_log", &["id", "at", "account", "actor", "action", "subject"]),
    Table::whole("dashboard_passwords", &["account", "hash", "changed_at"]),
    Table::whole("dashboard_sessions", &["hash", "account", "ends_at"]),
    Table::whole("key_uses", &["api_key", "day"]),
    Table::whole("legacy_uses", &["api_key", "day", "requests"]),
    Table::some(
        "parcels",
        &[
            "id", "version", "tenant", "created_at", "updated_at", "step_due", "reprinted_at",
            "promised_day", "label_version", "last_sequence", "environment", "state", "step_index", "country",
            "number", "public_id", "origin", "destination", "external_order_id", "order_json",
        ],
        present!("parcels"),
    )
    // Its order is a row of another table there.
    .postgres(
        concat!(
            "SELECT id, version, tenant, created_at, updated_at, step_due, reprinted_at, promised_day, \
             label_version, last_sequence, environment, state, step_index, country, number, public_id, origin, \
             destination, external_order_id, order_json FROM parcels JOIN orders ON parcel = id WHERE ",
            is_current!("tenant")
        ),
        None,
    ),
    Table::some(
        "events",
        &["parcel", "sequence", "state", "at", "location", "description"],
        of_present_parcels!("events"),
    ),
    // PostgreSQL's are summed up here; counts that are 0 await a purge.
    Table::whole("parcel_counts", &["tenant", "day", "state", "country", "total"])
        .sqlite(
            concat!(
                "SELECT tenant, day, state, country, total FROM parcel_counts WHERE total <> 0 AND ",
                is_current!("tenant")
            ),
            None,
        )
        .postgres(
            concat!(
                "SELECT tenant, day, state, country, sum(total)::bigint FROM all_counts WHERE ",
                is_current!("tenant"),
                " GROUP BY tenant, day, state, country HAVING sum(total) <> 0"
            ),
            None,
        ),
    Table::some(
        "idempotency",
        &["key", "tenant", "first_seen", "fingerprint", "body"],
        present!("idempotency"),
    )
    .in_order("first_seen"),
    Table::some(
        "manifests",
        &["id", "tenant", "awb", "public_id", "submitted_at", "document"],
        present!("manifests"),
    ),
    Table::some(
        "manifest_parcels",
        &["parcel", "manifest", "label_version"],
        of_present_parcels!("manifest_parcels"),
    ),
    Table::some(
        "carrier_events",
        &["carrier", "event_id", "parcel", "sequence", "code"],
        of_present_parcels!("carrier_events"),
    ),
    Table::some(
        "carrier_exceptions",
        &[
            "id", "tenant", "carrier", "event_id", "parcel", "from_state", "state", "at", "location",
            "description", "code", "refused_at",
        ],
        of_present_parcels!("carrier_exceptions"),
    ),
    Table::whole(
        "webhook_endpoints",
        &["tenant", "url", "kinds", "secret", "enabled", "disabled_why", "created_at"],
    ),
    // In a file it is a column of the endpoints.
    Table::whole("webhook_successes", &["tenant", "at"])
        .sqlite(
            "SELECT tenant, last_success FROM webhook_endpoints WHERE last_success IS NOT NULL",
            Some("UPDATE webhook_endpoints SET last_success = ?2 WHERE tenant = ?1"),
        )
        .postgres(
            "SELECT tenant, at FROM webhook_successes \
             WHERE tenant IN (SELECT tenant FROM webhook_endpoints)",
            None,
        ),
    // A lease ends with its server; leased e-mails are due when it would have ended.
    Table::some(
        "mails",
        &["id", "parcel", "sequence", "recipient", "kind", "created_at", "due", "attempts", "status"],
        of_present_parcels!("mails"),
    ),
    Table::whole("mail_optouts", &["address", "why", "at"]),
    Table::whole("mail_counts", &["whose", "since", "mails"]),
    Table::whole("mails_off", &["account", "kinds"]),
    Table::whole("mail_since", &["one", "at"]),
    Table::whole("webhook_old_secrets", &["id", "tenant", "secret", "until"]),
    Table::some(
        "outbox",
        &[
            "id", "tenant", "event_id", "parcel", "manifest", "sequence", "happened_at", "created_at",
            "due", "lease", "after_lease", "attempts", "first_attempt", "kind", "previous", "state",
        ],
        present!("outbox"),
    )
    // Leased events are due when the lease ends.
    .postgres(
        concat!(
            "SELECT id, tenant, event_id, parcel, manifest, sequence, happened_at, created_at, \
             CASE WHEN lease_until > due THEN lease_until ELSE due END AS due, lease, after_lease, attempts, \
             first_attempt, kind, previous, state FROM outbox WHERE ",
            is_current!("tenant")
        ),
        None,
    ),
    Table::some(
        "webhook_attempts",
        &["id", "outbox", "number", "at", "millis", "status", "error", "answer"],
        concat!("webhook_attempts WHERE outbox IN (SELECT id FROM ", present!("outbox"), ")"),
    ),
    // Neither is ever reused.
    Table::whole("last_parcel_row", &["row"])
        .in_order("1")
        .sqlite(
            "SELECT max(highest, coalesce((SELECT max(id) FROM parcels), 0)) FROM deleted_parcels",
            Some("UPDATE deleted_parcels SET highest = ?1"),
        )
        .postgres(
            "SELECT greatest(last_value - CASE WHEN is_called THEN 0 ELSE 1 END, (SELECT max(id) FROM parcels)) \
             FROM parcel_rows",
            Some("SELECT setval('parcel_rows', $1::bigint + 1, false)"),
        ),
    Table::whole("last_lease", &["number"])
        .in_order("1")
        .sqlite("SELECT max(last, 1) FROM leases", Some("UPDATE leases SET last = ?1"))
        .postgres(
            "SELECT last_value FROM lease_numbers",
            Some("SELECT setval('lease_numbers', $1::bigint)"),
        ),
];
