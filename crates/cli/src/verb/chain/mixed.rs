//! `millrace chain FILE.toml`: what runs of a chain of functions, Click configurations and guests. Neighbouring Click configurations are
//! synthesised as one function, what can be linked is one program, and the rest stays as it is.

use std::path::{Path, PathBuf};

use millrace::click::joined::{Group, Joined};
use millrace::{Make, Parts};
use millrace_chain::{Description, Element, What, file};
use millrace_object::markup::escaped;
use millrace_synth::picture::{self, Kind, Picture, Shape};
use millrace_synth::{Synthesis, emit, operations};
use serde_json::{Value, json};

use super::Chain;
use crate::failure::{DONE, Failure};
use crate::verb::run::chain;
use crate::{budget, function, screen};

/// What boxes of the pictures are.
const NOTE: &str = "Rounded, green: functions. Dashed, blue: linked programs, and configurations that are synthesised as one. Grey: \
                    guests.";

/// An element as it is shown.
struct Shown<'a> {
    element: &'a Element,
    /// function, click, guest
    kind: &'static str,
    /// what it is, in a line
    text: String,
    /// the program that it is linked into
    program: Option<String>,
    /// the configurations that it is synthesised as one with, and it
    one: Option<String>,
}

/// Options that are about one configuration.
fn of_click(chain: &Chain) -> Option<&'static str> {
    [
        ("--target", chain.target.is_some()),
        ("--early-discard", chain.early_discard),
        ("--whole", chain.whole),
        ("--reasons", chain.reasons),
    ]
    .into_iter()
    .find_map(|(name, given)| given.then_some(name))
}

/// Shows it, and gives the exit status.
pub fn perform(of: &Chain) -> Result<u8, Failure> {
    if let Some(name) = of_click(of) {
        return Err(
            Failure::wrong(format!("{name}: is for one Click configuration"))
                .help("name the .click file of an element"),
        );
    }
    let described = file::read(&of.file).map_err(chain::wrong)?;
    let make = |_: &Element, asked: &millrace_chain::Function| {
        Ok(Make {
            budgets: budget::of(&asked.word),
            ..function::make(&asked.set, &asked.capacity, asked.program.as_ref())?
        })
    };
    if of.emit_c || of.compare {
        return one(of, &described);
    }
    let parts = Parts::of(&described, false, make)?;
    let joined = Joined::of(&described, false);
    let becomes = parts.chain(&described);
    let shown = described
        .elements
        .iter()
        .map(|element| shown(&described, element, &parts));
    let shown = shown.collect::<Result<Vec<_>, Failure>>()?;
    let name = described
        .name
        .clone()
        .unwrap_or_else(|| chain::called(&of.file.to_string_lossy()));
    pictures(of, &name, (&described, &becomes), (&shown, &joined))?;
    match of.json {
        true => screen::document(&document(&name, &shown, &parts, &becomes)),
        false => {
            screen::out(&text(&name, &shown, &parts, &becomes));
            for group in &joined.groups {
                let costs = operations::table(&operations::costs(&group.synthesis));
                screen::out(&format!("\n{}\n{}", group.synthesis.name, costs.trim_end()));
            }
        }
    }
    Ok(DONE)
}

/// The C of a chain whose elements are one function, or what compares it with the reference interpreter.
fn one(of: &Chain, described: &Description) -> Result<u8, Failure> {
    let made = || -> Result<Synthesis, Failure> {
        let mut joined = Joined::of(described, true);
        let all = |g: &Group| g.merged.part.elements.len() == described.elements.len();
        match joined.groups.pop().filter(all) {
            Some(group) => Ok(group.synthesis),
            None => {
                let what = if of.compare { "--compare" } else { "--emit-c" };
                let mut why = { joined.apart.iter() }
                    .map(|a| format!(": {} and {}: {}", a.pair.0, a.pair.1, a.why));
                let why = why.next_back().unwrap_or_default();
                let what = format!("{what}: the chain is not one Click configuration{why}");
                Err(Failure::wrong(what).help("name the .click file of an element"))
            }
        }
    };
    let synthesis = made()?;
    if of.emit_c {
        screen::out(emit::c(&synthesis).trim_end());
        return Ok(DONE);
    }
    of.compare(&synthesis, made)
}

fn shown<'a>(
    described: &Description,
    element: &'a Element,
    parts: &Parts,
) -> Result<Shown<'a>, Failure> {
    let (kind, text) = match &element.what {
        What::Guest(_) => ("guest", chain::word(element)),
        What::Function(asked) => {
            let word = chain::path(described, &asked.word);
            match millrace::click::named(&word) {
                None => ("function", asked.word.clone()),
                Some((file, options)) => {
                    let of = millrace::click::read(Path::new(file), false, options)
                        .map_err(|e| chain::failed(described, element, e))?;
                    let all = of.router.graph().elements.len();
                    (
                        "click",
                        format!("{}, synthesised from {all} elements", asked.word),
                    )
                }
            }
        }
    };
    let within =
        |m: &&millrace_chain::Merged| m.part.elements.iter().any(|e| e.name == element.name);
    let has = |names: &&Vec<String>| names.contains(&element.name);
    let mut all = parts.joined.iter().chain(&parts.linked);
    Ok(Shown {
        element,
        kind,
        text,
        program: all.find(within).map(|m| m.element.name.clone()),
        one: { parts.synthesised.iter().find(has) }.map(|names| names.join("+")),
    })
}

