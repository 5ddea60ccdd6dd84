//! The chain file of a run, read again while it runs: `millrace ctl reload`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millrace::{Begun, Budget, Function, Kind};
use millrace_chain::connect::{Named, connect};
use millrace_chain::{Description, What, file};
use millrace_control::Trouble;
use millrace_control::chain::Made;
use millrace_control::elements;
use millrace_control::reload::{How, Planned, Source, Wanted};
use millrace_dataplane::module::Entry;
use millrace_dataplane::worker::Code;
use millrace_emit::cache::key;
use millrace_guest::Spec;
use millrace_object::program::Param;

use super::Run;
use super::beside::Several;
use super::chain::{self, wrong};
use super::element::{self, Element};
use super::maker::trouble;
use super::settings::{Line, Whole, told};
use crate::failure::Failure;
use crate::outside::Outside;
use crate::routing;

/// Where a run was described.
pub struct Origin {
    /// the chain file
    pub path: PathBuf,
    /// what the command line says beside it
    pub line: Line,
    /// the keys of the file that count, as words of a command line
    pub keys: BTreeMap<String, Vec<OsString>>,
    /// what the file calls the run
    pub name: Option<String>,
}

/// Reads the file again, and makes what is new in it.
struct Again {
    origin: Arc<Origin>,
    run: Run,
    /// how many elements there have been
    made: AtomicUsize,
    /// the workers, where there are several
    several: Option<Arc<Several>>,
}

/// What an element was made from.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// a function
    Function {
        /// the word that names it
        word: String,
        /// `OBJECT=N` of the file and the command line
        capacities: Vec<(String, u64)>,
        /// equal for two functions that run the same code over objects of the same layout
        identity: String,
        /// the parameters with the values at start
        params: BTreeMap<String, Vec<u8>>,
        /// the entries that its files hold
        entries: Vec<Entry>,
    },
    /// a guest, as the file describes it
    Guest(millrace_chain::Guest),
}

impl Recipe {
    /// Of a function with the entries of its files.
    pub fn function(
        word: &str,
        capacities: &[(String, u64)],
        function: &Function,
        entries: Vec<Entry>,
    ) -> Result<Self, Failure> {
        Ok(Self::Function {
            word: word.to_owned(),
            capacities: capacities.to_vec(),
            identity: identity(function)?,
            params: params(function)
                .map(|(param, value)| (param.name.clone(), value))
                .collect(),
            entries,
        })
    }

    /// Of a guest.
    pub fn guest(guest: &millrace_chain::Guest) -> Self {
        let mut guest = guest.clone();
        // Another line of the file makes no other guest.
        for (_, _, line) in &mut guest.options {
            *line = None;
        }
        Self::Guest(guest)
    }
}

/// A hash over the code of a function and what it begins with, but for its parameters.
fn identity(function: &Function) -> Result<String, Failure> {
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|e| Failure::wrong(format!("{}: {e}", path.display())))
    };
    let module = read(function.module.path())?;
    let object = function.object.as_deref().map(read).transpose()?;
    let mut initial = function.initial.clone();
    for (param, _) in params(function) {
        let section = initial.get_mut(param.object.0).and_then(Option::as_mut);
        let (at, bytes) = (param.offset as usize, param.bytes as usize);
        let place = section.and_then(|s| s.get_mut(at..at.saturating_add(bytes)));
        if let Some(place) = place {
            place.fill(0);
        }
    }
    let initial: Vec<u8> = initial
        .into_iter()
        .flat_map(|section| {
            let section = section.unwrap_or_default();
            let length = (section.len() as u64).to_le_bytes();
            length.into_iter().chain(section)
        })
        .collect();
    let entry = function.entry.to_le_bytes();
    let object = object.unwrap_or_default();
    Ok(key(&[&module, &object, &initial, &entry]))
}

/// The parameters of a function with their values at start.
fn params(function: &Function) -> impl Iterator<Item = (&Param, Vec<u8>)> {
    let params = function.exposed.params.iter();
    params.filter_map(|param| {
        let section = function.initial.get(param.object.0)?.as_deref()?;
        let (at, bytes) = (param.offset as usize, param.bytes as usize);
        let value = section.get(at..at.saturating_add(bytes))?;
        Some((param, value.to_vec()))
    })
}

