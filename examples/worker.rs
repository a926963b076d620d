//! A worker that ships each order of a file once, and saves its label. If it is killed, start it again.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example worker -- orders.jsonl`
//! reads an order with an external order id from each line, keeps its journal in `orders.jsonl.journal`, leaves labels
//! in `labels`, and prints each order's id and number.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]
use futures_util::{StreamExt, stream};
use parcelo::{Client, LabelFormat, OrderRequest, journal::JournalFile};
use std::{env, error::Error, fs, process::ExitCode};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let file = env::args().nth(1).ok_or("usage: worker FILE")?;
    let journal = JournalFile::open(format!("{file}.journal"))?;
    fs::create_dir_all("labels")?;
    let lines = fs::read_to_string(&file)?;
    let orders: Vec<_> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let work = |order| {
        let work = work(&client, &journal, order);
        async move { (order, work.await) }
    };
    let mut works = stream::iter(&orders).map(work).buffer_unordered(4);
    let mut failed = 0;
    while let Some((order, worked)) = works.next().await {
        let id = order.external_order_id.as_deref().unwrap_or("?");
        match worked {
            Ok(number) => println!("{id} {number}"),
            Err(error) => {
                failed += 1;
                eprintln!("{id}: {error}"); // the next run continues with it, if that can help
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} not shipped").into()) }
}

/// Ships an order and saves its label, unless an earlier run has done so.
async fn work(
    client: &Client,
    journal: &JournalFile,
    order: &OrderRequest,
) -> Result<String, Box<dyn Error>> {
    let number = client.orders().ship(order, journal).await?.tracking_number;
    if !fs::exists(format!("labels/{number}.pdf"))? {
        client.labels().download(&number, LabelFormat::Pdf).save_in("labels").await?;
    }
    Ok(number.to_string())
}
