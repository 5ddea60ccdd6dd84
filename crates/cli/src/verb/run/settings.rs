//! A run as its command line and its chain file say it together.
//!
//! The keys at the top of a chain file are the options of `run` by their long names. Which there are and what they take
//! is read from the command's own definition, so that a new option is a key, too. What the command line names counts
//! instead of the file's.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use millrace_chain::file::OF_CHAIN;
use millrace_chain::{ChainError, Description, Given, Setting};
use millrace_dataplane::{port, privilege};

use super::chain::wrong;
use super::reload::Origin;
use super::{Run, Serving};
use crate::budget::Switches;
use crate::failure::Failure;
use crate::log;
use crate::notify::Notify;

/// Options that are keys of an element.
const OF_ELEMENT: [&str; 4] = ["set", "capacity", "map", "program"];
/// Options that are for the command line alone: they are about what the command prints.
const OF_LINE: [&str; 1] = ["json"];
/// Options that say where packets come from and go to.
const PORTS: [&str; 5] = ["ports", "in", "out", "pass", "split"];

/// `run` with the words that it was called with.
pub struct Invoked {
    run: Run,
    line: Line,
}

/// The options of a command line.
#[derive(Clone, Default)]
pub struct Line {
    /// long names of those that were given
    names: Vec<String>,
    /// they and their values, as clap reads them again
    words: Vec<OsString>,
}

impl FromArgMatches for Invoked {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            run: Run::from_arg_matches(matches)?,
            line: Line::of(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.run.update_from_arg_matches(matches)?;
        self.line = Line::of(matches);
        Ok(())
    }
}

impl Args for Invoked {
    fn group_id() -> Option<clap::Id> {
        Run::group_id()
    }

    fn augment_args(command: Command) -> Command {
        Run::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Run::augment_args_for_update(command)
    }
}

impl Line {
    fn of(matches: &ArgMatches) -> Self {
        let mut line = Self::default();
        for arg in command().get_arguments() {
            let id = arg.get_id().as_str();
            let there = matches.try_contains_id(id).unwrap_or(false);
            if !there || matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let Some(long) = arg.get_long() else { continue };
            line.names.push(long.to_owned());
            if !arg.get_action().takes_values() {
                line.words.push(format!("--{long}").into());
                continue;
            }
            let values = matches.get_raw(id).into_iter().flatten();
            line.words.extend(values.map(|value| word(long, value)));
        }
        line
    }

    /// Whether a key of a file counts beside this command line.
    fn leaves(&self, key: &str) -> bool {
        let given = |name: &str| self.names.iter().any(|n| n == name);
        // Ports of both directions stand in place of inputs and outputs, and these in place of ports.
        let other = match key {
            "in" | "out" => given("ports"),
            "ports" => given("in") || given("out"),
            _ => false,
        };
        !given(key) && !other
    }
}

impl Invoked {
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        self.run.json
    }

    /// Runs it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        log::set(self.run.log_level, self.run.log_format);
        // Before there is another thread.
        let serving = Serving {
            aside: privilege::put_aside(),
            notify: Notify::begin(),
        };
        serving.notify.status("preparing");
        let chain = self.run.described()?;
        let Some(file) = chain.file.clone() else {
            return self.run.joined().perform(&chain, serving);
        };
        let whole = Whole::of(&chain, &self.line).map_err(wrong)?;
        let mut run = whole.run;
        run.nfs = vec![file.display().to_string()];
        run.origin = Some(Arc::new(Origin {
            // As it was given: paths in it, and sources of functions, are named alike by a reload. The working folder does not change.
            path: file,
            line: self.line.clone(),
            keys: whole.keys,
            name: chain.name.clone(),
        }));
        whole.switches.apply();
        let failed = |failure| told(&chain, &self.line, failure);
        run.joined().perform(&chain, serving).map_err(failed)
    }
}

/// What a chain file and a command line say together.
pub struct Whole {
    /// the run
    pub run: Run,
    /// what an object may take
    pub switches: Switches,
    /// the keys of the file that count, as words of the command line
    pub keys: BTreeMap<String, Vec<OsString>>,
}

impl Whole {
    /// What a chain file says beside a command line.
    ///
    /// # Errors
    /// A key is none, its value is wrong, or what is said does not go together.
    pub fn of(chain: &Description, line: &Line) -> Result<Self, ChainError> {
        let command = command();
        let mut counts = Vec::new();
        for setting in &chain.settings {
            let words = words(chain, &command, setting)?;
            if line.leaves(&setting.name) {
                counts.push((setting, words));
            }
        }
        let parse = |left_out: Option<&Setting>| {
            let of_file = counts
                .iter()
                .filter(|(s, _)| left_out.is_none_or(|out| out.name != s.name));
            let words = of_file.flat_map(|(_, words)| words);
            let words = words.chain(&line.words).cloned();
            command.clone().try_get_matches_from(words.chain(file()))
        };
        let together = |error: &clap::Error| {
            // The key without which it would do.
            let culprit = counts.iter().find(|(s, _)| parse(Some(s)).is_ok());
            let (what, help) = apart(error);
            match culprit {
                Some((setting, _)) => chain.wrong_at(&setting.span, what, &help),
                None => chain.wrong(None, what, &help),
            }
        };
        let matches = parse(None).map_err(|e| together(&e))?;
        let read = |e: clap::Error| chain.wrong(None, first_line(&e), "see docs/chains.md");
        Ok(Self {
            run: Run::from_arg_matches(&matches).map_err(read)?,
            switches: Switches::from_arg_matches(&matches).map_err(read)?,
            keys: counts
                .into_iter()
                .map(|(setting, words)| (setting.name.clone(), words))
                .collect(),
        })
    }
}

