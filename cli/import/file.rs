//! The file to import, which is read twice. Standard input and pipes are first copied to a temporary file.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom},
};

use parcelo_types::internal::parse_body;

use crate::{
    encoding::Encoding,
    failure::Failure,
    input::{self, Source},
    texts::{self as general, import as texts},
};

/// A file of rows that can be opened more than once.
#[derive(Debug)]
pub(crate) struct ImportFile {
    file: File,
    name: String,
    format: RowFormat,
    /// The offset of the data, after the byte order mark and a `sep=` line.
    data_start: u64,
    encoding: Encoding,
}

/// The format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// A header row, then one order per row.
    Csv,
    /// One JSON order per line. A JSON document over several lines is detected and converted to this.
    Ndjson,
}

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
/// The first bytes of workbooks: zip archives, and Excel files before 2007. They contain the rows, but not as CSV.
const WORKBOOKS: [&[u8]; 2] = [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"];

/// Number of bytes from which the encoding, the format and the kind of line break are detected.
const MAX_SNIFFED_BYTES: u64 = 1 << 16;

impl ImportFile {
    /// Opens a file in the given encoding, otherwise in the detected one.
    pub(crate) fn open_source(source: &Source, given: Option<Encoding>) -> Result<Self, Failure> {
        let name = source.name();
        let unreadable = |err: io::Error| Failure::for_unreadable_file(&name, &err);
        let mut file = match source {
            Source::File(path) => {
                let file = File::open(path).map_err(unreadable)?;
                let kind = file.metadata().map_err(unreadable)?;
                if kind.is_dir() {
                    return Err(unreadable(io::ErrorKind::IsADirectory.into()));
                }
                if kind.is_file() { file } else { copy_to_temp_file(file).map_err(unreadable)? }
            }
            Source::Stdin => copy_to_temp_file(io::stdin().lock()).map_err(unreadable)?,
        };
        let mut start = sniff(&mut file).map_err(unreadable)?;
        if WORKBOOKS.iter().any(|beginning| start.starts_with(beginning)) {
            return Err(Failure::usage(texts::WORKBOOK, texts::SAVE_UTF8));
        }
        let encoding = match given {
            Some(encoding) => encoding,
            None => Encoding::detect(&file).map_err(unreadable)?,
        };
        if encoding != Encoding::Utf8 {
            file.rewind().map_err(unreadable)?;
            let mut utf8 = BufWriter::new(tempfile::tempfile().map_err(unreadable)?);
            encoding.to_utf8(file, &mut utf8).map_err(unreadable)?;
            file = utf8.into_inner().map_err(|error| unreadable(error.into_error()))?;
            start = sniff(&mut file).map_err(unreadable)?;
        }
        let (line, line_break) = first_line(&start);
        if line.contains(&0) {
            return Err(Failure::usage(texts::BINARY_FILE, texts::SAVE_UTF8));
        }
        let format = detect_format(source, &start);
        if format == RowFormat::Ndjson && is_document(&start) {
            let mut document = String::new();
            file.rewind().map_err(unreadable)?;
            file.read_to_string(&mut document).map_err(unreadable)?;
            let lines = one_per_line(document.trim_start_matches('\u{feff}'))?;
            file = copy_to_temp_file(lines.as_bytes()).map_err(unreadable)?;
            start = sniff(&mut file).map_err(unreadable)?;
        }
        let data_start = skip_preamble(format, &start) as u64;
        if format == RowFormat::Csv && line_break == Some(LineBreak::Return) {
            file.rewind().map_err(unreadable)?;
            file = copy_to_temp_file(CrToLf(file)).map_err(unreadable)?;
        }
        Ok(Self { file, name, format, data_start, encoding })
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(crate) fn format(&self) -> RowFormat {
        self.format
    }

    /// Opens the file at its first row.
    pub(crate) fn open(&self) -> Result<File, Failure> {
        self.rewind().map_err(|err| self.unreadable(&err))
    }

    /// Returns the number of bytes from the first row to the end.
    pub(super) fn length(&self) -> io::Result<u64> {
        let mut file = self.rewind()?;
        Ok(file.metadata()?.len().saturating_sub(file.stream_position()?))
    }

    fn rewind(&self) -> io::Result<File> {
        // All clones of a handle share one position, so only one reader may be in use at a time.
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(self.data_start))?;
        Ok(file)
    }

    pub(crate) fn unreadable(&self, err: &io::Error) -> Failure {
        Failure::for_unreadable_file(&self.name, err)
    }
}

/// Reads the beginning of the file; the next read starts at the beginning again.
fn sniff(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.rewind()?;
    file.by_ref().take(MAX_SNIFFED_BYTES).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(start)
}

fn copy_to_temp_file(mut from: impl Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut from, &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// Converts a JSON document to one order per line. The error has the position at which it is not JSON.
fn one_per_line(document: &str) -> Result<String, Failure> {
    let orders = input::orders(document);
    if let [only] = &*orders {
        let invalid = |fault| Failure::invalid(general::INVALID_ORDER, vec![fault]);
        parse_body(only.as_bytes()).map_err(invalid)?;
    }
    // Line breaks occur only between JSON values: inside a string they are written as \n.
    Ok(orders.into_iter().map(|order| order.replace(['\r', '\n'], " ") + "\n").collect())
}

/// The kind of line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineBreak {
    /// CR alone, as spreadsheets on a Mac may write it.
    Return,
    /// LF, or CR LF.
    Feed,
}

fn first_line(start: &[u8]) -> (&[u8], Option<LineBreak>) {
    let Some(end) = start.iter().position(|byte| b"\r\n".contains(byte)) else {
        return (start, None);
    };
    let (line, rest) = start.split_at(end);
    let is_return = matches!(rest, [b'\r', next, ..] if *next != b'\n');
    (line, Some(if is_return { LineBreak::Return } else { LineBreak::Feed }))
}

/// A file whose CRs are read as LFs.
struct CrToLf(File);

impl Read for CrToLf {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(into)?;
        into.iter_mut().take(count).filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
        Ok(count)
    }
}

