//! Joins PDF files of the service into one. It reads what the service writes (one table of cross references, no
//! encryption, references outside of streams only) and refuses everything else.

use std::{collections::BTreeMap, fmt::Write as _, io::Write as _};

const HEADER: &[u8] = b"%PDF-1.7\n%\x80\x80\x80\x80\n\n";
/// The numbers of the catalog and of the tree of all pages. Those of the files' objects follow.
const CATALOG: usize = 1;
const PAGES: usize = 2;

/// Returns a file with the pages of all files, in their order. Returns `None` without a file, or if the service would
/// not have written one of them so.
pub(crate) fn join(files: &[impl AsRef<[u8]>]) -> Option<Vec<u8>> {
    let mut joined = Joined { bytes: HEADER.to_vec(), offsets: BTreeMap::new() };
    let (mut catalog, mut trees, mut pages, mut next_id) = (None, String::new(), 0, PAGES + 1);
    for file in files {
        let file = File::read(file.as_ref())?;
        let (root, _) = split_stream(file.objects.get(&file.root)?)?;
        let tree = reference_after(root, "/Pages ")?;
        let old_ids: Vec<usize> =
            file.objects.keys().copied().filter(|id| *id != file.root).collect();
        let new_ids: BTreeMap<usize, usize> = old_ids.iter().copied().zip(next_id..).collect();
        next_id += old_ids.len();
        for (old_id, new_id) in &new_ids {
            let (text, stream) = split_stream(file.objects.get(old_id)?)?;
            let mut text = renumber(text, |id| new_ids.get(&id).copied())?;
            if *old_id == tree {
                // The tree of a file becomes a branch of the whole tree.
                pages += number_after(&text, "/Count ")?;
                text = text.replacen("<<", &format!("<</Parent {PAGES} 0 R"), 1);
                write!(trees, "{new_id} 0 R ").ok()?;
            }
            joined.add(*new_id, &text, stream)?;
        }
        let of_first = || {
            renumber(root, |id| if id == tree { Some(PAGES) } else { new_ids.get(&id).copied() })
        };
        catalog = catalog.or_else(of_first);
    }
    joined.add(CATALOG, &catalog?, b"")?;
    let tree = format!("<</Type/Pages/Kids[{}]/Count {pages}>>\nendobj\n", trees.trim_end());
    joined.add(PAGES, &tree, b"")?;
    joined.finish()
}

/// The file that is written, with the place of each object.
struct Joined {
    bytes: Vec<u8>,
    offsets: BTreeMap<usize, usize>,
}

impl Joined {
    fn add(&mut self, id: usize, text: &str, stream: &[u8]) -> Option<()> {
        self.offsets.insert(id, self.bytes.len());
        write!(self.bytes, "{id} 0 obj\n{text}").ok()?;
        self.bytes.extend_from_slice(stream);
        Some(())
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        let (start, size) = (self.bytes.len(), self.offsets.len() + 1);
        write!(self.bytes, "xref\n0 {size}\n0000000000 65535 f\r\n").ok()?;
        for offset in self.offsets.values() {
            write!(self.bytes, "{offset:010} 00000 n\r\n").ok()?;
        }
        let trailer =
            format!("trailer\n<</Size {size}/Root {CATALOG} 0 R>>\nstartxref\n{start}\n%%EOF");
        self.bytes.extend_from_slice(trailer.as_bytes());
        Some(self.bytes)
    }
}

/// The objects of a file, by their number, and the number of its catalog.
struct File<'f> {
    objects: BTreeMap<usize, &'f [u8]>,
    root: usize,
}

impl<'f> File<'f> {
    fn read(file: &'f [u8]) -> Option<Self> {
        let last = file.windows(STARTXREF.len()).rposition(|bytes| bytes == STARTXREF)?;
        let start = number_after(str::from_utf8(file.get(last..)?).ok()?, "startxref\n")?;
        let table = str::from_utf8(file.get(start..)?).ok()?;
        let mut lines = table.strip_prefix("xref\n0 ")?.lines();
        let size: usize = lines.next()?.parse().ok()?;
        let used = lines.take(size).enumerate().filter(|(_, entry)| entry.ends_with(" n"));
        let places = used.map(|(id, entry)| Some((entry.get(..10)?.parse().ok()?, id)));
        let mut places: Vec<(usize, usize)> = places.collect::<Option<_>>()?;
        places.sort_unstable();
        let ends = places.iter().skip(1).map(|(offset, _)| *offset).chain([start]);
        let objects = places.iter().zip(ends).map(|((offset, id), end)| {
            let object = file.get(*offset..end)?;
            Some((*id, object.strip_prefix(format!("{id} 0 obj\n").as_bytes())?))
        });
        Some(Self {
            objects: objects.collect::<Option<_>>()?,
            root: reference_after(table, "/Root ")?,
        })
    }
}

