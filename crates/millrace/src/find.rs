//! From the word that names a function to the file it is in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_chain::{Description, Function, What};
use millrace_synth::Options;

use crate::Error;
use crate::click::joined::{Joined, One};
use crate::click::{self, slow};

/// Where data of programs is installed, without `XDG_DATA_DIRS`.
const SYSTEM: &str = "/usr/local/share:/usr/share";

/// Kind of thing that a word names.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    /// C in either dialect
    C(PathBuf),
    /// a compiled object
    Object(PathBuf),
    /// a folder that `millrace build` made
    Bundle(PathBuf),
    /// a module, alone
    Module(PathBuf),
    /// functions that become one program (crates/link): in a row, or as a chain file connects them
    Linked(Row),
}

/// Functions that are linked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    /// the functions, in the order of the words or of the file
    pub members: Vec<Member>,
    /// the file that says how they are connected; none: each leads to the next
    pub file: Option<Arc<Description>>,
}

/// A function of a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    /// what it is called among the others
    pub name: String,
    /// where it is
    pub found: Found,
    /// parameters that the chain file sets, names and values
    pub settings: Vec<(String, String)>,
    /// capacities that it gives
    pub capacities: Vec<(String, u64)>,
    /// files of entries for its maps that it names, `OBJECT=FILE`
    pub maps: Vec<String>,
}

/// A function, found.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// the word
    pub word: String,
    /// what it is
    pub source: Source,
    /// which program of an object (`FILE.o:PROGRAM`)
    pub program: Option<String>,
    /// the folder it stands in; its packet tests are in `tests` there
    pub folder: PathBuf,
    /// the slow path of a synthesised function that hands packets over
    pub slow: Option<Arc<slow::Configuration>>,
    /// the configurations that are one function, where several are
    pub one: Option<Arc<One>>,
}

/// The file of a bundle that says what it is.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Functions in a row, neighbouring Click configurations of which are one; by their words with `+` between them, `NAME=WORD` where one is not called as [`numbered`] says.
fn row(word: &str) -> Result<Found, Error> {
    let mut members: Vec<(String, String)> = Vec::new();
    for word in word.split('+') {
        let given = word.split_once('=').filter(|(name, _)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c);
            !name.is_empty() && name.chars().all(plain) && !Path::new(word).exists()
        });
        let word = given.map_or(word, |(_, word)| word);
        let taken = |name: &str| members.iter().any(|m| m.0 == name);
        let name = match given {
            Some((name, _)) if taken(name) => {
                let what = format!("two functions of the row are called `{name}`");
                return Err(Error::wrong(what).help("call one of them otherwise"));
            }
            Some((name, _)) => name.to_owned(),
            None => numbered(word, taken),
        };
        members.push((name, word.to_owned()));
    }
    let described = Description {
        elements: { members.into_iter() }
            .map(|(name, word)| millrace_chain::Element {
                name,
                line: None,
                keys: Vec::new(),
                what: What::Function(Function {
                    word,
                    ..Function::default()
                }),
            })
            .collect(),
        ..Description::default()
    };
    let joined = Joined::of(&described, true);
    let mut members = Vec::new();
    for element in &described.merged(&joined.within(&described), &[]).elements {
        let What::Function(function) = &element.what else {
            continue;
        };
        members.push(Member {
            name: element.name.clone(),
            found: match joined.group(element) {
                Some(group) => group.found()?,
                None => find(&function.word)?,
            },
            settings: Vec::new(),
            capacities: Vec::new(),
            maps: Vec::new(),
        });
    }
    if let [only] = members.as_slice() {
        return Ok(only.found.clone());
    }
    let folder = members.first().map(|m| m.found.folder.clone());
    Ok(Found {
        folder: folder.unwrap_or_default(),
        ..found(
            Source::Linked(Row {
                members,
                file: None,
            }),
            None,
        )
    })
}

/// Name of a function of a row by its file; the second of one name is called NAME-2, as in a chain.
fn numbered(word: &str, taken: impl Fn(&str) -> bool) -> String {
    let file = word.rsplit_once(".o:").map_or(word, |(file, _)| file);
    let plain = Path::new(file).file_stem().unwrap_or_default();
    let plain = plain.to_string_lossy().into_owned();
    let others = (2_u64..).map(|n| format!("{plain}-{n}"));
    let mut all = std::iter::once(plain.clone()).chain(others);
    all.find(|name| !taken(name)).unwrap_or(plain)
}

