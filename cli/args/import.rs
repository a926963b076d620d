//! The arguments of `order import`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, value_parser};

use super::FileFormat;

#[derive(Debug, ClapArgs)]
pub(crate) struct Import {
    #[arg(value_name = "FILE|-")]
    pub(crate) rows: PathBuf,
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: PathBuf,
    #[arg(
        id = "label_format",
        long = "format",
        short = 'f',
        value_name = "FORMAT",
        default_value = "pdf"
    )]
    pub(crate) format: FileFormat,
    #[arg(long)]
    pub(crate) resume: bool,
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u8).range(1..=64))]
    pub(crate) concurrency: u8,
    #[arg(long)]
    pub(crate) all_or_nothing: bool,
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
