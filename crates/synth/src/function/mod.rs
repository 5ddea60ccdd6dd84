//! Functions of other dialects as elements: handlers and XDP programs without state, by the model of all their paths.
//!
//! A model says of each path which packets take it, what they become and where they go, as expressions over the packet's bytes, its length
//! and its port. Where guards are tests of header fields (`guard`), and writes are those that synthesis has (`writes`), the paths are ways
//! of an element (`millrace_click::function`), which stands in a graph like any other. Where its model is not all of it, or says anything
//! else, it stays a function of its own: [`of`] says why. The meaning of the element is the program: the reference interpreter runs it
//! ([`Functions`]).

mod guard;
mod host;
mod sum;
mod writes;

use std::cell::RefCell;
use std::rc::Rc;

use millrace_click::function::{Decided, End, Guard, Way};
use millrace_click::interpreter::Shared;
use millrace_click::language::{Element, Graph, Link, Port};
use millrace_model::Model;
use millrace_model::exec::Target;
use millrace_model::expr::given::{Facts, Given};
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_model::model::{Entry, Outcome, Path, Verdict};
use millrace_object::program::{Dialect, FunctionId, Program, Role};

use crate::{Options, Synthesis, synthesise_in};

pub use host::{Function, Functions};

/// Verdicts of XDP (include/uapi/linux/bpf.h).
const XDP_DROP: u64 = 1;
const XDP_PASS: u64 = 2;
const XDP_TX: u64 = 3;
const XDP_REDIRECT: u64 = 4;

/// Kinds of verdicts of handlers (docs/dialect.md), and the number beside them.
const DROP: u64 = 0;
const FORWARD: u64 = 1;
const FLOOD: u64 = 2;
const PASS: u64 = 4;
const ARGUMENT: u64 = 0xff_ffff;

/// The most ways that a function has for one port.
const MOST_WAYS: usize = 256;

/// Who runs the packets of a program: its function and role.
///
/// # Errors
/// None does, or several.
fn entry(program: &Program) -> Result<(FunctionId, Role), String> {
    let takes = |role| matches!(role, Role::Xdp | Role::OnPacket);
    match program.entries.as_slice() {
        [one] if takes(one.role) => Ok((one.function, one.role)),
        _ => Err("it does more than take packets, or several programs of it do".into()),
    }
}

/// Why a program is none that an element can be made of, whatever its model says.
///
/// # Errors
/// The reason.
pub fn fits(program: &Program) -> Result<(), String> {
    entry(program)?;
    if let Some(param) = program.params.first() {
        return Err(format!("its parameter `{}` can be set", param.name));
    }
    match program
        .objects
        .iter()
        .find(|o| !(o.kind.is_global() && o.read_only))
    {
        Some(object) => Err(format!("it has state: `{}`", object.name)),
        None => Ok(()),
    }
}

/// What a program does to packets of each of so many ports.
///
/// # Errors
/// Why it is no element: its model is not all of it, or it says what synthesis has not.
pub fn of(program: &Program, model: Model, ports: usize) -> Result<Decided, String> {
    fits(program)?;
    let [mut entry]: [Entry; 1] =
        { model.entries.try_into() }.map_err(|_| "its model has several entries".to_owned())?;
    if let Outcome::Covering { why } | Outcome::Bounded { why } = &entry.outcome {
        return Err(format!("its model is not exhaustive: {why}"));
    }
    let inputs = (0..ports).map(|port| input(program, &mut entry, port, ports));
    Ok(Decided {
        inputs: inputs.collect::<Result<_, _>>()?,
    })
}

/// The ways of packets of a port.
fn input(
    program: &Program,
    entry: &mut Entry,
    port: usize,
    ports: usize,
) -> Result<Vec<Way>, String> {
    let mut facts = Facts::default();
    let own = port as u64 + u64::from(program.dialect == Dialect::Xdp);
    for (name, value) in [("port", own), ("ports", ports as u64)] {
        if let Some(symbol) = entry.arena.find_symbol(name, 32, Origin::Port) {
            facts.symbols.insert(symbol, value);
        }
    }
    let mut given = Given::new(facts);
    let mut ways = Vec::new();
    let arena = &mut entry.arena;
    let mut guards = guard::Guards::default();
    for path in &entry.paths {
        let conditions = given.of(arena, &path.guard);
        if conditions.iter().any(|c| arena.constant(*c) == Some(0)) {
            continue;
        }
        stateless(path)?;
        let own = guards.all(arena, &conditions)?;
        let writes = writes::of(arena, &mut given, path, &conditions)?;
        let Verdict::Number(verdict) = path.verdict else {
            return Err("it goes on in another program".into());
        };
        let mut numbers = vec![verdict];
        numbers.extend(match &path.target {
            None => None,
            Some(Target::Interface(interface)) => Some(*interface),
            Some(_) => return Err("it redirects by what a map holds".into()),
        });
        let numbers = given.of(arena, &numbers);
        for (choices, chosen) in chosen(arena, &numbers)? {
            let mut parts = vec![own.clone()];
            for (condition, holds) in choices {
                let one = guards.one(arena, condition)?;
                parts.push(if holds { one } else { one.opposite() });
            }
            let interface = chosen.get(1).copied();
            let verdict = chosen.first().copied().unwrap_or(0);
            ways.push(Way {
                guard: Guard::All(parts.into()),
                writes: writes.clone(),
                end: end(program, verdict, interface, (port, ports))?,
            });
        }
        if ways.len() > MOST_WAYS {
            return Err(format!("its packets take more than {MOST_WAYS} ways"));
        }
    }
    Ok(ways)
}

