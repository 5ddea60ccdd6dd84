//! A path's verdict, in words.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use millrace_model::exec::Target;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{ExprId, Node};
use millrace_model::model::{Path, Verdict};
use millrace_object::program::{Dialect, ObjectId, Program, Role};

use super::clean;
use crate::words::{Ends, Order, Printer};

pub(crate) fn verdict(printer: &Printer<'_>, path: &Path, program: &Program, role: Role) -> String {
    let object = |o: &ObjectId| clean(program.objects.get(o.0).map_or("", |o| &o.name));
    let e = match path.verdict {
        Verdict::Number(e) => e,
        Verdict::None => return "none".to_owned(),
        Verdict::Onward(cut) => return format!("goes on behind cut {cut}"),
        Verdict::GoesOn(array, index) => {
            return format!("tail call to {}[{}]", object(&array), printer.text(index));
        }
    };
    if !matches!(role, Role::Xdp | Role::OnPacket) {
        return "none".to_owned();
    }
    let a = printer.arena;
    let Some(n) = a.constant(e) else {
        return forward(printer, path, e).unwrap_or_else(|| printer.text(e));
    };
    if program.dialect == Dialect::Xdp {
        let to = path.target.as_ref().map_or_else(String::new, |t| match t {
            Target::Interface(e) => format!(" to interface {}", printer.text(*e)),
            Target::Entry(o, key) => {
                format!(
                    " to {}[{}]",
                    object(o),
                    printer.bytes(key, Order::Memory).join(" ++ ")
                )
            }
            Target::All(o) => format!(" to all of {}", object(o)),
        });
        return match n {
            0 => "XDP_ABORTED".to_owned(),
            1 => "XDP_DROP".to_owned(),
            2 => "XDP_PASS".to_owned(),
            3 => "XDP_TX".to_owned(),
            4 => format!("XDP_REDIRECT{to}"),
            other => format!("{other}, which is no verdict"),
        };
    }
    let low = n & 0xff_ffff;
    match n >> 24 {
        0 => {
            let reason = program.reasons.get(low as usize);
            format!("drop: {}", clean(reason.map_or("dropped", |r| r)))
        }
        1 => {
            let name = printer.names.ports.get(low as usize);
            format!(
                "forward to {}",
                name.cloned().unwrap_or_else(|| low.to_string())
            )
        }
        2 => "flood".to_owned(),
        3 => "consume".to_owned(),
        4 if low > 0 => format!("hand over to the host: {low}"),
        4 => "pass to the host".to_owned(),
        _ => format!("{n:#x}, which is no verdict"),
    }
}

/// A verdict as far as it can be compared with those of other paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Ending {
    /// none, as what runs has no packet
    None,
    /// the path goes on behind this cut
    Onward(u32),
    /// a tail call: the object, and the identity of the index
    GoesOn(usize, u64),
    /// this number, and the identity of what a redirection leads to
    Number(u64, u64),
    /// a number that is computed, by its identity
    Computed(u64),
}

impl Ending {
    /// Of a path of packets of this port.
    pub(crate) fn of(
        printer: &Printer<'_>,
        path: &Path,
        (program, role): (&Program, Role),
        port: u64,
    ) -> Self {
        let e = match path.verdict {
            Verdict::Number(e) => e,
            Verdict::None => return Self::None,
            Verdict::Onward(cut) => return Self::Onward(cut),
            Verdict::GoesOn(array, index) => {
                return Self::GoesOn(array.0, printer.identity(&[index], Ends::Kept));
            }
        };
        if !matches!(role, Role::Xdp | Role::OnPacket) {
            return Self::None;
        }
        let Some(n) = at_port(printer, e, port) else {
            return Self::Computed(printer.identity(&[e], Ends::Kept));
        };
        if program.dialect == Dialect::Xdp {
            let to = path.target.as_ref().filter(|_| n == 4);
            return Self::Number(n, to.map_or(0, |t| target(printer, t)));
        }
        // Of a flood and the like the lower bits say nothing.
        match n >> 24 {
            2 | 3 => Self::Number(n >> 24 << 24, 0),
            _ => Self::Number(n, 0),
        }
    }

