//! Lists that a test makes wait.

use std::sync::{
    Mutex, PoisonError,
    mpsc::{Receiver, Sender, channel},
};

use parcelo_types::internal::ListQuery;

/// The gates of lists that a test delays, by the order id of the list's filter.
static HELD: Mutex<Vec<(String, Receiver<()>)>> = Mutex::new(Vec::new());

/// Makes lists of this order id wait until the sender is dropped, or far too long.
pub fn hold_list(order_id: &str) -> Sender<()> {
    let (release, gate) = channel();
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.push((order_id.to_owned(), gate));
    release
}

/// Lets a test make a list wait.
pub(crate) fn wait_if_requested(query: &ListQuery) {
    let Some(order_id) = &query.external_order_id else { return };
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let place = held.iter().position(|(held, _)| held == order_id);
    let gate = place.map(|place| held.remove(place).1);
    drop(held);
    let _released = gate.map(|gate| gate.recv_timeout(crate::waiting::LONG));
}
