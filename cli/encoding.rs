//! Encodings of text files from Windows and of CSV files from spreadsheets. They are detected and converted to UTF-8:
//! UTF-16 ("Unicode text") by its byte order mark, and windows-1252 ("CSV") by bytes that are not UTF-8.

use std::io::{self, BufReader, Read, Write};

use crate::texts::{Message, import as texts};

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Encoding {
    /// UTF-8, with or without a byte order mark.
    #[value(name = "utf-8", alias = "utf8")]
    Utf8,
    /// Western European: the encoding of Excel's "CSV" on Windows.
    #[value(name = "windows-1252", alias = "cp1252", alias = "latin1")]
    Windows1252,
    /// The encoding of Excel's "Unicode text", with a byte order mark.
    #[value(name = "utf-16", alias = "utf16")]
    Utf16,
}

pub(crate) const LITTLE_ENDIAN_MARK: [u8; 2] = *b"\xff\xfe";
const BIG_ENDIAN_MARK: [u8; 2] = *b"\xfe\xff";

impl Encoding {
    /// Returns the encoding's name in `--encoding`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Windows1252 => "windows-1252",
            Self::Utf16 => "utf-16",
        }
    }

    /// Returns a note about a file in this encoding, which is certain with a byte order mark and a guess otherwise.
    pub(crate) fn note(self) -> Option<Message> {
        let text = match self {
            Self::Utf8 => return None,
            Self::Windows1252 => texts::READ_AS,
            Self::Utf16 => texts::READ_BY_MARK,
        };
        Some(text.with(&[("encoding", self.name())]))
    }

    /// Detects the encoding of a file. A file in which only some characters are UTF-8 counts as UTF-8, and the damaged
    /// cells are refused.
    pub(crate) fn detect(mut file: impl Read) -> io::Result<Self> {
        let (mut waiting, mut is_first) = (Vec::new(), true);
        let (mut has_utf8, mut has_other) = (false, false);
        loop {
            let read = file.by_ref().take(CHUNK_BYTES).read_to_end(&mut waiting)?;
            if std::mem::take(&mut is_first)
                && [LITTLE_ENDIAN_MARK, BIG_ENDIAN_MARK]
                    .iter()
                    .any(|mark| waiting.starts_with(mark))
            {
                return Ok(Self::Utf16);
            }
            let is_end = read == 0;
            let text = waiting.utf8_chunks();
            let mut unfinished = Vec::new();
            for chunk in text {
                has_utf8 |= !chunk.valid().is_ascii();
                let invalid = chunk.invalid();
                // A character may continue in the next chunk.
                let may_go_on = !is_end && waiting.ends_with(invalid) && is_beginning(invalid);
                if may_go_on {
                    unfinished = invalid.to_vec();
                } else {
                    has_other |= !invalid.is_empty();
                }
            }
            if is_end {
                let is_other = has_other && !has_utf8;
                return Ok(if is_other { Self::Windows1252 } else { Self::Utf8 });
            }
            waiting = unfinished;
        }
    }

    /// Copies a file in this encoding as UTF-8, without a byte order mark.
    pub(crate) fn to_utf8(self, mut from: impl Read, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Utf8 => io::copy(&mut from, to).map(drop),
            Self::Windows1252 => BufReader::new(from)
                .bytes()
                .try_for_each(|byte| write_char(to, from_windows_1252(byte?))),
            Self::Utf16 => utf16_to_utf8(from, to),
        }
    }
}

/// Decodes a text and removes its byte order mark. The text must be UTF-8, or UTF-16 with the mark; the meaning of
/// other bytes would be a guess.
pub(crate) fn decode(bytes: &[u8]) -> io::Result<String> {
    let mut text = Vec::new();
    let encoding = match Encoding::detect(bytes)? {
        Encoding::Windows1252 => Encoding::Utf8,
        marked => marked,
    };
    encoding.to_utf8(bytes, &mut text)?;
    let text = String::from_utf8(text)
        .map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err.utf8_error()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

const CHUNK_BYTES: u64 = 1 << 16;

/// Returns `true` if the bytes can be the start of a UTF-8 character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

fn write_char(to: &mut impl Write, character: char) -> io::Result<()> {
    to.write_all(character.encode_utf8(&mut [0; 4]).as_bytes())
}

/// The characters of 0x80 to 0x9F. Five of them are undefined and stay control characters, as in browsers
/// (<https://encoding.spec.whatwg.org/#windows-1252>). All other bytes have the same code in Unicode.
const WINDOWS_1252: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

fn from_windows_1252(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|index| WINDOWS_1252.chars().nth(index.into()));
    special.unwrap_or_else(|| char::from(byte))
}

