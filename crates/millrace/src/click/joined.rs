//! Neighbouring Click elements of a chain as one function: their graphs become one graph ([`millrace_synth::join`]), which is synthesised
//! as one. So a chain of configurations is classified once and written once for each class, however many files it is written in.
//!
//! What each element does alone is synthesised first. It says which ports there are, and what must not become slower: parts stay apart
//! where one function would hand over packets that they do not.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use millrace_chain::connect::{Named, connect};
use millrace_chain::{Description, Element, Function, Merged, What, file};
use millrace_click::interpreter::{Folder, Reading, Shared};
use millrace_emit::cache::Cache;
use millrace_synth::emit::word;
use millrace_synth::function::{Function as Stateless, Functions};
use millrace_synth::join::{Connections, End, Part, join, passed, reads_files};
use millrace_synth::{Options, Synthesis};

use super::{function, named, read, slow, written};
use crate::Error;
use crate::find::{Found, Source};
use crate::groups;
use crate::parts::{Apart, element};

/// The Click elements of a chain that become one.
#[derive(Default)]
pub struct Joined {
    /// groups of at least two, each with the element that stands in its place
    pub groups: Vec<Group>,
    /// connected Click elements that are not in one group
    pub apart: Vec<Apart>,
    /// names of ports of Click elements, by the numbers of elements
    alone: BTreeMap<usize, Vec<String>>,
}

/// Click elements as one.
pub struct Group {
    /// the elements and what stands in their place; ports are called as the function calls them
    pub merged: Merged,
    /// the function
    pub synthesis: Synthesis,
    /// where files that its elements name are looked for
    folder: PathBuf,
    /// functions that are elements of it
    functions: Vec<Arc<Stateless>>,
    /// packets that it passes to the host, and that the elements one by one do not, and why
    pub passed: Option<String>,
    /// the elements one by one
    one: Arc<One>,
}

/// What is one function: the elements as they run one after the other.
#[derive(Clone, PartialEq, Debug)]
pub struct One {
    /// how they are connected
    pub part: Description,
    /// their words, in the order of the part
    pub words: Vec<String>,
    /// new flows get numbers that are drawn, which others draw otherwise
    pub draws: bool,
    /// elements whose packets are passed to the host, and why
    pub passed: Vec<(String, String)>,
}

/// A Click element, synthesised alone.
struct Single {
    word: String,
    of: Synthesis,
    /// how it was synthesised; none: it is no configuration
    options: Option<Options>,
    /// where files that it names are; none: it names none
    folder: Option<PathBuf>,
    /// the function that it is, where it is no configuration
    function: Option<Arc<Stateless>>,
    /// names of its ports, as its function has them
    ports: Vec<String>,
    /// why it cannot be one with another
    never: Option<String>,
}

/// Files of a folder, to read.
pub(super) fn host(folder: &Path) -> Shared {
    Rc::new(RefCell::new(Reading(Folder {
        folder: folder.to_owned(),
    })))
}

/// A Click element by itself; none where it is something else. What is wrong with it is said where it is found by its word.
fn single(description: &Description, element: &Element) -> Option<Single> {
    let What::Function(asked) = &element.what else {
        return None;
    };
    let found = word_of(description, asked);
    let (path, options) = named(&found)?;
    let of = read(Path::new(path), true, options).ok()?;
    Some(Single {
        word: found.clone(),
        ports: of.ports.iter().map(|port| word(port)).collect(),
        of,
        options: Some(options),
        folder: Some(Path::new(path).parent().unwrap_or(Path::new("")).to_owned()),
        function: None,
        never: given(element, asked, asked.program.is_none()),
    })
}

/// The word of a function, from the chain file's folder.
pub(super) fn word_of(description: &Description, asked: &Function) -> String {
    let folder = description.file.as_deref().and_then(Path::parent);
    folder.map_or_else(|| asked.word.clone(), |f| file::beside(f, &asked.word))
}

/// What the file says of an element that is about its own function.
fn given(element: &Element, asked: &Function, plain: bool) -> Option<String> {
    let given = [
        ("set", asked.set.is_empty()),
        ("capacity", asked.capacity.is_empty()),
        ("map", asked.maps.is_empty()),
        ("program", plain),
    ];
    let given = given.into_iter().find(|(_, empty)| !empty);
    given.map(|(key, _)| {
        let name = &element.name;
        format!("{name} has a `{key}`, which is for its own function")
    })
}

