//! Pictures of a configuration before synthesis and after: boxes in layers, with edges. As in the SNF paper's figures, what reads is
//! rounded and green, what writes is dashed and blue.

use std::collections::{BTreeMap, VecDeque};

use millrace_click::language::Element;
use millrace_click::meaning::Meaning;

use crate::Synthesis;
use crate::classes::{self, Class};
use crate::operations::{Operations, fields, of_element, shown};

mod dot;
mod html;

pub use dot::dot;
pub use html::{html, page};

/// Kind of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// a device
    Device,
    /// it reads
    Read,
    /// it writes
    Write,
    /// it drops
    Drop,
    /// neither
    Other,
}

/// A box.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// lines of its label
    pub label: Vec<String>,
    /// its kind
    pub kind: Kind,
    /// its place from the left
    pub layer: usize,
}

/// Boxes and edges.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Picture {
    /// what it shows
    pub title: String,
    /// boxes
    pub shapes: Vec<Shape>,
    /// from, to, label
    pub edges: Vec<(usize, usize, String)>,
}

/// Characters of a line of a label.
const WIDTH: usize = 60;
/// Lines of a label.
const LINES: usize = 12;

/// Lines that fit a box.
#[must_use]
pub fn fitted(lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES);
    let mut fitted: Vec<String> = lines
        .into_iter()
        .take(LINES)
        .map(|line| match line.chars().count() > WIDTH {
            true => line.chars().take(WIDTH).chain(['…']).collect(),
            false => line,
        })
        .collect();
    if more > 0 {
        fitted.push(format!("… and {more} more"));
    }
    fitted
}

impl Picture {
    /// Boxes whose places follow from the edges.
    #[must_use]
    pub fn layered(
        title: String,
        mut shapes: Vec<Shape>,
        edges: Vec<(usize, usize, String)>,
    ) -> Self {
        layers(&mut shapes, &edges);
        Self {
            title,
            shapes,
            edges,
        }
    }
}

/// The graph of elements.
#[must_use]
pub fn before(of: &Synthesis) -> Picture {
    let graph = of.router.graph();
    let mut shapes: Vec<Shape> = Vec::new();
    for (id, element) in graph.elements.iter().enumerate() {
        let meaning = of.router.meaning(id);
        let operations = meaning.as_ref().map_or(Operations::default(), of_element);
        let kind = match meaning {
            Some(Meaning::Enter(_) | Meaning::Leave(_)) => Kind::Device,
            Some(Meaning::Drop) => Kind::Drop,
            _ if operations.writes > 0 => Kind::Write,
            _ if operations.reads > 0 => Kind::Read,
            _ => Kind::Other,
        };
        let label = match (&meaning, element.name.contains('@')) {
            (Some(Meaning::Enter(device) | Meaning::Leave(device)), _) => {
                vec![element.class.clone(), device.clone()]
            }
            (_, anonymous) => named(element, anonymous),
        };
        shapes.push(Shape {
            label: fitted(label),
            kind,
            layer: 0,
        });
    }
    let edges: Vec<(usize, usize, String)> = graph
        .links
        .iter()
        .map(|link| {
            let label = match link.from.port {
                0 => String::new(),
                port => format!("[{port}]"),
            };
            (link.from.element, link.to.element, label)
        })
        .collect();
    let title = format!("{} before: {} elements", of.name, graph.elements.len());
    Picture::layered(title, shapes, edges)
}

/// The label of an element: its class, and its name if it was given one.
fn named(element: &Element, anonymous: bool) -> Vec<String> {
    match anonymous {
        true => vec![element.class.clone()],
        false => vec![element.name.clone(), element.class.clone()],
    }
}

/// Distances from what nothing leads to.
fn layers(shapes: &mut [Shape], edges: &[(usize, usize, String)]) {
    let mut entered = vec![false; shapes.len()];
    let mut next: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (from, to, _) in edges {
        next.entry(*from).or_default().push(*to);
        if let Some(entered) = entered.get_mut(*to) {
            *entered = true;
        }
    }
    let mut distance: Vec<Option<usize>> = entered.iter().map(|e| (!e).then_some(0)).collect();
    let mut queue: VecDeque<usize> = (0..shapes.len())
        .filter(|id| distance.get(*id).copied().flatten().is_some())
        .collect();
    while let Some(id) = queue.pop_front() {
        let at = distance.get(id).copied().flatten().unwrap_or(0);
        for to in next.get(&id).map_or(&[][..], Vec::as_slice) {
            if let Some(slot @ None) = distance.get_mut(*to) {
                *slot = Some(at + 1);
                queue.push_back(*to);
            }
        }
    }
    for (shape, distance) in shapes.iter_mut().zip(distance) {
        shape.layer = distance.unwrap_or(0);
    }
}

