//! Sanitizes names for e-mails. They come from shops and orders, where callers can write anything: a name must not
//! become a link, reverse the text around it or start a new line.

/// Maximum length of a name in characters; longer names are truncated.
const MAX_CHARS: usize = 60;

/// Removes control characters, invisible characters, and everything that mail programs turn into a link. The result may
/// be empty.
pub(super) fn plain_name(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || c.is_control()).map(clean_word);
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    truncate_name(&words.join(" "))
}

fn clean_word(word: &str) -> String {
    let shown: String =
        word.chars().filter(|c| !parcelo_types::internal::is_invisible(*c)).collect();
    let lower = shown.to_lowercase();
    let is_link = lower.contains("://")
        || lower.contains('@')
        || ["www.", "mailto:", "tel:", "sms:"].iter().any(|start| lower.contains(start));
    if is_link { String::new() } else { break_host_names(&shown) }
}

/// Adds a space after dots within a word: mail programs turn `evil.example` into a link, but not `evil. example`, and
/// `Dr. Juan` stays the same.
fn break_host_names(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        plain.push(letter);
        // Domain names treat the last three as dots, too.
        let is_dot = matches!(letter, '.' | '\u{3002}' | '\u{FF0E}' | '\u{FF61}');
        if is_dot && letters.peek().is_some_and(|next| next.is_alphanumeric()) {
            plain.push(' ');
        }
    }
    plain
}

fn truncate_name(name: &str) -> String {
    if name.chars().count() <= MAX_CHARS {
        return name.to_owned();
    }
    let kept: String = name.chars().take(MAX_CHARS - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_control_characters_are_removed() {
        let table = [
            ("María José Ñandú", "María José Ñandú"),
            ("  Ana \t Paz ", "Ana Paz"),
            ("Dr.Juan St. John", "Dr. Juan St. John"),
            ("J.R.R. Tolkien", "J. R. R. Tolkien"),
            ("王小明", "王小明"),
            ("O'Brien & Sons <b>", "O'Brien & Sons <b>"),
            ("Ana\r\nBcc: x@y.example", "Ana Bcc:"),
            ("Ana\u{2028}Paz\u{85}X", "Ana Paz X"),
            ("a\u{202E}b\u{200B}c\u{2066}d", "abcd"),
            ("Pay at evil.example/now", "Pay at evil. example/now"),
            ("Pay at https://evil.example now", "Pay at now"),
            ("www.evil.example", ""),
            ("WWW.Evil.Example", ""),
            ("ev\u{200B}il.example", "evil. example"),
            ("w\u{200D}ww.evil.example", ""),
            ("evil\u{3002}example", "evil\u{3002} example"),
            ("mailto:x tel:+15550100 sms:1", ""),
            ("\u{200B}", ""),
            ("", ""),
        ];
        for (name, plain) in table {
            assert_eq!(plain_name(name), plain, "{name:?}");
        }
    }

    #[test]
    fn a_long_name_is_truncated() {
        let name = plain_name(&"ab ".repeat(100));
        assert!(name.chars().count() <= MAX_CHARS && name.ends_with('…'), "{name}");
        assert_eq!(plain_name(&"x".repeat(MAX_CHARS)).len(), MAX_CHARS);
    }
}
