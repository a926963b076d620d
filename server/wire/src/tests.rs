//! A helper that lists the faults that a check finds.

use parcelo_types::rules::Rejected;

/// Returns the faults of a request as `path CODE`.
pub(crate) fn faults_of<T>(checked: Result<T, Rejected>) -> Vec<String> {
    let faults = checked.err().map(|rejected| rejected.faults).unwrap_or_default().into_iter();
    faults
        .map(|fault| {
            assert_ne!(fault.message, fault.message_es);
            format!("{} {}", fault.field, fault.code)
        })
        .collect()
}