/// An element of the file, not started.
enum Next {
    Stays,
    Function(Box<Function>),
    Guest(Vec<Spec>),
}

impl Run {
    /// What reads the chain file again, of a run of so many elements.
    pub(super) fn source(
        &self,
        made: usize,
        several: Option<Arc<Several>>,
    ) -> Option<Box<dyn Source>> {
        let again = Again {
            origin: self.origin.clone()?,
            run: self.clone(),
            made: AtomicUsize::new(made),
            several,
        };
        Some(Box::new(again))
    }

    /// The entries that the files of a function hold: those of its chain file and of the command line.
    fn entries(
        &self,
        chain: &Description,
        element: &millrace_chain::Element,
        function: &Function,
    ) -> Result<Vec<Entry>, Failure> {
        let mut entries = chain::entries(chain, element, &function.exposed)?;
        let own = chain::of(chain, element, self.outside.maps())?;
        entries.extend(Outside::entries(&own, &function.exposed)?);
        Ok(entries)
    }
}

impl Source for Again {
    fn wanted(&self, running: &[elements::Element], check: bool) -> Result<Wanted, Trouble> {
        self.read(running, check).map_err(|failure| {
            let code = match failure.kind {
                Kind::No => "refused",
                Kind::Wrong => "malformed",
            };
            Trouble {
                code: code.to_owned(),
                ..trouble(failure)
            }
        })
    }
}

impl Again {
    fn read(&self, running: &[elements::Element], check: bool) -> Result<Wanted, Failure> {
        let chain = file::read(&self.origin.path).map_err(wrong)?;
        let line = &self.origin.line;
        let whole = Whole::of(&chain, line).map_err(wrong)?;
        self.unchanged(&chain, &whole.keys)?;
        let run = &self.run;
        let fits = run.fits(&chain);
        fits.map_err(|failure| told(&chain, line, failure))?;
        let mut planned = Vec::new();
        let mut named = Vec::new();
        for described in &chain.elements {
            let old = running.iter().find(|e| e.name == described.name);
            let recipe = old.and_then(|e| e.recipe.clone());
            let recipe = recipe.and_then(|r| r.downcast::<Recipe>().ok());
            let why = |recipe: &Recipe, before: Option<&Recipe>| match (old, before) {
                (None, _) => "new in the file".to_owned(),
                (_, None) => "what runs was put there by `ctl chain`".to_owned(),
                (_, Some(before)) => differs(before, recipe),
            };
            match &described.what {
                What::Guest(guest) => {
                    let taken = run.json || run.takes_stdout();
                    let element = Element::guest(&chain, described, guest, taken, run.classes())?;
                    named.push(element.named());
                    let now = Recipe::guest(guest);
                    let same = recipe.as_deref() == Some(&now);
                    let next = match element {
                        _ if same => Next::Stays,
                        Element::Guest(specs) => Next::Guest(specs),
                        Element::Function(function) => Next::Function(function),
                    };
                    let why = why(&now, recipe.as_deref());
                    planned.push(Some((described, next, why, now, State::default())));
                }
                What::Function(asked) => {
                    let failed = |e| chain::failed(&chain, described, e);
                    let (function, entries, now) =
                        self.function(&chain, described, asked).map_err(failed)?;
                    named.push(Named {
                        ports: function.ports.clone(),
                        guest: false,
                    });
                    let before = recipe.as_deref();
                    let own = chain::of(&chain, described, &run.set)?;
                    let set: Vec<_> = asked.set.iter().chain(&own).cloned().collect();
                    let params = changed(&function, &set, before);
                    let state = State::of(&function, params, before, entries).map_err(failed)?;
                    let why = why(&now, before);
                    let next = match before.is_some_and(|before| same(before, &now)) {
                        true => Next::Stays,
                        false => Next::Function(Box::new(function)),
                    };
                    planned.push(Some((described, next, why, now, state)));
                }
            }
        }
        let connected = connect(&chain, &named).map_err(wrong)?;
        let order = connected.as_ref().map(|c| c.order.clone());
        let order = order.unwrap_or_else(|| (0..planned.len()).collect());
        // What nobody will take is not started.
        let start = !check;
        let mut all = Vec::new();
        for at in order {
            let Some((described, next, why, recipe, state)) =
                planned.get_mut(at).and_then(Option::take)
            else {
                continue;
            };
            let how = match next {
                Next::Stays => How::Stays,
                Next::Function(function) => {
                    let made = self.made.fetch_add(1, Ordering::Relaxed);
                    let seed = run.seed.wrapping_add(made as u64);
                    let link = function.link(seed, state.written, !run.no_prefetch)?;
                    let made = Made {
                        link,
                        ports: function.ports.clone(),
                        exposed: Some(function.exposed.clone()),
                        alone: { self.several.as_ref() }.and_then(|s| s.alone_of(&function)),
                        successor: millrace::cluster::successor(&function),
                    };
                    How::New {
                        why,
                        made: Some(Box::new(made)),
                    }
                }
                Next::Guest(specs) => {
                    let made = || -> Result<Box<Made>, Failure> {
                        let several = self.several.as_ref();
                        let classes = several.map(|s| s.classes(&described.name)).transpose()?;
                        let code = match classes {
                            None => element::start(&specs)?,
                            Some(classes) => Code::Classed(element::start_each(&specs, classes)?),
                        };
                        Ok(Box::new(Made {
                            link: element::link(&described.name, code),
                            ports: Vec::new(),
                            exposed: None,
                            alone: several.map(|_| {
                                "it is a guest, and may do anything to packets".to_owned()
                            }),
                            successor: None,
                        }))
                    };
                    let made = start.then(made).transpose();
                    let made = made.map_err(|e| chain::failed(&chain, described, e))?;
                    How::New { why, made }
                }
            };
            all.push(Planned {
                name: described.name.clone(),
                how,
                params: state.params,
                before: state.before,
                entries: state.now.entries,
                made: state.now.objects,
                time: state.now.time,
                recipe: Arc::new(recipe),
            });
        }
        Ok(Wanted {
            elements: all,
            topology: connected.map(|c| c.topology),
        })
    }

