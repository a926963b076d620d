//! What is copied, table by table: the columns that both engines have, and where the two differ. A test walks both
//! schemas, so that no table and no column is forgotten.
//!
//! A row of a table is read as a list of values in the order of `columns`, whichever engine it comes from, so that
//! the same row has the same checksum on both sides.
//!
//! - *Resets.* `SQLite` hides rows up to an id, PostgreSQL those of an earlier epoch. What is hidden is deleted
//!   already for every caller, so it is left behind: the `living_` views are read, and the copy begins at epoch 0.
//! - *Leases.* A server that was killed leaves leases behind. Their events are due when the lease would have ended.
//! - *Ids* stay as they are. Tracking numbers, tenants and histories are made of them.

/// A table of both engines.
#[derive(Debug)]
pub(in crate::store) struct Table {
    pub(in crate::store) name: &'static str,
    pub(in crate::store) columns: &'static [&'static str],
    /// What is selected from: a view, or those rows of a table whose parent is not hidden.
    from: &'static str,
    /// The order in which PostgreSQL's rows go into a file: that of the keys, but for idempotency records, which
    /// `SQLite` purges from its lowest id on, and so wants in the order in which they die.
    order: &'static str,
    sqlite: Own,
    postgres: Own,
}

/// Where an engine needs a statement of its own.
#[derive(Debug, Clone, Copy)]
struct Own {
    select: Option<&'static str>,
    insert: Option<&'static str>,
}

const NOTHING: Own = Own { select: None, insert: None };

impl Table {
    /// A table of both engines' schemas, all of whose rows are copied.
    const fn whole(name: &'static str, columns: &'static [&'static str]) -> Self {
        Self::some(name, columns, name)
    }

    /// Of which some rows may be hidden.
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
        Self { sqlite: Own { select: Some(select), insert }, ..self }
    }

    const fn postgres(self, select: &'static str, insert: Option<&'static str>) -> Self {
        Self { postgres: Own { select: Some(select), insert }, ..self }
    }

    pub(in crate::store) fn sqlite_select(&self) -> String {
        self.sqlite.select.map_or_else(|| self.select("0"), str::to_owned)
    }

    /// Ordered: a file grows from its lowest key on, and is a third smaller for it.
    pub(in crate::store) fn postgres_select(&self) -> String {
        let select = self.postgres.select.map_or_else(|| self.select("0::bigint"), str::to_owned);
        format!("{select} ORDER BY {}", self.order)
    }

    /// `SQLite` has no epochs; what it needs besides the columns is the next parameter.
    pub(in crate::store) fn sqlite_insert(&self) -> String {
        if let Some(insert) = self.sqlite.insert {
            return insert.to_owned();
        }
        let columns = (1..).zip(self.columns).filter(|(_, column)| **column != "epoch");
        let (places, mut names): (Vec<_>, Vec<_>) =
            columns.map(|(place, name)| (format!("?{place}"), *name)).unzip();
        let mut places = places;
        if self.name == "parcels" {
            names.push("number_is_indexed");
            places.push(format!("?{}", self.columns.len() + 1));
        }
        format!("INSERT INTO {} ({}) VALUES ({})", self.name, names.join(", "), places.join(", "))
    }

    /// A statement of its own, where PostgreSQL's rows are not simply copied in.
    pub(in crate::store) const fn postgres_insert(&self) -> Option<&'static str> {
        self.postgres.insert
    }

    fn select(&self, epoch: &str) -> String {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|column| if *column == "epoch" { epoch } else { *column })
            .collect();
        format!("SELECT {} FROM {}", columns.join(", "), self.from)
    }
}

