//! Commands that people copy into a shell.

/// Returns the command that sets an account's password in the database that `options` name.
pub(crate) fn set_password(account: &str, options: &str) -> String {
    format!("parcelo-server accounts password {} {options}", quoted(account))
}

/// Returns a text as one word of a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/:._-@,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
