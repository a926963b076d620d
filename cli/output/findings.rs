//! How profiles, checks, drawn labels and unsent requests are written, in each format.

use std::io::{self, Write};

use clap::ValueEnum;
use csv::Writer;
use parcelo::Language;
use serde_json::{Value, json};

use super::{
    grid::{headed, write_facts, write_table},
    json::{Layout, all, one},
    plain, table,
};
use crate::{
    findings::{Check, Finding, Listed, State},
    texts::{self, Text},
    voice::Format,
};

pub(super) fn write_people(
    out: &mut impl Write,
    finding: &Finding,
    language: Language,
) -> io::Result<()> {
    match finding {
        Finding::Requests(requests) => {
            requests.iter().try_for_each(|request| writeln!(out, "{}", lines(&request.curl())))
        }
        Finding::Profiles(profiles) => write_profiles(out, profiles, language),
        Finding::Place(file) => writeln!(out, "{}", plain(&file.path.to_string_lossy())),
        Finding::Checks(checks) => write_checks(out, checks, language),
        Finding::Drawn(drawn) => {
            drawn.lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            writeln!(out)?;
            table::write_label(out, &drawn.label, None, language)
        }
        Finding::Files(files) => {
            files.iter().try_for_each(|file| writeln!(out, "{}", plain(&file.to_string_lossy())))
        }
    }
}

/// Plain, line by line.
fn lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

fn write_profiles(out: &mut impl Write, profiles: &[Listed], language: Language) -> io::Result<()> {
    let headings = [
        texts::PROFILE,
        texts::IN_USE,
        texts::ADDRESS,
        texts::API_KEY,
        texts::LANGUAGE,
        texts::OUTPUT,
    ];
    let mut grid = headed(&headings, language);
    for profile in profiles {
        grid.add_row([
            plain(&profile.name),
            if profile.current { "*".to_owned() } else { String::new() },
            plain(profile.base_url.as_deref().unwrap_or_default()),
            profile.key.clone().unwrap_or_default(),
            profile.language.unwrap_or_default().to_owned(),
            profile.output.map(format_name).unwrap_or_default(),
        ]);
    }
    if profiles.is_empty() { Ok(()) } else { write_table(out, grid) }
}

fn format_name(format: Format) -> String {
    format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn write_checks(out: &mut impl Write, checks: &[Check], language: Language) -> io::Result<()> {
    let facts: Vec<_> = checks
        .iter()
        .map(|check| {
            let state = state(check.state).pick(language);
            (check.title, format!("{state}: {}", check.detail.pick(language)))
        })
        .collect();
    write_facts(out, &facts, language)?;
    for check in checks {
        if let Some(hint) = &check.hint {
            let title = check.title.pick(language);
            writeln!(out, "{title}: {}", plain(hint.pick(language)))?;
        }
    }
    Ok(())
}

fn state(state: State) -> Text {
    match state {
        State::Fine => texts::FINE,
        State::Warning => texts::WARNING,
        State::Failed(_) => texts::FAILED,
        State::Skipped => texts::SKIPPED,
    }
}

pub(super) fn write_json(
    out: &mut impl Write,
    finding: &Finding,
    layout: Layout,
) -> io::Result<()> {
    match finding {
        Finding::Drawn(drawn) => return one(out, &drawn.label, layout),
        Finding::Place(file) => {
            let path = file.path.to_string_lossy();
            return one(out, &json!({"path": path, "exists": file.exists}), layout);
        }
        Finding::Requests(_) | Finding::Profiles(_) | Finding::Checks(_) | Finding::Files(_) => {}
    }
    all(out, &documents(finding), layout)
}

/// A document for each thing that was found.
fn documents(finding: &Finding) -> Vec<Value> {
    match finding {
        Finding::Requests(requests) => requests.iter().map(request).collect(),
        Finding::Profiles(profiles) => profiles.iter().map(profile).collect(),
        Finding::Checks(checks) => checks.iter().map(check).collect(),
        Finding::Files(files) => {
            files.iter().map(|file| json!({"file": file.to_string_lossy()})).collect()
        }
        Finding::Drawn(_) | Finding::Place(_) => Vec::new(),
    }
}

fn request(request: &crate::dry_run::UnsentRequest) -> Value {
    let headers: serde_json::Map<_, _> =
        request.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    // The body as what it is; one that is no JSON as text.
    let body = request.body.as_ref();
    let body = body.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    json!({"method": request.method, "url": request.url, "headers": headers, "body": body,
        "curl": request.curl()})
}

fn profile(profile: &Listed) -> Value {
    json!({"name": profile.name, "current": profile.current, "baseUrl": profile.base_url,
        "key": profile.key, "language": profile.language, "output": profile.output.map(format_name)})
}

fn check(check: &Check) -> Value {
    let hint = check.hint.as_ref();
    json!({"check": check.name, "state": check.state.word(), "detail": check.detail.en,
        "detail_es": check.detail.es, "hint": hint.map(|hint| &hint.en),
        "hint_es": hint.map(|hint| &hint.es)})
}

/// Under a heading of stable names, a row for each thing that was found.
pub(super) fn write_csv(
    rows: &mut Writer<impl Write>,
    finding: &Finding,
    language: Language,
) -> csv::Result<()> {
    match finding {
        Finding::Requests(requests) => {
            rows.write_record(["method", "url", "body", "curl"])?;
            requests.iter().try_for_each(|request| {
                let body = request.body.as_deref().unwrap_or_default();
                rows.write_record([&*request.method, &*request.url, body, &*request.curl()])
            })
        }
        Finding::Profiles(profiles) => {
            rows.write_record(["name", "current", "baseUrl", "key", "language", "output"])?;
            profiles.iter().try_for_each(|profile| {
                rows.write_record([
                    &*profile.name,
                    if profile.current { "true" } else { "false" },
                    profile.base_url.as_deref().unwrap_or_default(),
                    profile.key.as_deref().unwrap_or_default(),
                    profile.language.unwrap_or_default(),
                    &profile.output.map(format_name).unwrap_or_default(),
                ])
            })
        }
        Finding::Place(file) => {
            rows.write_record(["path", "exists"])?;
            rows.write_record([&*file.path.to_string_lossy(), &file.exists.to_string()])
        }
        Finding::Checks(checks) => {
            rows.write_record(["check", "state", "detail", "hint"])?;
            checks.iter().try_for_each(|check| {
                let hint = check.hint.as_ref().map(|hint| hint.pick(language));
                let (detail, hint) = (check.detail.pick(language), hint.unwrap_or_default());
                rows.write_record([check.name, check.state.word(), detail, hint])
            })
        }
        Finding::Files(files) => {
            rows.write_record(["file"])?;
            files.iter().try_for_each(|file| rows.write_record([&*file.to_string_lossy()]))
        }
        Finding::Drawn(_) => Ok(()),
    }
}
