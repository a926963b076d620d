//! What the database's clock shows, by which all of its servers go.

use std::sync::Arc;

use super::Store;
use crate::{
    clock::{
        Millis,
        shared::{SharedClock, Skew},
    },
    store::StoreError,
};

impl Store {
    pub(crate) fn clock(&self) -> &Arc<SharedClock> {
        &self.0.clock
    }

    pub(crate) async fn measure_clock(&self) -> Result<Option<Skew>, StoreError> {
        let clock = Arc::clone(&self.0.clock);
        self.read(async move |db| {
            let sent = clock.machine();
            let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            let shown = Millis(db.value(sql, &[]).await?);
            Ok(clock.measured(sent, shown, clock.machine()))
        })
        .await
    }
}
