//! The lists in docs/api.md, compared with the tables of the code.

use parcelo::{
    ErrorCode, Language, Operation, ParcelStatus,
    model::{FaultCode, WarningCode},
};
use parcelo_types::internal::EventKind;

#[test]
fn the_reference_has_every_row_of_the_tables_in_the_code() {
    let errors = ErrorCode::ALL.iter().map(|code| {
        let (en, es) = (code.template(Language::En), code.template(Language::Es));
        format!("| {code} | {} | {en} | {es} |", code.status())
    });
    let operations = Operation::ALL
        .iter()
        .map(|operation| format!("{} {}", operation.method().as_str(), operation.path()));
    let statuses = ParcelStatus::KNOWN.iter().map(|status| {
        format!("| {status} | {} | {} |", status.name(Language::En), status.name(Language::Es))
    });
    let faults = FaultCode::KNOWN.iter().map(|fault| format!("`{fault}`"));
    let warnings = WarningCode::KNOWN.iter().map(|warning| format!("`{warning}`"));
    let events = EventKind::KNOWN.iter().map(|kind| format!("| `{kind}` |"));
    let rows = errors.chain(operations).chain(statuses).chain(faults).chain(warnings).chain(events);
    let text = include_str!("../../docs/api.md");
    let missing: Vec<_> = rows.filter(|row| !text.contains(row)).collect();
    assert!(missing.is_empty(), "docs/api.md lacks {missing:#?}");
}