    /// A function of the file as it is now.
    fn function(
        &self,
        chain: &Description,
        described: &millrace_chain::Element,
        asked: &millrace_chain::Function,
    ) -> Result<(Function, Vec<Entry>, Recipe), Failure> {
        let run = &self.run;
        let nf = chain::path(chain, &asked.word);
        let mut make = run.make(chain, described, asked)?;
        let capacities = make.capacities.clone();
        if let Some(several) = &self.several {
            let found = run.arrange((chain, described), &nf, &make, None)?;
            several.fits(&nf, &found)?;
            make = found.divided(&make);
        }
        let ports = run.between();
        let table = run.routes.as_deref();
        let (function, routes) = routing::load(&nf, &make, table, ports.receiving())?;
        let mut entries = run.entries(chain, described, &function)?;
        entries.extend(routes);
        let recipe = Recipe::function(&asked.word, &capacities, &function, entries.clone())?;
        Ok((function, entries, recipe))
    }

    /// Refuses keys that have changed: they are about what is made once, when the run starts.
    fn unchanged(
        &self,
        chain: &Description,
        keys: &BTreeMap<String, Vec<OsString>>,
    ) -> Result<(), Failure> {
        let before = &self.origin.keys;
        let all = before.keys().chain(keys.keys());
        let mut changed: Vec<_> = all.filter(|k| before.get(*k) != keys.get(*k)).collect();
        changed.sort_unstable();
        changed.dedup();
        let mut names: Vec<_> = changed
            .iter()
            .map(|k| format!("`{k}` ({})", fixed(k)))
            .collect();
        if chain.name != self.origin.name {
            names.push("`name` (requests find the run by it)".to_owned());
        }
        if names.is_empty() {
            return Ok(());
        }
        let what = format!("cannot change while the run goes on: {}", names.join(", "));
        let help = "nothing was changed; restart the run, or set this back";
        let place = chain.settings.iter().find(|s| changed.contains(&&s.name));
        let failure = Failure::no(&what).help(help);
        Err(match place {
            Some(setting) => chain::at(chain, &setting.span, failure),
            None => Failure {
                what: chain.wrong(None, what, help).to_string(),
                ..failure
            },
        })
    }
}