fn document(name: &str, shown: &[Shown<'_>], parts: &Parts, becomes: &Description) -> Value {
    let elements = shown.iter().map(|s| {
        json!({
            "name": s.element.name,
            "kind": s.kind,
            "word": s.text,
            "synthesised": s.one,
            "program": s.program.as_ref().unwrap_or(&s.element.name),
        })
    });
    let why = |apart: &millrace::Apart| json!({ "elements": [apart.pair.0, apart.pair.1], "reason": apart.why });
    let apart = parts.apart.iter().map(why);
    let several = parts.several.iter().map(why);
    json!({
        "name": name,
        "elements": elements.collect::<Vec<_>>(),
        "programs": becomes.elements.iter().map(|e| &e.name).collect::<Vec<_>>(),
        "apart": apart.collect::<Vec<_>>(),
        "several": several.collect::<Vec<_>>(),
        "ports": parts.ports(),
    })
}

fn text(name: &str, shown: &[Shown<'_>], parts: &Parts, becomes: &Description) -> String {
    let (all, left) = (shown.len(), becomes.elements.len());
    let mut lines = vec![format!("{name}: {all} elements, of which {left} run")];
    let width = shown
        .iter()
        .map(|s| s.element.name.len())
        .max()
        .unwrap_or(0);
    for s in shown {
        let one = { s.one.as_ref() }.map_or(String::new(), |one| format!(", as one with {one}"));
        let into = s.program.as_ref().filter(|p| s.one.as_ref() != Some(p));
        let into = into.map_or(String::new(), |p| format!(", linked into {p}"));
        lines.push(format!(
            "  {:<width$}  {}: {}{one}{into}",
            s.element.name, s.kind, s.text
        ));
    }
    lines.push(format!("  ports: {}", parts.ports().join(", ")));
    for (what, all) in [
        ("not synthesised as one", &parts.several),
        ("not linked", &parts.apart),
    ] {
        if !all.is_empty() {
            lines.push(format!("\n{what}"));
        }
        lines.extend(all.iter().map(|apart| {
            let (one, other) = &apart.pair;
            format!("  {one} and {other}: {}", apart.why)
        }));
    }
    lines.join("\n")
}

/// Writes the pictures that are asked for.
fn pictures(
    of: &Chain,
    name: &str,
    (described, becomes): (&Description, &Description),
    (shown, joined): (&[Shown<'_>], &Joined),
) -> Result<(), Failure> {
    if of.html.is_none() && of.dot.is_none() {
        return Ok(());
    }
    let mut all = vec![
        drawn(format!("{name} as it is described"), described, shown),
        drawn(format!("{name} as it runs"), becomes, shown),
    ];
    for group in &joined.groups {
        all.push(picture::before(&group.synthesis));
        all.push(picture::after(&group.synthesis));
    }
    let write = |path: &PathBuf, text: &str| {
        std::fs::write(path, text).map_err(|e| {
            Failure::wrong(format!("{}: cannot be written: {e}", path.display()))
                .help("choose another file")
        })
    };
    if let Some(path) = &of.html {
        let above = format!("<p>{}</p>\n", escaped(NOTE));
        write(path, &picture::page(name, &above, &all))?;
    }
    if let Some(path) = &of.dot {
        write(path, &picture::dot(&all, NOTE))?;
    }
    Ok(())
}

/// Elements as boxes, connections as edges.
fn drawn(title: String, of: &Description, shown: &[Shown<'_>]) -> Picture {
    let label = |element: &Element| -> Vec<String> {
        let mut lines = vec![element.name.clone()];
        let own = shown.iter().filter(|s| match &element.what {
            What::Function(f) if !f.members.is_empty() => {
                f.members.iter().any(|m| m.0 == s.element.name)
            }
            _ => s.element.name == element.name,
        });
        lines.extend(own.map(|s| match s.element.name == element.name {
            true => s.text.clone(),
            false => format!("{}: {}", s.element.name, s.text),
        }));
        lines
    };
    let kind = |element: &Element| match &element.what {
        What::Guest(_) => Kind::Other,
        What::Function(f) if !f.members.is_empty() => Kind::Write,
        What::Function(_) => Kind::Read,
    };
    let mut shapes: Vec<Shape> = { of.elements.iter() }
        .map(|element| Shape {
            label: picture::fitted(label(element)),
            kind: kind(element),
            layer: 0,
        })
        .collect();
    let mut edges = Vec::new();
    let number = |name: &str| of.elements.iter().position(|e| e.name == name);
    for (one, other) in &of.connections {
        if let (Some(a), Some(b)) = (number(&one.element), number(&other.element)) {
            edges.push((a, b, format!("{} - {}", one.port, other.port)));
        }
    }
    if of.is_line() {
        edges.extend((1..of.elements.len()).map(|at| (at - 1, at, String::new())));
    }
    let ends: Vec<(usize, String)> = match of.is_line() {
        false => { of.entries.iter() }
            .filter_map(|port| Some((number(&port.element)?, port.port.clone())))
            .collect(),
        true => [(0, 0), (of.elements.len().saturating_sub(1), 1)]
            .map(|(at, port)| {
                (
                    at,
                    of.called
                        .get(port)
                        .cloned()
                        .unwrap_or_else(|| port.to_string()),
                )
            })
            .to_vec(),
    };
    let line = of.is_line();
    for (number, (at, port)) in ends.into_iter().enumerate() {
        let entered = edges.iter().any(|e: &(usize, usize, String)| e.1 == at);
        let name = of.called.get(number).cloned().unwrap_or(port);
        shapes.push(Shape {
            label: vec![name],
            kind: Kind::Device,
            layer: 0,
        });
        let device = shapes.len() - 1;
        // Packets go both ways: what nothing leads to is drawn behind its port.
        edges.push(match entered || (line && number > 0) {
            true => (at, device, String::new()),
            false => (device, at, String::new()),
        });
    }
    Picture::layered(title, shapes, edges)
}
