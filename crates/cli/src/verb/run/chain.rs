//! The chain that is asked for: from a file, or from the words of the command line.

use std::ops::Range;
use std::path::Path;

use millrace::Make;
use millrace_chain::{ChainError, Description, What, description, file};
use millrace_control::Exposed;
use millrace_dataplane::module::Entry;
use millrace_guest::Word;

use super::Run;
use crate::failure::Failure;
use crate::outside::Outside;
use crate::{budget, function, refusal};

impl Run {
    /// What is to run, as one value however it was written.
    pub(super) fn described(&self) -> Result<Description, Failure> {
        match self.nfs.as_slice() {
            [one] if file::is_file(one) => file::read(Path::new(one)).map_err(wrong),
            words => match words.iter().find(|w| file::is_file(w)) {
                Some(word) => Err(Failure::wrong(format!("{word}: a chain file stands alone"))
                    .help("add what you want to it as an [[element]]")),
                None => {
                    let mut line = Description::line(words, called);
                    for element in &mut line.elements {
                        // Elements of a file have the entries that it names.
                        if let What::Function(function) = &mut element.what
                            && function.word.contains(".toml:")
                        {
                            function.maps = millrace::find(&function.word)?.maps();
                        }
                    }
                    Ok(line)
                }
            },
        }
    }

    /// How a function is made: as the file says, then as the command line does.
    pub(super) fn make(
        &self,
        chain: &Description,
        element: &millrace_chain::Element,
        asked: &millrace_chain::Function,
    ) -> Result<Make, Failure> {
        let both = |file: &[String], line: &[String]| -> Result<Vec<String>, Failure> {
            let own = of(chain, element, line)?;
            Ok(file.iter().cloned().chain(own).collect())
        };
        let set = both(&asked.set, &self.set)?;
        let capacity = both(&asked.capacity, &self.capacity)?;
        let program = self.program.as_ref().or(asked.program.as_ref());
        Ok(Make {
            sanitize: self.sanitize,
            budget: Some(budget::of(&asked.word).begin()),
            budgets: budget::of(&asked.word),
            ..function::make(&set, &capacity, program)?
        })
    }
}

/// Those of `NF:NAME=…` that are for one of the functions; without others, all of them.
pub fn of(
    chain: &Description,
    element: &millrace_chain::Element,
    all: &[String],
) -> Result<Vec<String>, Failure> {
    let linked = |e: &millrace_chain::Element| !members(e).is_empty();
    if chain.elements.len() < 2 && !linked(element) {
        return Ok(all.to_vec());
    }
    let mut own = Vec::new();
    for text in all {
        let known = |(name, _): &(&str, &str)| {
            let of = |e: &millrace_chain::Element| is(e, name) || within(e, name).next().is_some();
            chain.elements.iter().any(of)
        };
        let Some((name, rest)) = text.split_once(':').filter(known) else {
            let first = members(element).first().map_or(&element.name, |m| &m.0);
            return Err(
                Failure::wrong(format!("`{text}`: of which function?")).help(format!(
                    "write the function's name before it, as in {first}:{text}"
                )),
            );
        };
        if is(element, name) {
            own.push(rest.to_owned());
        }
        own.extend(within(element, name).map(|member| format!("{member}:{rest}")));
    }
    Ok(own)
}

/// The elements that one was linked from, with their words.
fn members(element: &millrace_chain::Element) -> &[(String, String)] {
    match &element.what {
        What::Function(function) => &function.members,
        What::Guest(_) => &[],
    }
}

/// Those of them that are meant by a name.
fn within<'a>(
    element: &'a millrace_chain::Element,
    name: &'a str,
) -> impl Iterator<Item = &'a str> {
    let all = members(element).iter();
    all.filter(move |(own, word)| own == name || called(word) == name)
        .map(|(own, _)| own.as_str())
}

/// Whether an element is meant by a name: its own, or what its word is called, which several may be.
fn is(element: &millrace_chain::Element, name: &str) -> bool {
    let word = match &element.what {
        What::Function(function) if function.members.is_empty() => called(&function.word),
        What::Function(_) | What::Guest(_) => String::new(),
    };
    element.name == name || word == name
}

/// Name that a word stands for: a function by the last part of its path, a guest by its program's.
pub fn called(word: &str) -> String {
    match Word::of(word) {
        Some(guest) => file::stem(guest.program().as_deref().unwrap_or("guest")),
        None => {
            let path = word.rsplit_once(".o:").map_or(word, |(path, _)| path);
            file::stem(path)
        }
    }
}

