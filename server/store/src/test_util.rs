//! Databases, delays and damage, for the tests of this crate and, with the feature `test-util`, for those of others.
//! They affect product code only once a test asks for it.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what tests use fails by panicking"
)]

mod damage;
pub mod delays;
mod held_lists;

pub(crate) use self::held_lists::wait_if_requested;
pub use self::{
    damage::{Damage, damage, damage_file, hold_write_lock},
    held_lists::hold_list,
};
#[cfg(feature = "postgres")]
pub use crate::postgres::test_util::{
    cluster::{database, run_sql, two_servers},
    proxy::CutStore,
};
