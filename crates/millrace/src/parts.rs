//! What of a chain can be linked: the largest groups of connected elements that become one program each. Guests, and functions
//! that cannot be linked, stay between them.

use millrace_chain::connect::{Named, connect};
use millrace_chain::{ChainError, Description, Element, Function, Merged, What, file};
use millrace_link::link;

use crate::find::{self, Source, find};
use crate::written::{Proved, Written};
use crate::{Error, Make};

/// The groups of a chain.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// those of at least two elements, each with the function that it is linked into
    pub linked: Vec<Merged>,
    /// connected elements that are not in one group
    pub apart: Vec<Apart>,
    /// names of the chain's ports, which linking does not change
    ports: Vec<String>,
}

/// Two connected elements that are not linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// their names
    pub pair: (String, String),
    /// why
    pub why: String,
}

impl Parts {
    /// Finds them: each function is read and proved, as its `make` says, and what is connected is linked as far as that can be.
    ///
    /// # Errors
    /// A function cannot be read or is refused, or the elements cannot be connected.
    pub fn of(
        description: &Description,
        make: impl Fn(&Element, &Function) -> Result<Make, Error>,
    ) -> Result<Self, Error> {
        let elements = description.elements.iter();
        let read = elements.map(|element| match &element.what {
            What::Guest(_) => Ok(Err(Never {
                why: format!("{} is a guest", element.name),
                ports: Vec::new(),
            })),
            What::Function(asked) => read(description, element, asked, &make(element, asked)?),
        });
        let read = read.collect::<Result<Vec<_>, Error>>()?;
        let proved = { read.iter() }.map(|read| match read {
            Ok((written, make)) => written.check(make.begin()).map(Ok),
            Err(never) => Ok(Err(never.clone())),
        });
        let proved = proved.collect::<Result<Vec<_>, Error>>()?;
        let chain = Chain {
            description,
            proved,
        };
        let named: Vec<_> = (0..read.len()).map(|at| chain.named(at)).collect();
        let connected = connect(description, &named).map_err(|e| Error::wrong(&e).help(&e.help))?;
        let ports = connected.map_or(Vec::new(), |c| c.ports);
        Ok(chain.parts(ports))
    }

    /// The chain with these functions in it.
    #[must_use]
    pub fn chain(&self, description: &Description) -> Description {
        description.merged(&self.linked, &self.ports)
    }

    /// Names of its ports.
    #[must_use]
    pub fn ports(&self) -> &[String] {
        &self.ports
    }
}

/// An element that is never linked.
#[derive(Clone)]
struct Never {
    why: String,
    /// names of its ports
    ports: Vec<String>,
}

/// A function as it is written, if it may be linked.
fn read(
    description: &Description,
    element: &Element,
    asked: &Function,
    make: &Make,
) -> Result<Result<(Written, Make), Never>, Error> {
    let folder = description
        .file
        .as_deref()
        .and_then(std::path::Path::parent);
    let word = folder.map_or_else(|| asked.word.clone(), |f| file::beside(f, &asked.word));
    let found = find(&word)?;
    if let Source::Module(_) = found.source {
        return Ok(Err(Never {
            why: format!("{} is a module alone", element.name),
            ports: Vec::new(),
        }));
    }
    let written = found.read(make)?;
    if found.slow.is_some() {
        return Ok(Err(Never {
            why: format!("{} hands packets over to its slow path", element.name),
            ports: written.program.ports,
        }));
    }
    Ok(Ok((written, make.clone())))
}

/// A chain whose functions are proved.
struct Chain<'a> {
    description: &'a Description,
    /// those that may be linked, and the others
    proved: Vec<Result<Proved<'a>, Never>>,
}

