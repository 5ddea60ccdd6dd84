//! What of a chain can be one: the largest groups of connected Click elements, which are synthesised as one function each, and the largest
//! groups of connected elements that become one program each. Guests, and functions that cannot be linked, stay between them.

use millrace_chain::connect::{Named, connect};
use millrace_chain::{ChainError, Description, Element, Function, Merged, What, file};
use millrace_link::link;

use crate::click::joined::Joined;
use crate::find::{self, Found, Source, find};
use crate::groups::{self, members};
use crate::written::{Proved, Written};
use crate::{Error, Make};

/// The groups of a chain.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// those of at least two Click elements, each with the function that they are synthesised as, where that is not linked with others
    pub joined: Vec<Merged>,
    /// those of at least two elements, each with the function that it is linked into
    pub linked: Vec<Merged>,
    /// all groups of Click elements that are synthesised as one, by their names, linked with others or not
    pub synthesised: Vec<Vec<String>>,
    /// packets of those that are passed to the host, and would not be if they ran one after the other, and why
    pub passed: Vec<String>,
    /// connected Click elements that are not synthesised as one, linked or not
    pub several: Vec<Apart>,
    /// connected elements that are not in one group
    pub apart: Vec<Apart>,
    /// names of the chain's ports, which linking does not change
    ports: Vec<String>,
}

/// Two connected elements that are not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// their names
    pub pair: (String, String),
    /// why
    pub why: String,
}

/// What stands for itself while groups are linked: an element, or Click elements that are one.
struct Unit<'a> {
    element: &'a Element,
    /// numbers of the elements in it
    members: Vec<usize>,
}

impl Parts {
    /// Finds them: each function is read and proved, as its `make` says, and what is connected is linked as far as that can be. `passing`:
    /// packets may be passed to the host that slow paths of Click configurations would run.
    ///
    /// # Errors
    /// A function cannot be read or is refused, or the elements cannot be connected.
    pub fn of(
        description: &Description,
        passing: bool,
        make: impl Fn(&Element, &Function) -> Result<Make, Error>,
    ) -> Result<Self, Error> {
        let joined = Joined::of(description, passing);
        let units = units(description, &joined);
        let read = units.iter().map(|unit| match &unit.element.what {
            What::Guest(_) => Ok(Err(Never {
                why: format!("{} is a guest", unit.element.name),
                ports: Vec::new(),
            })),
            What::Function(asked) => {
                let found = match joined.group(unit.element) {
                    Some(group) => group.found()?,
                    None => found(description, asked)?,
                };
                read(unit.element, &found, &make(unit.element, asked)?)
            }
        });
        let read = read.collect::<Result<Vec<_>, Error>>()?;
        let proved = { read.iter() }.map(|read| match read {
            Ok((written, make)) => written.check(make.begin()).map(Ok),
            Err(never) => Ok(Err(never.clone())),
        });
        let proved = proved.collect::<Result<Vec<_>, Error>>()?;
        let chain = Chain {
            description,
            joined: &joined,
            units: &units,
            proved,
        };
        let elements = 0..description.elements.len();
        let named: Vec<_> = elements.map(|at| chain.alone(at)).collect();
        let connected = connect(description, &named).map_err(|e| Error::wrong(&e).help(&e.help))?;
        let ports = connected.map_or(Vec::new(), |c| c.ports);
        Ok(chain.parts(ports))
    }

    /// The chain with these functions in it.
    #[must_use]
    pub fn chain(&self, description: &Description) -> Description {
        let all: Vec<_> = self.joined.iter().chain(&self.linked).cloned().collect();
        description.merged(&all, &self.ports)
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

/// What stands for itself, in the order of the description.
fn units<'a>(description: &'a Description, joined: &'a Joined) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    for (at, element) in description.elements.iter().enumerate() {
        let of = joined.groups.iter().find(|group| {
            let elements = &group.merged.part.elements;
            elements.iter().any(|e| e.name == element.name)
        });
        let element = of.map_or(element, |group| &group.merged.element);
        let there = units.iter_mut().filter(|_| of.is_some());
        let mut there = there.filter(|u| u.element.name == element.name);
        match there.next() {
            Some(unit) => unit.members.push(at),
            None => units.push(Unit {
                element,
                members: vec![at],
            }),
        }
    }
    units
}

fn found(description: &Description, asked: &Function) -> Result<Found, Error> {
    let folder = description
        .file
        .as_deref()
        .and_then(std::path::Path::parent);
    let word = folder.map_or_else(|| asked.word.clone(), |f| file::beside(f, &asked.word));
    find(&word)
}

