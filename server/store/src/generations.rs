//! Generations: how a reset empties a sandbox at once.
//!
//! The low 32 bits of a stored tenant number are the tenant's own number
//! ([`Tenant::number`](parcelo_domain::Tenant::number)). The bits above are the generation, which is 0 until the first
//! reset. Orders, manifests, idempotency records, events and counts are stored under the number of the generation in
//! which they were written. API keys, the webhook and everything else that a reset keeps are stored under the tenant's
//! own number.
//!
//! Both engines have two tables for this. Few sandboxes have rows in them:
//!
//! - `generations` has the number of the current generation of each sandbox that was ever reset. A reset writes the
//!   next number. Each write reads the number in its own transaction, in which no reset can change it, so nothing is
//!   written into a generation that has ended.
//! - `ended_generations` has the ended generations whose rows are not deleted yet. These rows no longer change. They
//!   are counted for the reset's answer, and then deleted in pages; the generation's own row is deleted last.

/// Returns the number of a tenant's current generation, from the tenant's own number: SQL for both engines.
macro_rules! current_generation {
    ($tenant:literal) => {
        concat!(
            "coalesce((SELECT current FROM generations WHERE home = ",
            $tenant,
            "), ",
            $tenant,
            ")"
        )
    };
}

/// Returns a condition that holds for rows of current generations, for statements without a tenant.
macro_rules! is_current {
    ($tenant:literal) => {
        concat!($tenant, " NOT IN (SELECT number FROM ended_generations)")
    };
}

/// Returns a condition like `is_current!`, for statements of PostgreSQL that delete: if it holds for a row, it holds
/// until the commit. It compares by `>=`, since no number exceeds the current one: for `=` the planner would expect few
/// rows.
macro_rules! is_current_locked {
    ($tenant:literal) => {
        concat!(
            $tenant,
            " >= coalesce((SELECT current FROM generations WHERE home = ",
            $crate::generations::own_number!($tenant),
            " FOR SHARE), ",
            $crate::generations::own_number!($tenant),
            ")"
        )
    };
}

/// Returns a tenant's own number, from the number of any of its generations.
macro_rules! own_number {
    ($tenant:literal) => {
        concat!("(", $tenant, " & 4294967295)")
    };
}

pub(super) use {current_generation, is_current, is_current_locked, own_number};