/// The word of a row of functions with these names and words.
pub(crate) fn word(members: &[(String, String)]) -> String {
    let mut words = Vec::new();
    for (at, (name, word)) in members.iter().enumerate() {
        let taken = |name: &str| members.iter().take(at).any(|m| m.0 == name);
        words.push(match numbered(word, taken) == *name {
            true => word.clone(),
            false => format!("{name}={word}"),
        });
    }
    words.join("+")
}

/// The functions of a chain file, or those of its elements that are named with `+` between them; they are linked as it connects them, and
/// neighbouring Click configurations of them are one.
fn chain(path: &Path, names: Option<&str>) -> Result<Found, Error> {
    let wrong = |e: millrace_chain::ChainError| Error::wrong(&e).help(&e.help);
    let mut description = millrace_chain::file::read(path).map_err(wrong)?;
    if let Some(names) = names {
        let names: Vec<_> = names.split('+').collect();
        description = description.part(&names).map_err(wrong)?;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let joined = Joined::of(&description, true);
    let called = description.called.clone();
    let description = description.merged(&joined.within(&description), &called);
    let mut members = Vec::new();
    for element in &description.elements {
        let wrong = |what: String, help: &str| {
            let error = description.wrong(element.line, what, help);
            Error::wrong(&error).help(&error.help)
        };
        let What::Function(function) = &element.what else {
            let what = format!("{} is a guest, which has no model", element.name);
            return Err(wrong(what, &between(path, &description)));
        };
        let named = |texts: &[String]| -> Vec<(String, String)> {
            let pairs = texts.iter().filter_map(|text| text.split_once('='));
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        };
        let mut capacities = Vec::new();
        for (name, value) in named(&function.capacity) {
            let entries = value.parse();
            let entries = entries.map_err(|_| {
                wrong(
                    format!("`capacity.{name}`: {value} is no number of entries"),
                    "write a whole number",
                )
            })?;
            capacities.push((name, entries));
        }
        let found = match joined.group(element) {
            Some(group) => group.found(),
            None => find(&millrace_chain::file::beside(folder, &function.word)),
        };
        let mut found = found.map_err(|e| Error {
            what: wrong(e.what.clone(), "").what,
            ..e
        })?;
        if let Some(program) = &function.program {
            found.program = Some(program.clone());
        }
        let maps = named(&function.maps).into_iter();
        let maps = maps.map(|(name, file)| format!("{name}={}", folder.join(file).display()));
        members.push(Member {
            name: element.name.clone(),
            found,
            settings: named(&function.set),
            capacities,
            maps: maps.collect(),
        });
    }
    let one = |e: &millrace_chain::Element| description.is_line() || joined.group(e).is_some();
    if let [only] = members.as_slice()
        && description.elements.first().is_some_and(one)
        && [only.settings.len(), only.capacities.len(), only.maps.len()] == [0; 3]
    {
        return Ok(only.found.clone());
    }
    Ok(Found {
        folder: folder.to_owned(),
        ..found(
            Source::Linked(Row {
                members,
                file: Some(Arc::new(description)),
            }),
            None,
        )
    })
}

/// How to name the functions between the guests of a chain file.
fn between(path: &Path, of: &Description) -> String {
    let guest = |at: usize| {
        let what = of.elements.get(at).map(|e| &e.what);
        !matches!(what, Some(What::Function(_)))
    };
    let mut groups: Vec<usize> = (0..of.elements.len()).collect();
    for (one, other) in of.neighbours() {
        if let (false, false, Some(a), Some(b)) = (
            guest(one),
            guest(other),
            groups.get(one).copied(),
            groups.get(other).copied(),
        ) {
            groups.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
        }
    }
    let mut words = Vec::new();
    for group in 0..groups.len() {
        let own = groups.iter().zip(&of.elements).enumerate();
        let own = own.filter(|(at, (g, _))| **g == group && !guest(*at));
        let names: Vec<_> = own.map(|(_, (_, e))| e.name.as_str()).collect();
        if !names.is_empty() {
            words.push(format!("{}:{}", path.display(), names.join("+")));
        }
    }
    match words.as_slice() {
        [] => "leave it out of the file to look at the rest".to_owned(),
        words => format!("name the functions beside it: {}", words.join(", ")),
    }
}

/// Finds a function: a file (`x.c`, `x.click`, `x.click:early-discard`, `x.click:whole`, `x.o`, `x.o:PROGRAM`, `x.so`), a folder
/// with NAME.c, a bundle, several in a row that are linked (`x+y`, `NAME=x+y`), a chain file, whose functions are linked
/// (`x.toml`; `x.toml:ELEMENT+ELEMENT`, some of them), or the name of a folder in ./nfs, in one of $MILLRACE_NFS, or where functions are installed (`share/millrace/nfs`).
///
/// # Errors
/// There is none of that name; the error lists the names there are, and the folders that were searched.
pub fn find(word: &str) -> Result<Found, Error> {
    let found = look(word)?;
    Ok(Found {
        word: word.to_owned(),
        ..found
    })
}

fn look(word: &str) -> Result<Found, Error> {
    let path = Path::new(word);
    if path.is_dir() {
        return folder(path);
    }
    if let Some((file, program)) = word.rsplit_once(".o:") {
        let object = PathBuf::from(format!("{file}.o"));
        if object.is_file() && !program.is_empty() {
            return Ok(found(Source::Object(object), Some(program.to_owned())));
        }
    }
    if let Some((file, options)) = click::named(word).filter(|(file, _)| *file != word) {
        let path = Path::new(file);
        if path.is_file() {
            return configuration(path, options);
        }
    }
    if let Some((file, names)) = word.rsplit_once(".toml:") {
        let file = PathBuf::from(format!("{file}.toml"));
        if file.is_file() && !names.is_empty() {
            return chain(&file, Some(names));
        }
    }
    match path.extension().and_then(|e| e.to_str()) {
        _ if !path.exists() && word.contains('+') => row(word),
        _ if !path.exists() => by_name(word),
        Some("c") => Ok(found(Source::C(path.to_owned()), None)),
        Some("click") => configuration(path, Options::default()),
        Some("toml") => chain(path, None),
        Some("so") => Ok(found(Source::Module(path.to_owned()), None)),
        // Objects carry many endings (.o, .bpf, .elf, none); the loader says what is not one.
        _ => Ok(found(Source::Object(path.to_owned()), None)),
    }
}

fn configuration(path: &Path, options: Options) -> Result<Found, Error> {
    let (source, slow) = click::source(path, options)?;
    Ok(Found {
        folder: path.parent().map(Path::to_owned).unwrap_or_default(),
        slow: slow.map(Arc::new),
        ..found(Source::C(source), None)
    })
}

fn found(source: Source, program: Option<String>) -> Found {
    let folder = match &source {
        Source::Bundle(folder) => Some(folder.as_path()),
        Source::C(path) | Source::Object(path) | Source::Module(path) => path.parent(),
        Source::Linked(_) => None,
    };
    Found {
        word: String::new(),
        folder: folder.map(Path::to_owned).unwrap_or_default(),
        source,
        program,
        slow: None,
        one: None,
    }
}

fn folder(path: &Path) -> Result<Found, Error> {
    if path.join(MANIFEST).is_file() {
        return Ok(found(Source::Bundle(path.to_owned()), None));
    }
    // `.` and `..` have no name of their own.
    let name = std::fs::canonicalize(path)
        .ok()
        .and_then(|p| p.file_name().map(|n| n.to_owned()));
    let name = name.unwrap_or_default();
    let source = path.join(&name).with_extension("c");
    if source.is_file() {
        return Ok(found(Source::C(source), None));
    }
    Err(Error::wrong(format!(
        "{}: no {}.c in it",
        path.display(),
        name.to_string_lossy()
    ))
    .help("name the source or the object itself"))
}

fn by_name(word: &str) -> Result<Found, Error> {
    among(word, &places(|name| std::env::var_os(name)))
}

/// Folders of functions, in the order in which they are searched: ./nfs, those of `MILLRACE_NFS`, the folder of the
/// installation that this program belongs to, and the system's ([XDG base directories](https://specifications.freedesktop.org/basedir-spec/)).
fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("nfs")];
    places.extend(paths(variable("MILLRACE_NFS")));
    let program = std::env::current_exe().ok();
    // PREFIX/bin/millrace belongs to PREFIX/share/millrace.
    let prefix = program.as_deref().and_then(|p| p.parent()?.parent());
    let own = prefix.map(|prefix| prefix.join("share"));
    let system = variable("XDG_DATA_DIRS").filter(|v| !v.is_empty());
    let system = system.unwrap_or_else(|| SYSTEM.into());
    for folder in own.into_iter().chain(paths(Some(system))) {
        let folder = folder.join("millrace/nfs");
        if !places.contains(&folder) {
            places.push(folder);
        }
    }
    places
}

