//! From a flat graph to elements that run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::processing::processing;
use super::{BEGIN, Bounds, Count, Router, Setup, Shared, Timers, World};
use crate::arguments::Args;
use crate::element::Class;
use crate::elements;
use crate::error::Error;
use crate::language::{Element as Flat, Graph, Port};
use crate::names::Names;

impl Router {
    /// Makes the elements of a graph.
    ///
    /// # Errors
    /// A class is unknown here, an argument or a connection is wrong.
    pub fn new(graph: Graph, bounds: Bounds, host: Shared) -> Result<Self, Vec<Error>> {
        let mut errors = Vec::new();
        let ports = graph.ports();
        let mut classes = Vec::new();
        for flat in &graph.elements {
            let class = elements::find(&flat.class);
            if class.is_none() {
                errors.push(Error::at(
                    &flat.place,
                    format!("unknown element class '{}'", flat.class),
                    "see docs/click.md for the elements that there are",
                ));
            }
            classes.push(class);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let classes: Vec<&Class> = classes.into_iter().flatten().collect();
        let wiring = wire(&graph, &classes, &ports, &mut errors);
        let names = Names::of(&graph);
        let mut made = Vec::new();
        for (id, (flat, class)) in graph.elements.iter().zip(&classes).enumerate() {
            let seen = names.seen_by(&flat.name);
            let mut args = Args::new(&flat.config, &seen);
            let mut setup = Setup {
                graph: &graph,
                id,
                ports: ports.get(id).copied().unwrap_or_default(),
                host: &host,
                pulls: wiring.pulls.get(id).copied().unwrap_or(false),
            };
            match (class.make)(&mut args, &mut setup) {
                Ok(element) => made.push(RefCell::new(element)),
                Err(what) => errors.push(configuring(flat, &what)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let counts = ports.iter().map(|(inputs, outputs)| Count {
            inputs: vec![0; *inputs],
            outputs: vec![0; *outputs],
            dropped: 0,
        });
        let world = World {
            counts: RefCell::new(counts.collect()),
            fills: fills(&wiring.targets, &made),
            targets: wiring.targets,
            sources: wiring.sources,
            pending: RefCell::default(),
            outcomes: RefCell::default(),
            now: Cell::new(BEGIN),
            timers: RefCell::new(Timers {
                due: BTreeSet::new(),
                of: vec![None; made.len()],
            }),
            stop: Cell::new(false),
            over: Cell::new(false),
            steps: Cell::new(0),
            depth: Cell::new(0),
            random: Cell::new(0x9e37_79b9_7f4a_7c15),
            bounds,
            failed: RefCell::default(),
            host,
            names,
            elements: made,
            graph,
        };
        let mut router = Self {
            world,
            tasks: Vec::new(),
            polled: Cell::default(),
        };
        router.start()?;
        Ok(router)
    }
}

/// What an element's own check found.
pub(super) fn configuring(flat: &Flat, what: &str) -> Error {
    // What Click takes from its command line, or from the interfaces of the machine.
    let help = match what.contains("'$") {
        true => {
            "say `define($NAME VALUE)`, here or in a file of its own that goes on with `require(library THIS)`"
        }
        false if what.contains("ddress") => {
            "see the element's page in docs/click.md; `AddressInfo(NAME 192.0.2.1 02:00:00:00:00:01)` says the addresses of a device"
        }
        false => "see the element's page in docs/click.md",
    };
    Error::at(
        &flat.place,
        format!("While configuring '{}':\n  {what}", flat.title()),
        help,
    )
}

struct Wiring {
    targets: Vec<Vec<Option<Port>>>,
    sources: Vec<Vec<Option<Port>>>,
    /// whether input 0 pulls, or output 0 of an element without inputs is pulled
    pulls: Vec<bool>,
}

/// Which output leads to which input: a push output and a pull input have one connection each.
fn wire(
    graph: &Graph,
    classes: &[&Class],
    ports: &[(usize, usize)],
    errors: &mut Vec<Error>,
) -> Wiring {
    let (inputs, outputs) = processing(graph, classes, ports, errors);
    let mut wiring = Wiring {
        targets: ports.iter().map(|p| vec![None; p.1]).collect(),
        sources: ports.iter().map(|p| vec![None; p.0]).collect(),
        pulls: inputs
            .iter()
            .zip(&outputs)
            .map(|(i, o)| i.first().or(o.first()) == Some(&true))
            .collect(),
    };
    let title = |id: usize| graph.elements.get(id).map(Flat::title).unwrap_or_default();
    for link in &graph.links {
        let pull = outputs
            .get(link.from.element)
            .and_then(|o| o.get(link.from.port))
            == Some(&true);
        let at = |all: &mut Vec<Vec<Option<Port>>>, p: Port, other: Port| {
            let slot = all.get_mut(p.element).and_then(|e| e.get_mut(p.port));
            slot.is_some_and(|slot| slot.replace(other).is_some())
        };
        let target = at(&mut wiring.targets, link.from, link.to);
        let source = at(&mut wiring.sources, link.to, link.from);
        if target && !pull {
            let what = format!(
                "illegal reuse of '{}' push output {}",
                title(link.from.element),
                link.from.port
            );
            let place = graph
                .elements
                .get(link.from.element)
                .map_or(&link.place, |e| &e.place);
            errors.push(Error::at(place, what, "put a Tee behind it"));
        }
        if source && pull {
            let what = format!(
                "illegal reuse of '{}' pull input {}",
                title(link.to.element),
                link.to.port
            );
            errors.push(Error::at(
                &link.place,
                what,
                "put a scheduler or a Queue before it",
            ));
        }
    }
    for (id, class) in classes.iter().enumerate() {
        let Some(flat) = graph.elements.get(id) else {
            continue;
        };
        let (want_in, want_out) = class
            .ports
            .split_once('/')
            .unwrap_or((class.ports, class.ports));
        for (kind, want, slots) in [
            ("input", want_in, wiring.sources.get(id)),
            ("output", want_out, wiring.targets.get(id)),
        ] {
            let slots = slots.map_or(&[][..], Vec::as_slice);
            let (least, most) = range(want);
            let unused =
                (0..least.max(slots.len())).filter(|n| slots.get(*n).is_none_or(Option::is_none));
            for port in unused {
                let what = format!("'{}' {kind} {port} unused", flat.title());
                errors.push(Error::at(&flat.place, what, "connect it"));
            }
            if slots.len() > most {
                let what = format!("'{}' has no {kind} {}", flat.title(), slots.len() - 1);
                errors.push(Error::at(
                    &flat.place,
                    what,
                    format!("it has {want} {kind}s"),
                ));
            }
        }
    }
    wiring
}

/// The least and the highest number of ports.
fn range(ports: &str) -> (usize, usize) {
    match ports.split_once('-') {
        Some((least, most)) => (
            least.parse().unwrap_or(0),
            most.parse().unwrap_or(usize::MAX),
        ),
        None => {
            let exact = ports.parse().unwrap_or(0);
            (exact, exact)
        }
    }
}

/// The queues that each element's pushes may end in.
fn fills(
    targets: &[Vec<Option<Port>>],
    elements: &[RefCell<Box<dyn crate::element::Element>>],
) -> Vec<Vec<usize>> {
    let queue = |id: usize| {
        elements
            .get(id)
            .is_some_and(|e| e.borrow().room().is_some())
    };
    let of = |start: usize| {
        let (mut seen, mut stack, mut found) = (BTreeSet::new(), vec![start], Vec::new());
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            if id != start && queue(id) {
                found.push(id);
                continue;
            }
            let next = targets.get(id).map_or(&[][..], Vec::as_slice);
            stack.extend(next.iter().flatten().map(|p| p.element));
        }
        found
    };
    // Only elements without inputs are asked; others would make this quadratic.
    let fed: BTreeSet<usize> = targets
        .iter()
        .flatten()
        .flatten()
        .map(|p| p.element)
        .collect();
    let source = |id: &usize| !fed.contains(id);
    let all = 0..elements.len();
    all.map(|id| if source(&id) { of(id) } else { Vec::new() })
        .collect()
}