    /// Whether the packet, or a copy of it, goes on.
    pub(crate) fn passes(self, dialect: Dialect) -> bool {
        match self {
            Self::None => false,
            Self::Number(n, _) if dialect == Dialect::Xdp => n > 1,
            Self::Number(n, _) => n >> 24 != 0,
            Self::Onward(_) | Self::GoesOn(..) | Self::Computed(_) => true,
        }
    }
}

/// Identity of what a redirection leads to.
fn target(printer: &Printer<'_>, target: &Target) -> u64 {
    let mut h = DefaultHasher::new();
    match target {
        Target::Interface(e) => (0, 0, printer.identity(&[*e], Ends::Kept)),
        Target::Entry(o, key) => (1, o.0, printer.identity(key, Ends::Kept)),
        Target::All(o) => (2, o.0, 0),
    }
    .hash(&mut h);
    h.finish()
}

/// The value of an expression that depends on nothing but the port, for packets of this one.
fn at_port(printer: &Printer<'_>, e: ExprId, port: u64) -> Option<u64> {
    let a = printer.arena;
    let mut symbols = IdMap::default();
    for id in cone(a, &[e], |_| false) {
        match a.node(id) {
            Node::Sym(s) if a.symbol(*s).name == "port" => drop(symbols.insert(*s, port)),
            Node::Sym(_) | Node::Byte { .. } => return None,
            _ => {}
        }
    }
    Some(Assignment::new(symbols, BTreeMap::new()).value(a, e))
}

/// A forward to a port that is computed.
fn forward(printer: &Printer<'_>, path: &Path, e: ExprId) -> Option<String> {
    let Node::Concat(parts) = printer.arena.node(e) else {
        return None;
    };
    let (high, low) = parts.split_first()?;
    let is = printer.arena.width(*high) == 8 && printer.arena.constant(*high) == Some(1);
    if !is {
        return None;
    }
    if let Some(text) = by_port(printer, path, e) {
        return Some(text);
    }
    let rest: Vec<String> = match low {
        // The lower 24 bits of a number.
        [one] => match *printer.arena.node(*one) {
            Node::Extract { of, low: 0 } => vec![printer.text(of)],
            _ => vec![printer.text(*one)],
        },
        all => all.iter().map(|p| printer.text(*p)).collect(),
    };
    Some(format!("forward to port {}", rest.join(" ++ ")))
}

/// Where the port that a packet leaves by depends on nothing but the one that it came by.
fn by_port(printer: &Printer<'_>, path: &Path, e: ExprId) -> Option<String> {
    let a = printer.arena;
    let ports = &printer.names.ports;
    let mut port = None;
    for id in cone(a, &[e], |_| false) {
        match a.node(id) {
            Node::Sym(s) if a.symbol(*s).name == "port" => port = Some(*s),
            Node::Sym(_) | Node::Byte { .. } => return None,
            _ => {}
        }
    }
    let port = port?;
    let only = |g: &ExprId| {
        let all = cone(a, &[*g], |_| false);
        all.iter().all(|id| match a.node(*id) {
            Node::Sym(s) => *s == port,
            Node::Byte { .. } => false,
            _ => true,
        })
    };
    let guard: Vec<ExprId> = path.guard.iter().copied().filter(only).collect();
    let mut to: Vec<(usize, u64)> = Vec::new();
    for p in 0..ports.len() {
        let with = Assignment::new(IdMap::from_iter([(port, p as u64)]), BTreeMap::new());
        if guard.iter().all(|g| with.value(a, *g) == 1) {
            to.push((p, with.value(a, e) & 0xff_ffff));
        }
    }
    let name = |p: u64| ports.get(p as usize);
    match to.as_slice() {
        [(_, first), rest @ ..] if rest.iter().all(|t| t.1 == *first) => {
            Some(format!("forward to {}", name(*first)?))
        }
        all if all.iter().all(|(p, q)| *q == *p as u64) => {
            Some("forward to its own port".to_owned())
        }
        all if ports.len() == 2 && all.iter().all(|(p, q)| *q == 1 - *p as u64) => {
            Some("forward to the other port".to_owned())
        }
        _ => None,
    }
}

/// Whether a verdict lets the packet, or a copy of it, go on.
#[must_use]
pub(crate) fn passes(verdict: &str) -> bool {
    !(verdict.starts_with("drop: ")
        || verdict == "XDP_DROP"
        || verdict == "XDP_ABORTED"
        || verdict == "none")
}