/// The folders of a variable; an empty one among them names nothing.
fn paths(list: Option<OsString>) -> Vec<PathBuf> {
    let list = list.unwrap_or_default();
    let named = std::env::split_paths(&list).filter(|p| !p.as_os_str().is_empty());
    named.collect()
}

fn among(word: &str, places: &[PathBuf]) -> Result<Found, Error> {
    let plain = !word.contains(['/', '\\']) && word != "." && word != "..";
    let mut candidates = places
        .iter()
        .map(|p| p.join(word))
        .filter(|p| plain && p.is_dir());
    if let Some(candidate) = candidates.next() {
        return folder(&candidate);
    }
    let mut names: Vec<String> = places.iter().flat_map(|p| folders(p)).collect();
    names.sort();
    names.dedup();
    let looked: Vec<_> = places.iter().map(|p| p.display().to_string()).collect();
    let looked = format!("looked in {}", looked.join(", "));
    let help = if names.is_empty() {
        format!(
            "give a source (.c) or an object (.o), or name the folder of functions in MILLRACE_NFS; {looked}"
        )
    } else {
        format!(
            "there are {}; or give a source (.c) or an object (.o); {looked}",
            names.join(", ")
        )
    };
    Err(Error::wrong(format!("there is no function `{word}`")).help(help))
}

