//! Code 128 bar codes, in code set B only, because all ZPL interpreters encode that set alike.
//!
//! Code set C would pack pairs of digits, but printers switch to it differently, so their symbols would differ from
//! ours.

/// A Code 128 symbol: the widths of its bars and spaces in turn, in modules, from the first bar to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bars(Vec<u8>);

/// Encodes `data`, or returns `None` if a character is not printable ASCII.
pub(super) fn encode(data: &str) -> Option<Bars> {
    let values: Vec<usize> = data.bytes().map(code_value).collect::<Option<_>>()?;
    let weighted: usize = values.iter().zip(1..).map(|(value, place)| value * place).sum();
    let check = (START_B + weighted) % 103;
    let mut bars = Vec::with_capacity(6 * values.len() + 19);
    for value in std::iter::once(START_B).chain(values).chain([check, STOP]) {
        bars.extend(PATTERNS.get(value)?.bytes().map(|digit| digit - b'0'));
    }
    bars.push(STOP_BAR);
    Some(Bars(bars))
}

fn code_value(byte: u8) -> Option<usize> {
    (b' '..=b'~').contains(&byte).then(|| usize::from(byte - b' '))
}

impl Bars {
    /// Returns the width of the symbol: 11 modules for each character and 35 more.
    pub(super) fn modules(&self) -> u32 {
        self.0.iter().map(|width| u32::from(*width)).sum()
    }

    /// Returns start and width of each bar, in modules.
    pub(super) fn spans(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut at = 0;
        let spans = self.0.iter().map(move |width| {
            let start = at;
            at += u32::from(*width);
            (start, u32::from(*width))
        });
        spans.step_by(2)
    }
}

const START_B: usize = 104;
const STOP: usize = 106;
/// Width of the stop pattern's fourth bar; no other pattern has one.
const STOP_BAR: u8 = 2;

/// Widths of bar, space, bar, space, bar, space for each value (ISO/IEC 15417, table 1).
#[rustfmt::skip]
const PATTERNS: [&str; 107] = [
    "212222", "222122", "222221", "121223", "121322", "131222", "122213", "122312", "132212", "221213",
    "221312", "231212", "112232", "122132", "122231", "113222", "123122", "123221", "223211", "221132",
    "221231", "213212", "223112", "312131", "311222", "321122", "321221", "312212", "322112", "322211",
    "212123", "212321", "232121", "111323", "131123", "131321", "112313", "132113", "132311", "211313",
    "231113", "231311", "112133", "112331", "132131", "113123", "113321", "133121", "313121", "211331",
    "231131", "213113", "213311", "213131", "311123", "311321", "331121", "312113", "312311", "332111",
    "314111", "221411", "431111", "111224", "111422", "121124", "121421", "141122", "141221", "112214",
    "112412", "122114", "122411", "142112", "142211", "241211", "221114", "413111", "241112", "134111",
    "111242", "121142", "121241", "114212", "124112", "124211", "411212", "421112", "421211", "212141",
    "214121", "412121", "111143", "111341", "131141", "114113", "114311", "411113", "411311", "113141",
    "114131", "311141", "411131", "211412", "211214", "211232", "233111",
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_pattern_has_eleven_modules_and_is_unique() {
        for pattern in PATTERNS {
            let widths: Vec<u32> = pattern.chars().filter_map(|c| c.to_digit(10)).collect();
            assert_eq!(widths.len(), 6, "{pattern}");
            assert_eq!(widths.iter().sum::<u32>(), 11, "{pattern}");
            assert_eq!(widths.iter().step_by(2).sum::<u32>() % 2, 0, "{pattern}");
        }
        assert_eq!(PATTERNS.iter().collect::<HashSet<_>>().len(), 107);
    }

    #[test]
    fn encodes_a_known_symbol() {
        // Check character of "PJJ123C" in code set B by hand:
        // 104 + 48·1 + 42·2 + 42·3 + 17·4 + 18·5 + 19·6 + 35·7 = 879, 879 mod 103 = 55.
        let bars = encode("PJJ123C").unwrap();
        let text: String = bars.0.iter().map(u8::to_string).collect();
        assert!(text.starts_with("211214313121"), "start B, P: {text}");
        assert!(text.ends_with(&format!("{}2331112", PATTERNS[55])), "check, stop: {text}");
        assert_eq!(bars.modules(), 11 * 7 + 35);
    }

    #[test]
    fn refuses_non_ascii_characters() {
        assert!(encode(" ~").is_some());
        assert_eq!(encode("Ñ"), None);
        assert_eq!(encode("A\n"), None);
    }
}
