//! The pages docs/backup.md and docs/start/operator.md: their commands are run in order, and print what they show.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Output},
};

use crate::{
    api::{Api, order},
    pages::{assert_shown, blocks, follow},
    process::deployment,
    running::{BINARY, TestSetup},
};

const PAGE: &str = include_str!("../../../docs/backup.md");
const OPERATOR: &str = include_str!("../../../docs/start/operator.md");
const UNIT: &str = include_str!("../../../examples/deploy/parcelo-backup.service");

/// Returns a section of the page.
fn section(heading: &str) -> &'static str {
    PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap()
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
        follow(section(heading), |commands| run(&setup, commands));
    }
    running.api(&key).create_parcel(&order("order-0002")).await;
    running.kill();
    setup.leave_log();
    follow(section("Restore"), |commands| run(&setup, commands));
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
fn an_operators_first_minutes_are_as_shown() {
    let setup = TestSetup::on_file("the guide's database is a file");
    let _running = setup.start(&[]);
    let (first_start, commands) = OPERATOR.split_once("\n## A key for a shop").unwrap();
    assert_shown(first_start, &setup.output());
    follow(commands, |commands| run(&setup, commands));
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
    let cron = blocks(section("A folder of backups"), "crontab")[0];
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