fn folders(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.path().is_dir());
    folders
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_programs_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let nf = dir.path().join("gate");
        std::fs::create_dir(&nf).unwrap();
        for file in ["gate.c", "gate.o", "gate.so"] {
            std::fs::write(nf.join(file), "").unwrap();
        }
        let word = |name: &str| find(nf.join(name).to_str().unwrap()).unwrap();
        assert_eq!(word("gate.c").source, Source::C(nf.join("gate.c")));
        assert_eq!(word("gate.o").source, Source::Object(nf.join("gate.o")));
        assert_eq!(word("gate.so").source, Source::Module(nf.join("gate.so")));
        let program = word("gate.o:second");
        assert_eq!(program.source, Source::Object(nf.join("gate.o")));
        assert_eq!(program.program.as_deref(), Some("second"));
        assert_eq!(
            find(nf.to_str().unwrap()).unwrap().source,
            Source::C(nf.join("gate.c"))
        );
        assert_eq!(word("gate.c").folder, nf);

        std::fs::write(nf.join(MANIFEST), "{}").unwrap();
        assert_eq!(
            find(nf.to_str().unwrap()).unwrap().source,
            Source::Bundle(nf.clone())
        );
    }

    #[test]
    fn a_name_is_looked_up_in_order_and_every_folder_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (own, installed) = (dir.path().join("own"), dir.path().join("data"));
        let system = installed.join("millrace/nfs");
        for (place, name) in [(&own, "gate"), (&system, "gate"), (&system, "other")] {
            let nf = place.join(name);
            std::fs::create_dir_all(&nf).unwrap();
            std::fs::write(nf.join(format!("{name}.c")), "").unwrap();
        }
        let places = places(|name| match name {
            "MILLRACE_NFS" => Some(own.clone().into()),
            _ => Some(format!("{}::/elsewhere", installed.display()).into()),
        });
        assert_eq!(places[0], Path::new("nfs"));
        assert_eq!(places[1], own);
        assert_eq!(
            places[places.len() - 2..],
            [system.clone(), PathBuf::from("/elsewhere/millrace/nfs")]
        );
        let source = |name: &str| among(name, &places).unwrap().source;
        assert_eq!(source("gate"), Source::C(own.join("gate/gate.c")));
        assert_eq!(source("other"), Source::C(system.join("other/other.c")));
        let help = among("third", &places).unwrap_err().help.unwrap();
        assert!(help.contains("gate, ") && help.contains("other"), "{help}");
        for place in &places {
            assert!(help.contains(&place.display().to_string()), "{help}");
        }
    }

    #[test]
    fn without_variables_the_systems_folders_are_searched() {
        let places = places(|_| None);
        for folder in ["/usr/local/share", "/usr/share"] {
            let folder = Path::new(folder).join("millrace/nfs");
            assert_eq!(places.iter().filter(|p| **p == folder).count(), 1);
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let failure = find(dir.path().to_str().unwrap()).unwrap_err();
        assert!(failure.what.contains(".c in it"), "{}", failure.what);
        for word in ["no-such-nf", "no/such.c", "x.o:y", "..nothing"] {
            let failure = find(word).unwrap_err();
            assert_eq!(failure.what, format!("there is no function `{word}`"));
            assert!(failure.help.is_some());
        }
    }
}