/// A function of another dialect by itself; none where it is something else.
///
/// # Errors
/// Why it cannot be an element.
fn function(description: &Description, element: &Element) -> Option<Result<Single, String>> {
    let What::Function(asked) = &element.what else {
        return None;
    };
    let made = match given(element, asked, true) {
        Some(why) => Err(why),
        None => function::of(description, element, asked).map(|(of, function)| Single {
            word: word_of(description, asked),
            ports: of.ports.iter().map(|port| word(port)).collect(),
            of,
            options: None,
            folder: None,
            function: Some(function),
            never: None,
        }),
    };
    Some(made.map_err(|why| format!("{} is no element: {why}", element.name)))
}

impl Joined {
    /// Finds them. `passing`: also those that pass packets to the host as one function where each has a slow path that runs them.
    #[must_use]
    pub fn of(description: &Description, passing: bool) -> Self {
        let click = |at: &usize| {
            let of = description.elements.get(*at).map(|e| &e.what);
            matches!(of, Some(What::Function(f)) if named(&f.word).is_some())
        };
        let all = description.neighbours();
        if !all.iter().any(|(a, b)| click(a) || click(b)) {
            return Self::default();
        }
        let mut clicks = Clicks {
            description,
            passing,
            singles: BTreeMap::new(),
            refused: BTreeMap::new(),
        };
        // From configurations on, along functions that can be elements.
        let elements = description.elements.iter().enumerate();
        let mut todo: Vec<usize> = elements.map(|(at, _)| at).filter(click).collect();
        let mut seen: Vec<usize> = todo.clone();
        while let Some(at) = todo.pop() {
            if !clicks.take(at, click(&at)) {
                continue;
            }
            for (a, b) in &all {
                for (one, other) in [(a, b), (b, a)] {
                    if *one == at && !seen.contains(other) {
                        seen.push(*other);
                        todo.push(*other);
                    }
                }
            }
        }
        let known = |at: &usize| {
            clicks.singles.contains_key(at) || clicks.refused.contains_key(at) || click(at)
        };
        let joins = |at: &usize| clicks.singles.contains_key(at) || click(at);
        let pairs =
            { all.iter().copied() }.filter(|(a, b)| known(a) && known(b) && (joins(a) || joins(b)));
        let pairs: Vec<_> = pairs.collect();
        if pairs.is_empty() {
            return Self::default();
        }
        clicks.joined(&pairs)
    }

    /// The names of ports of a Click element that was looked at.
    #[must_use]
    pub fn ports(&self, at: usize) -> Option<&[String]> {
        self.alone.get(&at).map(Vec::as_slice)
    }

    /// The group that an element stands for.
    #[must_use]
    pub fn group(&self, element: &Element) -> Option<&Group> {
        let mut groups = self.groups.iter();
        groups.find(|group| group.merged.element == *element)
    }

    /// The groups that are whole in a part of the chain, or in all of it, as parts of that.
    #[must_use]
    pub fn within(&self, part: &Description) -> Vec<Merged> {
        let groups = self.groups.iter();
        groups.filter_map(|group| group.within(part)).collect()
    }
}

impl Group {
    fn names(&self) -> Vec<&str> {
        let elements = self.merged.part.elements.iter();
        elements.map(|e| e.name.as_str()).collect()
    }

    /// The same in a part of the chain, whose ports may stand in another order.
    fn within(&self, of: &Description) -> Option<Merged> {
        let part = of.part(&self.names()).ok()?;
        let own = &self.merged.part;
        let called = part.entries.iter().map(|port| {
            let same = own
                .entries
                .iter()
                .position(|p| p.element == port.element && p.port.eq_ignore_ascii_case(&port.port));
            same.and_then(|at| own.called.get(at)).cloned()
        });
        let called = called.collect::<Option<_>>()?;
        Some(Merged {
            part: Description { called, ..part },
            element: self.merged.element.clone(),
        })
    }

    /// The function, in the user's cache.
    ///
    /// # Errors
    /// Those of the cache.
    pub fn found(&self) -> Result<Found, Error> {
        let source = written(&self.synthesis, &Cache::of_user()?)?;
        let slow = slow::Configuration::of(&self.synthesis, self.folder.clone(), &self.functions);
        let What::Function(Function { word, .. }) = &self.merged.element.what else {
            return Err(Error::wrong("a guest is no function"));
        };
        let file = self.merged.part.file.as_deref().and_then(Path::parent);
        Ok(Found {
            word: word.clone(),
            source: Source::C(source),
            program: None,
            folder: file.unwrap_or(&self.folder).to_owned(),
            slow: slow.map(Arc::new),
            one: Some(self.one.clone()),
        })
    }
}