/// Returns the byte of a character in windows-1252, if it has one.
pub(crate) fn to_windows_1252(character: char) -> Option<u8> {
    match WINDOWS_1252.chars().position(|known| known == character) {
        Some(index) => u8::try_from(0x80 + index).ok(),
        None if ('\u{80}'..'\u{A0}').contains(&character) => None,
        None => u8::try_from(u32::from(character)).ok(),
    }
}

fn utf16_to_utf8(from: impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut bytes = BufReader::new(from).bytes();
    let mut next = || -> io::Result<Option<[u8; 2]>> {
        match (bytes.next().transpose()?, bytes.next().transpose()?) {
            (Some(one), Some(two)) => Ok(Some([one, two])),
            (None, _) => Ok(None),
            // Half a character at the end.
            (Some(_), None) => Err(damaged_error()),
        }
    };
    let Some(mark) = next()? else { return Ok(()) };
    let read = match mark {
        BIG_ENDIAN_MARK => u16::from_be_bytes,
        LITTLE_ENDIAN_MARK => u16::from_le_bytes,
        _ => return Err(damaged_error()),
    };
    let mut failed = None;
    let units = std::iter::from_fn(|| match next() {
        Ok(unit) => unit.map(read),
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    for character in char::decode_utf16(units) {
        write_char(to, character.map_err(|_unpaired| damaged_error())?)?;
    }
    failed.map_or(Ok(()), Err)
}

fn damaged_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-16 with a byte order mark")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(encoding: Encoding, bytes: &[u8]) -> io::Result<String> {
        let mut text = Vec::new();
        encoding.to_utf8(bytes, &mut text)?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn an_encoding_is_recognised_by_its_bytes() {
        let long = "a".repeat(usize::try_from(CHUNK_BYTES).unwrap() - 1) + "ñ";
        let table: [(&[u8], Encoding); 8] = [
            (b"plain", Encoding::Utf8),
            (b"", Encoding::Utf8),
            ("Pe\u{f1}a".as_bytes(), Encoding::Utf8),
            // A character over the border of two chunks.
            (long.as_bytes(), Encoding::Utf8),
            (b"Pe\xf1a", Encoding::Windows1252),
            (b"Pe\xf1a, Pe\xc3\xb1a", Encoding::Utf8),
            (b"\xff\xfeP\0", Encoding::Utf16),
            (b"\xfe\xff\0P", Encoding::Utf16),
        ];
        for (bytes, encoding) in table {
            assert_eq!(Encoding::detect(bytes).unwrap(), encoding, "{bytes:.20x?}");
        }
    }

    #[test]
    fn every_byte_of_windows_1252_becomes_its_character() {
        let text = utf8(Encoding::Windows1252, b"\x80 Pe\xf1a \x93N\xba 5\x94 \x9f\xff").unwrap();
        assert_eq!(text, "€ Peña “Nº 5” Ÿÿ");
        assert_eq!(WINDOWS_1252.chars().count(), 0x20);
        for byte in 0..=u8::MAX {
            assert_eq!(to_windows_1252(from_windows_1252(byte)), Some(byte), "{byte:x}");
        }
        assert_eq!((to_windows_1252('\u{80}'), to_windows_1252('ж')), (None, None));
    }

    #[test]
    fn utf_16_is_read_in_both_orders_and_must_be_complete() {
        for (mark, bytes) in [
            (LITTLE_ENDIAN_MARK, u16::to_le_bytes as fn(u16) -> [u8; 2]),
            (BIG_ENDIAN_MARK, u16::to_be_bytes),
        ] {
            let units = "Peña 🙂".encode_utf16().flat_map(bytes);
            let file: Vec<u8> = mark.into_iter().chain(units).collect();
            assert_eq!(utf8(Encoding::Utf16, &file).unwrap(), "Peña 🙂");
            assert!(utf8(Encoding::Utf16, &file[..file.len() - 1]).is_err());
            assert!(utf8(Encoding::Utf16, &file[..file.len() - 2]).is_err(), "half a pair");
        }
        assert!(utf8(Encoding::Utf16, b"P\0e\0").is_err(), "without a mark");
    }
}
