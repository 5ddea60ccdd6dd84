//! A flat graph as a configuration again, as `click-flatten` prints it.

use std::fmt::{self, Write};

use super::flatten::{Graph, Port};

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for requirement in &self.requirements {
            writeln!(f, "require({requirement});")?;
        }
        for element in &self.elements {
            let config = element.config.trim();
            match config.is_empty() {
                true => writeln!(f, "{};", element.title())?,
                false => writeln!(f, "{}({config});", element.title())?,
            }
        }
        for chain in chains(self) {
            writeln!(f, "{chain};")?;
        }
        Ok(())
    }
}

/// Connections as chains: one goes on from input 0 to output 0 of an element.
fn chains(graph: &Graph) -> Vec<String> {
    let count = graph.links.len();
    // The first connection of each output 0, which one chain may go on with.
    let mut first = vec![None; graph.elements.len()];
    for (number, link) in graph.links.iter().enumerate().rev() {
        if link.from.port == 0
            && let Some(slot) = first.get_mut(link.from.element)
        {
            *slot = Some(number);
        }
    }
    let (mut next, mut follows) = (vec![None; count], vec![false; count]);
    for (number, link) in graph.links.iter().enumerate() {
        let on = first.get(link.to.element).copied().flatten();
        let on = on.filter(|on| link.to.port == 0 && *on != number);
        if let Some(on) = on.filter(|on| follows.get(*on) == Some(&false))
            && let (Some(follows), Some(next)) = (follows.get_mut(on), next.get_mut(number))
        {
            (*follows, *next) = (true, Some(on));
        }
    }
    let mut done = vec![false; count];
    let mut out = Vec::new();
    // What is left after the chains with a beginning are loops.
    let begin = (0..count).filter(|n| follows.get(*n) == Some(&false));
    for start in begin.chain(0..count).collect::<Vec<_>>() {
        let mut text = String::new();
        let mut at = Some(start);
        while let Some(number) = at {
            let (Some(link), Some(done)) = (graph.links.get(number), done.get_mut(number)) else {
                break;
            };
            if std::mem::replace(done, true) {
                break;
            }
            if text.is_empty() {
                let _ = write!(text, "{}", port(graph, link.from, false));
                text.push_str(" -> ");
            } else {
                text.push_str("\n    -> ");
            }
            let _ = write!(text, "{}", port(graph, link.to, true));
            at = next.get(number).copied().flatten();
        }
        if !text.is_empty() {
            out.push(text);
        }
    }
    out
}

fn port(graph: &Graph, port: Port, input: bool) -> String {
    let name = graph.elements.get(port.element).map_or("", |e| &e.name);
    match (port.port, input) {
        (0, _) => name.to_owned(),
        (number, true) => format!("[{number}] {name}"),
        (number, false) => format!("{name} [{number}]"),
    }
}
