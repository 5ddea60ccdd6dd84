//! Several configurations as one: what leaves a device of one enters the device of another that it is connected with.
//!
//! Elements keep their places, and their names with that of their configuration in front, as those of a compound element. Of two devices
//! that are connected `ToDevice` becomes a `Wire`, which leads to what `FromDevice` has become, a `Null`. So the flat graph has as many
//! elements as its parts have together, and each is where its file has it. Devices that lead out get the names of the whole's ports.

use std::collections::BTreeMap;

use millrace_click::interpreter::{Router, Shared};
use millrace_click::language::{Element, Graph, Link, Port};
use millrace_click::meaning::Meaning;

use crate::{Options, Synthesis, synthesise_in};

/// A configuration among others.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// what it is called among them
    pub name: &'a str,
    /// itself, synthesised alone
    pub of: &'a Synthesis,
}

/// A port: the number of a part, and that of a port of it.
pub type End = (usize, usize);

/// How parts are connected.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// where packets that leave by a port of a part enter
    pub between: BTreeMap<End, End>,
    /// ports that lead out, in the order of the whole's ports, with their names
    pub outer: Vec<(End, String)>,
}

/// Which device an element is: where packets enter (true) or leave, and the number of its port.
fn device(of: &Synthesis, id: usize) -> Option<(bool, usize)> {
    let (enters, name) = match of.router.meaning(id)? {
        Meaning::Enter(name) => (true, name),
        Meaning::Leave(name) => (false, name),
        _ => return None,
    };
    Some((enters, of.ports.iter().position(|p| *p == name)?))
}

/// One graph of all parts.
///
/// # Errors
/// A device has a connection that a wire has not.
pub fn graph(parts: &[Part<'_>], connections: &Connections) -> Result<Graph, String> {
    let mut whole = Graph::default();
    // Elements where packets enter by a port of a part, and those where they leave for it.
    let mut entered: BTreeMap<End, usize> = BTreeMap::new();
    let mut left: Vec<(usize, End)> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let graph = part.of.router.graph();
        let first = whole.elements.len();
        for (id, element) in graph.elements.iter().enumerate() {
            let mut own = Element {
                name: format!("{}/{}", part.name, element.name),
                ..element.clone()
            };
            if let Some((enters, port)) = device(part.of, id) {
                let end = (number, port);
                let outer = connections.outer.iter().find(|(outer, _)| *outer == end);
                match (outer, enters) {
                    (Some((_, name)), _) => own.config = name.clone(),
                    (None, true) => {
                        let port = |l: &&Link| l.from.element == id && l.from.port > 0;
                        if graph.links.iter().any(|l| port(&l)) {
                            return Err(format!("{} has a second output", own.title()));
                        }
                        // What leads to it says what it becomes.
                        (own.class, own.config) = ("Idle".into(), String::new());
                        entered.insert(end, first + id);
                    }
                    (None, false) => {
                        (own.class, own.config) = ("Wire".into(), String::new());
                        left.push((first + id, end));
                    }
                }
            }
            whole.elements.push(own);
        }
        let moved = |port: Port| Port {
            element: port.element + first,
            ..port
        };
        whole.links.extend(graph.links.iter().map(|link| Link {
            from: moved(link.from),
            to: moved(link.to),
            place: link.place.clone(),
        }));
        for requirement in &graph.requirements {
            if !whole.requirements.contains(requirement) {
                whole.requirements.push(requirement.clone());
            }
        }
    }
    for (from, end) in left {
        let to = connections.between.get(&end).and_then(|to| entered.get(to));
        let class = match to {
            // It takes no packets there.
            None => ("Discard", from),
            Some(to) => {
                let place = whole.elements.get(from).map(|e| e.place.clone());
                let port = |element| Port { element, port: 0 };
                whole.links.extend(place.map(|place| Link {
                    from: port(from),
                    to: port(*to),
                    place,
                }));
                ("Null", *to)
            }
        };
        if let Some(element) = whole.elements.get_mut(class.1) {
            element.class = class.0.into();
        }
    }
    Ok(whole)
}

