//! Column maps in TOML: they say which columns of a CSV file fill which fields if the headings are not the import's
//! own. The presets for exports of shop systems are such maps too. `header` applies a map to the headings of a file.

use parcelo::model::{FaultCode, FieldFault};
use toml_edit::{DocumentMut, Item, TableLike};

use super::columns::{Heading, most_similar, nearest_column, normalize, parse_heading};
use crate::{
    texts::{Message, import as texts},
    toml_file,
};

/// A mapping from columns of a file to fields of its orders.
#[derive(Debug, Default)]
pub(crate) struct ColumnMap {
    pub(super) columns: Vec<MappedColumn>,
    /// Values for fields that an order lacks.
    pub(super) defaults: Vec<(Heading, String)>,
    /// Headings of columns that are not read.
    ignored: Vec<String>,
    /// Headings of columns that make an order invalid if they are filled, such as the cancellation date.
    pub(super) must_be_empty: Vec<String>,
    pub(super) other_columns: Option<OtherColumns>,
    one_row_per: Option<OneRowPer>,
}

/// A field and the headings that fill it.
#[derive(Debug)]
pub(super) struct MappedColumn {
    pub(super) heading: Heading,
    /// Each source is a heading, or a text with several: `{First name} {Last name}`.
    pub(super) sources: Vec<String>,
    /// Set if the sources are alternatives, any of which the file may lack.
    pub(super) is_list: bool,
}

/// The object that a row of the file represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OneRowPer {
    Order,
    /// Consecutive rows with the same reference form one order.
    Product,
}

/// The treatment of columns with an unknown heading that the map does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherColumns {
    Refuse,
    Ignore,
}

/// A shop system whose export is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Preset {
    Shopify,
    WooCommerce,
}

impl Preset {
    /// Returns its column map, as TOML.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Shopify => include_str!("presets/shopify.toml"),
            Self::WooCommerce => include_str!("presets/woocommerce.toml"),
        }
    }
}

/// The default of `declared_value` that means its computation from the products.
pub(super) const SUM_OF_PRODUCTS: &str = "sum of products";

const SETTINGS: [&str; 6] =
    ["one_row_per", "other_columns", "ignore", "must_be_empty", "columns", "defaults"];

impl ColumnMap {
    /// Parses a map. The error contains all faults of the file.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<FieldFault>> {
        let document = toml_file::parse(text).map_err(|line| {
            let place = texts::MAP_LINE.with(&[("line", &line.to_string())]);
            vec![fault(&place.en, "INVALID_FORMAT", texts::NOT_TOML)]
        })?;
        let mut reader = MapReader::default();
        reader.read_document(&document);
        if reader.faults.is_empty() { Ok(reader.map) } else { Err(reader.faults) }
    }

    /// Completes this map with the entries of another one.
    pub(crate) fn or(mut self, other: Self) -> Self {
        let is_new = |heading: Heading, own: &[MappedColumn]| {
            !own.iter().any(|column| column.heading.is_same(heading))
        };
        let columns = other.columns.into_iter();
        let columns: Vec<_> =
            columns.filter(|column| is_new(column.heading, &self.columns)).collect();
        self.columns.extend(columns);
        for (heading, text) in other.defaults {
            if !self.defaults.iter().any(|(own, _)| own.is_same(heading)) {
                self.defaults.push((heading, text));
            }
        }
        self.ignored.extend(other.ignored);
        self.must_be_empty.extend(other.must_be_empty);
        self.other_columns = self.other_columns.or(other.other_columns);
        self.one_row_per = self.one_row_per.or(other.one_row_per);
        self
    }

    /// Returns `true` if the map changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.defaults.is_empty() && self.one_row_per.is_none()
    }

    pub(super) fn one_row_per(&self) -> OneRowPer {
        self.one_row_per.unwrap_or(OneRowPer::Order)
    }

    pub(super) fn ignores(&self, heading: &str) -> bool {
        self.ignored.iter().any(|ignored| is_same_heading(ignored, heading))
    }
}

