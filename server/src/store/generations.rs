//! Generations: the way in which a reset empties a sandbox at once.
//!
//! The low 32 bits of a stored tenant number are the tenant's own number
//! ([`Tenant::number`](crate::domain::Tenant::number)). The bits above are the generation, which is 0 until the first
//! reset. Orders, manifests, idempotency records, events and counts are stored under the number of the generation that
//! they were written in. API keys, the webhook and everything else that a reset keeps are stored under the tenant's own
//! number.
//!
//! Both engines have two tables for this, which hardly any sandbox has rows in:
//!
//! - `generations` has the number of the present generation for each sandbox that was ever reset. A reset writes the next
//!   one there. Each write reads it in its own transaction, where no reset can change it, so nothing is written into a
//!   generation that has ended.
//! - `ended_generations` has those whose rows are not deleted yet. They no longer change, so they are counted for the
//!   reset's answer, and then deleted in pages; the row itself is deleted last.

/// Difference between the numbers of a sandbox's generation and the next.
pub(super) const GENERATION: i64 = 1 << 32;

/// Returns the number of a tenant's present generation, given the tenant's number: SQL for both engines.
macro_rules! current {
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

/// Returns a condition that holds for rows of present generations, for statements that name no tenant.
macro_rules! is_current {
    ($tenant:literal) => {
        concat!($tenant, " NOT IN (SELECT number FROM ended_generations)")
    };
}

/// Returns a tenant's own number, given that of any generation.
macro_rules! home {
    ($tenant:literal) => {
        concat!("(", $tenant, " & 4294967295)")
    };
}

pub(super) use {current, home, is_current};
