//! An order as the store keeps it: the accepted order, and the layout of its shipping documents.

use std::ops::Deref;

use parcelo_types::OrderRequest;
use serde::{Deserialize, Serialize};

/// The layout of label and invoice. A parcel keeps the layout that it was created with, so that a reprinted label is
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// The first layout, and that of stored orders that do not name a layout.
    First,
    /// Addresses in the form of their country; a caption and more room for delivery instructions; no customs box within
    /// a country.
    Second,
}

impl Layout {
    /// The layout of new parcels.
    pub const NEWEST: Self = Self::Second;

    const fn from_number(number: u8) -> Self {
        match number {
            0 | 1 => Self::First,
            // A later version of this server wrote it. Our newest layout is closest to it.
            2.. => Self::Second,
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::First => 1,
            Self::Second => 2,
        }
    }
}

/// An order with the layout of its shipping documents.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredOrder {
    /// The order as it was accepted.
    pub order: OrderRequest,
    /// The layout of its shipping documents.
    pub layout: Layout,
}

/// The order with a further member for the layout, which older servers ignore.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrderJson<'a> {
    #[serde(flatten)]
    order: &'a OrderRequest,
    label_layout: u8,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutJson {
    #[serde(default)]
    label_layout: u8,
}

impl StoredOrder {
    /// Writes a new order.
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "orders are structs of text and numbers, with text as keys"
    )]
    pub fn to_json(order: &OrderRequest) -> String {
        serde_json::to_string(&OrderJson { order, label_layout: Layout::NEWEST.number() })
            .expect("an order can be written as JSON")
    }

    /// Reads the JSON that [`Self::to_json`] or an older server wrote.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let LayoutJson { label_layout } = serde_json::from_str(text)?;
        let order = serde_json::from_str(text)?;
        Ok(Self { order, layout: Layout::from_number(label_layout) })
    }
}

impl Deref for StoredOrder {
    type Target = OrderRequest;

    fn deref(&self) -> &OrderRequest {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_new_order_has_the_newest_layout_and_an_old_one_the_first() {
        let order: OrderRequest = serde_json::from_str(sample::ORDER).unwrap();
        let json = StoredOrder::to_json(&order);
        let read = StoredOrder::from_json(&json).unwrap();
        assert_eq!(read, StoredOrder { order: order.clone(), layout: Layout::NEWEST });
        assert_eq!(serde_json::from_str::<OrderRequest>(&json).unwrap(), order, "{json}");
        let before = StoredOrder::from_json(&serde_json::to_string(&order).unwrap()).unwrap();
        assert_eq!(before, StoredOrder { order, layout: Layout::First });
    }
}