/// What it becomes: one classification, and writes by class.
#[must_use]
pub fn after(of: &Synthesis) -> Picture {
    let mut picture = Picture {
        title: format!("{} after", of.name),
        ..Picture::default()
    };
    let mut add = |label: Vec<String>, kind: Kind, layer: usize| {
        picture.shapes.push(Shape {
            label: fitted(label),
            kind,
            layer,
        });
        picture.shapes.len() - 1
    };
    let mut edges = Vec::new();
    let mut read = vec!["read once".to_owned()];
    read.extend(fields(of));
    let read = add(read, Kind::Read, 1);
    let mut out: BTreeMap<String, usize> = BTreeMap::new();
    let enters: Vec<String> = (0..of.router.graph().elements.len())
        .filter_map(|id| match of.router.meaning(id) {
            Some(Meaning::Enter(device)) => Some(device),
            _ => None,
        })
        .collect();
    for name in &enters {
        let from = add(vec![name.clone()], Kind::Device, 0);
        edges.push((from, read, String::new()));
    }
    let all = classes::classes(of);
    let classes = shown(&all);
    // Where flows are looked up, writes stand behind that.
    let last = 3 + usize::from(of.flows.any());
    let mut tables: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let common = common(&classes);
    for class in &classes {
        let from = match class.behind.as_slice() {
            [] => read,
            names => *tables.entry(names.to_vec()).or_insert_with(|| {
                let mut label = vec!["look up the flow".to_owned()];
                label.push(format!("instead of {}", names.join(", ")));
                let table = add(label, Kind::Read, 2);
                edges.push((read, table, String::new()));
                table
            }),
        };
        let box_of = add(written(class), Kind::Write, last - 1);
        edges.push((from, box_of, condition(class, &common)));
        let to = class.device.clone().unwrap_or_else(|| "the host".into());
        let to = *out
            .entry(to.clone())
            .or_insert_with(|| add(vec![to], Kind::Device, last));
        edges.push((box_of, to, String::new()));
    }
    if all.iter().any(|c| c.verdict == "drop") {
        let drop = add(vec!["early discard".into()], Kind::Drop, 2);
        edges.push((read, drop, "the rest".into()));
    }
    picture.edges = edges;
    picture
}

fn written(class: &Class) -> Vec<String> {
    let mut lines = vec![match class.verdict {
        "hand-over" => format!("as it came, for {}", class.element),
        _ if class.answer => "write once, answers".to_owned(),
        _ => "write once".to_owned(),
    }];
    lines.extend(class.writes.iter().cloned());
    lines
}

/// Conditions that packets of all classes meet.
fn common(classes: &[&Class]) -> Vec<String> {
    let mut all: Option<Vec<String>> = None;
    for first in classes.iter().filter_map(|c| c.packets.first()) {
        let words: Vec<&str> = first.split(", ").collect();
        match &mut all {
            None => all = Some(words.into_iter().map(str::to_owned).collect()),
            Some(all) => all.retain(|word| words.contains(&word.as_str())),
        }
    }
    all.unwrap_or_default()
}

/// What tells a class from others: tests of its first packets that not all classes have.
fn condition(class: &Class, common: &[String]) -> String {
    let Some(first) = class.packets.first() else {
        return String::new();
    };
    let words = first.split(", ").filter(|w| !common.iter().any(|c| c == w));
    let mut words: Vec<&str> = words.collect();
    let more = words.len().saturating_sub(MOST_TESTS);
    words.drain(..more);
    let others = match class.packets.len() {
        0 | 1 => String::new(),
        n => format!(" (one of {n})"),
    };
    format!("{}{others}", words.join(", "))
}

/// Tests at an edge: the last ones, which are what filters decide by.
const MOST_TESTS: usize = 4;
