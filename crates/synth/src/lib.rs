//! Synthesis: a Click configuration as one function.
//!
//! [`synthesise`] goes backwards over the flat graph and gives every packet its class ([`backward`]): a path through a diagram
//! of header fields, and at its end what becomes of the packet and which fields are written. [`emit`] writes the diagram as C in
//! the handler dialect, whose lines are those of the configuration, so that all that Millrace does with a function it does with a
//! chain. The meaning of a configuration is the reference interpreter's (`millrace_click::interpreter`); packets of every class
//! ([`witness`]) compare the two.

pub mod action;
pub mod backward;
pub mod classes;
pub mod click;
pub mod diagram;
pub mod emit;
pub mod field;
pub mod flows;
pub mod function;
pub mod interpreter;
pub mod join;
pub mod listed;
pub mod operations;
pub mod packet;
pub mod picture;
pub mod redundant;
pub mod reference;
mod refusal;
pub mod rows;
pub mod sets;
pub mod slow;
pub mod witness;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use millrace_click::error::Error;
use millrace_click::interpreter::{Bounds, Folder, Reading, Router, Shared, whole};
use millrace_click::language::{Graph, Limits, flatten, parse};
use millrace_click::meaning::Meaning;

use crate::action::Actions;
use crate::backward::Backward;
use crate::diagram::{Id, Store};

/// How a configuration is synthesised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// drops by different elements are different classes, and have the element's name as their reason; else a packet that some
    /// element will drop is dropped at the first test that says so
    pub reasons: bool,
    /// a packet that is dropped behind a rewriter opens no flow there, and refreshes none
    pub early_discard: bool,
    /// no packet is passed to the host for its flow's sake: rewriters are on the slow path, too, where packets of it need their flows
    pub whole: bool,
    /// long filters are asked as lists of rules ([`listed`]), also where a diagram would hold them
    pub lists: bool,
    /// edges of diagrams, at most
    pub edges: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            reasons: false,
            early_discard: false,
            whole: false,
            lists: false,
            edges: diagram::MOST_EDGES,
        }
    }
}

/// A configuration, synthesised.
pub struct Synthesis {
    /// how it was made
    pub options: Options,
    /// its name
    pub name: String,
    /// elements of the reference interpreter, made from the same text
    pub router: Router,
    /// all diagrams
    pub store: Store,
    /// all actions
    pub actions: Actions,
    /// the diagram of all packets
    pub root: Id,
    /// names of devices, by port
    pub ports: Vec<String>,
    /// what is known of flows
    pub flows: flows::Flows,
    /// rewriters, by the number that names words of their entries
    pub rewriters: Vec<usize>,
    /// elements whose packets are handed over to the slow path
    pub slow: Vec<slow::Slow>,
    /// elements by which values of fields became of interest
    pub origins: std::collections::HashMap<(field::Var, u64), usize>,
    /// reasons of functions for which packets are dropped: numbered behind the elements
    pub drops: Vec<String>,
}

/// Ports that a function may have.
const MOST_PORTS: usize = 8;

/// Elements that may be there without a meaning for packets: they end a run of Click.
const WITHOUT: [&str; 1] = ["DriverManager"];

/// Reads a configuration from a file.
///
/// # Errors
/// It cannot be read, or is no configuration.
pub fn graph(path: &Path) -> Result<Graph, Vec<Error>> {
    let failed = |what: String, help: &str| {
        vec![Error {
            place: None,
            what,
            help: help.into(),
        }]
    };
    let text = whole(path).map_err(|e| {
        failed(
            format!("{}: {e}", path.display()),
            "give the file of a Click configuration",
        )
    })?;
    let text = String::from_utf8_lossy(&text);
    let mut library = |from: &str, name: &str| {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = String::from_utf8_lossy(&whole(&path)?).into_owned();
        Ok((path.display().to_string(), text))
    };
    let limits = Limits::default();
    let file = parse(&text, &path.display().to_string(), &limits, &mut library)?;
    flatten(&file, &limits)
}