impl Chain<'_> {
    fn named(&self, at: usize) -> Named {
        match self.proved.get(at) {
            Some(Ok(proved)) => Named {
                ports: proved.program.ports.clone(),
                guest: false,
            },
            other => {
                let of = self.description.elements.get(at).map(|e| &e.what);
                let never = other.and_then(|other| other.as_ref().err());
                Named {
                    ports: never.map_or(Vec::new(), |never| never.ports.clone()),
                    guest: matches!(of, Some(What::Guest(_))),
                }
            }
        }
    }

    fn parts(&self, ports: Vec<String>) -> Parts {
        let elements = &self.description.elements;
        let mut groups: Vec<usize> = (0..elements.len()).collect();
        let pairs = self.description.neighbours();
        let mut apart: Vec<Option<String>>;
        loop {
            apart = vec![None; pairs.len()];
            let before = groups.clone();
            for ((one, other), apart) in pairs.iter().zip(&mut apart) {
                let (Some(a), Some(b)) = (group_of(&groups, *one), group_of(&groups, *other))
                else {
                    continue;
                };
                if a == b {
                    continue;
                }
                let never = [one, other]
                    .into_iter()
                    .find_map(|at| match self.proved.get(*at) {
                        Some(Err(never)) => Some(never.why.clone()),
                        _ => None,
                    });
                let joined = groups.iter().map(|g| if *g == b { a } else { *g });
                let joined: Vec<usize> = joined.collect();
                match never.map_or_else(|| self.fits(&joined, a), Err) {
                    Ok(()) => groups = joined,
                    Err(why) => *apart = Some(why),
                }
            }
            // Along a row what could not be linked cannot later. In a graph another way round may have been linked since.
            if groups == before || self.description.is_line() {
                break;
            }
        }
        let name = |at: usize| elements.get(at).map_or(String::new(), |e| e.name.clone());
        let apart = pairs.iter().zip(apart).filter_map(|((one, other), why)| {
            let differ = group_of(&groups, *one) != group_of(&groups, *other);
            Some(Apart {
                pair: (name(*one), name(*other)),
                why: why.filter(|_| differ)?,
            })
        });
        let mut apart: Vec<_> = apart.collect();
        let mut linked = self.merged(&groups).unwrap_or_default();
        // A path with a `+` in it names no function of a row.
        linked.retain(|merged| {
            let What::Function(function) = &merged.element.what else {
                return false;
            };
            let Err(e) = find(&function.word) else {
                return true;
            };
            let all: Vec<_> = function.members.iter().map(|m| m.0.clone()).collect();
            let pairs = all.iter().zip(all.iter().skip(1));
            apart.extend(pairs.map(|(one, other)| Apart {
                pair: (one.clone(), other.clone()),
                why: e.what.clone(),
            }));
            false
        });
        Parts {
            linked,
            apart,
            ports,
        }
    }

    /// Whether one of the groups is one program, and the chain can be connected with it.
    fn fits(&self, groups: &[usize], of: usize) -> Result<(), String> {
        let what = |e: ChainError| e.what;
        let members = members(groups, of);
        let part = self.part(&members).map_err(what)?;
        let named: Vec<_> = members.iter().map(|at| self.named(*at)).collect();
        let connected = connect(&part, &named).map_err(what)?;
        let connected = connected.ok_or("it is one element")?;
        let elements = connected.order.iter().filter_map(|at| {
            let (element, at) = (part.elements.get(*at)?, members.get(*at)?);
            let proved = self.proved.get(*at)?.as_ref().ok()?;
            Some(millrace_link::Element {
                name: &element.name,
                program: proved.program,
                checked: &proved.checked,
            })
        });
        let elements: Vec<_> = elements.collect();
        link(&elements, &connected.topology, &connected.ports).map_err(|e| e.to_string())?;
        let all = self.merged(groups).map_err(what)?;
        let whole = self.description.merged(&all, &[]);
        let named = whole.elements.iter().map(|element| {
            let own = self.description.elements.iter();
            let own = own.zip(0..).find(|(e, _)| e.name == element.name);
            let merged = all.iter().find(|m| m.element.name == element.name);
            match (own, merged) {
                (_, Some(merged)) => Named {
                    ports: merged.part.called.clone(),
                    guest: false,
                },
                (Some((_, at)), None) => self.named(at),
                (None, None) => Named::default(),
            }
        });
        let named: Vec<_> = named.collect();
        match connect(&whole, &named) {
            Ok(_) => Ok(()),
            Err(e) => Err(format!(
                "as one element they could not be connected: {}",
                e.what
            )),
        }
    }

    fn part(&self, members: &[usize]) -> Result<Description, ChainError> {
        let elements = &self.description.elements;
        let names = members.iter().filter_map(|at| elements.get(*at));
        let names: Vec<_> = names.map(|e| e.name.as_str()).collect();
        self.description.part(&names)
    }

    /// The groups of several elements.
    fn merged(&self, groups: &[usize]) -> Result<Vec<Merged>, ChainError> {
        let mut all = Vec::new();
        for of in 0..groups.len() {
            let members = members(groups, of);
            if members.len() > 1 {
                let part = self.part(&members)?;
                let element = element(&part);
                all.push(Merged { part, element });
            }
        }
        Ok(all)
    }
}

fn group_of(groups: &[usize], at: usize) -> Option<usize> {
    groups.get(at).copied()
}

/// The elements of a group.
fn members(groups: &[usize], of: usize) -> Vec<usize> {
    let all = groups.iter().enumerate();
    all.filter(|(_, g)| **g == of).map(|(at, _)| at).collect()
}

/// The function that a part is linked into. What is said of its elements is said of `ELEMENT:NAME`.
fn element(part: &Description) -> Element {
    let mut function = Function::default();
    let mut keys = Vec::new();
    for element in &part.elements {
        let What::Function(own) = &element.what else {
            continue;
        };
        let name = &element.name;
        function.members.push((name.clone(), own.word.clone()));
        function
            .maps
            .extend(own.maps.iter().map(|map| format!("{name}:{map}")));
        keys.extend(element.keys.iter().map(|(key, span)| {
            let key = match key.split_once('.') {
                Some((table, of)) => format!("{table}.{name}:{of}"),
                None => key.clone(),
            };
            (key, span.clone())
        }));
    }
    let names: Vec<_> = function.members.iter().map(|m| m.0.as_str()).collect();
    let name = names.join("+");
    function.word = match &part.file {
        Some(file) => format!("{}:{name}", file.display()),
        None => find::word(&function.members),
    };
    Element {
        name,
        line: part.elements.first().and_then(|e| e.line),
        keys,
        what: What::Function(function),
    }
}
