//! Expansion of compound elements: a flat graph of elements.
//!
//! Elements of a compound element `x` are named `x/NAME`. Compound elements are expanded by a worklist, outer ones
//! first; then each connection is followed through the borders (`input`, `output`, groups) between two elements.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Limits;
use super::args;
use super::scope::{Class, Compound, Connection, File, Formal, Scope};
use super::variables::Environment;
use crate::error::{Error, Place};

/// An element of the flat graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// its name, with those of the compound elements around it
    pub name: String,
    /// its class
    pub class: String,
    /// its configuration string, with variables replaced
    pub config: String,
    /// where it is declared
    pub place: Place,
}

impl Element {
    /// How messages name it: `NAME :: CLASS`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} :: {}", self.name, self.class)
    }
}

/// An input or output: the element's number and the port's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port {
    /// number in [`Graph::elements`]
    pub element: usize,
    /// number of the port, from 0
    pub port: usize,
}

/// A connection from an output to an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// the output
    pub from: Port,
    /// the input
    pub to: Port,
    /// where the output's side stands
    pub place: Place,
}

/// A flat configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// in the order of expansion
    pub elements: Vec<Element>,
    /// in the order of the text
    pub links: Vec<Link>,
    /// `require(…)`, as written
    pub requirements: Vec<String>,
}

impl Graph {
    /// The number of the element with a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|e| e.name == name)
    }

    /// How many inputs and outputs of each element are connected, up to the highest.
    #[must_use]
    pub fn ports(&self) -> Vec<(usize, usize)> {
        let mut ports = vec![(0, 0); self.elements.len()];
        for link in &self.links {
            if let Some((_, outputs)) = ports.get_mut(link.from.element) {
                *outputs = (*outputs).max(link.from.port + 1);
            }
            if let Some((inputs, _)) = ports.get_mut(link.to.element) {
                *inputs = (*inputs).max(link.to.port + 1);
            }
        }
        ports
    }
}

/// Parameters of a compound element and their values.
type Values = Vec<(String, String)>;

/// A place in the graph that is being built.
enum Node {
    Element(usize),
    Border,
}

struct Job {
    compound: usize,
    prefix: String,
    environment: Rc<Environment>,
    /// border nodes of its inputs and outputs
    ends: (usize, usize),
    depth: usize,
}

struct Expansion<'a> {
    file: &'a File,
    limits: &'a Limits,
    graph: Graph,
    nodes: Vec<Node>,
    /// connections between nodes
    edges: Vec<(Port, Port, Place)>,
    jobs: Vec<Job>,
    names: HashSet<String>,
    errors: Vec<Error>,
    left: usize,
}

/// Expands a configuration.
///
/// # Errors
/// No overload fits, arguments are wrong, or a limit is passed.
pub fn flatten(file: &File, limits: &Limits) -> Result<Graph, Vec<Error>> {
    let mut expansion = Expansion {
        file,
        limits,
        graph: Graph {
            requirements: file.requirements.clone(),
            ..Graph::default()
        },
        nodes: Vec::new(),
        edges: Vec::new(),
        jobs: Vec::new(),
        names: HashSet::new(),
        errors: Vec::new(),
        left: limits.expanded,
    };
    let done = expansion.all();
    let mut errors = expansion.errors;
    if let Err(error) = done {
        errors.push(error);
    }
    if errors.is_empty() {
        return Ok(expansion.graph);
    }
    errors.truncate(limits.errors);
    Err(errors)
}

