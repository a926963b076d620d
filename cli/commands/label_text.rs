//! The text of a label, read from its ZPL file, the only format that contains it as plain text. Lines in scripts for
//! which printers have no font are images in it, and missing here.

use std::collections::BTreeMap;

/// Returns the lines from top to bottom; texts at the same height share a line, from left to right.
pub(super) fn lines(zpl: &[u8]) -> Vec<String> {
    let mut rows = BTreeMap::<u32, BTreeMap<u32, String>>::new();
    let zpl = String::from_utf8_lossy(zpl);
    for field in zpl.split("^FS").filter_map(text_field) {
        rows.entry(field.y).or_default().insert(field.x, field.text);
    }
    let join = |row: BTreeMap<_, String>| row.into_values().collect::<Vec<_>>().join("  ");
    rows.into_values().map(join).collect()
}

/// A text and the position of its baseline, in dots.
struct TextField {
    x: u32,
    y: u32,
    text: String,
}

/// Parses a field such as `^FT40,100^A0N,30,28^FH^FDMar_C3_ADa`; bars, symbols and pictures have no font (`^A0`).
fn text_field(commands: &str) -> Option<TextField> {
    let (_, commands) = commands.split_once("^FT")?;
    let (position, rest) = commands.split_once("^A0")?;
    let (x, y) = position.split_once(',')?;
    let (options, data) = rest.split_once("^FD")?;
    let is_escaped = options.ends_with("^FH");
    let text = if is_escaped { unescape(data) } else { data.to_owned() };
    let (x, y) = (x.parse().ok()?, y.parse().ok()?);
    Some(TextField { x, y, text }).filter(|field| !field.text.trim().is_empty())
}

/// Decodes the text of a field after `^FH`: `_` and two hexadecimal digits are a byte.
fn unescape(data: &str) -> String {
    let mut parts = data.split('_');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
            }
            None => bytes.extend_from_slice(format!("_{part}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_lines_in_the_order_of_their_positions() {
        let zpl = "^XA\n^CI28\n^FO1,1^GB812,3,3^FS\n^FT400,90^A0N,20,20^FDMIA^FS\n\
            ^FT40,200^A0N,30,28^FB700,,,C^FR^FH^FDMar_C3_ADa_5F1^FS\n\
            ^FO10,300^BY3,2,100^BCN,100,N,N,N,N^FD>:SB1^FS\n^FT40,90^A0N,20,20^FDFROM^FS\n\
            ^FO9,9^BQN,2,5^FDQA,http://h^FS\n^FO1,1^GFA,4,4,1,FF^FS\n^XZ\n";
        assert_eq!(lines(zpl.as_bytes()), ["FROM  MIA", "María_1"]);
    }

    #[test]
    fn text_that_is_not_zpl_has_no_lines() {
        for other in ["", "%PDF-1.4", "^FT1^A0^FD", "^FTa,b^A0N^FDx^FS", "^FT1,1^A0N^FH^FD_ZZ_4^FS"]
        {
            let found = lines(other.as_bytes());
            assert!(found.is_empty() || found == ["_ZZ_4"], "{other}: {found:?}");
        }
    }
}