/// The options that a chain file may have, by themselves.
fn command() -> Command {
    Switches::augment_args(Run::augment_args(Command::new("run")))
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
}

/// Stands for the chain file, which the description has.
fn file() -> [OsString; 2] {
    ["--".into(), "chain.toml".into()]
}

fn word(long: &str, value: &std::ffi::OsStr) -> OsString {
    let mut word = OsString::from(format!("--{long}="));
    word.push(value);
    word
}

/// The option that a key names.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut options = command.get_arguments();
    options.find(|arg| arg.get_long() == Some(name) && is_key(name))
}

fn is_key(name: &str) -> bool {
    !OF_ELEMENT.contains(&name) && !OF_LINE.contains(&name) && !OF_CHAIN.contains(&name)
}

/// A key of a file as words of a command line, each of which was read on its own.
fn words(
    chain: &Description,
    command: &Command,
    setting: &Setting,
) -> Result<Vec<OsString>, ChainError> {
    let name = setting.name.as_str();
    let wrong = |what: String, help: &str| chain.wrong_at(&setting.span, what, help);
    let arg = option(command, name).ok_or_else(|| {
        let what = format!("there is no key `{name}` here");
        wrong(what, &nearest(command, name))
    })?;
    let about = about(arg);
    let several = matches!(arg.get_action(), ArgAction::Append);
    let values = match (&setting.given, arg.get_action().takes_values()) {
        (Given::Switch(on), false) => {
            return Ok(Some(format!("--{name}").into())
                .filter(|_| *on)
                .into_iter()
                .collect());
        }
        (_, false) => return Err(wrong(format!("`{name}` is true or false"), &about)),
        (Given::Switch(on), true) => vec![(on.to_string(), setting.span.clone())],
        (Given::One(value), true) => vec![(value.clone(), setting.span.clone())],
        (Given::Several(values), true) if several => values.clone(),
        (Given::Several(_), true) => {
            return Err(wrong(
                format!("`{name}` takes one value, not a list"),
                &about,
            ));
        }
    };
    let mut words = Vec::new();
    for (value, span) in values {
        if value.is_empty() {
            return Err(chain.wrong_at(&span, format!("`{name}` is empty"), &about));
        }
        let own = word(name, placed(chain, arg, &value).as_ref());
        let alone = std::iter::once(own.clone()).chain(file());
        match command.clone().try_get_matches_from(alone) {
            Err(e) if !of_others(&e) => {
                let (what, help) = unread(&e, name, &value, &about);
                return Err(chain.wrong_at(&span, what, &help));
            }
            _ => words.push(own),
        }
    }
    Ok(words)
}

/// A value whose relative paths begin at the file's folder.
fn placed(chain: &Description, arg: &Arg, value: &str) -> OsString {
    let Some(folder) = chain.file.as_deref().and_then(Path::parent) else {
        return value.into();
    };
    let name = arg.get_long().unwrap_or_default();
    let joined = || folder.join(value).into_os_string();
    match name {
        // Where to listen may be nowhere.
        "control" if value == "none" => value.into(),
        "routes" if value.split(':').next() == Some("system") => value.into(),
        "routes" | "trace" => joined(),
        "split" => value.into(),
        _ if PORTS.contains(&name) => {
            let words: Vec<_> = value.split(',').map(str::to_owned).collect();
            let words = port::joined(&words).into_iter();
            // A plain name among ports of both directions is that of an interface.
            let placed = |w: String| match name == "ports" && port::is_plain(&w) {
                true => w,
                false => port::beside(&w, folder),
            };
            let words: Vec<_> = words.map(placed).collect();
            words.join(",").into()
        }
        _ if arg.get_value_parser().type_id() == TypeId::of::<PathBuf>() && value != "-" => {
            joined()
        }
        _ => value.into(),
    }
}

/// Whether an error is about options beside the one that was read.
fn of_others(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument
    )
}

/// Why a value cannot be read, and what to write.
fn unread(error: &clap::Error, name: &str, value: &str, about: &str) -> (String, String) {
    let valid = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) if !valid.is_empty() => valid.join(", "),
        _ => String::new(),
    };
    if !valid.is_empty() {
        let what = format!("`{name}` is no `{value}`");
        return (what, format!("there are {valid}"));
    }
    let why = std::error::Error::source(error).map(ToString::to_string);
    let why = why.unwrap_or_else(|| first_line(error));
    (format!("`{name}` = `{value}`: {why}"), about.to_owned())
}