/// Why a key cannot change while a run goes on.
fn fixed(key: &str) -> &'static str {
    match key {
        "ports" | "in" | "out" | "pass" | "split" => "ports are opened at start",
        "cores" | "cpus" | "strategy" | "nic" | "steer" | "trace" | "classes" | "history-rows" => {
            "workers are arranged at start"
        }
        "metrics" | "control" => "where it listens is settled at start",
        "pin" | "pin-all" => "state is read at start and written at the end",
        _ => "it is read at start",
    }
}

/// Whether two recipes make elements that run alike, with other parameters or entries at most.
fn same(before: &Recipe, now: &Recipe) -> bool {
    match (before, now) {
        (
            Recipe::Function {
                identity: before, ..
            },
            Recipe::Function { identity: now, .. },
        ) => before == now,
        _ => before == now,
    }
}

/// What makes another element of a recipe.
fn differs(before: &Recipe, now: &Recipe) -> String {
    match (before, now) {
        (
            Recipe::Function {
                word: one,
                capacities: few,
                ..
            },
            Recipe::Function {
                word: other,
                capacities: many,
                ..
            },
        ) => match (one == other, few == many) {
            (false, _) => format!("{other} instead of {one}"),
            (true, false) => "other capacities".to_owned(),
            (true, true) => "its source changed".to_owned(),
        },
        (Recipe::Guest(_), Recipe::Guest(_)) => "another command or other options".to_owned(),
        (Recipe::Function { .. }, _) => "a guest instead of a function".to_owned(),
        (Recipe::Guest(_), _) => "a function instead of a guest".to_owned(),
    }
}

/// The parameters that a running function is to have: those that are set in the file or on the command line, and those
/// whose value at start is another one than it was.
fn changed(function: &Function, set: &[String], before: Option<&Recipe>) -> Vec<(Param, Vec<u8>)> {
    let Some(Recipe::Function { params: before, .. }) = before else {
        return Vec::new();
    };
    let named = |param: &Param| {
        let mut names = set.iter().filter_map(|text| text.split_once('='));
        names.any(|(name, _)| name == param.name)
    };
    params(function)
        .filter(|(param, value)| named(param) || before.get(&param.name) != Some(value))
        .map(|(param, value)| (param.clone(), value))
        .collect()
}

/// What the file says of a function's state.
#[derive(Default)]
struct State {
    /// parameters that are set
    params: Vec<(Param, Vec<u8>)>,
    /// the entries that the file gave when it was read last, with what `ON_START` filled in
    before: Vec<Entry>,
    /// as they are in the file
    written: Vec<Entry>,
    /// what a run would begin with
    now: Begun,
}

impl State {
    /// `ON_START` is asked what it makes of entries where they are not the ones of before.
    fn of(
        function: &Function,
        params: Vec<(Param, Vec<u8>)>,
        before: Option<&Recipe>,
        written: Vec<Entry>,
    ) -> Result<Self, Failure> {
        let (set, old) = match before {
            Some(Recipe::Function {
                params, entries, ..
            }) => (params.clone(), entries.clone()),
            _ => (BTreeMap::new(), Vec::new()),
        };
        if old == written {
            let now = Begun {
                entries: written.clone(),
                ..Begun::default()
            };
            return Ok(Self {
                params,
                before: old,
                written,
                now,
            });
        }
        // With the parameters that it had.
        let mut initial = function.initial.clone();
        for (param, _) in self::params(function) {
            let section = initial.get_mut(param.object.0).and_then(Option::as_mut);
            let (at, value) = (param.offset as usize, set.get(&param.name));
            if let (Some(section), Some(value)) = (section, value)
                && let Some(place) = section.get_mut(at..at.saturating_add(value.len()))
            {
                place.copy_from_slice(value);
            }
        }
        let begun =
            |initial, entries: &[Entry]| function.begun(initial, entries, Budget::default());
        // Entries of another version of the function may not fit this one; then they are as they were written.
        let before = begun(initial, &old).map_or(old, |begun| begun.entries);
        Ok(Self {
            params,
            before,
            now: begun(function.initial.clone(), &written)?,
            written,
        })
    }
}