/// Elements on the slow path of parts by themselves, by their numbers in the whole, and whether the interpreter runs their packets.
fn alone(parts: &[Part<'_>]) -> BTreeMap<usize, bool> {
    let mut first = 0;
    let mut alone = BTreeMap::new();
    for part in parts {
        let slow = part.of.slow.iter();
        alone.extend(slow.map(|s| (first + s.element, s.run)));
        first += part.of.router.graph().elements.len();
    }
    alone
}

fn title(of: &Synthesis, id: usize) -> String {
    let element = of.router.graph().elements.get(id);
    element.map_or_else(String::new, Element::title)
}

/// Packets that parts alone have in their functions and one function would hand over, and why.
fn slower(parts: &[Part<'_>], one: &Synthesis) -> Option<String> {
    let alone = alone(parts);
    let slow = one.slow.iter().find(|s| !alone.contains_key(&s.element))?;
    let title = title(one, slow.element);
    let why = &slow.why;
    Some(format!(
        "as one, packets of {title} would go to the slow path: {why}"
    ))
}

/// Packets that the slow path of a part runs, and one function passes to the host, and why: they are between rewriters that have become one.
#[must_use]
pub fn passed(parts: &[Part<'_>], one: &Synthesis) -> Option<String> {
    let alone = alone(parts);
    let run = |id: usize| alone.get(&id) == Some(&true);
    let slow = one.slow.iter().find(|s| !s.run && run(s.element))?;
    let (title, why) = (title(one, slow.element), &slow.why);
    Some(format!(
        "as one, packets of {title} would be passed to the host: {why}"
    ))
}

/// All parts as one function, whose ports are those that lead out.
///
/// # Errors
/// Why they stay apart.
pub fn join(
    name: &str,
    parts: &[Part<'_>],
    connections: &Connections,
    host: Shared,
    options: Options,
) -> Result<Synthesis, String> {
    let graph = graph(parts, connections)?;
    let ports = connections.outer.iter().map(|(_, name)| name.clone());
    let one = synthesise_in(name, graph, host, options, Some(ports.collect()));
    let one = one.map_err(|errors| {
        let all: Vec<String> = errors.iter().map(|e| e.what.clone()).collect();
        all.join("; ")
    })?;
    if let (true, false, Some(slow)) = (
        parts.iter().any(|p| p.of.flows.any()),
        one.flows.any(),
        one.slow.first(),
    ) {
        let (title, why) = (title(&one, slow.element), &slow.why);
        return Err(format!("as one, {title} would be on the slow path: {why}"));
    }
    let host = |id: &usize| matches!(one.router.meaning(*id), Some(Meaning::Host));
    let given = (0..one.router.graph().elements.len()).find(host);
    if let (Some(id), true) = (given, one.slow.iter().any(|s| s.run)) {
        let title = title(&one, id);
        return Err(format!(
            "as one it would have a slow path, which gives no packets to the host, and {title} does"
        ));
    }
    match slower(parts, &one) {
        Some(why) => Err(why),
        None => Ok(one),
    }
}

/// Whether elements of a configuration are made from files.
#[must_use]
pub fn reads_files(graph: &Graph, host: &Shared) -> bool {
    use millrace_click::interpreter::{Bounds, Host};
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    /// Notes that it is asked for a file.
    struct Asked(Shared, Rc<Cell<bool>>);

    impl Host for Asked {
        fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
            self.1.set(true);
            self.0.borrow_mut().read(path)
        }

        fn write(&mut self, path: &str, _: &[u8], _: bool) -> Result<(), String> {
            Err(format!("{path}: nothing is written yet"))
        }

        fn note(&mut self, _: &[u8]) {}
    }

    let asked = Rc::new(Cell::new(false));
    let noting = Rc::new(RefCell::new(Asked(host.clone(), asked.clone())));
    // What is wrong with its elements, synthesis says.
    let _ = Router::new(graph.clone(), Bounds::default(), noting);
    asked.get()
}
