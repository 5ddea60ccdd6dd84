//! From a description to connections, once the ports of its elements are known.

use millrace_topology::Topology;
use millrace_topology::{End, TopologyError};

use crate::description::{Description, Port};
use crate::error::ChainError;

/// The ports of an element: their names, or their number where they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// names of its ports, in order; empty where it names none
    pub ports: Vec<String>,
    /// a guest has exactly two ports, by number
    pub guest: bool,
}

/// A chain, connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// how
    pub topology: Topology,
    /// for each of its elements, which of the description's it is
    pub order: Vec<usize>,
    /// names of the chain's ports
    pub ports: Vec<String>,
}

const BOTH: &str = "connect each port of each element, or name it as an entry";

/// Connects a chain; none where it is one element alone, whose ports are the chain's.
///
/// # Errors
/// A port is not there, is not connected or is connected twice; connections form a cycle, or are reached by no packet;
/// or a row has an element of other than two ports.
pub fn connect(
    description: &Description,
    elements: &[Named],
) -> Result<Option<Connected>, ChainError> {
    if description.is_line() {
        return match elements {
            [_] => Ok(None),
            _ => line(description, elements).map(|of| Some(renamed(of, description))),
        };
    }
    let counts = counts(description, elements);
    let end = |port: &Port| end(description, elements, &counts, port);
    let mut joins = Vec::new();
    for (one, other) in &description.connections {
        joins.push((end(one)?, end(other)?));
    }
    let entries = description.entries.iter().map(end);
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let arranged = Topology::of(&counts, &joins, &entries)
        .map_err(|e| wrong(description, elements, &joins, &entries, &e))?;
    let name = |end: &End| match end {
        End::Element { element, port } => {
            let names = elements.get(*element).map(|e| e.ports.as_slice());
            names.and_then(|n| n.get(*port as usize)).cloned()
        }
        End::Out(_) => None,
    };
    let mut ports: Vec<String> = Vec::new();
    for (at, end) in entries.iter().enumerate() {
        // Two elements may call their ports alike; then their numbers tell them apart.
        let name = name(end).filter(|name| !ports.contains(name));
        ports.push(name.unwrap_or_else(|| at.to_string()));
    }
    let connected = Connected {
        topology: arranged.topology,
        order: arranged.was.into_iter().flatten().collect(),
        ports,
    };
    Ok(Some(renamed(connected, description)))
}

/// With the names that the description gives the chain's ports.
fn renamed(mut of: Connected, description: &Description) -> Connected {
    if description.called.len() == of.ports.len() {
        of.ports.clone_from(&description.called);
    }
    of
}

fn line(description: &Description, elements: &[Named]) -> Result<Connected, ChainError> {
    for (element, named) in description.elements.iter().zip(elements) {
        if !named.ports.is_empty() && named.ports.len() != 2 {
            let what = format!(
                "{} has {} ports ({}); functions in a row have two each",
                element.name,
                named.ports.len(),
                named.ports.join(", ")
            );
            let help =
                "run it alone, or say in a chain file how its ports are connected (docs/chains.md)";
            return Err(description.wrong(element.line, what, help));
        }
    }
    let first = elements.first().and_then(|e| e.ports.first());
    let last = elements.last().and_then(|e| e.ports.get(1));
    let name = |port: Option<&String>, number: &str| port.map_or(number.to_owned(), Clone::clone);
    Ok(Connected {
        topology: Topology::line(elements.len()),
        order: (0..elements.len()).collect(),
        ports: vec![name(first, "0"), name(last, "1")],
    })
}