/// Endpoints stand before the outbox: `SQLite`'s triggers write its next due time to them.
pub(in crate::store) const TABLES: &[Table] = &[
    // The same two secrets, one of them under two names. PostgreSQL's other rows are about servers.
    Table::whole("meta", &["name", "value"])
        .sqlite("SELECT name, value FROM meta", None)
        .postgres(
            "SELECT replace(name, '_', ' '), value FROM meta WHERE name IN ('secret', 'number_key')",
            Some("INSERT INTO meta (name, value) VALUES (replace($1, ' ', '_'), $2)"),
        ),
    Table::whole("accounts", &["id", "public_id", "name", "created_at"]),
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
            "id", "version", "tenant", "epoch", "created_at", "updated_at", "step_due", "reprinted_at",
            "promised_day", "label_version", "last_sequence", "environment", "state", "step_index", "country",
            "number", "public_id", "origin", "destination", "external_order_id", "order_json",
        ],
        "living_parcels",
    )
    // Its order is a row of another table there.
    .postgres(
        "SELECT id, version, tenant, 0::bigint, created_at, updated_at, step_due, reprinted_at, promised_day, \
         label_version, last_sequence, environment, state, step_index, country, number, public_id, origin, \
         destination, external_order_id, order_json FROM living_parcels JOIN orders ON parcel = id",
        None,
    ),
    Table::some(
        "events",
        &["parcel", "sequence", "state", "at", "location", "description"],
        "events WHERE parcel IN (SELECT id FROM living_parcels)",
    ),
    // The counts of the present epoch, wherever they are summed up; those that are down to 0 await a purge.
    Table::whole("parcel_counts", &["tenant", "epoch", "day", "state", "country", "total"])
        .sqlite(
            "SELECT tenant, 0, day, state, country, total FROM parcel_counts WHERE total <> 0",
            None,
        )
        .postgres(
            "SELECT tenant, 0::bigint, day, state, country, sum(total)::bigint FROM living_counts GROUP BY tenant, \
             day, state, country HAVING sum(total) <> 0",
            None,
        ),
    Table::some(
        "idempotency",
        &["key", "tenant", "epoch", "first_seen", "fingerprint", "body"],
        "living_idempotency",
    )
    .in_order("first_seen"),
    Table::some(
        "manifests",
        &["id", "tenant", "epoch", "awb", "public_id", "submitted_at", "document"],
        "living_manifests",
    ),
    Table::some(
        "manifest_parcels",
        &["parcel", "manifest", "label_version"],
        "manifest_parcels WHERE parcel IN (SELECT id FROM living_parcels)",
    ),
    Table::some(
        "carrier_events",
        &["carrier", "event_id", "parcel", "sequence", "code"],
        "carrier_events WHERE parcel IN (SELECT id FROM living_parcels)",
    ),
    Table::some(
        "carrier_exceptions",
        &[
            "id", "tenant", "carrier", "event_id", "parcel", "from_state", "state", "at", "location",
            "description", "code", "refused_at",
        ],
        "carrier_exceptions WHERE parcel IN (SELECT id FROM living_parcels)",
    ),
    Table::whole(
        "webhook_endpoints",
        &["tenant", "url", "kinds", "secret", "enabled", "disabled_why", "created_at"],
    ),
    // A column of the endpoints in a file.
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
    // A lease ends with its server; what is leased is due when it would have ended.
    Table::some(
        "mails",
        &["id", "parcel", "sequence", "recipient", "kind", "created_at", "due", "attempts", "status"],
        "mails WHERE parcel IN (SELECT id FROM living_parcels)",
    ),
    Table::whole("mail_optouts", &["address", "why", "at"]),
    Table::whole("mail_counts", &["whose", "since", "mails"]),
    Table::whole("mails_off", &["account", "kinds"]),
    Table::whole("mail_since", &["one", "at"]),
    Table::whole("webhook_old_secrets", &["id", "tenant", "secret", "until"]),
    Table::some(
        "outbox",
        &[
            "id", "tenant", "epoch", "event_id", "parcel", "manifest", "sequence", "happened_at", "created_at",
            "due", "lease", "after_lease", "attempts", "first_attempt", "kind", "previous", "state",
        ],
        "living_outbox",
    ),
    Table::some(
        "webhook_attempts",
        &["id", "outbox", "number", "at", "millis", "status", "error", "answer"],
        "webhook_attempts WHERE outbox IN (SELECT id FROM living_outbox)",
    ),
    // Neither is ever given again. PostgreSQL gives rows in blocks: all of the last block may be a parcel's.
    Table::whole("last_parcel_row", &["row"])
        .in_order("1")
        .sqlite(
            "SELECT max(highest, coalesce((SELECT max(id) FROM parcels), 0)) FROM deleted_parcels",
            Some("UPDATE deleted_parcels SET highest = ?1"),
        )
        .postgres(
            "SELECT greatest(CASE WHEN is_called THEN last_value + 999 ELSE last_value - 1 END, \
             (SELECT max(id) FROM parcels)) FROM parcel_ids",
            Some("SELECT setval('parcel_ids', $1::bigint + 1, false)"),
        ),
    Table::whole("last_lease", &["number"])
        .in_order("1")
        .sqlite("SELECT max(last, 1) FROM leases", Some("UPDATE leases SET last = ?1"))
        .postgres(
            "SELECT last_value FROM lease_numbers",
            Some("SELECT setval('lease_numbers', $1::bigint)"),
        ),
];
