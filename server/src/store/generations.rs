//! Generations: how a reset empties a sandbox at once.
//!
//! A tenant's number says in its low 32 bits whose it is ([`Tenant::number`](crate::domain::Tenant::number)). The bits
//! above are the generation, which is 0 until the first reset. Orders, manifests, idempotency records, events and counts
//! have the number of the generation that they were written in. API keys, the webhook and all else that a reset leaves
//! have the tenant's own.
//!
//! Two tables of both engines, which rows of nearly no sandbox are in:
//!
//! - `generations` has the number of the present generation for each sandbox that was ever reset. A reset writes the next
//!   one there. Each write reads it in its own transaction, where no reset can change it, so nothing is written into a
//!   generation that has ended.
//! - `ended_generations` has those whose rows are not deleted yet. They change no more, so they are counted for the
//!   reset's answer, and then deleted in pages; the row goes last.

/// Difference between the numbers of a sandbox's generation and its next.
pub(super) const GENERATION: i64 = 1 << 32;

/// The number of a tenant's present generation, by its own: SQL for both engines.
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

/// A condition that holds for rows of present generations, where no tenant is asked for.
macro_rules! is_current {
    ($tenant:literal) => {
        concat!($tenant, " NOT IN (SELECT number FROM ended_generations)")
    };
}

/// A tenant's own number, from that of any generation.
macro_rules! home {
    ($tenant:literal) => {
        concat!("(", $tenant, " & 4294967295)")
    };
}

pub(super) use {current, home, is_current};
