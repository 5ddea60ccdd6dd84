//! Names of objects, and of the bytes of keys and values, as the author calls them.

use std::collections::BTreeMap;

use millrace_object::program::Program;
use millrace_object::types::{EntryTypes, Type};

use crate::clean;

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

impl Member {
    /// One for all bytes.
    pub(crate) fn whole(bytes: usize) -> [Self; 1] {
        [Self {
            name: String::new(),
            from: 0,
            bytes: bytes as u32,
            network: false,
        }]
    }
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
