//! The admin commands for accounts. They open the database directly, even while a server uses it.

use clap::{Args as ClapArgs, Subcommand};
use parcelo_domain::{
    AccountRecord, Shop,
    admin::{AccountView, ShopView},
    audit::Actor,
};
use parcelo_system::clock::{Clock, SystemClock};

use super::{
    Failure,
    database::{AdminDatabase, DatabaseArg, find_account, open},
    password, print,
    shared_args::{CommonArgs, parse_name},
};

#[derive(Debug, Subcommand)]
pub(super) enum Accounts {
    /// Create an account; an existing one stays as it is.
    Create(CreateAccount),
    /// List the accounts.
    List(CommonArgs),
    /// Show or set what receivers see of an account on the tracking page: the shop's name and contact.
    Shop(SetShop),
    /// Set the password with which an account signs in to the dashboard; its sessions end.
    Password(password::SetPassword),
}

#[derive(Debug, ClapArgs)]
pub(super) struct CreateAccount {
    #[command(flatten)]
    database: DatabaseArg,
    /// Its name, 1-100 characters.
    #[arg(value_parser = parse_name)]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct SetShop {
    #[command(flatten)]
    database: DatabaseArg,
    /// The account.
    #[arg(default_value = "default", value_parser = parse_name)]
    name: String,
    /// The shop's name, at most 60 characters; '' for none.
    #[arg(long, value_name = "TEXT")]
    shop_name: Option<String>,
    /// The contact for receivers: an https address, an e-mail address, or a telephone number with + and its country
    /// code; '' for none.
    #[arg(long, value_name = "CONTACT", allow_hyphen_values = true)]
    contact: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: Accounts) -> Result<(), Failure> {
    match command {
        Accounts::Create(options) => create(options).await,
        Accounts::List(options) => list(options).await,
        Accounts::Shop(options) => shop(options).await,
        Accounts::Password(options) => password::set_password(options).await,
    }
}

async fn create(CreateAccount { database, name, json }: CreateAccount) -> Result<(), Failure> {
    let admin = AdminDatabase::new(&database).await?;
    let (account, _) = admin.issuer().find_or_create_account(name, SystemClock.now()).await?;
    let (view, line) = row(&account);
    Ok(print::item(&CommonArgs { database, json }, &view, &line)?)
}

async fn list(options: CommonArgs) -> Result<(), Failure> {
    let accounts = open(&options.database).await?.accounts().await?;
    let empty_text = "No accounts yet; create one with `parcelo-server accounts create NAME`.";
    Ok(print::list(&options, empty_text, accounts.iter().map(row))?)
}

/// Sets the parts of a shop that are given; the others are kept.
async fn shop(options: SetShop) -> Result<(), Failure> {
    let SetShop { database, name, shop_name, contact, json } = options;
    let store = open(&database).await?;
    let account = find_account(&store, &name).await?;
    let (name_before, contact_before) = store.shop(account).await?.to_stored();
    if shop_name.is_some() || contact.is_some() {
        let name = shop_name.unwrap_or(name_before);
        let contact = contact.unwrap_or(contact_before);
        let shop = Shop::parse(&name, &contact).map_err(Failure::Shop)?;
        let by = Actor::Command.at(SystemClock.now());
        store.set_shop(account, &shop, &by).await?;
    }
    let view = ShopView::new(&name, &store.shop(account).await?);
    let line = format!("{}  {}  {}", view.account, view.shop_name, view.contact);
    Ok(print::item(&CommonArgs { database, json }, &view, line.trim_end())?)
}

fn row(account: &AccountRecord) -> (AccountView, String) {
    (account.into(), format!("{}  {}", account.id, account.name))
}
