//! The goods on an invoice: its rows and their sums.

use parcelo_types::{CountryCode, OrderRequest, Product};
use rust_decimal::Decimal;

use super::{
    customs::line_value,
    text::{join, to_single_line},
};

/// A row of the table.
#[derive(Debug)]
pub(super) struct Item {
    pub description: String,
    pub hs_code: String,
    pub origin: Option<CountryCode>,
    pub quantity: u32,
    /// The weight of all pieces of the row.
    pub net_weight_kg: Option<Decimal>,
    pub unit_value: Decimal,
    pub amount: Decimal,
}

/// The sums of the rows.
#[derive(Debug)]
pub(super) struct Totals {
    pub quantity: u64,
    /// The sum, if every row has a weight: a partial sum would be mistaken for the total.
    pub net_weight_kg: Option<Decimal>,
    pub amount: Decimal,
}

/// Returns the products or, if there are none, the goods as a whole at the declared value.
pub(super) fn items(order: &OrderRequest) -> Vec<Item> {
    let goods = order.customs_info.clone().unwrap_or_default();
    let description = goods.description.as_deref().unwrap_or_default();
    let hs_code = goods.hs_code.as_deref().unwrap_or_default();
    if order.products.is_empty() {
        let declared = order.parcel_details.declared_value;
        return vec![Item {
            description: to_single_line(description),
            hs_code: to_single_line(hs_code),
            origin: None,
            quantity: 1,
            net_weight_kg: None,
            unit_value: declared,
            amount: declared,
        }];
    }
    let product_item = |product: &Product| {
        let name = product.description.as_deref().unwrap_or(description);
        let quantity = Decimal::from(product.quantity);
        Item {
            description: join([name, product.sku.as_deref().unwrap_or_default()], " · "),
            hs_code: to_single_line(product.hs_code.as_deref().unwrap_or(hs_code)),
            origin: product.country_of_origin,
            quantity: product.quantity,
            net_weight_kg: product.unit_net_weight_kg.and_then(|net| net.checked_mul(quantity)),
            unit_value: product.unit_fob_value,
            amount: line_value(product),
        }
    };
    order.products.iter().map(product_item).collect()
}

pub(super) fn totals(items: &[Item]) -> Totals {
    let net_weights = items.iter().map(|item| item.net_weight_kg);
    Totals {
        quantity: items.iter().map(|item| u64::from(item.quantity)).sum(),
        net_weight_kg: net_weights.sum::<Option<Decimal>>(),
        amount: items.iter().map(|item| item.amount).sum(),
    }
}

/// Writes an amount with all its decimals, at least two, because rounded rows would not add up to a rounded total.
pub(super) fn format_amount(amount: Decimal) -> String {
    let mut amount = amount.normalize();
    if amount.scale() < 2 {
        amount.rescale(2);
    }
    amount.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn an_amount_keeps_its_decimals_and_has_two() {
        let table = [
            ("0", "0.00"),
            ("12", "12.00"),
            ("5.5", "5.50"),
            ("0.125", "0.125"),
            ("1.10000", "1.10"),
            ("999999999.99", "999999999.99"),
            ("1000000000000000", "1000000000000000.00"),
        ];
        for (given, shown) in table {
            assert_eq!(format_amount(given.parse().unwrap()), shown);
        }
    }

    #[test]
    fn the_rows_add_up_to_the_total_to_the_last_decimal() {
        let mut order = sample::order();
        for (product, value) in order.products.iter_mut().zip(["0.335", "0.1", "1234567.891"]) {
            product.unit_fob_value = value.parse().unwrap();
        }
        let items = items(&order);
        let amounts: Vec<_> = items.iter().map(|item| format_amount(item.amount)).collect();
        assert_eq!(amounts, ["0.67", "0.30", "1234567.891"]);
        let sum = totals(&items);
        assert_eq!((sum.quantity, format_amount(sum.amount).as_str()), (6, "1234568.861"));
    }

    #[test]
    fn a_net_weight_needs_the_weight_of_every_row() {
        let mut order = sample::order();
        assert_eq!(totals(&items(&order)).net_weight_kg, None);
        for product in &mut order.products {
            product.unit_net_weight_kg = Some(Decimal::new(125, 3));
        }
        assert_eq!(totals(&items(&order)).net_weight_kg, Some(Decimal::new(750, 3)));
        order.products[1].unit_net_weight_kg = None;
        assert_eq!(totals(&items(&order)).net_weight_kg, None);
    }

    #[test]
    fn an_order_without_products_has_the_goods_as_a_whole() {
        let mut order = sample::order();
        order.products.clear();
        order.customs_info = Some(parcelo_types::CustomsInfo::new("Libros").with_hs_code("490199"));
        let items = items(&order);
        let [item] = items.as_slice() else { panic!("{items:?}") };
        assert_eq!((item.description.as_str(), item.hs_code.as_str()), ("Libros", "490199"));
        assert_eq!((item.quantity, item.amount), (1, order.parcel_details.declared_value));
    }
}