/// A chain whose Click elements are synthesised one by one.
struct Clicks<'a> {
    description: &'a Description,
    passing: bool,
    singles: BTreeMap<usize, Single>,
    /// functions that cannot be elements, and why
    refused: BTreeMap<usize, String>,
}

impl Clicks<'_> {
    /// Looks at an element; whether it may be one with others.
    fn take(&mut self, at: usize, click: bool) -> bool {
        let Some(element) = self.description.elements.get(at) else {
            return false;
        };
        let made = match click {
            true => single(self.description, element).map(Ok),
            false => function(self.description, element),
        };
        match made {
            None => click,
            Some(Ok(single)) => {
                self.singles.insert(at, single);
                true
            }
            Some(Err(why)) => {
                self.refused.insert(at, why);
                false
            }
        }
    }

    fn joined(&self, pairs: &[(usize, usize)]) -> Joined {
        let description = self.description;
        let count = description.elements.len();
        let never = |at: usize| match self.singles.get(&at) {
            Some(single) => single.never.clone(),
            None => match self.refused.get(&at) {
                Some(why) => Some(why.clone()),
                None => Some("it cannot be synthesised".to_owned()),
            },
        };
        let made: RefCell<BTreeMap<Vec<usize>, Group>> = RefCell::default();
        let fits = |groups: &[usize], of: usize| {
            let members = groups::members(groups, of);
            if made.borrow().contains_key(&members) {
                return Ok(());
            }
            if groups::cycle(description, groups) {
                return Err("packets leave both and come back by other elements".to_owned());
            }
            let group = self.group(&members)?;
            made.borrow_mut().insert(members, group);
            Ok(())
        };
        // Mostly all that is connected is one in the end: then nothing smaller is needed.
        let mut all: groups::Groups = (0..count).collect();
        for (one, other) in pairs {
            if let (Some(a), Some(b)) = (groups::of(&all, *one), groups::of(&all, *other)) {
                all.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
            }
        }
        let ends = pairs.iter().flat_map(|(a, b)| [*a, *b]);
        let whole = |of: usize| -> bool {
            let members = groups::members(&all, of);
            members.len() < 2
                || members.iter().all(|at| never(*at).is_none()) && fits(&all, of).is_ok()
        };
        let mut numbers: Vec<usize> = ends.filter_map(|at| groups::of(&all, at)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let (groups, apart) = match numbers.into_iter().all(whole) {
            true => (all, vec![None; pairs.len()]),
            false => groups::grown(
                ((0..count).collect(), pairs),
                description.is_line(),
                never,
                fits,
            ),
        };
        let mut made = made.into_inner();
        let kept = (0..count).filter_map(|of| made.remove(&groups::members(&groups, of)));
        let kept = kept.collect();
        let name = |at: usize| description.elements.get(at).map(|e| e.name.clone());
        let apart = pairs.iter().zip(apart).filter_map(|((one, other), why)| {
            Some(Apart {
                pair: (name(*one)?, name(*other)?),
                why: why?,
            })
        });
        Joined {
            groups: kept,
            apart: apart.collect(),
            // As a row has them: those of a configuration are words of its C, those of a function its own.
            alone: { self.singles.iter() }
                .map(|(at, single)| match single.function {
                    Some(_) => (*at, single.of.ports.clone()),
                    None => (*at, single.ports.clone()),
                })
                .collect(),
        }
    }

    /// Some elements as one function; why they cannot be.
    fn group(&self, members: &[usize]) -> Result<Group, String> {
        let elements = &self.description.elements;
        let names = members.iter().filter_map(|at| elements.get(*at));
        let names: Vec<_> = names.map(|e| e.name.as_str()).collect();
        let mut part = self.description.part(&names).map_err(|e| e.what)?;
        let singles = members.iter().map(|at| self.singles.get(at));
        let singles = singles.collect::<Option<Vec<&Single>>>();
        let singles = singles.ok_or("it cannot be synthesised")?;
        let mut own = singles.iter().filter_map(|s| s.options);
        let options = own.next().ok_or("neither is a Click configuration")?;
        if own.any(|o| o != options) {
            return Err("they are not synthesised in the same way".to_owned());
        }
        let folders: Vec<&PathBuf> = singles.iter().filter_map(|s| s.folder.as_ref()).collect();
        let folder = (*folders.first().ok_or("there is none")?).clone();
        let apart = folders.iter().any(|f| **f != folder);
        let reads = |s: &&&Single| {
            let folder = s.folder.as_ref();
            folder.is_some_and(|f| reads_files(s.of.router.graph(), &host(f)))
        };
        if apart && singles.iter().any(|s| reads(&s)) {
            return Err("they read files of different folders".to_owned());
        }
        let ports: Vec<Named> = { singles.iter() }
            .map(|single| Named {
                ports: single.ports.clone(),
                guest: false,
            })
            .collect();
        // What is wrong with connections is wrong with those of the whole.
        connect(&part, &ports).map_err(|e| e.what)?;
        let connections = connections(&part, &singles).ok_or("a port of theirs is not there")?;
        let parts: Vec<Part<'_>> = { names.iter().zip(&singles) }
            .map(|(name, single)| Part {
                name,
                of: &single.of,
            })
            .collect();
        let mut name = names.join("+");
        name.truncate(MOST_NAME);
        let functions: Vec<_> = singles.iter().filter_map(|s| s.function.clone()).collect();
        let files = Rc::new(RefCell::new(Functions {
            inner: host(&folder),
            all: functions.clone(),
        }));
        let synthesis = join(&name, &parts, &connections, files, options)?;
        if !part.is_line() {
            part.called.clone_from(&synthesis.ports);
        }
        let passed = passed(&parts, &synthesis);
        if let Some(why) = passed.as_ref().filter(|_| !self.passing) {
            return Err(why.clone());
        }
        let titles = synthesis.titles().into_iter().zip(&synthesis.slow);
        let to_host = titles.filter(|(_, slow)| !slow.run);
        let to_host = to_host.map(|(title, slow)| (title, format!("{}: passed", slow.why)));
        let one = One {
            passed: to_host.collect(),
            part: part.clone(),
            words: singles.iter().map(|s| s.word.clone()).collect(),
            draws: synthesis.flows.draws() || !synthesis.flows.leases().is_empty(),
        };
        Ok(Group {
            one: Arc::new(one),
            passed,
            merged: Merged {
                element: element(&part),
                part,
            },
            synthesis,
            folder,
            functions,
        })
    }
}

