//! One execution in words: its conditions one by one, what they are about with the numbers, its accesses and rewrites.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use millrace_model::exec::Access;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{ExprId, Node, Origin};
use millrace_model::model::{Entry, Path};
use millrace_object::program::{ObjectId, Program};
use millrace_object::types::EntryTypes;

use super::{Context, access, rewrite, verdict};
use crate::layout::Layout;
use crate::names::{Member, Names};
use crate::words::{Keys, Letters, Memory, Printer, field_value};

/// Most inputs of one condition that are named.
const MOST: usize = 16;

/// An input of a condition, and its number in the execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// its name
    pub name: String,
    /// its number as its readers write it
    pub value: String,
    /// it is what state held before the packet, or whether it did
    pub state: bool,
}

/// A field that was rewritten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// the field
    pub field: String,
    /// its value in words
    pub value: String,
    /// the number before, and after
    pub numbers: (String, String),
}

/// Words for the executions of one program. Each thing is said alone, so long keys are spelled out.
pub struct Words<'a>(Context<'a>);

impl<'a> Words<'a> {
    /// Of this program; `types` says what keys and values are made of.
    #[must_use]
    pub fn new(program: &'a Program, types: &BTreeMap<String, EntryTypes>) -> Self {
        Self(Context {
            program,
            names: Names::of(program, types),
            letters: Letters::none(),
            written: BTreeSet::new(),
            memory: Memory::default(),
            said: RefCell::default(),
        })
    }

    fn with<T>(
        &self,
        entry: &Entry,
        path: &Path,
        before: usize,
        say: impl FnOnce(&Printer<'_>) -> T,
    ) -> T {
        self.0.memory.settle(&entry.arena);
        let guard = path.guard.get(..before).unwrap_or(&path.guard);
        let layout = Layout::of(&entry.arena, guard, &self.0.memory);
        let keys: Keys = self.0.keys(path);
        say(&self.0.printer(&entry.arena, &layout, &keys))
    }

    /// A condition that comes behind this many of the path's; none where these leave nothing to say.
    #[must_use]
    pub fn condition(
        &self,
        entry: &Entry,
        path: &Path,
        before: usize,
        e: ExprId,
    ) -> Option<String> {
        let keys = self.0.keys(path);
        let guard = path.guard.get(..before).unwrap_or(&path.guard);
        self.0.condition(entry, guard, &[e], &keys).0
    }

    /// What an expression is about, with the numbers that this was in the execution.
    #[must_use]
    pub fn inputs(
        &self,
        entry: &Entry,
        path: &Path,
        before: usize,
        e: &[ExprId],
        under: &Assignment,
    ) -> Vec<Input> {
        self.with(entry, path, before, |printer| {
            let arena = &entry.arena;
            let mut out: Vec<Input> = Vec::new();
            for id in cone(arena, e, |_| false) {
                let input = match arena.node(id) {
                    Node::Byte { base, at } => {
                        let start = base.map_or(0, |b| under.value(arena, b)) as i64;
                        match printer.field(*base, *at) {
                            Some((name, byte, bytes)) => Input {
                                value: packet(under, &name, start + at - byte, bytes),
                                name,
                                state: false,
                            },
                            None => Input {
                                name: format!("pkt[{}]", start + at),
                                value: packet(under, "", start + at, 1),
                                state: false,
                            },
                        }
                    }
                    Node::Sym(s) => Input {
                        name: printer.symbol(id),
                        value: match arena.width(id) {
                            1 => (if under.value(arena, id) == 1 {
                                "yes"
                            } else {
                                "no"
                            })
                            .to_owned(),
                            _ => named_port(
                                printer,
                                arena.symbol(*s).name.as_str(),
                                under.value(arena, id),
                            ),
                        },
                        state: matches!(arena.symbol(*s).origin, Origin::State(_)),
                    },
                    _ => continue,
                };
                if out.len() < MOST && !out.iter().any(|o| o.name == input.name) {
                    out.push(input);
                }
            }
            out
        })
    }

    /// The parts of an access's key, and of what it writes, in words.
    #[must_use]
    pub fn access(&self, entry: &Entry, path: &Path, a: &Access) -> (Vec<String>, Vec<String>) {
        self.with(entry, path, path.guard.len(), |printer| {
            let said = access::one(printer, a);
            (said.key, said.value)
        })
    }

    /// The members of an object's value in these bytes; none where they have no names.
    #[must_use]
    pub fn member(&self, object: ObjectId, from: u32, bytes: u32) -> Option<String> {
        let parts = self.0.names.objects.get(object.0)?;
        let to = from.saturating_add(bytes);
        let within = |m: &&Member| m.from < to && from < m.from.saturating_add(m.bytes);
        let names: Vec<&str> = (parts.value.iter().filter(within))
            .map(|m| m.name.as_str())
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The fields that the path rewrites.
    #[must_use]
    pub fn changes(&self, entry: &Entry, path: &Path, under: &Assignment) -> Vec<Change> {
        self.with(entry, path, path.guard.len(), |printer| {
            let arena = &entry.arena;
            let all = rewrite::with_bytes(printer, &path.rewrites);
            all.into_iter()
                .map(|(said, written)| {
                    let bytes: Vec<u8> = (written.iter())
                        .map(|w| under.value(arena, w.byte) as u8)
                        .collect();
                    let before: Vec<u8> = (written.iter())
                        .map(|w| {
                            let at = w.base.map_or(0, |b| under.value(arena, b)) as i64 + w.at;
                            let byte = u64::try_from(at).ok().and_then(|at| under.packet.get(&at));
                            byte.copied().unwrap_or(0)
                        })
                        .collect();
                    Change {
                        numbers: (number(&said.field, &before), number(&said.field, &bytes)),
                        field: said.field,
                        value: said.value,
                    }
                })
                .filter(|c| c.numbers.0 != c.numbers.1)
                .collect()
        })
    }

    /// The path's verdict.
    #[must_use]
    pub fn verdict(&self, entry: &Entry, path: &Path) -> String {
        self.with(entry, path, path.guard.len(), |printer| {
            verdict::verdict(printer, path, self.0.program, entry.role)
        })
    }
}

/// Bytes of the packet as it came in.
fn packet(under: &Assignment, field: &str, from: i64, bytes: i64) -> String {
    let all: Vec<u8> = (from..from + bytes)
        .map(|at| {
            let byte = u64::try_from(at).ok().and_then(|at| under.packet.get(&at));
            byte.copied().unwrap_or(0)
        })
        .collect();
    number(field, &all)
}

/// Bytes in network order as the readers of a field write them.
fn number(field: &str, bytes: &[u8]) -> String {
    let field = field.rsplit_once('[').map_or(field, |f| f.0);
    match bytes.len() {
        16 => match <[u8; 16]>::try_from(bytes) {
            Ok(address) => std::net::Ipv6Addr::from(address).to_string(),
            Err(_) => String::new(),
        },
        6 => {
            let all: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
            all.join(":")
        }
        0..=8 => {
            let value = bytes.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
            if field.ends_with("checksum") {
                format!("{value:#06x}")
            } else {
                field_value(field, value)
            }
        }
        _ => bytes.iter().map(|b| format!("{b:02x}")).collect(),
    }
}

fn named_port(printer: &Printer<'_>, symbol: &str, value: u64) -> String {
    let name = printer.names.ports.get(value as usize);
    match name.filter(|_| symbol == "port") {
        Some(name) => name.clone(),
        None => value.to_string(),
    }
}
