//! What a command line means: arguments and environment become a job whose values are all valid.

use std::{
    env,
    path::{Path, PathBuf},
};

use parcelo::{
    ApiKey, Client, CountryCode, ErrorCode, FaultCode, FieldFault, LabelFormat, TrackingNumber,
};

use crate::{
    args::{Args, Command, Create, GetLabel, Global, Label, Order},
    failure::Failure,
    input::{self, Source},
    output, texts,
    voice::Voice,
};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Job {
    Create { client: Client, order: Source, label: Option<LabelFile> },
    Validate { sources: Vec<Source> },
    Sample { country: CountryCode },
    Track { client: Client, numbers: Vec<TrackingNumber>, history: bool },
    Labels { client: Client, numbers: Vec<TrackingNumber>, format: LabelFormat, place: Place },
    Health { client: Client },
}

/// The file that an order's label is saved in.
#[derive(Debug)]
pub(crate) struct LabelFile {
    pub(crate) path: PathBuf,
    pub(crate) format: LabelFormat,
}

/// Where labels go.
#[derive(Debug)]
pub(crate) enum Place {
    Directory(PathBuf),
    Output,
}

pub(crate) fn resolve(args: Args, voice: Voice) -> Result<Job, Failure> {
    let client = |global: &Global| client(global, voice);
    let global = &args.global;
    match args.command {
        Command::Order(Order::Create(create)) => {
            let order = Source::of(&create.file);
            if global.api_key_stdin && order.is_stdin() {
                return Err(Failure::usage(texts::STDIN_TWICE, texts::STDIN_ONCE));
            }
            let label = label_file(create)?;
            Ok(Job::Create { client: client(global)?, order, label })
        }
        Command::Order(Order::Validate(validate)) => {
            let sources: Vec<_> = validate.files.iter().map(|file| Source::of(file)).collect();
            if sources.iter().filter(|source| source.is_stdin()).count() > 1 {
                return Err(Failure::usage(texts::STDIN_TWICE, texts::SEE_HELP));
            }
            Ok(Job::Validate { sources })
        }
        Command::Order(Order::Template(template)) => {
            Ok(Job::Sample { country: country(&template.country)? })
        }
        Command::Track(track) => {
            let numbers = numbers(&track.numbers)?;
            Ok(Job::Track { client: client(global)?, numbers, history: track.history })
        }
        Command::Label(Label::Get(get)) => {
            let (numbers, place) = (numbers(&get.numbers)?, place(&get)?);
            Ok(Job::Labels { client: client(global)?, numbers, format: get.format.into(), place })
        }
        Command::Health => Ok(Job::Health { client: client(global)? }),
    }
}

fn client(global: &Global, voice: Voice) -> Result<Client, Failure> {
    let key = key(global)?;
    let address = global.base_url.as_deref().map(str::trim).filter(|address| !address.is_empty());
    let address =
        address.ok_or_else(|| Failure::usage(texts::NO_BASE_URL, texts::GIVE_BASE_URL))?;
    Ok(Client::builder(key).base_url(address)?.language(voice.language).build()?)
}

fn key(global: &Global) -> Result<ApiKey, Failure> {
    let text = if global.api_key_stdin {
        input::line()?
    } else {
        env::var("PARCELO_API_KEY").unwrap_or_default()
    };
    if text.trim().is_empty() {
        return Err(Failure::key(ErrorCode::AuthMissingApiKey, texts::NO_KEY));
    }
    ApiKey::parse(text.trim())
        .map_err(|_| Failure::key(ErrorCode::AuthInvalidApiKey, texts::BAD_KEY))
}

fn country(code: &str) -> Result<CountryCode, Failure> {
    CountryCode::parse(code)
        .map_err(|_| Failure::usage(texts::BAD_COUNTRY.with(&[("value", code)]), texts::SEE_HELP))
}

/// All numbers, or all that are none.
fn numbers(texts: &[String]) -> Result<Vec<TrackingNumber>, Failure> {
    let read = texts.iter().map(|text| TrackingNumber::parse(text));
    let numbers: Vec<_> = read.clone().filter_map(Result::ok).collect();
    if numbers.len() == texts.len() {
        return Ok(numbers);
    }
    let faults = texts.iter().zip(read).enumerate().filter(|(_, (_, read))| read.is_err());
    let faults = faults.map(|(place, (text, _))| no_number(place, text)).collect();
    Err(Failure::invalid(texts::BAD_NUMBERS, faults))
}

fn no_number(place: usize, text: &str) -> FieldFault {
    let shown = output::without_keys(text);
    let said = texts::NUMBER_FORM.with(&[("value", &shown)]);
    FieldFault {
        field: format!("trackingNumbers[{place}]"),
        code: FaultCode::InvalidFormat,
        message: said.en,
        message_es: said.es,
        suggestion: None,
    }
}

/// The label's file, in a directory that is there: nothing is created before that is sure.
fn label_file(create: Create) -> Result<Option<LabelFile>, Failure> {
    let Some(path) = create.label else { return Ok(None) };
    if path.as_os_str() == "-" {
        return Err(Failure::usage(texts::LABEL_TO_STDOUT, texts::GET_TO_STDOUT));
    }
    let format = match create.format {
        Some(format) => format.into(),
        None => format_of(&path),
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    match directory.metadata() {
        Err(why) => Err(Failure::unwritable(&path.to_string_lossy(), &why)),
        Ok(found) if !found.is_dir() || path.is_dir() => {
            let why = std::io::Error::from(std::io::ErrorKind::NotADirectory);
            Err(Failure::unwritable(&path.to_string_lossy(), &why))
        }
        Ok(_) => Ok(Some(LabelFile { path, format })),
    }
}

/// The format that the file's ending names, else the default.
fn format_of(path: &Path) -> LabelFormat {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    LabelFormat::parse(ending).unwrap_or_default()
}

fn place(get: &GetLabel) -> Result<Place, Failure> {
    if get.dir.as_os_str() != "-" {
        return Ok(Place::Directory(get.dir.clone()));
    }
    let format = LabelFormat::from(get.format);
    if format == LabelFormat::Zpl {
        return Ok(Place::Output);
    }
    if get.numbers.len() > 1 {
        return Err(Failure::usage(texts::ONE_TO_STDOUT, texts::REDIRECT));
    }
    if output::is_terminal() {
        let message = texts::NOT_TO_TERMINAL.with(&[("format", format.code())]);
        return Err(Failure::usage(message, texts::REDIRECT));
    }
    Ok(Place::Output)
}