/// A guest as the command line would name it, for messages.
pub fn word(element: &millrace_chain::Element) -> String {
    match &element.what {
        What::Guest(guest) if description::is_guest(&guest.command) => guest.command.clone(),
        What::Guest(guest) if guest.arguments.is_empty() => format!("guest:{}", guest.command),
        What::Guest(guest) => format!("guest:{}", guest.arguments.join(" ")),
        What::Function(function) => function.word.clone(),
    }
}

/// A path of a chain file: from the file's folder, where something is there.
pub fn path(chain: &Description, word: &str) -> String {
    let folder = chain.file.as_deref().and_then(Path::parent);
    folder.map_or_else(|| word.to_owned(), |folder| file::beside(folder, word))
}

/// `OBJECT=FILE` of a chain file, from the file's folder.
pub fn maps(chain: &Description, maps: &[String]) -> Vec<String> {
    let folder = chain
        .file
        .as_deref()
        .and_then(Path::parent)
        .unwrap_or(Path::new(""));
    let of = |text: &String| match text.split_once('=') {
        Some((name, file)) => format!("{name}={}", folder.join(file).display()),
        None => text.clone(),
    };
    maps.iter().map(of).collect()
}

/// Something wrong with a description.
#[allow(clippy::needless_pass_by_value, reason = "what `map_err` takes")]
pub fn wrong(error: ChainError) -> Failure {
    let help = error.help.clone();
    let file = error.file.as_deref();
    let detail = file.zip(error.place.as_ref());
    Failure {
        detail: detail.and_then(|(file, place)| refusal::excerpt(file, place)),
        ..Failure::wrong(&error).help(help)
    }
}

/// A failure that a range of a chain file's bytes is the cause of.
pub fn at(chain: &Description, span: &Range<usize>, failure: Failure) -> Failure {
    let Some(file) = chain.file.as_deref() else {
        return failure;
    };
    let help = failure.help.clone().unwrap_or_default();
    let error = chain.wrong_at(span, failure.what.clone(), &help);
    let shown = error
        .place
        .as_ref()
        .and_then(|place| refusal::excerpt(file, place));
    let both: Vec<_> = shown.into_iter().chain(failure.detail.clone()).collect();
    Failure {
        what: error.to_string(),
        detail: Some(both.join("\n")).filter(|text| !text.is_empty()),
        ..failure
    }
}

/// A failure of an element, told at the key of the file that is the cause: messages name settings as the command line
/// does.
pub fn failed(chain: &Description, element: &millrace_chain::Element, failure: Failure) -> Failure {
    let (mut about, mut failure) = (None, failure);
    if let What::Function(function) = &element.what {
        let given = [("set", &function.set), ("capacity", &function.capacity)];
        let given = given
            .into_iter()
            .flat_map(|(key, texts)| texts.iter().map(move |text| (key, text)));
        for (key, text) in given {
            if let Some(rest) = failure.what.strip_prefix(&format!("--{key} {text}: ")) {
                let name = text.split_once('=').map_or(text.as_str(), |(name, _)| name);
                let name = format!("{key}.{name}");
                let what = format!("{}: `{name}`: {rest}", element.name);
                about = element.key(&name);
                failure.what = what;
                break;
            }
        }
    }
    let program = element.key("program").filter(|_| {
        let What::Function(function) = &element.what else {
            return false;
        };
        let name = function.program.as_ref();
        name.is_some_and(|name| failure.what.contains(&format!("`{name}`")))
    });
    let about = about.or(program).or_else(|| element.key("nf"));
    let span = about.or_else(|| element.key("guest"));
    match span {
        Some(span) => at(chain, span, failure),
        None => failure,
    }
}

/// The entries that the `map` of an element names.
pub fn entries(
    chain: &Description,
    element: &millrace_chain::Element,
    exposed: &Exposed,
) -> Result<Vec<Entry>, Failure> {
    let What::Function(function) = &element.what else {
        return Ok(Vec::new());
    };
    let mut entries = Vec::new();
    for (text, full) in function.maps.iter().zip(maps(chain, &function.maps)) {
        let found = Outside::entries(&[full], exposed).map_err(|failure| {
            let name = text.split_once('=').map_or(text.as_str(), |(name, _)| name);
            match element.key(&format!("map.{name}")) {
                Some(span) => at(chain, span, failure),
                None => failure,
            }
        });
        entries.extend(found?);
    }
    Ok(entries)
}
