//! The page docs/backup.md: its commands are run in order, and print what it shows.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Output},
};

use crate::{
    api::{Api, order},
    process::deployment,
    running::{BINARY, TestSetup},
};

const PAGE: &str = include_str!("../../../docs/backup.md");
const UNIT: &str = include_str!("../../../examples/deploy/parcelo-backup.service");

/// Returns the code blocks of a section of the page in one language.
fn blocks(heading: &str, language: &str) -> Vec<&'static str> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let blocks = section.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

/// Runs commands in the setup's folder, in which the database is parcelo.db.
fn run(setup: &TestSetup, commands: &str) -> Output {
    let bin = setup.path("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        symlink(BINARY, bin.join("parcelo-server")).unwrap();
    }
    let mut shell = Command::new("sh");
    shell.args(["-ec", commands]).current_dir(setup.path("."));
    shell.env_clear().env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    shell.output().unwrap()
}

/// Runs the commands of a section. Each line of the output that it shows is printed, in this order; `…` is any text.
fn run_section(setup: &TestSetup, heading: &str) {
    let commands = blocks(heading, "sh");
    assert!(!commands.is_empty(), "{heading}");
    let mut printed = String::new();
    for command in commands {
        let output = run(setup, command);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {error}");
        printed += &String::from_utf8(output.stdout).unwrap();
    }
    let mut lines = printed.lines();
    for shown in blocks(heading, "text").iter().flat_map(|block| block.lines()) {
        assert!(lines.any(|line| matches_shown(shown, line)), "{heading}: {shown}\n{printed}");
    }
}

fn matches_shown(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap()) else { return false };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.is_empty() || shown.ends_with('…')
}

async fn count_parcels(api: &Api) -> u64 {
    api.get("/api/v1/parcels").await.json()["meta"]["total"].as_u64().unwrap()
}

#[tokio::test]
async fn every_command_of_the_backup_page_works() {
    let setup = TestSetup::on_file("PostgreSQL has backups of its own");
    let mut running = setup.start(&[]);
    let key = setup.new_key("sandbox").1;
    running.api(&key).create_parcel(&order("order-0001")).await;
    for heading in ["A copy now", "A folder of backups", "Check a backup"] {
        run_section(&setup, heading);
    }
    running.api(&key).create_parcel(&order("order-0002")).await;
    running.kill();
    setup.leave_log();
    run_section(&setup, "Restore");
    let running = setup.start(&[]);
    assert_eq!(count_parcels(&running.api(&key)).await, 1);
    // The page says that what was moved aside has the orders since the backup.
    let entries = fs::read_dir(setup.path(".")).unwrap().map(|entry| entry.unwrap().path());
    let is_old = |file: &PathBuf| file.to_str().unwrap().ends_with('Z');
    let old: Vec<_> = entries.filter(is_old).collect();
    let old = TestSetup::at(old[0].clone());
    assert_eq!(count_parcels(&old.start(&[]).api(&key)).await, 2);
}

#[test]
fn the_timer_backs_up_the_database_of_the_servers_unit() {
    let server = deployment("parcelo-server.service");
    for name in ["Environment=PARCELO_DATABASE=", "EnvironmentFile="] {
        let line = |unit: &str| unit.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        assert_eq!(line(UNIT), line(&server), "{name}");
        assert!(line(UNIT).is_some(), "{name}");
    }
}

#[test]
fn the_timer_and_the_line_for_cron_make_a_backup() {
    let setup = TestSetup::on_file("PostgreSQL has backups of its own");
    setup.new_key("sandbox");
    let value = |name: &str| UNIT.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let unit = format!("{} {}", value("Environment="), value("ExecStart="));
    let cron = blocks("A folder of backups", "crontab")[0];
    // Five fields say when.
    let cron = cron.trim().splitn(6, ' ').nth(5).unwrap();
    for (folder, command) in [("timer", unit.as_str()), ("cron", cron)] {
        fs::create_dir(setup.path(folder)).unwrap();
        let command = command.replace("/var/lib/parcelo-backups", folder);
        let command = command.replace("/var/lib/parcelo/", "").replace("/usr/local/bin/", "");
        let output = run(&setup, &command);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {error}");
        assert_eq!(fs::read_dir(setup.path(folder)).unwrap().count(), 1, "{command}");
    }
}
