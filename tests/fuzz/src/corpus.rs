//! Runs a target on its corpus and on mutations of it. A failing input is minimized before it is reported.

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Instant,
};

use fastrand::Rng;

use crate::{Target, mutation::mutate};

/// Maximum number of attempts to remove a piece from a failing input.
const MAX_SHRINKS: usize = 400;

/// A run of one target on its inputs.
pub struct FuzzRun<'a> {
    target: Target,
    check: &'a dyn Fn(&[u8]),
    inputs: Vec<(String, Vec<u8>)>,
    words: Vec<Vec<u8>>,
}

/// Returns the folder of a target's corpus.
pub fn corpus_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

impl<'a> FuzzRun<'a> {
    /// Reads the target's corpus and its words. `check` is `target.check`, or a function of a crate that this crate
    /// cannot call.
    pub fn new(target: Target, check: &'a dyn Fn(&[u8])) -> Self {
        let folder = corpus_folder(target.name);
        let files =
            fs::read_dir(&folder).unwrap_or_else(|err| panic!("{}: {err}", folder.display()));
        let mut inputs: Vec<_> = files
            .map(|file| file.unwrap())
            .map(|file| {
                (file.file_name().to_string_lossy().into_owned(), fs::read(file.path()).unwrap())
            })
            .collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{} is empty", folder.display());
        let file = format!("{}/words/{}.dict", env!("CARGO_MANIFEST_DIR"), target.name);
        let words = fs::read_to_string(file).unwrap().lines().map(parse_word).collect();
        Self { target, check, inputs, words }
    }

    /// Checks every file of the corpus.
    pub fn replay(&self) {
        for (name, input) in &self.inputs {
            self.try_input(input, &format!("corpus/{}/{name}", self.target.name));
        }
    }

    /// Checks mutations of the corpus and prints their number. `PARCELO_SEED` selects other mutations. With
    /// `PARCELO_FUZZ_SECONDS`, those of the following seeds are checked, too, until so many seconds are over.
    pub fn mutate(&self) {
        let variable = |name: &str| -> Option<u64> {
            let text = env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
        };
        let seed = variable("PARCELO_SEED").unwrap_or(1);
        let seconds = variable("PARCELO_FUZZ_SECONDS").unwrap_or(0);
        #[expect(clippy::disallowed_methods, reason = "it says when to stop, and nothing else")]
        let start = Instant::now();
        let cases = self.mutate_until(seed, || start.elapsed().as_secs() >= seconds);
        println!("{}: {cases} cases from seed {seed}", self.target.name);
    }

    /// Checks the mutations of one seed after the other until `is_over` returns `true`. Returns their number.
    pub fn mutate_until(&self, first_seed: u64, is_over: impl Fn() -> bool) -> u64 {
        let (mut seed, mut cases) = (first_seed, 0);
        loop {
            cases += self.mutate_by_seed(seed);
            if is_over() {
                return cases;
            }
            seed = seed.wrapping_add(1);
        }
    }

    fn mutate_by_seed(&self, seed: u64) -> u64 {
        let mut rng = Rng::with_seed(seed);
        for case in 0..self.target.cases {
            let (_, from) = &self.inputs[rng.usize(..self.inputs.len())];
            let (_, other) = &self.inputs[rng.usize(..self.inputs.len())];
            let input = mutate(from, other, &self.words, &mut rng);
            self.try_input(&input, &format!("PARCELO_SEED={seed}, mutation {case}"));
        }
        self.target.cases.into()
    }

    fn try_input(&self, input: &[u8], origin: &str) {
        if self.passes(input) {
            return;
        }
        let small = self.shrink(input.to_vec());
        let file = self.save_input(&small);
        // Checks the minimized input once more, so that the last message printed is about this input.
        self.passes(&small);
        panic!(
            "{} fails: {origin}\nthe smallest input that fails is in {}: {:?}",
            self.target.name,
            file.display(),
            String::from_utf8_lossy(&small)
        );
    }

    fn passes(&self, input: &[u8]) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.check)(input))).is_ok()
    }

    /// Removes pieces, large ones first, as long as the input still fails.
    fn shrink(&self, mut input: Vec<u8>) -> Vec<u8> {
        let (mut size, mut tries) = (input.len() / 2, 0);
        while size > 0 {
            let mut at = 0;
            while at < input.len() && tries < MAX_SHRINKS {
                tries += 1;
                let mut smaller = input.clone();
                smaller.drain(at..(at + size).min(input.len()));
                if self.passes(&smaller) { at += size } else { input = smaller }
            }
            size /= 2;
        }
        input
    }

    fn save_input(&self, input: &[u8]) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts");
        let file = folder.join(format!("{}-{:x}", self.target.name, hash(input)));
        fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input)).unwrap();
        file
    }
}

/// Parses a line of a libFuzzer dictionary: a quoted word with the escapes `\\`, `\"` and `\xAB`.
fn parse_word(line: &str) -> Vec<u8> {
    let quoted = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut rest = quoted.unwrap_or_else(|| panic!("not in quotes: {line}")).bytes();
    let mut word = Vec::new();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next().unwrap() } else { byte };
        word.push(if byte == b'\\' && escaped == b'x' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
        } else {
            escaped
        });
    }
    word
}

/// Returns the FNV-1a hash, for file names and for choices that depend only on the input.
pub(crate) fn hash(input: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    input.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
