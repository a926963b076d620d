//! Files and standard input, and the orders and tracking numbers in them.

use std::{
    fs,
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
};

use serde_json::value::RawValue;

use crate::{
    encoding::{self, LITTLE_ENDIAN_MARK},
    failure::Failure,
};

/// A source of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    Stdin,
}

impl Source {
    /// Returns the source that an argument names; `-` is standard input.
    pub(crate) fn from_argument(argument: &Path) -> Self {
        if argument.as_os_str() == "-" { Self::Stdin } else { Self::File(argument.to_owned()) }
    }

    pub(crate) fn is_stdin(&self) -> bool {
        *self == Self::Stdin
    }

    /// Returns `true` if the file's extension is that of a table.
    pub(crate) fn is_sheet(&self) -> bool {
        let Self::File(path) = self else { return false };
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        ["csv", "tsv", "xls", "xlsx", "ods"].iter().any(|sheet| ending == *sheet)
    }

    /// Returns the name of the source, for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Stdin => "-".to_owned(),
        }
    }

    /// Reads the whole text, without the byte order mark that editors on Windows write. It may be UTF-16, which
    /// PowerShell writes with `>`.
    pub(crate) fn read_text(&self) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        let read = match self {
            Self::File(path) => fs::read(path).map(|content| bytes = content),
            Self::Stdin => io::stdin().lock().read_to_end(&mut bytes).map(drop),
        };
        let text = read.and_then(|()| encoding::decode(&bytes));
        text.map_err(|err| Failure::for_unreadable_file(&self.name(), &err))
    }
}

/// Reads the first line of standard input.
pub(crate) fn line() -> Result<String, Failure> {
    let line = first_line(io::stdin().lock());
    line.map_err(|err| Failure::for_unreadable_file("-", &err))
}

fn first_line(mut input: impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    if line.starts_with(&LITTLE_ENDIAN_MARK) && line.len() % 2 == 1 {
        // A line break in UTF-16 has a second byte.
        line.push(0);
    }
    encoding::decode(&line)
}

/// Reads a line from the terminal, without echo.
pub(crate) fn hidden_line() -> Result<String, Failure> {
    rpassword::read_password().map_err(|err| Failure::for_unreadable_file("-", &err))
}

/// Returns each line that is not blank, trimmed.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns `true` for a text whose first line has several cells and is not JSON.
pub(crate) fn is_table(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    first.contains([',', ';', '\t', '|']) && !first.contains(['{', '[', ':'])
}

/// Returns the text of each order: a single order, the elements of an array, or one order per line.
pub(crate) fn orders(content: &str) -> Vec<&str> {
    if content.trim_start().starts_with('[')
        && let Ok(array) = serde_json::from_str::<Vec<&RawValue>>(content)
    {
        return array.into_iter().map(RawValue::get).collect();
    }
    let lines = || content.trim().lines().map(str::trim);
    let first = lines().next().unwrap_or_default();
    match serde_json::from_str::<&RawValue>(first) {
        Ok(_) => lines().filter(|line| !line.is_empty()).collect(),
        Err(_) if content.trim().is_empty() => Vec::new(),
        // Leading spaces are kept, so that line numbers in faults match the file.
        Err(_) => vec![content.trim_end()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_without_surrounding_spaces() {
        let table: [(&str, &[&str]); 3] =
            [("", &[]), (" \r\n\n", &[]), ("A-1\r\n\n  B-2 \nC-3", &["A-1", "B-2", "C-3"])];
        for (content, expected) in table {
            assert_eq!(lines(content), expected, "{content:?}");
        }
    }

    #[test]
    fn a_line_may_be_in_any_encoding_of_windows() {
        let table: [(&[u8], &str); 4] = [
            (b"pk_test_1\r\nmore", "pk_test_1\r\n"),
            (b"\xef\xbb\xbfpk\n", "pk\n"),
            (b"\xff\xfep\0k\0\r\0\n\0x\0", "pk\r\n"),
            (b"\xfe\xff\0p\0k\0\n\0x", "pk\n"),
        ];
        for (bytes, line) in table {
            assert_eq!(first_line(bytes).unwrap(), line, "{bytes:?}");
        }
        assert!(first_line(&b"caf\xe9\n"[..]).is_err());
    }

    #[test]
    fn a_table_is_recognised_by_its_first_line() {
        for table in ["reference,sender_name\nA-1,Ana", "\n a;b", "a\tb", "\"a\",\"b\"", "a|b"] {
            assert!(is_table(table), "{table:?}");
        }
        for other in
            ["", "SB-1\nSB-2, SB-3", "{\"a\": 1, \"b\": 2}", "[1, 2]", "\"a\": 1,\n\"b\": 2}"]
        {
            assert!(!is_table(other), "{other:?}");
        }
    }

    #[test]
    fn a_file_holds_one_order_an_array_or_one_order_per_line() {
        let table: [(&str, &[&str]); 12] = [
            ("", &[]),
            (" \n", &[]),
            ("[]", &[]),
            ("{\"a\":1}", &["{\"a\":1}"]),
            ("{\n \"a\":1\n}\n", &["{\n \"a\":1\n}"]),
            ("[{}, {\"a\":\n2}]", &["{}", "{\"a\":\n2}"]),
            ("{}\r\n\r\n{\"a\":1}\n", &["{}", "{\"a\":1}"]),
            ("{}\n{\"a\":\n", &["{}", "{\"a\":"]),
            ("{\"a\":", &["{\"a\":"]),
            ("\n\n{\"a\":\n", &["\n\n{\"a\":"]),
            ("[{},", &["[{},"]),
            ("no json\nat all", &["no json\nat all"]),
        ];
        for (content, expected) in table {
            assert_eq!(orders(content), expected, "{content:?}");
        }
    }
}
