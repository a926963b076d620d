//! The commands in the guides: each is run as written, in a folder with the files that it needs; those of a first
//! order one after another.

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    imports::shops::{MAP, SENDER, SHOPIFY},
    shop::{TestShop, order},
};

const GUIDES: [&str; 2] =
    [include_str!("../../docs/cli.md"), include_str!("../../docs/importing.md")];

/// The tracking number in the guides.
const NUMBER: &str = "SBEC7K2M9QX4T8WD0";

/// Commands that are not run, with the reason.
const SKIPPED: [(&str, &str); 4] = [
    ("cargo install", "it builds the command"),
    ("export ", "it is for the command after it"),
    ("parcelo config init ", "it asks on a terminal"),
    ("parcelo webhook listen", "it does not end"),
];

/// Returns the command lines in the shell blocks of a guide, without comments.
fn commands(guide: &str) -> Vec<String> {
    let blocks = guide.split("\n```sh\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let lines: String = blocks.map(|block| block.replace("\\\n", " ") + "\n").collect();
    let command = |line: &str| line.split("  #").next().unwrap().trim().to_owned();
    lines.lines().map(command).filter(|line| !line.is_empty()).collect()
}

fn is_skipped(command: &str) -> bool {
    let is_prompt = |start: &str| start.ends_with("init ") && command.contains("--api-key-stdin");
    SKIPPED.iter().any(|(start, _)| format!("{command} ").starts_with(start) && !is_prompt(start))
}

/// Creates everything that a command in the guides may read.
fn prepare(shop: &TestShop, command: &str) {
    let write = |name: &str, content: &str| fs::write(shop.dir.path(name), content).unwrap();
    shop.create(NUMBER);
    if command.contains("--watch") {
        // The watch of a void parcel ends at once.
        assert_eq!(shop.run(&format!("order void {NUMBER}")).code, 0);
    }
    if command.contains("manifest show") {
        assert_eq!(shop.run(&format!("manifest submit {NUMBER} --awb 176-12345675")).code, 0);
    }
    let mut usual = order("SB-SUCCESS-0009");
    usual["products"] = json!([{"description": "Cap", "quantity": 1, "unitFobValue": 9.5}]);
    shop.dir.write("usual.json", &usual);
    shop.dir.write("numbers.json", &json!({"trackingNumbers": [NUMBER]}));
    write("numbers.txt", NUMBER);
    write("key.txt", shop.key.secret());
    write("sender.toml", SENDER);
    let rows = shop.run("order template --csv");
    for name in ["orders.csv", "shop.csv"] {
        write(name, rows.text());
    }
    // The last order of the export is cancelled.
    let export: Vec<_> = SHOPIFY.lines().take(4).collect();
    write("orders_export.csv", &export.join("\n"));
    let map = shop.run("order import shop.csv --map-template");
    write("columns.toml", if command.contains("--preset") { MAP } else { map.text() });
    for folder in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"]
    {
        fs::create_dir_all(shop.dir.path(folder)).unwrap();
    }
}

/// Returns a shell in the shop's folder, with its key and address, that runs the command as a reader types it.
#[cfg(unix)]
fn shell(shop: &TestShop, commands: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_parcelo")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-ec", commands]).current_dir(shop.dir.path(".")).env_clear().env("PATH", path);
    shell.env("HOME", shop.dir.path("."));
    shell.env("PARCELO_API_KEY", shop.key.secret()).env("PARCELO_BASE_URL", shop.server.url());
    shell
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn every_command_in_the_guides_runs() {
    let commands: Vec<_> = GUIDES.into_iter().flat_map(commands).collect();
    for (start, reason) in SKIPPED {
        assert!(
            commands.iter().any(|line| format!("{line} ").starts_with(start)),
            "{start}: {reason}"
        );
    }
    let run: Vec<_> = commands.iter().filter(|command| !is_skipped(command)).collect();
    assert!(run.len() > 20, "{run:?}");
    for command in run {
        let shop = TestShop::open().await;
        prepare(&shop, command);
        let line = command.replace("https://api.example.com", shop.server.url());
        let output = shop.dir.read_output(shell(&shop, &line).output().unwrap(), command);
        assert_eq!(output.code, 0, "{command}: {output:?}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_shippers_first_minutes_are_as_shown() {
    let shop = TestShop::open().await;
    let guide = include_str!("../../docs/start/shipper.md");
    crate::pages::follow(guide, |commands| shell(&shop, commands).output().unwrap());
    assert!(shop.dir.read("label.pdf").starts_with(b"%PDF"));
}

#[test]
fn commands_of_a_guide_are_joined_lines_without_comments() {
    let guide = "text\n\n```sh\nparcelo a b      # why\n\nparcelo c \\\n    --d 'x # y'\n```\n\n```json\n{}\n```\n";
    assert_eq!(commands(guide), ["parcelo a b", "parcelo c      --d 'x # y'"]);
    assert!(is_skipped("parcelo config init") && is_skipped("export A=1"));
    assert!(!is_skipped("parcelo config init live --api-key-stdin < key.txt"));
}