/// Whether a path touches nothing but the packet.
fn stateless(path: &Path) -> Result<(), String> {
    if !path.accesses.is_empty() || !path.told.is_empty() || path.tells != 0 {
        return Err("it looks at more than the packet".into());
    }
    if !path.drawn.is_empty() || path.random != 0 {
        return Err("it draws random numbers".into());
    }
    Ok(())
}

/// Choices on the way to a number: conditions, and whether they hold.
type Choices = Vec<(ExprId, bool)>;

/// The numbers that some expressions may be together, by the conditions that choose between them.
fn chosen(arena: &Arena, numbers: &[ExprId]) -> Result<Vec<(Choices, Vec<u64>)>, String> {
    let mut found = vec![(Choices::new(), Vec::new())];
    for number in numbers {
        let (before, mut todo) = (std::mem::take(&mut found), vec![(Choices::new(), *number)]);
        let mut own = Vec::new();
        while let Some((choices, e)) = todo.pop() {
            match arena.node(e) {
                Node::Const(value) => own.push((choices, *value)),
                Node::Ite(condition, yes, no) if todo.len() < MOST_WAYS => {
                    for (holds, e) in [(true, *yes), (false, *no)] {
                        let with = choices.iter().copied().chain([(*condition, holds)]);
                        todo.push((with.collect(), e));
                    }
                }
                _ => return Err("where its packets go depends on their bytes".into()),
            }
        }
        for (choices, values) in before {
            for (more, value) in &own {
                let with = choices.iter().chain(more).copied().collect();
                found.push((with, values.iter().copied().chain([*value]).collect()));
            }
        }
    }
    Ok(found)
}

/// The end of packets of a port by a verdict.
fn end(
    program: &Program,
    verdict: u64,
    interface: Option<u64>,
    (port, ports): (usize, usize),
) -> Result<End, String> {
    let out = |to: u64| match usize::try_from(to) {
        Ok(to) if to < ports => Ok(End::Output(to)),
        _ => Err(format!("it sends packets to port {to}, and it has {ports}")),
    };
    let aborts = || Err("it aborts packets".to_owned());
    if program.dialect == Dialect::Xdp {
        return match verdict {
            XDP_DROP => Ok(End::Drop(None)),
            XDP_PASS => Ok(End::Output(ports)),
            XDP_TX => Ok(End::Output(port)),
            XDP_REDIRECT => match interface.and_then(|i| i.checked_sub(1)) {
                Some(to) => out(to),
                None => aborts(),
            },
            _ => aborts(),
        };
    }
    let (kind, argument) = (verdict >> 24, verdict & ARGUMENT);
    match kind {
        DROP if argument == 0 => Ok(End::Drop(None)),
        DROP => match program.reasons.get(argument as usize) {
            Some(reason) => Ok(End::Drop(Some(reason.clone()))),
            None => aborts(),
        },
        FORWARD => out(argument),
        FLOOD if ports == 2 => Ok(End::Output(1 - port.min(1))),
        FLOOD => Err("it floods packets".into()),
        PASS if argument == 0 => Ok(End::Output(ports)),
        PASS => Err("it hands packets over".into()),
        _ => Err("it consumes or aborts packets".into()),
    }
}

/// A function as a configuration of its own, whose devices are its ports; other elements may name files.
///
/// # Errors
/// What it does cannot be synthesised.
pub fn synthesise(
    name: &str,
    function: std::sync::Arc<Function>,
    ports: &[String],
    inner: Shared,
) -> Result<Synthesis, String> {
    let graph = graph(name, &function, ports);
    let all = vec![function];
    let host = Rc::new(RefCell::new(Functions { inner, all }));
    let made = synthesise_in(name, graph, host, Options::default(), Some(ports.to_vec()));
    let made = made.map_err(|errors| {
        let all: Vec<String> = errors.iter().map(|e| e.what.clone()).collect();
        all.join("; ")
    })?;
    match made.slow.first() {
        Some(slow) => Err(slow.why.clone()),
        None => Ok(made),
    }
}

/// A graph of a function alone: from a device for each port, to a device for each, and to the host.
#[must_use]
pub fn graph(name: &str, function: &Function, ports: &[String]) -> Graph {
    let place = function.place();
    let element = |name: String, class: &str, config: String| Element {
        name,
        class: class.into(),
        config,
        place: place.clone(),
    };
    let own = element(name.to_owned(), "Function", function.name.clone());
    let mut graph = Graph {
        elements: vec![own],
        ..Graph::default()
    };
    let link = |graph: &mut Graph, from: (usize, usize), to: (usize, usize)| {
        let port = |(element, port)| Port { element, port };
        graph.links.push(Link {
            from: port(from),
            to: port(to),
            place: place.clone(),
        });
    };
    for (at, port) in ports.iter().enumerate() {
        for (class, prefix) in [("FromDevice", "from"), ("ToDevice", "to")] {
            let name = format!("{prefix}_{port}");
            graph.elements.push(element(name, class, port.clone()));
        }
        let last = graph.elements.len();
        link(&mut graph, (last - 2, 0), (0, at));
        link(&mut graph, (0, at), (last - 1, 0));
    }
    let ways = function.decided.inputs.iter().flatten();
    if { ways }.any(|way| way.end == End::Output(ports.len())) {
        let last = graph.elements.len();
        graph
            .elements
            .push(element("host".into(), "Host", String::new()));
        link(&mut graph, (0, ports.len()), (last, 0));
    }
    graph
}
