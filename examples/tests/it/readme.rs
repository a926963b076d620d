//! The README's example of the SDK, compiled as it is written there.
#![allow(clippy::needless_pass_by_value, reason = "README leaves open what its functions do")]

use std::{error::Error, time::Duration};

use parcelo::{OrderRequest, model::FieldFault};

fn send_again_later(_: OrderRequest, _: Duration) {}
fn look_it_up(_: OrderRequest) {}
fn show(_: &[FieldFault]) {}

async fn example() -> Result<(), Box<dyn Error>> {
    use parcelo::{Client, LabelFormat, NextStep, OrderRequest};

    let client = Client::from_env()?; // PARCELO_API_KEY, PARCELO_BASE_URL
    let order: OrderRequest = serde_json::from_slice(&std::fs::read("order.json")?)?;
    match client.orders().create(&order).await {
        Ok(created) => {
            let number = &created.parcel.tracking_number;
            client.labels().download(number, LabelFormat::Pdf).save_to("label.pdf").await?;
        }
        Err(error) => match error.next_step() {
            // The idempotency key is in the order: resending within 24 hours never creates a second parcel.
            NextStep::Resend { after } => send_again_later(order, after),
            // The parcel exists, or may exist, and resending would not find out.
            NextStep::Settled | NextStep::LookUp { .. } => look_it_up(order),
            NextStep::Correct => show(error.field_faults()),
            _ => return Err(error.into()), // needs a person
        },
    }
    Ok(())
}

#[tokio::test]
async fn the_readme_quotes_the_compiled_example() {
    assert!(example().await.is_err(), "there is no key, or no order.json");
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let (readme, source) =
        (lines(include_str!("../../../README.md")), lines(include_str!("readme.rs")));
    let quoted = readme.split("```rust").find(|rest| rest.contains("next_step")).unwrap();
    let quoted = quoted.split("```").next().unwrap();
    assert!(source.contains(quoted), "README.md has other lines: {quoted}");
}