/// Bytes of a function's name, at most: it is the name of a file.
const MOST_NAME: usize = 120;

/// How configurations of a chain of them alone are connected; none where a port is not there.
fn connections(of: &Description, singles: &[&Single]) -> Option<Connections> {
    let mut all = Connections::default();
    let mut outer: Vec<(End, String, String)> = Vec::new();
    let mut out = |end: End| {
        let (single, element) = (singles.get(end.0)?, of.elements.get(end.0)?);
        let port = single.ports.get(end.1)?.clone();
        let long = word(&format!("{}_{port}", element.name));
        outer.push((end, port, long));
        Some(())
    };
    let mut between: Vec<(End, End)> = Vec::new();
    if of.is_line() {
        between.extend((1..singles.len()).map(|at| ((at - 1, 1), (at, 0))));
        out((0, 0))?;
        out((singles.len().checked_sub(1)?, 1))?;
    } else {
        let end = |port: &millrace_chain::Port| -> Option<End> {
            let at = of.elements.iter().position(|e| e.name == port.element)?;
            let names = &singles.get(at)?.ports;
            let named = names
                .iter()
                .position(|n| n.eq_ignore_ascii_case(&port.port));
            let number = named.or_else(|| port.port.parse().ok())?;
            Some((at, number))
        };
        for (one, other) in &of.connections {
            between.push((end(one)?, end(other)?));
        }
        for port in &of.entries {
            out(end(port)?)?;
        }
    }
    for (one, other) in between {
        all.between.insert(one, other);
        // Of several that lead to a port it leads back to the first.
        all.between.entry(other).or_insert(one);
    }
    let mut taken: Vec<String> = Vec::new();
    for (at, (end, port, long)) in outer.iter().enumerate() {
        let alike = outer.iter().filter(|o| o.1.eq_ignore_ascii_case(port));
        let name = match alike.count() {
            1 => port.clone(),
            _ => long.clone(),
        };
        let is_taken = |name: &str| taken.iter().any(|t| t.eq_ignore_ascii_case(name));
        let name = match is_taken(&name) {
            true => format!("{long}_{at}"),
            false => name,
        };
        taken.push(name.clone());
        all.outer.push((*end, name));
    }
    Some(all)
}
