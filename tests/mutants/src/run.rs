//! Runs the simulation with a mutant, a few seeds at a time, until it sees the fault.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// The test of `server/src/simulation` that runs seeds.
const SIMULATION: &str = "simulation::seeds_keep_every_promise";
/// Seeds of one process. A fault may make one never end, which is then known of so many.
const SEEDS_AT_ONCE: u64 = 5;
/// How long so many seeds may take: a hundred times as long as they do, for machines that do other things too.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// What the simulation says of seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every promise was kept.
    Clean,
    /// This check failed, after so many seeds.
    Violated { check: String, seeds: u64 },
    /// It gave neither verdict: that is no simulation.
    Unclear(String),
}

/// Builds the simulation in the copy, and answers where it is.
pub(crate) fn build(copy: &Path) -> io::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["test", "--locked", "-p", "parcelo-server", "--lib", "--no-run"])
        .args(["--message-format", "json-render-diagnostics", "--target-dir", "../build"])
        .current_dir(copy)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()?;
    let messages = String::from_utf8_lossy(&built.stdout);
    let mut executables = messages.lines().filter_map(|message| {
        let (_, after) = message.split_once("\"executable\":\"")?;
        after.split_once('"').map(|(path, _)| PathBuf::from(path))
    });
    match executables.next_back() {
        Some(path) if built.status.success() => Ok(path),
        _ => Err(io::Error::other("the simulation could not be built with the mutants")),
    }
}

/// Runs at most `most` seeds from `first` on, with a mutant or with none, until a check fails.
pub(crate) fn run(simulation: &Path, mutant: Option<&str>, first: u64, most: u64) -> Verdict {
    let mut done = 0;
    while done < most {
        let count = SEEDS_AT_ONCE.min(most - done);
        let range = format!("{}..{}", first + done, first + done + count - 1);
        match run_once(simulation, mutant, &range) {
            Ok(Some(output)) => match verdict(&output, first) {
                Verdict::Clean => done += count,
                found => return found,
            },
            Ok(None) => {
                return Verdict::Violated { check: "it never ends".to_owned(), seeds: done + 1 };
            }
            Err(error) => return Verdict::Unclear(error.to_string()),
        }
    }
    Verdict::Clean
}

/// What it wrote; none when it did not end.
fn run_once(simulation: &Path, mutant: Option<&str>, seeds: &str) -> io::Result<Option<String>> {
    let mut child = Command::new(simulation)
        .args([SIMULATION, "--exact", "--nocapture"])
        .env("PARCELO_SEEDS", seeds)
        .env("PARCELO_SHRINK", "0")
        .env("PARCELO_THREADS", "1")
        .env("PARCELO_MUTANT", mutant.unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = output_of(&mut child);
    if output.is_none() {
        child.kill()?;
    }
    child.wait()?;
    Ok(output)
}

fn output_of(child: &mut Child) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    let mut stdout = child.stdout.take()?;
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is looked at, too.
        let _cut = stdout.read_to_end(&mut bytes);
        // No one waits for the output of a process that was killed.
        let _gone = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver.recv_timeout(MAX_WAIT).ok()
}

/// Reads `violated: CHECK at step N, seed S`, or `simulated: …`.
fn verdict(output: &str, first: u64) -> Verdict {
    let violated = output.lines().find_map(|line| {
        let (_, violated) = line.split_once("violated: ")?;
        let (check, rest) = violated.split_once(" at step ")?;
        let (_, seed) = rest.split_once("seed ")?;
        let digits: String = seed.chars().take_while(char::is_ascii_digit).collect();
        let seeds = digits.parse::<u64>().ok()?.checked_sub(first)? + 1;
        Some(Verdict::Violated { check: check.to_owned(), seeds })
    });
    let is_clean = output.contains("simulated: ");
    violated.unwrap_or_else(|| {
        if is_clean {
            Verdict::Clean
        } else {
            Verdict::Unclear(output.lines().last().unwrap_or_default().to_owned())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulations_last_word_counts() {
        let violated = "test x ... violated: event-lost at step 41, seed 1007\nFAILED";
        let expected = Verdict::Violated { check: "event-lost".to_owned(), seeds: 7 };
        assert_eq!(verdict(violated, 1_001), expected);
        assert_eq!(verdict("simulated: 10 seeds, 8 s", 1), Verdict::Clean);
        assert_eq!(verdict("running 0 tests\n", 1), Verdict::Unclear("running 0 tests".to_owned()));
    }
}