/// Synthesises a configuration; files that it names are looked for in a folder.
///
/// # Errors
/// Its elements are wrong, or what they do cannot be synthesised: element, place, reason.
pub fn synthesise(
    name: &str,
    graph: Graph,
    folder: &Path,
    options: Options,
) -> Result<Synthesis, Vec<Error>> {
    let host = Rc::new(RefCell::new(Reading(Folder {
        folder: folder.to_owned(),
    })));
    synthesise_on(name, graph, host, options)
}

/// The same, with files from a host.
///
/// # Errors
/// As [`synthesise`].
pub fn synthesise_on(
    name: &str,
    graph: Graph,
    host: Shared,
    options: Options,
) -> Result<Synthesis, Vec<Error>> {
    synthesise_in(name, graph, host, options, None)
}

/// The same, with its ports in an order that is given.
fn synthesise_in(
    name: &str,
    graph: Graph,
    host: Shared,
    options: Options,
    order: Option<Vec<String>>,
) -> Result<Synthesis, Vec<Error>> {
    let router = Router::new(graph, Bounds::default(), host)?;
    let (mut ports, mut errors) = ports(&router);
    if let Some(order) = order {
        let place = |name: &String| order.iter().position(|n| n == name);
        ports.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
    }
    if ports.is_empty() {
        return Err(errors);
    }
    let mut outside: BTreeMap<usize, String> = BTreeMap::new();
    let mut lists = options.lists;
    loop {
        let tried = match attempt(&router, &ports, options, &outside, lists) {
            Ok(tried) if errors.is_empty() => tried,
            Ok(_) => return Err(errors),
            Err(more) => {
                errors.extend(more);
                return Err(errors);
            }
        };
        let (more, done) = match tried {
            Tried::Outside(more) => (more, None),
            // Whatever passed the budget: long filters have a part in it.
            Tried::Full { long: true } if !lists => {
                lists = true;
                continue;
            }
            Tried::Full { .. } => return Err(vec![refusal::full()]),
            Tried::Done(done) => (BTreeMap::new(), Some(done)),
        };
        let Some(done) = done else {
            let before = outside.len();
            for (id, why) in more {
                outside.entry(id).or_insert(why);
            }
            if outside.len() == before {
                // Each attempt takes at least one element out.
                return Err(vec![refusal::full()]);
            }
            continue;
        };
        let (work, root, flows) = *done;
        return Ok(Synthesis {
            options,
            name: name.to_owned(),
            slow: slow::all(
                &router,
                (&work.store, &work.actions, root),
                &work.rewriters,
                &outside,
            ),
            flows,
            store: work.store,
            actions: work.actions,
            root,
            ports: work.ports,
            rewriters: work.rewriters,
            origins: work.origins,
            drops: work.drops,
            router,
        });
    }
}

impl Synthesis {
    /// Elements that print something, or write to a file, where they are run one by one. The function does not.
    #[must_use]
    pub fn quiet(&self) -> Vec<usize> {
        let shows = |id: &usize| {
            let meaning = self.router.meaning(*id);
            matches!(meaning, Some(Meaning::Shows | Meaning::Says))
        };
        let count = self.router.graph().elements.len();
        (0..count).filter(shows).collect()
    }
}

/// What is left of [`Backward`].
struct Diagrams {
    store: Store,
    actions: Actions,
    ports: Vec<String>,
    rewriters: Vec<usize>,
    origins: std::collections::HashMap<(field::Var, u64), usize>,
    drops: Vec<String>,
}

/// What became of an attempt.
enum Tried {
    /// these elements cannot be synthesised
    Outside(BTreeMap<usize, String>),
    /// the budget is spent; whether there are long filters
    Full {
        long: bool,
    },
    Done(Box<(Diagrams, Id, flows::Flows)>),
}