const STARTXREF: &[u8] = b"startxref\n";
const STREAM: &[u8] = b"\nstream\n";

/// Splits an object into its text and its stream, which may be empty.
fn split_stream(object: &[u8]) -> Option<(&str, &[u8])> {
    let at = object.windows(STREAM.len()).position(|bytes| bytes == STREAM).unwrap_or(object.len());
    let (text, stream) = object.split_at_checked(at)?;
    Some((str::from_utf8(text).ok()?, stream))
}

/// Replaces the number of each object that a text refers to.
fn renumber(text: &str, new_id: impl Fn(usize) -> Option<usize>) -> Option<String> {
    let mut parts = text.split(" 0 R");
    let (mut renumbered, mut part) = (String::new(), parts.next()?);
    for next in parts {
        let before = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let id = part.get(before.len()..)?.parse().ok()?;
        write!(renumbered, "{before}{} 0 R", new_id(id)?).ok()?;
        part = next;
    }
    renumbered.push_str(part);
    Some(renumbered)
}

fn reference_after(text: &str, name: &str) -> Option<usize> {
    let (_, rest) = text.split_once(name)?;
    rest.split_once(" 0 R")?.0.parse().ok()
}

fn number_after(text: &str, name: &str) -> Option<usize> {
    let (_, rest) = text.split_once(name)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_PAGE: &[u8] = include_bytes!("../docs/invoices/ecuador.pdf");
    const THREE_PAGES: &[u8] = include_bytes!("../docs/invoices/hundred-items.pdf");
    const LABEL: &[u8] = include_bytes!("../docs/labels/sandbox.pdf");

    /// Returns the streams of the contents of all pages, in their order.
    fn contents(pdf: &[u8]) -> Vec<Vec<u8>> {
        let file = File::read(pdf).unwrap();
        let text = |id: usize| split_stream(file.objects[&id]).unwrap();
        let mut found = Vec::new();
        let mut open = vec![reference_after(text(file.root).0, "/Pages ").unwrap()];
        while let Some(id) = open.pop() {
            let (page, _) = text(id);
            match page.split_once("/Kids[") {
                Some((_, kids)) => {
                    let kids = kids.split_once(']').unwrap().0.rsplit(" 0 R");
                    open.extend(kids.filter_map(|kid| kid.trim().parse::<usize>().ok()));
                }
                None => found.push(text(reference_after(page, "/Contents ").unwrap()).1.to_vec()),
            }
        }
        found
    }

    #[test]
    fn the_pages_of_all_files_are_in_their_order() {
        let files = [LABEL, THREE_PAGES, LABEL, ONE_PAGE];
        let joined = join(&files).unwrap();
        assert_eq!(contents(&joined), files.map(contents).concat());
        assert_eq!(contents(&joined).len(), 6);
        let again = join(&[&joined, &joined]).unwrap();
        assert_eq!(contents(&again), [contents(&joined), contents(&joined)].concat());
        let (catalog, _) = split_stream(File::read(&joined).unwrap().objects[&CATALOG]).unwrap();
        assert!(catalog.contains("/PrintScaling/None"), "as in the first file: {catalog}");
    }

    #[test]
    fn what_is_no_file_of_the_service_is_refused_without_a_panic() {
        assert_eq!(join(&[] as &[&[u8]]), None);
        for wrong in
            [&b""[..], b"%PDF-1.7\nstartxref\n9\n%%EOF", b"startxref\n99999999999999999999"]
        {
            assert_eq!(join(&[LABEL, wrong]), None);
        }
        for end in 0..LABEL.len() - "\n%%EOF".len() {
            assert_eq!(join(&[&LABEL[..end]]), None, "{end}");
        }
        for at in 0..LABEL.len() {
            let mut damaged = LABEL.to_vec();
            damaged[at] = b'9';
            let _ = join(&[damaged]);
        }
    }
}
