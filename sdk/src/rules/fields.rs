//! The fields of a request in the order of the spec's tables: what is unknown, and what comes first.

use serde_json::{Map, Value};

use super::{
    path::{self, Path},
    texts::warnings,
    validation::Report,
};
use crate::model::WarningCode;

/// The members that an object may have.
pub(crate) struct Fields(pub(crate) &'static [(&'static str, Kind)]);

/// What is below a member.
pub(crate) enum Kind {
    /// Nothing.
    Leaf,
    /// An object, or a list of objects, with fields of its own.
    Nested(&'static Fields),
}

/// Names that others use for our fields, without case and punctuation.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("amount", "declaredValue"),
    ("addressline1", "line1"),
    ("addressline2", "line2"),
    ("contactname", "fullName"),
    ("department", "province"),
    ("instructions", "deliveryInstructions"),
    ("items", "products"),
    ("kg", "weightKg"),
    ("lbs", "weightLbs"),
    ("mobile", "phone"),
    ("name", "fullName"),
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
    ("unitprice", "unitFobValue"),
    ("unitvalue", "unitFobValue"),
    ("value", "declaredValue"),
    ("weight", "weightKg"),
    ("zip", "zipCode"),
];

/// Unknown fields that are told one by one; a body of nothing else must not become a long answer.
const MAX_UNKNOWN_FIELD_WARNINGS: usize = 20;

/// Names this alike were probably meant.
const MIN_SIMILARITY: f64 = 0.85;

impl Fields {
    /// Warns of every member of the body that no field reads.
    pub(crate) fn warn_unknown(&self, body: &Map<String, Value>, report: &mut Report) {
        let mut unknown = Unknown::default();
        self.collect(body, &Path::BODY, &mut unknown);
        unknown.told.sort_unstable();
        let last = if unknown.untold > 0 { unknown.told.pop() } else { None };
        for (field, name, meant) in &unknown.told {
            report.warnings.push(warnings::unknown_field(name, meant.as_deref()).at(field));
        }
        if let Some((field, ..)) = last {
            report.warnings.push(warnings::more_unknown_fields(unknown.untold).at(&field));
        }
    }

    /// Puts faults and warnings into the order of the tables; unknown fields come last in theirs.
    pub(crate) fn sort(&self, report: &mut Report) {
        report.faults.sort_by_cached_key(|fault| self.rank(&fault.field));
        report.warnings.sort_by_cached_key(|warning| {
            (self.rank(&warning.field), warning.code == WarningCode::UnknownField)
        });
    }

    /// The place of a path in the tables: one number for each step.
    fn rank(&self, path: &str) -> Vec<usize> {
        let mut rank = Vec::new();
        let mut fields = Some(self);
        for step in path.split(['.', '[']) {
            if let Some(place) = step.strip_suffix(']') {
                rank.push(place.parse().unwrap_or(usize::MAX));
                continue;
            }
            let found = fields.and_then(|fields| fields.position(step));
            rank.push(found.map_or(usize::MAX, |(place, _)| place));
            fields = found.and_then(|(_, kind)| kind.fields());
        }
        rank
    }

    fn position(&self, name: &str) -> Option<(usize, &Kind)> {
        let place = self.0.iter().position(|(known, _)| *known == name)?;
        self.0.get(place).map(|(_, kind)| (place, kind))
    }

    fn collect(&self, members: &Map<String, Value>, path: &Path<'_>, unknown: &mut Unknown) {
        for (name, value) in members {
            let here = path.member(name);
            match self.position(name) {
                None if unknown.told.len() < MAX_UNKNOWN_FIELD_WARNINGS => {
                    let name = path::shown(name);
                    unknown.told.push((here.to_string(), name.to_owned(), self.meant(name)));
                }
                None => unknown.untold += 1,
                Some((_, Kind::Leaf)) => {}
                Some((_, Kind::Nested(fields))) => fields.collect_nested(value, &here, unknown),
            }
        }
    }

    fn collect_nested(&self, value: &Value, path: &Path<'_>, unknown: &mut Unknown) {
        match value {
            Value::Object(members) => self.collect(members, path, unknown),
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    if let Value::Object(members) = item {
                        self.collect(members, &path.item(i), unknown);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The field that an unknown name probably stands for.
    pub(crate) fn meant(&self, name: &str) -> Option<String> {
        let plain = plain(name);
        let known = |other: &str| self.0.iter().any(|(known, _)| *known == other);
        self.same(&plain)
            .or_else(|| {
                let (_, ours) =
                    OTHER_NAMES.iter().find(|(other, ours)| *other == plain && known(ours))?;
                Some((*ours).to_owned())
            })
            .or_else(|| self.alike(&plain))
            .or_else(|| self.below(&plain))
    }

    /// A field of this object with the same letters.
    fn same(&self, name: &str) -> Option<String> {
        let (known, _) = self.0.iter().find(|(known, _)| plain(known) == name)?;
        Some((*known).to_owned())
    }

    fn alike(&self, name: &str) -> Option<String> {
        let score = |known: &str| strsim::jaro_winkler(&plain(known), name);
        let (best, known) = self
            .0
            .iter()
            .map(|(known, _)| (score(known), *known))
            .max_by(|one, other| one.0.total_cmp(&other.0))?;
        (best >= MIN_SIMILARITY).then(|| known.to_owned())
    }

    /// A field that belongs into an object of this one.
    fn below(&self, name: &str) -> Option<String> {
        self.0.iter().find_map(|(outer, kind)| {
            let inner = kind.fields()?.same(name)?;
            Some(format!("{outer}.{inner}"))
        })
    }
}

/// The members that no field reads.
#[derive(Default)]
struct Unknown {
    /// Path, name and the name that was probably meant.
    told: Vec<(String, String, Option<String>)>,
    /// How many more there are.
    untold: usize,
}

impl Kind {
    fn fields(&self) -> Option<&'static Fields> {
        match self {
            Self::Leaf => None,
            Self::Nested(fields) => Some(fields),
        }
    }
}

/// A name without case and punctuation.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