/// Returns the number of bytes before the rows: a byte order mark, and the line `sep=;`, which sets the separator in
/// Excel. Spreadsheets hide both, so they do not count as rows.
fn skip_preamble(format: RowFormat, start: &[u8]) -> usize {
    let text = start.strip_prefix(UTF8_BOM).unwrap_or(start);
    let mark = start.len() - text.len();
    let (line, line_break) = first_line(text);
    let is_separator_line =
        matches!(line, [s, e, p, b'=', _] if [s, e, p].map(u8::to_ascii_lowercase) == *b"sep");
    if format == RowFormat::Ndjson || !is_separator_line || line_break.is_none() {
        return mark;
    }
    let is_pair = text.get(line.len()..).is_some_and(|rest| rest.starts_with(b"\r\n"));
    mark + line.len() + if is_pair { 2 } else { 1 }
}

/// Returns `true` if the text is a JSON array, or an object over several lines.
fn is_document(start: &[u8]) -> bool {
    let text = start.strip_prefix(UTF8_BOM).unwrap_or(start).trim_ascii_start();
    text.starts_with(b"[") || first_line(text).0.trim_ascii_end() == b"{"
}

/// Detects the format by the file's extension or, if that is unknown, by the first character.
fn detect_format(source: &Source, start: &[u8]) -> RowFormat {
    let extension = match source {
        Source::File(path) => path.extension().unwrap_or_default().to_ascii_lowercase(),
        Source::Stdin => OsString::new(),
    };
    let first = start.strip_prefix(UTF8_BOM).unwrap_or(start).trim_ascii_start().first();
    match extension.to_str().unwrap_or_default() {
        "csv" | "tsv" | "txt" => RowFormat::Csv,
        "ndjson" | "jsonl" => RowFormat::Ndjson,
        _ if matches!(first, Some(b'{' | b'[')) => RowFormat::Ndjson,
        _ => RowFormat::Csv,
    }
}
