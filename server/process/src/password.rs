//! `parcelo-server accounts password`: sets a password for the dashboard. The password comes from the terminal or from
//! standard input, never from an argument, which other users can see.

use std::io::{self, IsTerminal, Read};

use clap::Args as ClapArgs;
use parcelo_domain::{
    audit::Actor,
    ids::public_id,
    session::{MAX_PASSWORD_CHARS, is_valid_password},
};
use parcelo_service::service::Service;
use parcelo_system::{
    clock::{Clock, SystemClock},
    ids::Ids,
};

use super::{
    Failure,
    database::{DatabaseArg, find_account, open},
    print,
    shared_args::parse_name,
};
use crate::passwords::hash_password;

#[derive(Debug, ClapArgs)]
pub(super) struct SetPassword {
    #[command(flatten)]
    database: DatabaseArg,
    /// The account.
    #[arg(default_value = "default", value_parser = parse_name)]
    name: String,
}

pub(super) async fn set_password(options: SetPassword) -> Result<(), Failure> {
    // The account is looked up before the prompt, so that no password is typed for an unknown account.
    let store = open(&options.database).await?;
    let account = find_account(&store, &options.name).await?;
    let password = read_password()?;
    if !is_valid_password(&password) {
        return Err(Failure::WeakPassword);
    }
    let (ids, now) = (Ids::random(), SystemClock.now());
    let hash = hash_password(&password, ids.array()).map_err(|_| Failure::Password)?;
    store.set_password(account, hash, now, &Actor::Command.at(now)).await?;
    print::password_set(&options.name)?;
    Ok(())
}

/// Reads the password: with a prompt at a terminal, otherwise the first line of standard input.
fn read_password() -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        let typed = print::ask_password().map_err(Failure::NoPassword)?;
        return typed.ok_or(Failure::PasswordsDiffer);
    }
    // UTF-8 needs up to four bytes for a character; the line may end in CRLF.
    let max_bytes = MAX_PASSWORD_CHARS as u64 * 4 + 2;
    let mut text = String::new();
    io::stdin().take(max_bytes).read_to_string(&mut text).map_err(Failure::NoPassword)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Sets a random password for a new database's account.
pub(super) async fn set_first_password(
    service: &Service,
    ids: &Ids,
    account: &str,
) -> Result<String, Failure> {
    let now = service.now();
    let password = readable_password(ids);
    let hash = hash_password(&password, ids.array()).map_err(|_| Failure::Password)?;
    let account = service.store().account(account, public_id("acc", ids.ulid(now)), now).await?;
    service.store().set_password(account, hash, now, &Actor::FirstStart.at(now)).await?;
    Ok(password)
}

/// Returns twenty random characters of Crockford's alphabet, 100 bits, in groups that are easy to type.
fn readable_password(ids: &Ids) -> String {
    let characters = [ids.random_suffix(), ids.random_suffix()].concat().to_lowercase();
    let letters: Vec<_> = characters.chars().take(20).collect();
    let groups: Vec<String> = letters.chunks(5).map(|group| group.iter().collect()).collect();
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_password_is_four_random_groups() {
        let one = readable_password(&Ids::random());
        assert!(one.split('-').all(|group| group.len() == 5) && one.len() == 23, "{one}");
        assert!(is_valid_password(&one) && one != readable_password(&Ids::random()));
    }
}