/// Returns `true` if two headings are the same. Case, spaces and punctuation are ignored, unless a heading has nothing
/// else.
pub(super) fn is_same_heading(one: &str, other: &str) -> bool {
    let (short, long) = (normalize(one), normalize(other));
    if short.is_empty() { one.trim() == other.trim() } else { short == long }
}

/// Reads a map, and collects its faults.
#[derive(Default)]
struct MapReader {
    map: ColumnMap,
    faults: Vec<FieldFault>,
}

impl MapReader {
    fn read_document(&mut self, document: &DocumentMut) {
        for (name, item) in document.iter() {
            match name {
                "one_row_per" => {
                    let choices = [("order", OneRowPer::Order), ("product", OneRowPer::Product)];
                    self.map.one_row_per = self.choice(name, item, choices);
                }
                "other_columns" => {
                    let choices =
                        [("refuse", OtherColumns::Refuse), ("ignore", OtherColumns::Ignore)];
                    self.map.other_columns = self.choice(name, item, choices);
                }
                "ignore" => self.map.ignored = self.headings(name, item),
                "must_be_empty" => self.map.must_be_empty = self.headings(name, item),
                "columns" => self.table(name, item, Self::column),
                "defaults" => self.table(name, item, Self::default_value),
                other => {
                    let mut unknown = fault(other, "UNKNOWN_FIELD", texts::UNKNOWN_SETTING);
                    let known = SETTINGS.iter().map(|name| (*name).to_owned());
                    unknown.suggestion = most_similar(other, known);
                    self.faults.push(unknown);
                }
            }
        }
    }

    fn choice<T: Copy>(&mut self, name: &str, item: &Item, known: [(&str, T); 2]) -> Option<T> {
        let chosen = item.as_str().and_then(|text| known.iter().find(|(own, _)| *own == text));
        if chosen.is_none() {
            let values = known.map(|(own, _)| format!("\"{own}\"")).join(", ");
            self.faults.push(fault(
                name,
                "INVALID_FORMAT",
                texts::ONE_OF.with(&[("values", &values)]),
            ));
        }
        chosen.map(|(_, value)| *value)
    }

    fn headings(&mut self, name: &str, item: &Item) -> Vec<String> {
        let (texts, _) = strings(item).unwrap_or_else(|| {
            self.faults.push(fault(name, "INVALID_FORMAT", texts::HEADINGS_EXPECTED));
            Default::default()
        });
        texts
    }

    fn table(&mut self, name: &str, item: &Item, read: fn(&mut Self, &str, Heading, &Item)) {
        let Some(table) = item.as_table_like() else {
            self.faults.push(fault(name, "INVALID_FORMAT", texts::TABLE_EXPECTED));
            return;
        };
        self.fields(name, table, read);
    }

    fn fields(
        &mut self,
        place: &str,
        table: &dyn TableLike,
        read: fn(&mut Self, &str, Heading, &Item),
    ) {
        let mut seen = Vec::<Heading>::new();
        for (name, item) in table.iter() {
            let location = format!("{place}.{name}");
            match parse_heading(name) {
                None | Some(Heading::Note) => {
                    let mut unknown = fault(&location, "UNKNOWN_FIELD", texts::UNKNOWN_FIELD);
                    unknown.suggestion = nearest_column(name);
                    self.faults.push(unknown);
                }
                Some(heading) if seen.iter().any(|one| one.is_same(heading)) => {
                    self.faults.push(fault(&location, "DUPLICATE", texts::FIELD_REPEATED));
                }
                Some(heading) => {
                    seen.push(heading);
                    read(self, &location, heading, item);
                }
            }
        }
    }

    fn column(&mut self, location: &str, heading: Heading, item: &Item) {
        match strings(item) {
            Some((sources, is_list)) if sources.iter().all(|text| !text.trim().is_empty()) => {
                self.map.columns.push(MappedColumn { heading, sources, is_list });
            }
            _ => self.faults.push(fault(location, "INVALID_FORMAT", texts::HEADINGS_EXPECTED)),
        }
    }

