//! The known fields of a request, in the order of the spec's tables. They identify unknown fields and sort the faults.

use super::{
    path::{self, Path},
    texts::warnings,
    validation::Report,
};
use crate::model::{
    WarningCode,
    json::{Json, Members},
};

/// The known members of an object.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "constants are literals")]
pub struct Fields(pub &'static [(&'static str, Kind)]);

/// The content of a member.
#[derive(Debug)]
pub enum Kind {
    /// A value.
    Leaf,
    /// An object, or a list of objects, with nested fields.
    Nested(&'static Fields),
}

/// Names that other shipping APIs use for our fields, without case and punctuation. A name is a candidate only in
/// objects that have the field, so that `state` and `province` can stand for each other.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("amount", "declaredValue"),
    ("addressline1", "line1"),
    ("addressline2", "line2"),
    ("apartment", "line2"),
    ("company", "companyName"),
    ("contactname", "fullName"),
    ("contentstype", "contentsCategory"),
    ("countryofmanufacture", "countryOfOrigin"),
    ("department", "province"),
    ("instructions", "deliveryInstructions"),
    ("items", "products"),
    ("kg", "weightKg"),
    ("lbs", "weightLbs"),
    ("mobile", "phone"),
    ("name", "fullName"),
    ("netweight", "unitNetWeightKg"),
    ("netweightkg", "unitNetWeightKg"),
    ("organization", "companyName"),
    ("origin", "countryOfOrigin"),
    ("origincountry", "countryOfOrigin"),
    ("package", "parcelDetails"),
    ("parcel", "parcelDetails"),
    ("postalcode", "zipCode"),
    ("postcode", "zipCode"),
    ("price", "unitFobValue"),
    ("province", "state"),
    ("qty", "quantity"),
    ("recipient", "receiver"),
    ("reference", "customerReference"),
    ("shipper", "sender"),
    ("state", "province"),
    ("street", "line1"),
    ("taxid", "nationalId"),
    ("telephone", "phone"),
    ("termsofsale", "incoterm"),
    ("unitprice", "unitFobValue"),
    ("unitvalue", "unitFobValue"),
    ("value", "declaredValue"),
    ("weight", "weightKg"),
    ("zip", "zipCode"),
];

/// Maximum number of warnings about unknown fields in a response; the last one counts the rest. Without a limit, the
/// response to a body of unknown fields would be many times its size.
const MAX_UNKNOWN_FIELD_WARNINGS: usize = 20;

/// Minimum Jaro-Winkler similarity of a suggested name: `reciever` finds `receiver`.
const MIN_SIMILARITY: f64 = 0.85;

impl Fields {
    /// Adds a warning for every unknown member of the body.
    pub(crate) fn warn_unknown(&self, body: &Members<'_>, report: &mut Report) {
        let mut unknown = UnknownFields::default();
        self.collect(body, &Path::BODY, &mut unknown);
        unknown.listed.sort_unstable();
        let last = if unknown.unlisted > 0 { unknown.listed.pop() } else { None };
        for (field, name, suggestion) in &unknown.listed {
            report.warnings.push(warnings::unknown_field(name, suggestion.as_deref()).at(field));
        }
        if let Some((field, ..)) = last {
            report.warnings.push(warnings::more_unknown_fields(unknown.unlisted).at(&field));
        }
    }

    /// Sorts faults and warnings by the order of the tables; unknown fields come last.
    pub(crate) fn sort(&self, report: &mut Report) {
        report.faults.sort_by_cached_key(|fault| self.rank(&fault.field));
        report.warnings.sort_by_cached_key(|warning| {
            (self.rank(&warning.field), warning.code == WarningCode::UnknownField)
        });
    }

    /// Returns the position of a path in the tables: one number for each step.
    fn rank(&self, path: &str) -> Vec<usize> {
        let mut rank = Vec::new();
        let mut fields = Some(self);
        for step in path.split(['.', '[']) {
            if let Some(index) = step.strip_suffix(']') {
                rank.push(index.parse().unwrap_or(usize::MAX));
                continue;
            }
            let found = fields.and_then(|fields| fields.position(step));
            rank.push(found.map_or(usize::MAX, |(index, _)| index));
            fields = found.and_then(|(_, kind)| kind.fields());
        }
        rank
    }

    fn position(&self, name: &str) -> Option<(usize, &Kind)> {
        let index = self.0.iter().position(|(known, _)| *known == name)?;
        self.0.get(index).map(|(_, kind)| (index, kind))
    }

    fn collect(&self, members: &Members<'_>, path: &Path<'_>, unknown: &mut UnknownFields) {
        for (name, value) in members {
            let here = path.member(name);
            match self.position(name) {
                None if unknown.listed.len() < MAX_UNKNOWN_FIELD_WARNINGS => {
                    let name = path::shorten_name(name);
                    unknown.listed.push((here.to_string(), name.to_owned(), self.suggest(name)));
                }
                None => unknown.unlisted += 1,
                Some((_, Kind::Leaf)) => {}
                Some((_, Kind::Nested(fields))) => fields.collect_nested(value, &here, unknown),
            }
        }
    }

    fn collect_nested(&self, value: &Json<'_>, path: &Path<'_>, unknown: &mut UnknownFields) {
        match value {
            Json::Object(members) => self.collect(members, path, unknown),
            Json::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    if let Json::Object(members) = item {
                        self.collect(members, &path.item(i), unknown);
                    }
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
        }
    }

    /// Returns the field that an unknown name probably refers to.
    pub(crate) fn suggest(&self, name: &str) -> Option<String> {
        let plain = normalize_name(name);
        let known = |other: &str| self.0.iter().any(|(known, _)| *known == other);
        self.find_by_letters(&plain)
            .or_else(|| {
                let (_, ours) =
                    OTHER_NAMES.iter().find(|(other, ours)| *other == plain && known(ours))?;
                Some((*ours).to_owned())
            })
            .or_else(|| self.find_similar(&plain))
            .or_else(|| self.find_nested(&plain))
    }

    /// Returns the field of this object whose name has the same letters, ignoring case and punctuation.
    fn find_by_letters(&self, name: &str) -> Option<String> {
        let (known, _) = self.0.iter().find(|(known, _)| normalize_name(known) == name)?;
        Some((*known).to_owned())
    }

    fn find_similar(&self, name: &str) -> Option<String> {
        let score = |known: &str| strsim::jaro_winkler(&normalize_name(known), name);
        let (best, known) = self
            .0
            .iter()
            .map(|(known, _)| (score(known), *known))
            .max_by(|one, other| one.0.total_cmp(&other.0))?;
        (best >= MIN_SIMILARITY).then(|| known.to_owned())
    }

    /// Returns the field of a nested object, if the caller left out a level.
    fn find_nested(&self, name: &str) -> Option<String> {
        self.0.iter().find_map(|(outer, kind)| {
            let inner = kind.fields()?.find_by_letters(name)?;
            Some(format!("{outer}.{inner}"))
        })
    }
}

/// The unknown members that were found.
#[derive(Default)]
struct UnknownFields {
    /// Path, name and suggestion of the members that get a warning of their own.
    listed: Vec<(String, String, Option<String>)>,
    /// The number of further unknown fields.
    unlisted: usize,
}

impl Kind {
    fn fields(&self) -> Option<&'static Fields> {
        match self {
            Self::Leaf => None,
            Self::Nested(fields) => Some(fields),
        }
    }
}

/// Returns a name without case and punctuation.
fn normalize_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
