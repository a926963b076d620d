//! Mutations: inputs that differ slightly from those of a corpus.

use fastrand::Rng;

/// Maximum length of a mutated input in bytes.
const MAX_INPUT_BYTES: usize = 8 * 1024;

/// Makes one to six changes to `from`, some of them with pieces of `other`.
pub(crate) fn mutate(from: &[u8], other: &[u8], words: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = from.to_vec();
    for _ in 0..rng.usize(1..=6) {
        change(&mut input, other, words, rng);
    }
    input.truncate(MAX_INPUT_BYTES);
    input
}

/// Makes one random change to `input`, which may insert a piece of `other` or a word.
fn change(input: &mut Vec<u8>, other: &[u8], words: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.usize(..=input.len());
    let end = (at + rng.usize(..=16)).min(input.len());
    match rng.u8(..9) {
        0 if at < end => input[at] ^= 1 << rng.u8(..8),
        1 => input.insert(at, rng.u8(..)),
        2 => drop(input.drain(at..end)),
        3 => {
            let piece = input[at..end].to_vec();
            let repeated = piece.repeat(rng.usize(1..=3));
            input.splice(at..at, repeated);
        }
        4 => {
            let (start, stop) = (rng.usize(..=other.len()), rng.usize(..=other.len()));
            let piece = other[start.min(stop)..start.max(stop)].to_vec();
            input.splice(at..end, piece);
        }
        5 => replace_number(input, at, rng),
        6 => {
            let (first, second) =
                (at.min(input.len().saturating_sub(1)), rng.usize(..=input.len()));
            if second < input.len() {
                input.swap(first, second);
            }
        }
        _ if !words.is_empty() => {
            let word = words[rng.usize(..words.len())].clone();
            input.splice(at..if rng.bool() { at } else { end }, word);
        }
        _ => input.push(rng.u8(b' '..=b'~')),
    }
}

/// Replaces the first number at or after `at`.
fn replace_number(input: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    const NUMBERS: [&str; 12] = [
        "0",
        "-1",
        "1e308",
        "1e-9",
        "0.001",
        "255",
        "256",
        "65536",
        "2147483648",
        "9007199254740993",
        "18446744073709551616",
        "00",
    ];
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let Some(start) = input[at..].iter().position(is_digit).map(|found| at + found) else { return };
    let length = input[start..].iter().take_while(|byte| is_digit(byte)).count();
    input.splice(start..start + length, NUMBERS[rng.usize(..NUMBERS.len())].bytes());
}
