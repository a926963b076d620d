//! A worker that ships each order of a journal once, saves its label and notes its number, however often
//! it is killed: start it again, and it goes on. A line of the journal is an order as JSON with its key.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example worker -- journal.jsonl`
//! leaves labels in `labels` and a line `KEY NUMBER` for each order in `journal.jsonl.shipped`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::{env, error::Error, fs, io::Write, process::ExitCode};

use parcelo::{Client, LabelFormat, OrderRequest};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let journal = env::args().nth(1).ok_or("say where orders are kept: worker FILE")?;
    let (mut notes, shipped) = notes(&format!("{journal}.shipped"))?;
    // No key was sent before. The service forgets a key after 24 hours; the client knows, and refuses.
    let written = fs::metadata(&journal)?.modified()?;
    let mut orders = Vec::new();
    for line in fs::read_to_string(&journal)?.lines() {
        let mut order: OrderRequest = serde_json::from_str(line)?;
        order.idempotency_key = order.idempotency_key.sent_before(written.into());
        let start = format!("{} ", order.idempotency_key);
        if !shipped.lines().any(|line| line.starts_with(&start)) {
            orders.push(order);
        }
    }
    fs::create_dir_all("labels")?;
    let mut results = client.orders().create_many(orders).concurrency(4);
    while let Some((_, result)) = results.next().await {
        let created = result?; // `Replayed` when an earlier run had created it
        let number = &created.parcel.tracking_number;
        client.labels().download(number, LabelFormat::Pdf).save_in("labels").await?;
        // Last: what is noted is done, and what is not is asked for again, which ships nothing twice.
        let key = created.meta().idempotency_key.as_ref().ok_or("a creation has a key")?;
        notes.write_all(format!("{key} {number}\n").as_bytes())?;
        notes.sync_data()?;
        println!("{number} {:?}", created.outcome());
    }
    Ok(())
}

/// The notes to add to, and what they say.
fn notes(path: &str) -> Result<(fs::File, String), Box<dyn Error>> {
    let file = fs::File::options().create(true).append(true).open(path)?;
    let mut lines = fs::read_to_string(path)?;
    // The last line may have been cut short: that order is asked for again.
    lines.truncate(lines.rfind('\n').map_or(0, |end| end + 1));
    file.set_len(lines.len() as u64)?;
    Ok((file, lines))
}