/// Why options do not go together, and what to do.
fn apart(error: &clap::Error) -> (String, String) {
    let key = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        format!("`{}`", first.trim_start_matches('-'))
    };
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => vec![key(one)],
        Some(ContextValue::Strings(several)) => several.iter().map(|s| key(s)).collect(),
        _ => Vec::new(),
    };
    let of = named(ContextKind::InvalidArg).join(", ");
    match error.kind() {
        ErrorKind::ArgumentConflict => {
            let other = named(ContextKind::PriorArg).join(", ");
            (
                format!("{of} and {other} exclude each other"),
                "leave one of them out, in the file or on the command line".to_owned(),
            )
        }
        ErrorKind::MissingRequiredArgument => (
            format!("this needs {of}, too"),
            format!("say {of}, or leave this out"),
        ),
        _ => (first_line(error), "see docs/chains.md".to_owned()),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}

/// What an option is for, from its definition.
fn about(arg: &Arg) -> String {
    let name = arg.get_long().unwrap_or_default();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{name}: {help}")
}

/// What to write instead of a key that there is not.
fn nearest(command: &Command, name: &str) -> String {
    if OF_ELEMENT.contains(&name) {
        return format!("`{name}` is a key of an element: write it below its [[element]]");
    }
    if OF_LINE.contains(&name) {
        return format!("give --{name} on the command line");
    }
    let keys = command.get_arguments().filter_map(Arg::get_long);
    let keys = keys.filter(|key| is_key(key));
    let mut keys: Vec<_> = keys.chain(OF_CHAIN).collect();
    keys.sort_unstable();
    match closest(name, &keys) {
        Some(key) => format!("write `{key}`, if that is meant"),
        None => format!("the keys are {}", keys.join(", ")),
    }
}

/// The key that a name was perhaps meant to be: one that a few letters make of it.
fn closest<'a>(name: &str, keys: &[&'a str]) -> Option<&'a str> {
    // The distance grows with the product of the lengths, and nobody writes a key of such a length by mistake.
    const LONGEST: usize = 40;
    if name.len() > LONGEST {
        return None;
    }
    let distances = keys.iter().map(|key| (distance(name, key), *key));
    let (letters, key) = distances.min()?;
    (letters * 2 < name.len().max(key.len())).then_some(key)
}

/// How many letters are to be inserted, removed or replaced to make one text of another (Levenshtein 1966), `_` and `-`
/// being the same.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.replace('_', "-").to_lowercase();
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut before = at + 1;
        let mut next = vec![before];
        for (b, pair) in other.chars().zip(row.windows(2)) {
            let &[left, above] = pair else { break };
            before = (left + usize::from(a != b)).min(above + 1).min(before + 1);
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// A failure that is about a key of the file, told at its place: messages name an option as the command line does, and a
/// port by its word.
pub fn told(chain: &Description, line: &Line, failure: Failure) -> Failure {
    let file = chain.file.as_deref().map(|f| f.display().to_string());
    if file.is_some_and(|file| failure.what.starts_with(&file)) {
        return failure;
    }
    let counts = chain.settings.iter().filter(|s| line.leaves(&s.name));
    let mut found = counts.filter_map(|setting| spoken_of(chain, setting, &failure.what));
    match found.next() {
        Some(span) => super::chain::at(chain, &span, failure),
        None => failure,
    }
}

/// The bytes of a key or of one of its values, if a message is about it.
fn spoken_of(chain: &Description, setting: &Setting, what: &str) -> Option<Range<usize>> {
    let option = format!("--{}", setting.name);
    let rest = what.strip_prefix(&option);
    if rest.is_some_and(|rest| rest.starts_with([' ', ':'])) {
        return Some(setting.span.clone());
    }
    if !PORTS.contains(&setting.name.as_str()) {
        return None;
    }
    let folder = chain.file.as_deref().and_then(Path::parent);
    let about = |value: &str| {
        let placed = folder.map_or_else(|| value.to_owned(), |f| port::beside(value, f));
        let kind = value.split_once(':').map(|(kind, _)| format!("`{kind}:`"));
        what.contains(&placed) || kind.is_some_and(|kind| what.contains(&kind))
    };
    match &setting.given {
        Given::One(value) => about(value).then(|| setting.span.clone()),
        Given::Several(values) => {
            let mut values = values.iter();
            let found = values.find(|(value, _)| about(value));
            found.map(|(_, span)| span.clone())
        }
        Given::Switch(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_key_is_near_the_one_that_was_meant() {
        let keys = ["ports", "pass", "cores", "pin-all", "element"];
        assert_eq!(closest("prots", &keys), Some("ports"));
        assert_eq!(closest("core", &keys), Some("cores"));
        assert_eq!(closest("pin_all", &keys), Some("pin-all"));
        assert_eq!(closest("Elements", &keys), Some("element"));
        assert_eq!(closest("colour", &keys), None);
        assert_eq!(closest("", &keys), None);
        assert_eq!(closest(&"p".repeat(100_000), &keys), None);
    }
}
