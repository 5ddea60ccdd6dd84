//! Parts of a chain: some of its elements as a chain of their own, and the chain with one element in the place of several.

use std::collections::{BTreeMap, BTreeSet};

use crate::description::{Description, Element, Port};
use crate::error::ChainError;

/// One element in the place of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// the elements, as [`Description::part`] has them
    pub part: Description,
    /// what stands in their place
    pub element: Element,
}

/// A port as connections find it: its name in either case.
fn known(port: &Port) -> (&str, String) {
    (&port.element, port.port.to_ascii_lowercase())
}

impl Description {
    /// Which elements are connected, by their numbers, in the order in which connections were written.
    #[must_use]
    pub fn neighbours(&self) -> Vec<(usize, usize)> {
        if self.is_line() {
            return (1..self.elements.len()).map(|at| (at - 1, at)).collect();
        }
        let number = |port: &Port| self.elements.iter().position(|e| e.name == port.element);
        let mut pairs = Vec::new();
        for (one, other) in &self.connections {
            if let (Some(one), Some(other)) = (number(one), number(other))
                && one != other
                && !pairs.contains(&(one, other))
            {
                pairs.push((one, other));
            }
        }
        pairs
    }

    /// Some of its elements, as a chain of their own. Ports that lead out of them are its ports: those of the whole chain first.
    ///
    /// # Errors
    /// There is no such element, one is named twice, or in a row they are not neighbours.
    pub fn part(&self, names: &[&str]) -> Result<Self, ChainError> {
        let mut at = BTreeSet::new();
        for name in names {
            let found = self.elements.iter().position(|e| e.name == *name);
            let found = found.ok_or_else(|| {
                let all: Vec<_> = self.elements.iter().map(|e| e.name.as_str()).collect();
                let help = format!("there are {}", all.join(", "));
                self.wrong(None, format!("there is no element `{name}`"), &help)
            })?;
            if !at.insert(found) {
                let what = format!("element `{name}` is named twice");
                return Err(self.wrong(None, what, "name each once"));
            }
        }
        let elements = at.iter().filter_map(|at| self.elements.get(*at));
        let mut part = Self {
            elements: elements.cloned().collect(),
            connections: Vec::new(),
            entries: Vec::new(),
            called: Vec::new(),
            ..self.clone()
        };
        if self.is_line() {
            let (first, last) = (at.first().copied(), at.last().copied());
            if last.zip(first).is_some_and(|(l, f)| l - f >= at.len()) {
                let what = format!("{} do not stand side by side", names.join(", "));
                return Err(self.wrong(
                    None,
                    what,
                    "name elements that follow each other in the row",
                ));
            }
            return Ok(part);
        }
        let inside = |port: &Port| part.elements.iter().any(|e| e.name == port.element);
        let mut outer: Vec<(Port, bool)> = Vec::new();
        let mut leave = |port: &Port, of_chain: bool| {
            if inside(port) && !outer.iter().any(|(p, _)| known(p) == known(port)) {
                outer.push((port.clone(), of_chain));
            }
        };
        self.entries.iter().for_each(|port| leave(port, true));
        let mut within = Vec::new();
        for (one, other) in &self.connections {
            match inside(one) && inside(other) {
                true => within.push((one.clone(), other.clone())),
                false => [one, other].into_iter().for_each(|port| leave(port, false)),
            }
        }
        part.called = called(&outer);
        part.entries = outer.into_iter().map(|(port, _)| port).collect();
        part.connections = within;
        Ok(part)
    }

    /// The chain with one element each in the place of several that are connected. `called` are the names of its ports, which are what they
    /// were.
    #[must_use]
    pub fn merged(&self, all: &[Merged], called: &[String]) -> Self {
        let mut whole = Self {
            elements: Vec::new(),
            connections: Vec::new(),
            entries: Vec::new(),
            called: called.to_vec(),
            ..self.clone()
        };
        let of = |name: &str| {
            let has = |m: &&Merged| m.part.elements.iter().any(|e| e.name == name);
            all.iter().find(has)
        };
        for element in &self.elements {
            let (now, first) = match of(&element.name) {
                None => (element, true),
                Some(merged) => {
                    let first = merged.part.elements.first();
                    (
                        &merged.element,
                        first.is_some_and(|f| f.name == element.name),
                    )
                }
            };
            if first {
                whole.elements.push(now.clone());
            }
        }
        let mut ports: BTreeMap<(&str, String), Port> = BTreeMap::new();
        for merged in all {
            let names = merged.part.entries.iter().zip(&merged.part.called);
            ports.extend(names.map(|(port, name)| {
                let now = Port {
                    element: merged.element.name.clone(),
                    port: name.clone(),
                    line: port.line,
                };
                (known(port), now)
            }));
        }
        let moved = |port: &Port| {
            ports
                .get(&known(port))
                .cloned()
                .unwrap_or_else(|| port.clone())
        };
        let same = |one: &Port, other: &Port| {
            let (one, other) = (of(&one.element), of(&other.element));
            one.zip(other).is_some_and(|(a, b)| std::ptr::eq(a, b))
        };
        let between = self.connections.iter().filter(|(a, b)| !same(a, b));
        whole.connections = between.map(|(a, b)| (moved(a), moved(b))).collect();
        whole.entries = self.entries.iter().map(moved).collect();
        whole
    }
}

