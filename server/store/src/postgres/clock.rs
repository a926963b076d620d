//! The database's clock, which all servers follow.

use std::sync::{Arc, atomic::Ordering};

use parcelo_domain::Millis;
use parcelo_system::clock::shared::{SharedClock, Skew};

use super::{Store, connection::get, migrations, readers::Readers, silence};
use crate::StoreError;

/// Reads the clock and `oldest_schema`, by which this program soon notices that a newer one has made it unusable.
const READ_CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
     (SELECT value FROM meta WHERE name = 'oldest_schema')";

impl Store {
    pub fn clock(&self) -> &Arc<SharedClock> {
        &self.0.clock
    }

    pub async fn measure_clock(&self) -> Result<Option<Skew>, StoreError> {
        // A measurement that waits behind other reads is given up, because the next one will be more accurate.
        let busy = |_elapsed| StoreError::Busy { database: self.name() };
        tokio::time::timeout(silence::MAX_SILENCE, self.measure_clock_without_timeout())
            .await
            .map_err(busy)?
    }

    /// Measures the clock without a timeout: at the start it may take long to skip hosts that do not answer.
    pub(super) async fn measure_clock_without_timeout(&self) -> Result<Option<Skew>, StoreError> {
        let clock = Arc::clone(&self.0.clock);
        self.0.read_silence.request_sent();
        let measurement = self.read_within(None, Readers::push, async move |db| {
            let sent_at = clock.read_machine();
            let read = |row: &_| Ok((Millis(get(row, 0)?), get::<Option<Vec<u8>>>(row, 1)?));
            let (database_time, oldest_schema) = db.query_one(READ_CLOCK, &[], read).await?;
            Ok((
                clock.record_measurement(sent_at, database_time, clock.read_machine()),
                oldest_schema,
            ))
        });
        let (skew, oldest_schema) = measurement.await?;
        self.0.read_silence.response_received();
        let is_outdated = oldest_schema.is_some_and(|schema| migrations::is_outdated(&schema));
        if self.0.is_outdated.swap(is_outdated, Ordering::Relaxed) != is_outdated && is_outdated {
            tracing::error!("{}: install the newer program", migrations::OUTDATED);
        }
        Ok(skew)
    }
}
