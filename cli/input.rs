//! Files and standard input, and the orders and numbers in them.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::value::RawValue;

use crate::failure::Failure;

/// Where input is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    Stdin,
}

impl Source {
    /// `-` is standard input.
    pub(crate) fn from_argument(argument: &Path) -> Self {
        if argument.as_os_str() == "-" { Self::Stdin } else { Self::File(argument.to_owned()) }
    }

    pub(crate) fn is_stdin(&self) -> bool {
        *self == Self::Stdin
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Stdin => "-".to_owned(),
        }
    }

    /// The whole content.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let read = match self {
            Self::File(path) => fs::read(path).map(|content| bytes = content),
            Self::Stdin => io::stdin().lock().read_to_end(&mut bytes).map(drop),
        };
        read.map_err(|why| Failure::unreadable(&self.name(), &why))?;
        Ok(bytes)
    }
}

/// The first line of standard input.
pub(crate) fn line() -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|why| Failure::unreadable("-", &why))?;
    Ok(line)
}

/// A line from the terminal, without echo.
pub(crate) fn hidden_line() -> Result<String, Failure> {
    rpassword::read_password().map_err(|why| Failure::unreadable("-", &why))
}

/// The content without a byte order mark, with which editors on Windows start a file.
pub(crate) fn without_byte_order_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content)
}

/// Each line that is not blank, trimmed.
pub(crate) fn lines(content: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(without_byte_order_mark(content));
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The text of each order: one order, an array of them, or one on each line.
pub(crate) fn orders(content: &[u8]) -> Vec<&[u8]> {
    let content = without_byte_order_mark(content).trim_ascii();
    if content.starts_with(b"[")
        && let Ok(array) = serde_json::from_slice::<Vec<&RawValue>>(content)
    {
        return array.into_iter().map(|order| order.get().as_bytes()).collect();
    }
    let lines = || content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines().next().unwrap_or_default();
    match serde_json::from_slice::<&RawValue>(first) {
        Ok(_) => lines().filter(|line| !line.is_empty()).collect(),
        Err(_) if content.is_empty() => Vec::new(),
        Err(_) => vec![content],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_without_blanks_and_marks() {
        let table: [(&[u8], &[&str]); 4] = [
            (b"", &[]),
            (b" \r\n\n", &[]),
            (b"\xef\xbb\xbfA-1\r\n\n  B-2 \nC-3", &["A-1", "B-2", "C-3"]),
            (b"A\xff\n", &["A\u{fffd}"]),
        ];
        for (content, expected) in table {
            assert_eq!(lines(content), expected, "{content:?}");
        }
    }

    #[test]
    fn a_file_holds_one_order_or_an_array_or_one_a_line() {
        let table: [(&str, &[&str]); 12] = [
            ("", &[]),
            (" \n", &[]),
            ("[]", &[]),
            ("{\"a\":1}", &["{\"a\":1}"]),
            ("{\n \"a\":1\n}\n", &["{\n \"a\":1\n}"]),
            ("\u{feff}{}", &["{}"]),
            ("[{}, {\"a\":\n2}]", &["{}", "{\"a\":\n2}"]),
            ("{}\r\n\r\n{\"a\":1}\n", &["{}", "{\"a\":1}"]),
            ("{}\n{\"a\":\n", &["{}", "{\"a\":"]),
            ("{\"a\":", &["{\"a\":"]),
            ("[{},", &["[{},"]),
            ("no json\nat all", &["no json\nat all"]),
        ];
        for (content, expected) in table {
            let found: Vec<_> = orders(content.as_bytes());
            let expected: Vec<_> = expected.iter().map(|text| text.as_bytes()).collect();
            assert_eq!(found, expected, "{content:?}");
        }
    }
}