impl Expansion<'_> {
    fn all(&mut self) -> Result<(), Error> {
        let top = Rc::new(Environment {
            names: self.file.scope.defines.clone(),
            parent: None,
            depth: 0,
        });
        self.scope(&self.file.scope, "", &top, None, 0)?;
        let mut at = 0;
        while let Some(job) = self.jobs.get_mut(at) {
            let (compound, depth, ends) = (job.compound, job.depth, job.ends);
            let prefix = std::mem::take(&mut job.prefix);
            let environment = job.environment.clone();
            at += 1;
            if let Some(compound) = self.file.compounds.get(compound) {
                self.scope(&compound.scope, &prefix, &environment, Some(ends), depth)?;
            }
            if self.errors.len() >= self.limits.errors {
                return Ok(());
            }
        }
        self.connect()
    }

    fn too_long(&self, place: &Place) -> Error {
        let what = format!(
            "configuration strings of more than {} bytes in all",
            self.limits.expanded
        );
        Error::at(place, what, "let variables contain less of each other")
    }

    /// Expands the elements of a scope; compound ones become jobs.
    fn scope(
        &mut self,
        scope: &Scope,
        prefix: &str,
        environment: &Rc<Environment>,
        ends: Option<(usize, usize)>,
        depth: usize,
    ) -> Result<(), Error> {
        // For each element its nodes on the side of inputs and of outputs.
        let mut nodes: Vec<(usize, usize)> = Vec::with_capacity(scope.elements.len());
        let used = used(scope);
        for (number, element) in scope.elements.iter().enumerate() {
            if self.nodes.len() > 4 * self.limits.elements {
                let what = format!("more than {} elements", self.limits.elements);
                return Err(Error::at(
                    &element.place,
                    what,
                    "use compound elements less often",
                ));
            }
            let node = self.nodes.len();
            if element.class == Class::Border {
                match (ends, number) {
                    (Some((input, _)), 0) => nodes.push((input, input)),
                    (Some((_, output)), 1) => nodes.push((output, output)),
                    _ => {
                        // Both ends of a group are apart; what goes into either comes out of it.
                        self.nodes.push(Node::Border);
                        nodes.push((node, node));
                    }
                }
                continue;
            }
            let config = environment.expand(&element.config, self.left);
            let config = config.map_err(|_| self.too_long(&element.place))?;
            self.left = self
                .left
                .checked_sub(config.len() + prefix.len())
                .ok_or_else(|| self.too_long(&element.place))?;
            let name = format!("{prefix}{}", element.name);
            let mut class = element.class.clone();
            let mut arguments = None;
            if let Class::Compound(first) = class {
                let given = used.get(number).copied().unwrap_or_default();
                match self.overload(first, given, &config) {
                    Ok((Class::Compound(number), values)) => {
                        class = Class::Compound(number);
                        arguments = Some(values);
                    }
                    Ok((other, _)) => class = other,
                    Err((what, help)) => {
                        self.errors.push(Error::at(&element.place, what, help));
                        nodes.push((0, 0));
                        continue;
                    }
                }
            }
            match (class, arguments) {
                (Class::Compound(number), Some(values)) => {
                    if depth >= self.limits.depth {
                        let most = self.limits.depth;
                        let what = format!("more than {most} compound elements within each other");
                        return Err(Error::at(&element.place, what, "nest them less deeply"));
                    }
                    let Some(compound) = self.file.compounds.get(number) else {
                        continue;
                    };
                    self.nodes.extend([Node::Border, Node::Border]);
                    nodes.push((node, node + 1));
                    let mut names = values;
                    names.extend(compound.scope.defines.iter().cloned());
                    let parent = Environment::outside(environment, compound.depth);
                    self.jobs.push(Job {
                        compound: number,
                        prefix: format!("{name}/"),
                        environment: Rc::new(Environment {
                            names,
                            parent: Some(parent),
                            depth: compound.depth,
                        }),
                        ends: (node, node + 1),
                        depth: depth + 1,
                    });
                }
                (class, _) => {
                    let class = match class {
                        Class::Named(class) => class,
                        _ => "Null".into(),
                    };
                    if self.graph.elements.len() >= self.limits.elements {
                        let what = format!("more than {} elements", self.limits.elements);
                        let help = "use compound elements less often";
                        return Err(Error::at(&element.place, what, help));
                    }
                    if !self.names.insert(name.clone()) {
                        let what = format!("two elements are named `{name}`");
                        let help = "give one of them another name";
                        self.errors.push(Error::at(&element.place, what, help));
                    }
                    self.nodes.push(Node::Element(self.graph.elements.len()));
                    nodes.push((node, node));
                    self.graph.elements.push(Element {
                        name,
                        class,
                        config,
                        place: element.place.clone(),
                    });
                }
            }
        }
        for connection in &scope.connections {
            self.edge(connection, &nodes)?;
        }
        Ok(())
    }

    fn edge(&mut self, connection: &Connection, nodes: &[(usize, usize)]) -> Result<(), Error> {
        if self.edges.len() >= 2 * self.limits.connections {
            let what = format!("more than {} connections", self.limits.connections);
            return Err(Error::at(
                &connection.place,
                what,
                "split the configuration",
            ));
        }
        let from = nodes.get(connection.from.0).map(|n| n.1);
        let to = nodes.get(connection.to.0).map(|n| n.0);
        if let (Some(from), Some(to)) = (from, to) {
            let port = |element, port| Port { element, port };
            self.edges.push((
                port(from, connection.from.1),
                port(to, connection.to.1),
                connection.place.clone(),
            ));
        }
        Ok(())
    }

    /// The overload that fits: as many ports as are connected, and parameters that take the arguments. Where only the
    /// arguments fit, the last such one is taken.
    fn overload(
        &self,
        first: usize,
        ports: (usize, usize),
        config: &str,
    ) -> Result<(Class, Values), (String, String)> {
        let arguments = args::split(config);
        let mut close = None;
        let mut why = Vec::new();
        let (mut at, mut steps) = (first, 0);
        loop {
            steps += 1;
            let Some(compound) = self.file.compounds.get(at) else {
                break;
            };
            match assign(compound, &arguments) {
                Ok(values) if compound.ports == ports => {
                    return Ok((Class::Compound(at), values));
                }
                Ok(values) => close = Some((Class::Compound(at), values, compound)),
                Err(what) => why.push(format!("{} ({}: {what})", compound.name, compound.place)),
            }
            match &compound.next {
                Some(Class::Compound(next)) if steps <= self.file.compounds.len() => at = *next,
                Some(Class::Named(name)) => return Ok((Class::Named(name.clone()), Vec::new())),
                _ => break,
            }
        }
        let name = self.file.compounds.get(first).map_or("", |c| &c.name);
        match close {
            // Where there is one definition, its own ports say what is wrong.
            Some((class, values, compound))
                if compound.ports.0 >= ports.0 && compound.ports.1 >= ports.1 || steps == 1 =>
            {
                Ok((class, values))
            }
            Some((.., compound)) => Err((
                format!(
                    "no match for `{name}` with {} inputs and {} outputs",
                    ports.0, ports.1
                ),
                format!(
                    "the definition at {} has {} and {}",
                    compound.place, compound.ports.0, compound.ports.1
                ),
            )),
            None => Err((
                format!("no match for `{name}` with {} arguments", arguments.len()),
                format!("give the arguments of one definition: {}", why.join("; ")),
            )),
        }
    }

    /// Follows each edge from an element through borders.
    fn connect(&mut self) -> Result<(), Error> {
        let mut out: HashMap<Port, Vec<usize>> = HashMap::new();
        for (number, (from, ..)) in self.edges.iter().enumerate() {
            out.entry(*from).or_default().push(number);
        }
        let mut seen_links = HashSet::new();
        let mut steps = 0_usize;
        let most = self.limits.connections;
        for (from, to, place) in &self.edges {
            let Some(Node::Element(source)) = self.nodes.get(from.element) else {
                continue;
            };
            let mut seen: HashSet<Port> = HashSet::new();
            let mut stack = vec![*to];
            while let Some(at) = stack.pop() {
                steps += 1;
                if steps > 4 * most || self.graph.links.len() > most {
                    let what = format!("more than {most} connections");
                    return Err(Error::at(
                        place,
                        what,
                        "connect less through compound elements",
                    ));
                }
                match self.nodes.get(at.element) {
                    Some(Node::Element(target)) => {
                        let from = Port {
                            element: *source,
                            port: from.port,
                        };
                        let to = Port {
                            element: *target,
                            port: at.port,
                        };
                        if seen_links.insert((from, to)) {
                            let place = place.clone();
                            self.graph.links.push(Link { from, to, place });
                        }
                    }
                    // A loop of borders leads nowhere.
                    Some(Node::Border) if seen.insert(at) => {
                        let edges = out.get(&at).map_or(&[][..], Vec::as_slice);
                        let next = edges.iter().rev().filter_map(|e| self.edges.get(*e));
                        stack.extend(next.map(|(_, to, _)| *to));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Inputs and outputs of each element that the scope's connections use.
fn used(scope: &Scope) -> Vec<(usize, usize)> {
    let mut ports = vec![(0, 0); scope.elements.len()];
    for c in &scope.connections {
        if let Some((_, outputs)) = ports.get_mut(c.from.0) {
            *outputs = (*outputs).max(c.from.1 + 1);
        }
        if let Some((inputs, _)) = ports.get_mut(c.to.0) {
            *inputs = (*inputs).max(c.to.1 + 1);
        }
    }
    ports
}

/// Values of the parameters of a compound element.
fn assign(compound: &Compound, arguments: &[String]) -> Result<Values, String> {
    let mut left: Vec<Option<&String>> = arguments.iter().map(Some).collect();
    let mut values = Vec::new();
    for (formal, name) in &compound.formals {
        if let Formal::Keyword(word) = formal {
            let found = left
                .iter()
                .position(|a| a.is_some_and(|a| args::first_word(a).0 == word));
            let Some(slot) = found.and_then(|at| left.get_mut(at)) else {
                return Err(format!("no argument {word}"));
            };
            if let Some(argument) = slot.take() {
                values.push((name.clone(), args::first_word(argument).1.to_owned()));
            }
        }
    }
    let mut rest = left.into_iter().flatten();
    for (formal, name) in &compound.formals {
        match formal {
            Formal::Keyword(_) => {}
            Formal::Positional => match rest.next() {
                Some(argument) => values.push((name.clone(), argument.clone())),
                None => return Err(format!("no argument for ${name}")),
            },
            Formal::Rest => {
                let all: Vec<&str> = rest.by_ref().map(String::as_str).collect();
                values.push((name.clone(), all.join(", ")));
            }
        }
    }
    match rest.next() {
        Some(_) => Err("too many arguments".into()),
        None => Ok(values),
    }
}