/// A function as it is written, if it may be linked.
fn read(
    element: &Element,
    found: &Found,
    make: &Make,
) -> Result<Result<(Written, Make), Never>, Error> {
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
    joined: &'a Joined,
    units: &'a [Unit<'a>],
    /// the units that may be linked, and the others
    proved: Vec<Result<Proved<'a>, Never>>,
}

impl Chain<'_> {
    /// The unit that an element is in.
    fn unit(&self, at: usize) -> Option<usize> {
        self.units.iter().position(|u| u.members.contains(&at))
    }

    /// The ports of an element by itself.
    fn alone(&self, at: usize) -> Named {
        let unit = self.unit(at).unwrap_or(usize::MAX);
        match (self.units.get(unit), self.joined.ports(at)) {
            (Some(of), Some(ports)) if of.members.len() > 1 => Named {
                ports: ports.to_vec(),
                guest: false,
            },
            _ => self.named(unit),
        }
    }

    /// The ports of a unit.
    fn named(&self, unit: usize) -> Named {
        match self.proved.get(unit) {
            Some(Ok(proved)) => Named {
                ports: proved.program.ports.clone(),
                guest: false,
            },
            other => {
                let of = self.units.get(unit).map(|unit| &unit.element.what);
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
        let pairs = self.description.neighbours();
        let first = |at: usize| {
            let unit = self.unit(at).and_then(|unit| self.units.get(unit));
            unit.and_then(|u| u.members.first().copied()).unwrap_or(at)
        };
        let never = |at: usize| match self.proved.get(self.unit(at)?)? {
            Err(never) => Some(never.why.clone()),
            Ok(_) => None,
        };
        let begin: Vec<usize> = (0..elements.len()).map(first).collect();
        let line = self.description.is_line();
        let fits = |groups: &[usize], of: usize| self.fits(groups, of);
        let (groups, apart) = groups::grown((begin, &pairs), line, never, fits);
        let name = |at: usize| elements.get(at).map_or(String::new(), |e| e.name.clone());
        let apart = { pairs.iter().zip(apart) }.filter_map(|((one, other), why)| {
            Some(Apart {
                pair: (name(*one), name(*other)),
                why: why?,
            })
        });
        let mut apart: Vec<_> = apart.collect();
        let (mut joined, mut linked) = (Vec::new(), Vec::new());
        for merged in self.merged(&groups).unwrap_or_default() {
            match self.joined.group(&merged.element) {
                Some(_) => joined.push(merged),
                None => linked.push(merged),
            }
        }
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
        let synthesised = self.joined.groups.iter().map(|group| {
            let elements = group.merged.part.elements.iter();
            elements.map(|e| e.name.clone()).collect()
        });
        Parts {
            joined,
            linked,
            synthesised: synthesised.collect(),
            passed: self
                .joined
                .groups
                .iter()
                .filter_map(|g| g.passed.clone())
                .collect(),
            several: self.joined.apart.clone(),
            apart,
            ports,
        }
    }

    /// Whether one of the groups is one program, and the chain can be connected with it.
    fn fits(&self, groups: &[usize], of: usize) -> Result<(), String> {
        let what = |e: ChainError| e.what;
        let part = self.part(&members(groups, of)).map_err(what)?;
        let ports = part.called.clone();
        let part = part.merged(&self.joined.within(&part), &ports);
        let unit = |element: &Element| {
            let mut all = self.units.iter();
            all.position(|u| u.element.name == element.name)
        };
        let units: Vec<_> = part.elements.iter().filter_map(unit).collect();
        let named: Vec<_> = units.iter().map(|unit| self.named(*unit)).collect();
        let connected = connect(&part, &named).map_err(what)?;
        let connected = connected.ok_or("it is one element")?;
        let elements = connected.order.iter().filter_map(|at| {
            let (element, unit) = (part.elements.get(*at)?, units.get(*at)?);
            let proved = self.proved.get(*unit)?.as_ref().ok()?;
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
            let merged = all.iter().find(|m| m.element.name == element.name);
            match (unit(element), merged) {
                (Some(unit), _) => self.named(unit),
                (None, Some(merged)) => Named {
                    ports: merged.part.called.clone(),
                    guest: false,
                },
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
            if members.len() < 2 {
                continue;
            }
            let unit = self.units.iter().find(|unit| unit.members == members);
            match unit.and_then(|unit| self.joined.group(unit.element)) {
                Some(group) => all.push(group.merged.clone()),
                None => {
                    let part = self.part(&members)?;
                    let element = element(&part);
                    all.push(Merged { part, element });
                }
            }
        }
        Ok(all)
    }
}

/// The function that a part becomes. What is said of its elements is said of `ELEMENT:NAME`.
pub(crate) fn element(part: &Description) -> Element {
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