    fn default_value(&mut self, location: &str, heading: Heading, item: &Item) {
        let value = item.as_value();
        let text = value.and_then(|value| match value {
            toml_edit::Value::String(text) => Some(text.value().trim().to_owned()),
            toml_edit::Value::Integer(number) => Some(number.value().to_string()),
            toml_edit::Value::Float(number) => Some(number.value().to_string()),
            _ => None,
        });
        match text.filter(|text| !text.is_empty()) {
            Some(text) => self.map.defaults.push((heading, text)),
            None => self.faults.push(fault(location, "INVALID_FORMAT", texts::VALUE_EXPECTED)),
        }
    }
}

/// Returns the strings of a string or an array, and `true` for an array.
fn strings(item: &Item) -> Option<(Vec<String>, bool)> {
    if let Some(text) = item.as_str() {
        return Some((vec![text.to_owned()], false));
    }
    let texts = item.as_array()?.iter().map(|value| value.as_str().map(str::to_owned));
    Some((texts.collect::<Option<_>>()?, true))
}

fn fault(location: &str, code: &str, message: impl Into<Message>) -> FieldFault {
    let message = message.into();
    FieldFault::new(location, FaultCode::from(code), (message.en, message.es))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_valid_map_with_the_fields_of_a_receiver() {
        for preset in <Preset as clap::ValueEnum>::value_variants() {
            let map = ColumnMap::parse(preset.text()).unwrap();
            assert_eq!(map.one_row_per(), OneRowPer::Product, "{preset:?}");
            for name in ["reference", "receiver_name", "receiver_line1", "product_value"] {
                assert!(map.columns.iter().any(|one| one.heading.name() == name), "{name}");
            }
            // A shop may omit columns from its export.
            assert!(map.columns.iter().all(|column| column.is_list), "{preset:?}");
        }
    }

    #[test]
    fn a_wrong_map_reports_all_faults_with_suggestions() {
        let text = "one_row_per = 'parcel'\nignored = ['Tags']\nmust_be_empty = 5\n[columns]\n\
            recever_name = 'Ship to'\nreference = ''\nreceiver_zip = 'Zip'\n\
            'receiver.address.zipCode' = 'Zip'\n[defaults]\nweight_kg = []\ncurrency = 'USD'\n";
        let faults = ColumnMap::parse(text).unwrap_err();
        let found: Vec<_> = faults
            .iter()
            .map(|fault| (&*fault.field, fault.code.code(), fault.suggestion.as_deref()))
            .collect();
        let expected = [
            ("one_row_per", "INVALID_FORMAT", None),
            ("ignored", "UNKNOWN_FIELD", Some("ignore")),
            ("must_be_empty", "INVALID_FORMAT", None),
            ("columns.recever_name", "UNKNOWN_FIELD", Some("receiver_name")),
            ("columns.reference", "INVALID_FORMAT", None),
            ("columns.receiver.address.zipCode", "DUPLICATE", None),
            ("defaults.weight_kg", "INVALID_FORMAT", None),
        ];
        assert_eq!(found, expected);
        let faults = ColumnMap::parse("a = 1\nb =").unwrap_err();
        assert_eq!(faults[0].field, "line 2");
    }

    #[test]
    fn a_map_overrides_its_preset_where_it_has_values() {
        let own = ColumnMap::parse("[columns]\nreference = 'Id'\n[defaults]\nweight_kg = 1.5\n");
        let map = own.unwrap().or(ColumnMap::parse(Preset::Shopify.text()).unwrap());
        let sources = |name: &str| {
            let column = map.columns.iter().find(|one| one.heading.name() == name).unwrap();
            column.sources.clone()
        };
        assert_eq!(
            (sources("reference"), sources("currency")),
            (vec!["Id".into()], vec!["Currency".into()])
        );
        let defaults: Vec<_> =
            map.defaults.iter().map(|(heading, text)| (heading.name(), &**text)).collect();
        let expected = [("weight_kg".into(), "1.5"), ("declared_value".into(), SUM_OF_PRODUCTS)];
        assert_eq!(defaults, expected);
        assert_eq!(map.one_row_per(), OneRowPer::Product);
    }
}
