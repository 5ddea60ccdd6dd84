//! Names: of the symbols of state, and of the bytes of keys and values as the author calls them.

use std::collections::BTreeMap;

use millrace_object::program::Program;
use millrace_object::types::{EntryTypes, Type};

use crate::report::clean;

/// Meaning of a symbol of state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// bytes of a value as they were before the path wrote
    Bytes {
        /// the first
        from: u32,
    },
    /// whether the entry is there
    Present,
    /// whether there is no room for it
    Full,
    /// a leased number, an estimate …
    Number,
}

/// A symbol of state, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateName<'a> {
    /// which of the object's entries that the path touches, from 1; 0 where there is no key
    pub entry: u32,
    /// what of it
    pub what: What,
    /// the name behind the object's, as the execution gave it
    pub rest: &'a str,
}

/// Takes a symbol's name apart: `OBJECT#n[from..to]`, `OBJECT#n.present`, `OBJECT[from..to]` … An object's
/// name may hold any of these signs, so it is known and cut off first.
#[must_use]
pub fn state<'a>(object: &str, symbol: &'a str) -> Option<StateName<'a>> {
    let rest = symbol.strip_prefix(object)?;
    let (entry, tail) = match rest.strip_prefix('#') {
        None => (0, rest),
        Some(r) => {
            let digits = r.find(|c: char| !c.is_ascii_digit()).unwrap_or(r.len());
            let (number, tail) = r.split_at(digits);
            (number.parse().ok()?, tail)
        }
    };
    let what = match tail {
        ".present" => What::Present,
        ".full" => What::Full,
        t if t.starts_with('[') => {
            let (from, _) = t.strip_prefix('[')?.split_once("..")?;
            What::Bytes {
                from: from.parse().ok()?,
            }
        }
        _ => What::Number,
    };
    Some(StateName { entry, what, rest })
}

/// A member of a key or value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// its name, with those of the structures that it is in
    pub name: String,
    /// its first byte
    pub from: u32,
    /// bytes
    pub bytes: u32,
    /// whether it is kept in network byte order
    pub network: bool,
}

/// Layout of an object's entries.
#[derive(Clone, Default, Debug)]
pub struct Parts {
    /// the object's name
    pub object: String,
    /// members of the value; empty where the declaration does not say
    pub value: Vec<Member>,
    /// bytes of the value
    pub value_bytes: u32,
    /// members of the key
    pub key: Vec<Member>,
    /// whether its key is one number
    pub numbered: bool,
    /// a section of global variables, which go by their own names
    pub global: bool,
}

/// The names of a program.
#[derive(Clone, Default, Debug)]
pub struct Names {
    /// by object
    pub objects: Vec<Parts>,
    /// of its ports
    pub ports: Vec<String>,
}

impl Names {
    /// Of a program; `types` says what keys and values are made of, where the file says so.
    #[must_use]
    pub fn of(program: &Program, types: &BTreeMap<String, EntryTypes>) -> Self {
        let objects = program.objects.iter().map(|o| {
            let declared = types.get(&o.name);
            let members = |ty: Option<&Type>| {
                let mut out = Vec::new();
                match ty {
                    Some(t @ Type::Struct { .. }) => walk(t, "", 0, &mut out),
                    Some(t) => walk(t, "value", 0, &mut out),
                    None => {}
                }
                out
            };
            let params = program.params.iter().filter(|p| {
                program
                    .objects
                    .get(p.object.0)
                    .is_some_and(|q| q.name == o.name)
            });
            let params = params.map(|p| Member {
                name: p.name.clone(),
                from: p.offset,
                bytes: p.bytes,
                network: false,
            });
            let mut value = members(declared.and_then(|t| t.value.as_ref()));
            // Settings are variables, too; where the file has no types they are all that has names.
            if value.is_empty() {
                value.extend(params);
            }
            Parts {
                object: o.name.clone(),
                value_bytes: o.value_bytes,
                value,
                key: members(declared.and_then(|t| t.key.as_ref())),
                numbered: o.kind.has_all() || o.kind.leases(),
                global: o.kind.is_global(),
            }
        });
        Self {
            objects: objects.collect(),
            ports: program.ports.iter().map(|p| clean(p)).collect(),
        }
    }
}

/// Most members of a value that have names.
const MOST: usize = 256;

fn walk(ty: &Type, name: &str, from: usize, out: &mut Vec<Member>) {
    if out.len() >= MOST {
        return;
    }
    match ty {
        Type::Struct { fields, .. } => {
            for f in fields {
                let name = if name.is_empty() {
                    f.name.clone()
                } else {
                    format!("{name}.{}", f.name)
                };
                walk(&f.ty, &name, from + f.offset, out);
            }
        }
        other => {
            let bytes = other.bytes();
            let (Ok(from), Ok(bytes)) = (u32::try_from(from), u32::try_from(bytes)) else {
                return;
            };
            let network = matches!(
                other,
                Type::Network { .. } | Type::Ipv4 | Type::Ipv6 | Type::Mac
            );
            if bytes > 0 {
                out.push(Member {
                    name: clean(name),
                    from,
                    bytes,
                    network,
                });
            }
        }
    }
}

/// The member in which a byte is.
#[must_use]
pub fn member(members: &[Member], byte: u32) -> Option<&Member> {
    let holds = |m: &&Member| (m.from..m.from.saturating_add(m.bytes)).contains(&byte);
    members.iter().find(holds)
}