/// Names of ports, each once: a port of the whole chain keeps its own, if that is no number and nothing else has it.
fn called(outer: &[(Port, bool)]) -> Vec<String> {
    let alone = |name: &str| {
        let same = outer
            .iter()
            .filter(|(p, _)| p.port.eq_ignore_ascii_case(name));
        name.parse::<u32>().is_err() && same.count() == 1
    };
    let name = |(port, of_chain): &(Port, bool)| match *of_chain && alone(&port.port) {
        true => port.port.clone(),
        false => format!("{}.{}", port.element, port.port),
    };
    outer.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::{Named, connect};
    use crate::description::{Function, What};

    fn element(name: &str) -> Element {
        Element {
            name: name.to_owned(),
            line: None,
            keys: Vec::new(),
            what: What::Function(Function::default()),
        }
    }

    fn port(text: &str) -> Port {
        let (element, port) = text.split_once('.').unwrap();
        Port {
            element: element.into(),
            port: port.into(),
            line: None,
        }
    }

    fn chain(names: &[&str], connections: &[[&str; 2]], entries: &[&str]) -> Description {
        Description {
            elements: names.iter().map(|n| element(n)).collect(),
            connections: { connections.iter() }
                .map(|[a, b]| (port(a), port(b)))
                .collect(),
            entries: entries.iter().map(|e| port(e)).collect(),
            ..Description::default()
        }
    }

    fn named(ports: &[&[&str]]) -> Vec<Named> {
        let of = |names: &&[&str]| Named {
            ports: names.iter().map(|n| (*n).to_owned()).collect(),
            guest: false,
        };
        ports.iter().map(of).collect()
    }

    fn merged(of: &Description, names: &[&str]) -> Merged {
        Merged {
            part: of.part(names).unwrap(),
            element: element(&names.join("+")),
        }
    }

    #[test]
    fn a_row_has_parts_that_follow_each_other() {
        let row = chain(&["a", "b", "c", "d"], &[], &[]);
        assert_eq!(row.neighbours(), [(0, 1), (1, 2), (2, 3)]);
        let part = row.part(&["c", "b"]).unwrap();
        assert!(part.is_line());
        assert_eq!(
            part.elements.iter().map(|e| &e.name).collect::<Vec<_>>(),
            ["b", "c"]
        );
        let whole = row.merged(&[merged(&row, &["b", "c"])], &["LAN".into(), "WAN".into()]);
        let names: Vec<_> = whole.elements.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["a", "b+c", "d"]);
        let connected = connect(&whole, &named(&[&[], &[], &[]])).unwrap().unwrap();
        assert_eq!(connected.ports, ["LAN", "WAN"]);
        for (names, why) in [
            (&["a", "c"][..], "do not stand side by side"),
            (&["a", "x"], "no element `x`"),
            (&["a", "a"], "twice"),
        ] {
            let error = row.part(names).unwrap_err();
            assert!(error.what.contains(why), "{error}");
        }
    }

    /// `front` parts into `udp` and `rest`, both lead to the same port of `nat`, which leads back to the first.
    fn diamond() -> (Description, Vec<Named>) {
        let of = chain(
            &["front", "police", "fire", "nat"],
            &[
                ["front.udp", "police.LAN"],
                ["front.rest", "fire.lan"],
                ["fire.WAN", "nat.LAN"],
                ["police.WAN", "nat.LAN"],
            ],
            &["front.in", "nat.WAN"],
        );
        let pair: &[&str] = &["LAN", "WAN"];
        (of, named(&[&["in", "udp", "rest"], pair, pair, pair]))
    }

    #[test]
    fn a_part_of_a_graph_leads_out_where_it_did() {
        let (of, all) = diamond();
        let whole = connect(&of, &all).unwrap().unwrap();
        let both = merged(&of, &["police", "fire"]);
        assert_eq!(
            both.part.called,
            ["police.LAN", "fire.lan", "fire.WAN", "police.WAN"]
        );
        let front = merged(&of, &["front", "police"]);
        assert_eq!(front.part.called, ["in", "front.rest", "police.WAN"]);
        let part = connect(&front.part, &all[..2]).unwrap().unwrap();
        assert_eq!(part.ports, front.part.called);
        let outer = of.merged(std::slice::from_ref(&front), &whole.ports);
        let mut ports = vec![Named {
            ports: front.part.called,
            guest: false,
        }];
        ports.extend(all[2..].iter().cloned());
        let outer = connect(&outer, &ports).unwrap().unwrap();
        assert_eq!(outer.ports, whole.ports);
        assert_eq!(outer.topology.elements(), 3);
    }

    #[test]
    fn ports_that_several_lead_to_are_not_parted() {
        let (of, all) = diamond();
        // `police` leads to a port of `nat` from inside, `fire` from outside.
        let ends = of.part(&["front", "police", "nat"]).unwrap();
        let error = connect(&ends, &[&all[..2], &all[3..]].concat()).unwrap_err();
        assert!(error.what.contains("connected twice"), "{error}");
    }

    #[test]
    fn a_part_that_packets_leave_and_come_back_to_makes_a_cycle() {
        let of = chain(
            &["a", "b", "c"],
            &[["a.1", "b.0"], ["b.1", "c.0"], ["a.2", "c.2"]],
            &["a.0", "c.1"],
        );
        assert_eq!(of.neighbours(), [(0, 1), (1, 2), (0, 2)]);
        let ends = merged(&of, &["a", "c"]);
        let unnamed = Named::default();
        connect(&ends.part, &[unnamed.clone(), unnamed.clone()]).unwrap();
        let outer = of.merged(std::slice::from_ref(&ends), &[]);
        let ports = Named {
            ports: ends.part.called,
            guest: false,
        };
        let error = connect(&outer, &[ports, unnamed]).unwrap_err();
        assert!(error.what.contains("cycle"), "{error}");
    }
}
