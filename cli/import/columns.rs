//! The columns of a CSV file of orders: their names, and the field that each fills. A test compares the table with
//! docs/importing.md.

/// A column and the field that it fills.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The path of the field within an order or, for a column of a product, within that product.
    pub(crate) path: &'static str,
    pub(crate) kind: CellType,
    /// Set if no order can be valid without this column.
    pub(super) is_required: bool,
    pub(super) sample: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellType {
    Text,
    Number,
}

/// Returns a text column that every order needs.
const fn required_text(name: &'static str, path: &'static str, sample: &'static str) -> Column {
    Column { name, path, kind: CellType::Text, is_required: true, sample }
}

/// Returns a text column that orders may lack.
const fn optional_text(name: &'static str, path: &'static str, sample: &'static str) -> Column {
    Column { name, path, kind: CellType::Text, is_required: false, sample }
}

/// Returns a number column that orders may lack.
const fn optional_number(name: &'static str, path: &'static str, sample: &'static str) -> Column {
    Column { name, path, kind: CellType::Number, is_required: false, sample }
}

/// The column with the caller's reference for the order.
pub(crate) const REFERENCE: &str = "reference";

#[rustfmt::skip]
pub(super) const COLUMNS: &[Column] = &[
    required_text(REFERENCE, "externalOrderId", "ORDER-1001"),
    optional_text("tracking_number", "trackingNumber", ""),
    optional_text("customer_reference", "customerReference", ""),
    required_text("sender_name", "sender.fullName", "Ana Ruiz"),
    optional_text("sender_company", "sender.companyName", ""),
    required_text("sender_phone", "sender.phone", "+13055550100"),
    optional_text("sender_email", "sender.email", ""),
    required_text("sender_line1", "sender.address.line1", "8400 NW 25th Street"),
    optional_text("sender_line2", "sender.address.line2", ""),
    required_text("sender_city", "sender.address.city", "Miami"),
    optional_text("sender_state", "sender.address.state", "FL"),
    optional_text("sender_zip", "sender.address.zipCode", "33122"),
    required_text("sender_country", "sender.address.country", "US"),
    required_text("receiver_name", "receiver.fullName", "Luis Paredes"),
    optional_text("receiver_company", "receiver.companyName", ""),
    required_text("receiver_phone", "receiver.phone", "+593991234567"),
    optional_text("receiver_email", "receiver.email", ""),
    optional_text("receiver_national_id", "receiver.nationalId", "1714307103"),
    optional_text("receiver_id_type", "receiver.idType", "cedula"),
    required_text("receiver_line1", "receiver.address.line1", "Av. Amazonas N34-451"),
    optional_text("receiver_line2", "receiver.address.line2", ""),
    required_text("receiver_city", "receiver.address.city", "Quito"),
    optional_text("receiver_province", "receiver.address.province", "Pichincha"),
    optional_text("receiver_zip", "receiver.address.zipCode", "170515"),
    required_text("receiver_country", "receiver.address.country", "EC"),
    optional_text("delivery_instructions", "receiver.address.deliveryInstructions", ""),
    optional_number("weight_kg", "parcelDetails.weightKg", "1.25"),
    optional_number("weight_lbs", "parcelDetails.weightLbs", ""),
    optional_number("length_cm", "parcelDetails.lengthCm", "30"),
    optional_number("width_cm", "parcelDetails.widthCm", "20"),
    optional_number("height_cm", "parcelDetails.heightCm", "10"),
    Column { is_required: true, ..optional_number("declared_value", "parcelDetails.declaredValue", "45.50") },
    optional_text("currency", "parcelDetails.currency", "USD"),
    optional_text("customs_description", "customsInfo.description", "Cotton shirts"),
    optional_text("customs_hs_code", "customsInfo.hsCode", "610910"),
    optional_text("contents_category", "customsInfo.contentsCategory", "SALE_OF_GOODS"),
    optional_text("incoterm", "customsInfo.incoterm", "DAP"),
];

/// The columns of a product: `product_sku` and `product_1_sku` belong to the first one, `product_2_sku` to the second.
pub(super) const PRODUCT_COLUMNS: &[Column] = &[
    optional_text("description", "description", "Cotton shirt"),
    optional_number("quantity", "quantity", "2"),
    optional_number("value", "unitFobValue", "22.75"),
    optional_number("net_weight_kg", "unitNetWeightKg", "0.25"),
    optional_text("origin", "countryOfOrigin", "CO"),
    optional_text("hs_code", "hsCode", "610910"),
    optional_text("sku", "sku", "SHIRT-M"),
];

/// Maximum number of products in an order (`rules`).
const MAX_PRODUCTS: usize = 500;

/// The meaning of a heading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heading {
    Field(&'static Column),
    /// A column of the product with this number, from 1.
    Product(usize, &'static Column),
    /// A note for the user's own use: the heading starts with `#` or is blank.
    Note,
}

impl Heading {
    pub(super) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Field(one), Self::Field(two)) => one.name == two.name,
            (Self::Product(n, one), Self::Product(m, two)) => n == m && one.name == two.name,
            _ => false,
        }
    }

    pub(super) fn is_column(self, column: &Column) -> bool {
        matches!(self, Self::Field(own) if own.name == column.name)
    }

    /// Returns the column's name; a note has none.
    pub(super) fn name(self) -> String {
        match self {
            Self::Field(column) => column.name.to_owned(),
            Self::Product(number, column) => product_name(number, column),
            Self::Note => String::new(),
        }
    }
}

