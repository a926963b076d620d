//! A worker that ships each order of a journal once, saves its label and notes its number. If it is killed, start it
//! again. A line of the journal is `Saved::new(&order, now)` as JSON.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example worker -- journal.jsonl`
//! leaves labels in `labels` and a line `ID NUMBER` for each order in `journal.jsonl.shipped`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]
use parcelo::{Client, LabelFormat, NextStep, OrderRequest, ParcelStatus, model::Saved};
use std::{env, error::Error, fs, io::Write, process::ExitCode};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let journal = env::args().nth(1).ok_or("usage: worker FILE")?;
    let notes = format!("{journal}.shipped");
    let mut file = fs::File::options().create(true).append(true).open(&notes)?;
    let mut shipped = fs::read_to_string(&notes)?;
    // The last line may be incomplete: its order is sent again.
    shipped.truncate(shipped.rfind('\n').map_or(0, |end| end + 1));
    file.set_len(shipped.len() as u64)?;
    fs::create_dir_all("labels")?;
    let (mut orders, mut ids, mut failed) = (Vec::new(), Vec::new(), 0);
    for line in fs::read_to_string(&journal)?.lines() {
        let order = serde_json::from_str::<Saved<OrderRequest>>(line)?.restore();
        let id = order.external_order_id.clone().ok_or("an order has no id")?;
        if !shipped.lines().any(|line| line.split(' ').next() == Some(&*id)) {
            orders.push(order);
            ids.push(id);
        }
    }
    let mut results = client.orders().create_many(orders).concurrency(4);
    while let Some((index, result)) = results.next().await {
        let Some(id) = ids.get(index) else { break };
        let number = match result {
            Ok(created) => Ok(created.into_inner().parcel.tracking_number), // now, or by an earlier run
            Err(error) => match error.next_step() {
                NextStep::Settled | NextStep::LookUp { .. } => {
                    let mut parcels = client.orders().find(id).await?.into_iter();
                    let active = parcels.find(|parcel| parcel.status != ParcelStatus::Voided);
                    active.map(|parcel| parcel.tracking_number).ok_or(error)
                }
                _ => Err(error), // the next run sends it again, if that can help
            },
        };
        let Ok(number) = number.map_err(|error| eprintln!("{id}: {error}")) else {
            failed += 1;
            continue;
        };
        client.labels().download(&number, LabelFormat::Pdf).save_in("labels").await?;
        // This comes last: a noted order is skipped, and any other is sent again, which is safe.
        file.write_all(format!("{id} {number}\n").as_bytes())?;
        file.sync_data()?;
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} not shipped").into()) }
}
