//! Values for fields that a row lacks: the defaults of a column map, and the sender.

use parcelo::Decimal;
use serde_json::Value;

use super::{
    cell::set,
    column_map::{ColumnMap, SUM_OF_PRODUCTS},
    columns::{Column, Heading},
};

/// Settings that complete rows to orders.
#[derive(Debug, Default)]
pub(crate) struct RowSettings {
    pub(crate) columns: ColumnMap,
    /// The sender of orders without one.
    pub(crate) sender: Option<Value>,
}

impl RowSettings {
    /// Returns `true` if orders have this field even if the file does not.
    pub(super) fn provides(&self, column: &Column) -> bool {
        let is_of_sender = column.path.starts_with("sender.");
        let has_default =
            self.columns.defaults.iter().any(|(heading, _)| heading.is_column(column));
        has_default || (is_of_sender && self.sender.is_some())
    }

    /// Sets the fields that the order lacks.
    pub(super) fn complete(&self, order: &mut Value) {
        // Senders are never merged: parts of two senders would be a person who does not exist.
        if let (Some(sender), Value::Object(members)) = (&self.sender, &mut *order)
            && members.get("sender").is_none_or(is_blank)
        {
            members.insert("sender".to_owned(), sender.clone());
        }
        for (heading, text) in &self.columns.defaults {
            match heading {
                Heading::Field(column) => set_missing(order, column, text),
                Heading::Product(number, column) => {
                    let products = order.get_mut("products").and_then(Value::as_array_mut);
                    // The first product's columns have no number, and their defaults apply to every product.
                    let index = number.saturating_sub(1);
                    let is_meant = |at: usize| *number == 1 || at == index;
                    let products = products.into_iter().flatten().enumerate();
                    products
                        .filter(|(at, _)| is_meant(*at))
                        .for_each(|(_, product)| set_missing(product, column, text));
                }
                Heading::Note => {}
            }
        }
    }
}

/// Returns `true` if the value is empty.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_blank),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

fn set_missing(target: &mut Value, column: &Column, text: &str) {
    let path = format!("/{}", column.path.replace('.', "/"));
    if target.pointer(&path).is_some_and(|value| !value.is_null()) {
        return;
    }
    if column.name == "declared_value" && text == SUM_OF_PRODUCTS {
        if let Some(sum) = sum_of_products(target) {
            set(target, column, &sum.to_string());
        }
        return;
    }
    set(target, column, text);
}

/// Returns the total value of the products; `None` if one of them has no value.
fn sum_of_products(order: &Value) -> Option<Decimal> {
    let products = order.get("products")?.as_array()?;
    let number = |product: &Value, name: &str| {
        product.get(name)?.as_number()?.to_string().parse::<Decimal>().ok()
    };
    products.iter().try_fold(Decimal::ZERO, |sum, product| {
        let (quantity, value) = (number(product, "quantity")?, number(product, "unitFobValue")?);
        sum.checked_add(quantity.checked_mul(value)?)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn completed(map: &str, sender: Option<Value>, mut order: Value) -> Value {
        let columns = ColumnMap::parse(map).unwrap();
        RowSettings { columns, sender }.complete(&mut order);
        order
    }

    #[test]
    fn defaults_fill_only_missing_fields() {
        let map = "[defaults]\nweight_kg = 1.5\ncurrency = 'USD'\nproduct_hs_code = '610910'\n\
            product_2_origin = 'CO'\ndeclared_value = 'sum of products'\n";
        let order = json!({"parcelDetails": {"currency": "EUR"}, "products": [
            {"quantity": 2, "unitFobValue": 22.75, "hsCode": "640411"},
            {"quantity": 1, "unitFobValue": 0.1},
        ]});
        let expected = json!({
            "parcelDetails": {"currency": "EUR", "weightKg": 1.5, "declaredValue": 45.6},
            "products": [
                {"quantity": 2, "unitFobValue": 22.75, "hsCode": "640411"},
                {"quantity": 1, "unitFobValue": 0.1, "hsCode": "610910", "countryOfOrigin": "CO"},
            ],
        });
        assert_eq!(completed(map, None, order), expected);
        // A product without a value has no sum; the rules then report the field.
        let order = json!({"products": [{"quantity": 2, "unitFobValue": "much"}]});
        assert!(completed(map, None, order)["parcelDetails"].get("declaredValue").is_none());
    }

    #[test]
    fn a_sender_is_used_entirely_or_not_at_all() {
        let sender = json!({"fullName": "Ana Ruiz", "phone": "+1"});
        for order in [json!({}), json!({"sender": {"address": {}}}), json!({"sender": null})] {
            let order = completed("", Some(sender.clone()), order);
            assert_eq!(order["sender"], sender);
        }
        let own = json!({"sender": {"fullName": "Eva"}});
        assert_eq!(completed("", Some(sender), own.clone()), own);
    }
}