/// Parses a heading: the name of a column, or the path of its field in the API. Case, spaces and punctuation are
/// ignored.
pub(super) fn parse_heading(heading: &str) -> Option<Heading> {
    let heading = heading.trim();
    if heading.is_empty() || heading.starts_with('#') {
        return Some(Heading::Note);
    }
    let heading = normalize(heading);
    let field = COLUMNS
        .iter()
        .find(|column| normalize(column.name) == heading || normalize(column.path) == heading)
        .map(Heading::Field);
    field.or_else(|| product(&heading))
}

fn product(heading: &str) -> Option<Heading> {
    let rest = heading.strip_prefix("product")?;
    let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = rest.strip_suffix(name)?;
    let number = if number.is_empty() { 1 } else { number.parse().ok()? };
    let column = PRODUCT_COLUMNS.iter().find(|column| normalize(column.name) == name)?;
    (1..=MAX_PRODUCTS).contains(&number).then_some(Heading::Product(number, column))
}

pub(super) fn normalize(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Minimum similarity of a suggested name (Jaro-Winkler; 1 is equal).
const MIN_SIMILARITY: f64 = 0.8;

/// Returns the column whose name is most similar.
pub(super) fn nearest_column(heading: &str) -> Option<String> {
    let names = COLUMNS.iter().map(|column| column.name.to_owned()).chain(product_names(1));
    most_similar(heading, names)
}

/// Returns the field with the most similar path; in the product, if the path is that of one.
pub(crate) fn nearest_field(path: &str) -> Option<String> {
    let product = path.split_once("].").map_or("products[0]", |(product, _)| product);
    let product = product.trim_end_matches(']');
    let products = PRODUCT_COLUMNS.iter().map(|column| format!("{product}].{}", column.path));
    let own = COLUMNS.iter().map(|column| column.path.to_owned());
    most_similar(path, own.chain(["idempotencyKey".to_owned()]).chain(products))
}

/// Returns the most similar of these names. Case, spaces and punctuation are ignored.
pub(super) fn most_similar(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let name = normalize(name);
    known
        .map(|known| (strsim::jaro_winkler(&normalize(&known), &name), known))
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .max_by(|(one, _), (two, _)| one.total_cmp(two))
        .map(|(_, known)| known)
}

fn product_names(number: usize) -> impl Iterator<Item = String> {
    PRODUCT_COLUMNS.iter().map(move |column| product_name(number, column))
}

fn product_name(number: usize, column: &Column) -> String {
    match number {
        1 => format!("product_{}", column.name),
        _ => format!("product_{number}_{}", column.name),
    }
}

/// Returns a file with every column and one order.
pub(crate) fn sample() -> Vec<[String; 2]> {
    let own = COLUMNS.iter().map(|column| [column.name.to_owned(), column.sample.to_owned()]);
    let first =
        product_names(1).zip(PRODUCT_COLUMNS).map(|(name, column)| [name, column.sample.into()]);
    own.chain(first).chain(product_names(2).map(|name| [name, String::new()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_every_column_and_no_other() {
        let guide = include_str!("../../docs/importing.md");
        let row = |name: String, path: &str, column: &Column| {
            let needed = if column.is_required { "yes" } else { "" };
            let sample = Some(column.sample).filter(|sample| !sample.is_empty());
            let sample = sample.map(|sample| format!("`{sample}`")).unwrap_or_default();
            format!("| `{name}` | `{path}` | {needed} | {sample} |")
        };
        let own = COLUMNS.iter().map(|column| row(column.name.to_owned(), column.path, column));
        let products = product_names(1)
            .zip(PRODUCT_COLUMNS)
            .map(|(name, column)| row(name, &format!("products[].{}", column.path), column));
        let expected: Vec<_> = own.chain(products).collect();
        let table = guide.split("\n| column |").nth(1).unwrap().lines().skip(2);
        let found: Vec<_> = table.take_while(|line| line.starts_with('|')).collect();
        assert_eq!(found, expected, "docs/importing.md: the table of columns");
    }

    #[test]
    fn a_heading_is_recognised_by_name_or_path() {
        for heading in ["receiver_zip", " Receiver ZIP", "receiver-zip", "receiver.address.zipCode"]
        {
            assert!(
                matches!(parse_heading(heading), Some(Heading::Field(column)) if column.name == "receiver_zip"),
                "{heading}"
            );
        }
        let table = [
            ("product_sku", Some((1, "sku"))),
            ("Product 2 HS code", Some((2, "hs_code"))),
            ("product_500_value", Some((500, "value"))),
            ("product_501_value", None),
            ("product_0_value", None),
            ("product", None),
        ];
        for (heading, expected) in table {
            let found = match parse_heading(heading) {
                Some(Heading::Product(number, column)) => Some((number, column.name)),
                _ => None,
            };
            assert_eq!(found, expected, "{heading}");
        }
    }
}