/// How many ports elements have. A function that names none has those that are connected, at least two.
fn counts(description: &Description, elements: &[Named]) -> Vec<usize> {
    let named = description.connections.iter().flat_map(|(a, b)| [a, b]);
    let named: Vec<_> = named.chain(&description.entries).collect();
    let of = |(element, own): (&crate::description::Element, &Named)| {
        if own.guest || !own.ports.is_empty() {
            return own.ports.len().max(if own.guest { 2 } else { 0 });
        }
        let ports = named.iter().filter(|p| p.element == element.name);
        let numbers = ports.filter_map(|p| p.port.parse::<u8>().ok());
        numbers.max().map_or(2, |most| usize::from(most) + 1).max(2)
    };
    description.elements.iter().zip(elements).map(of).collect()
}

fn end(
    description: &Description,
    elements: &[Named],
    counts: &[usize],
    port: &Port,
) -> Result<End, ChainError> {
    let found = description
        .elements
        .iter()
        .position(|e| e.name == port.element);
    let element = found.ok_or_else(|| {
        let names: Vec<_> = description
            .elements
            .iter()
            .map(|e| e.name.as_str())
            .collect();
        let what = format!("there is no element `{}`", port.element);
        description.wrong(port.line, what, &format!("there are {}", names.join(", ")))
    })?;
    let names = elements
        .get(element)
        .map_or(&[][..], |e| e.ports.as_slice());
    let by_name = names
        .iter()
        .position(|n| n.eq_ignore_ascii_case(&port.port));
    let number = by_name.or_else(|| port.port.parse().ok());
    let count = counts.get(element).copied().unwrap_or(0);
    let number = number.filter(|n| *n < count).ok_or_else(|| {
        let what = format!("{} has no port `{}`", port.element, port.port);
        let known: Vec<_> = match names {
            [] => (0..count).map(|n| n.to_string()).collect(),
            names => names.to_vec(),
        };
        description.wrong(
            port.line,
            what,
            &format!("its ports are {}", known.join(", ")),
        )
    })?;
    Ok(End::Element {
        element,
        port: number as u32,
    })
}

/// What is wrong with connections, by the names and the lines of the file.
fn wrong(
    description: &Description,
    elements: &[Named],
    joins: &[(End, End)],
    entries: &[End],
    error: &TopologyError,
) -> ChainError {
    let element = |at: &usize| description.elements.get(*at);
    let name = |at: &usize| element(at).map_or("?", |e| e.name.as_str());
    let port = |end: &End| match end {
        End::Element { element, port } => {
            let names = elements.get(*element).map(|e| e.ports.as_slice());
            let own = names.and_then(|n| n.get(*port as usize)).cloned();
            format!(
                "{}.{}",
                name(element),
                own.unwrap_or_else(|| port.to_string())
            )
        }
        End::Out(port) => format!("port {port} of the chain"),
    };
    // The last place that names an end.
    let written = |end: &End| {
        let pairs = joins.iter().zip(&description.connections);
        let pairs = pairs.flat_map(|((a, b), (one, other))| [(a, one), (b, other)]);
        let all = pairs.chain(entries.iter().zip(&description.entries));
        all.filter(|(found, _)| *found == end)
            .filter_map(|(_, port)| port.line)
            .next_back()
    };
    match error {
        TopologyError::Unconnected(end) => {
            let line = match end {
                End::Element { element: at, .. } => element(at).and_then(|e| e.line),
                End::Out(_) => None,
            };
            description.wrong(line, format!("{} is not connected", port(end)), BOTH)
        }
        TopologyError::Twice(end) => description.wrong(
            written(end),
            format!("{} is connected twice", port(end)),
            BOTH,
        ),
        TopologyError::Cycle(at) => description.wrong(
            element(at).and_then(|e| e.line),
            format!("{} is part of a cycle", name(at)),
            "a connection leads from its first port to its second, and none may lead back to where it came from: leave out the one that \
             closes the cycle, or write its two ports in the other order",
        ),
        TopologyError::Apart(at) => description.wrong(
            element(at).and_then(|e| e.line),
            format!("no packet can reach {}", name(at)),
            "connect it with the others, or leave it out",
        ),
        other => description.wrong(None, other.to_string(), "see docs/chains.md"),
    }
}