/// Synthesises with some elements left out.
fn attempt(
    router: &Router,
    ports: &[String],
    options: Options,
    outside: &BTreeMap<usize, String>,
    lists: bool,
) -> Result<Tried, Vec<Error>> {
    let mut work = Backward::new(router, ports.to_vec(), options.reasons, outside);
    work.store = Store::bounded(options.edges);
    work.lists = lists;
    let root = work.all()?;
    let long = work.long;
    let Some(root) = root else {
        return Ok(Tried::Full { long });
    };
    if !work.unsaid.is_empty() {
        return Ok(Tried::Outside(work.unsaid));
    }
    let together = |all: &[usize], (id, why): (usize, String)| {
        let elements = &router.graph().elements;
        let title = elements.get(id).map_or_else(String::new, |e| e.title());
        let others = all.iter().filter(|other| **other != id);
        let others = others.map(|other| {
            (
                *other,
                format!("{title}, whose flows it shares, is on the slow path"),
            )
        });
        let mut more: BTreeMap<usize, String> = others.collect();
        more.insert(id, why);
        Tried::Outside(more)
    };
    if let Some(id) = slow::given_behind((&work.store, &work.actions)) {
        let elements = &router.graph().elements;
        let why = "it gives packets to the host, and it is behind a rewriter";
        let error = elements.get(id).map(|e| refusal::at(e, why));
        return Err(error.into_iter().collect());
    }
    let conflicts = slow::conflicts((&work.store, &work.actions, root), &work.rewriters, router);
    if let Some((rewriter, why, _)) = conflicts.into_values().next().filter(|_| options.whole) {
        return Ok(together(&work.rewriters, (rewriter, why)));
    }
    let Backward {
        mut store,
        mut actions,
        ports,
        rewriters,
        origins,
        drops,
        ..
    } = work;
    let merged = flows::Work {
        router,
        store: &mut store,
        actions: &mut actions,
        rewriters: &rewriters,
        early: options.early_discard,
    }
    .all(root);
    let flows = match merged {
        Ok(flows) => flows,
        Err(flows::Stop::Full) => return Ok(Tried::Full { long }),
        Err(flows::Stop::Refused(id, why)) => return Ok(together(&rewriters, (id, why))),
    };
    let diagrams = Diagrams {
        store,
        actions,
        ports,
        rewriters,
        origins,
        drops,
    };
    Ok(Tried::Done(Box::new((diagrams, root, flows))))
}

/// Names of devices, in the order of the text, and what no packet passes but that does something all the same.
fn ports(router: &Router) -> (Vec<String>, Vec<Error>) {
    let graph = router.graph();
    let connected = graph.ports();
    let (mut ports, mut errors) = (Vec::new(), Vec::new());
    let mut enters = false;
    for (id, element) in graph.elements.iter().enumerate() {
        let (inputs, outputs) = connected.get(id).copied().unwrap_or_default();
        match router.meaning(id) {
            Some(Meaning::Enter(name) | Meaning::Leave(name)) => {
                enters |= inputs == 0;
                if name.is_empty() {
                    errors.push(refusal::at(element, "it names no device"));
                } else if !ports.contains(&name) {
                    ports.push(name);
                }
            }
            None if inputs == 0 && outputs > 0 => {
                errors.push(refusal::at(element, "it makes packets of its own"));
            }
            None if inputs + outputs == 0 && !WITHOUT.contains(&element.class.as_str()) => {
                errors.push(refusal::at(element, "it may change others while they run"));
            }
            _ => {}
        }
    }
    if !enters && errors.is_empty() {
        errors.push(Error {
            place: None,
            what: "no packet enters the configuration".into(),
            help: "give it a FromDevice for each port".into(),
        });
    }
    if ports.len() > MOST_PORTS {
        errors.push(Error {
            place: None,
            what: format!("{} devices: {}", ports.len(), ports.join(", ")),
            help: format!("a function has at most {MOST_PORTS} ports"),
        });
    }
    (ports, errors)
}
