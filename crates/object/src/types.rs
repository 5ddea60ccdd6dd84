//! Types of keys and values of state objects, as the author declared them, from BTF: for people who read and write
//! entries.
//!
//! Nothing is proved with this and nothing runs by it; an object without type information has its
//! entries as bytes. Types may be nested in a circle or be enormous, so depth and number are bounded, and
//! what is beyond is bytes too.

use std::collections::{BTreeMap, HashMap};

use crate::btf::{Btf, Kind, Member, VOID};
use crate::configuration;
use crate::elf::{Elf, SymbolKind};
use crate::globals;

/// Where declarations stand in the two dialects.
const SECTIONS: [&str; 2] = [".maps", "millrace/state"];
/// Types in one key or value; what has more is shown as bytes.
const MOST: usize = 4096;
/// How deep structures may lie in each other.
const DEEPEST: usize = 16;

/// Type of a key or value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// an integer in the machine's byte order, of 1, 2, 4 or 8 bytes
    Int {
        /// 1, 2, 4 or 8
        bytes: usize,
        /// two's complement
        signed: bool,
    },
    /// an integer in network byte order, of 2 or 8 bytes
    Network {
        /// 2 or 8
        bytes: usize,
    },
    /// `__be32` or `struct in_addr`
    Ipv4,
    /// `struct in6_addr`, or `struct address` of nf.h
    Ipv6,
    /// an array of six bytes
    Mac,
    /// equal elements one after another
    Array {
        /// one of them
        element: Box<Type>,
        /// how many
        count: usize,
    },
    /// a structure
    Struct {
        /// with its padding
        bytes: usize,
        /// in the order they were declared
        fields: Vec<Field>,
    },
    /// bytes of no known meaning: bit fields, unions without a member of their size, pointers, floating point
    Bytes(usize),
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// its name; never empty
    pub name: String,
    /// bytes from the start
    pub offset: usize,
    /// what it is
    pub ty: Type,
}

/// Types of an object's entries by its declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryTypes {
    /// of the key, if it was declared by a type
    pub key: Option<Type>,
    /// of the value, if it was declared by a type
    pub value: Option<Type>,
    /// declared `LIBBPF_PIN_BY_NAME`
    pub pinned: bool,
}

impl Type {
    /// Bytes of a value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Int { bytes, .. }
            | Self::Network { bytes }
            | Self::Struct { bytes, .. }
            | Self::Bytes(bytes) => *bytes,
            Self::Ipv4 => 4,
            Self::Ipv6 => 16,
            Self::Mac => 6,
            Self::Array { element, count } => element.bytes().saturating_mul(*count),
        }
    }
}

/// The types of entries, by the name of the object; sections of global variables have one value, whose members
/// are the variables. Empty for a file without type information, or one
/// that is no BPF object at all: reading the program itself says what is wrong with it.
#[must_use]
pub fn entry_types(file: &[u8]) -> BTreeMap<String, EntryTypes> {
    let Ok(mut elf) = Elf::parse(file) else {
        return BTreeMap::new();
    };
    let Ok(Some(btf)) = Btf::of(&elf) else {
        return BTreeMap::new();
    };
    configuration::define(&mut elf, &btf);
    let variables = SECTIONS.iter().flat_map(|section| btf.variables(section));
    let declared =
        variables.map(|variable| (variable.name.to_owned(), declared(&btf, variable.ty)));
    // A map that has a section's name is what it was declared as.
    globals(&elf, &btf).chain(declared).collect()
}

/// The sections of global variables, each as a structure of its variables. The offsets in BTF are blank
/// until a loader fills them in, so the symbols say where a variable lies; of static variables that share a
/// name nobody knows which is where, and they have none here.
fn globals<'a>(
    elf: &'a Elf<'_>,
    btf: &'a Btf,
) -> impl Iterator<Item = (String, EntryTypes)> + use<'a> {
    let mut places: HashMap<(usize, &str), Option<u64>> = HashMap::new();
    for symbol in &elf.symbols {
        if let (SymbolKind::Object, Some(section)) = (symbol.kind, symbol.section) {
            let place = places.entry((section, symbol.name));
            place
                .and_modify(|p| *p = None)
                .or_insert(Some(symbol.value));
        }
    }
    let sections = elf.sections.iter().enumerate();
    let globals = sections.filter(|(_, s)| globals::is_section(s.name));
    globals.filter_map(move |(index, section)| {
        let bytes = usize::try_from(section.size).ok()?;
        let mut left = MOST;
        let mut fields = Vec::new();
        for variable in btf.variables(section.name) {
            let Some(offset) = places.get(&(index, variable.name)).copied().flatten() else {
                continue;
            };
            left = left.checked_sub(1)?;
            let ty = Reader { btf }.read(variable.ty, 0, &mut left);
            let offset = usize::try_from(offset).ok()?;
            if offset.checked_add(ty.bytes()).is_none_or(|end| end > bytes) {
                continue;
            }
            let name = crate::error::printable(variable.name);
            fields.push(Field { name, offset, ty });
        }
        fields.sort_by_key(|f| f.offset);
        let types = EntryTypes {
            value: Some(Type::Struct { bytes, fields }),
            ..EntryTypes::default()
        };
        Some((section.name.to_owned(), types))
    })
}

fn declared(btf: &Btf, ty: u32) -> EntryTypes {
    let Some(Kind::Struct { members, .. }) = btf.stripped(ty) else {
        return EntryTypes::default();
    };
    let member = |name: &str| members.iter().find(|m| btf.string(m.name) == name);
    let entry = |name: &str| {
        let pointee = btf.pointee(member(name)?.ty).filter(|to| *to != VOID)?;
        let bytes = usize::try_from(btf.bytes(pointee)?).ok()?;
        let mut left = MOST;
        let ty = Reader { btf }.read(pointee, 0, &mut left);
        // Where the bounds cut something off, sizes must still be right.
        Some(ty).filter(|t| t.bytes() == bytes && bytes > 0)
    };
    // `__uint(pinning, LIBBPF_PIN_BY_NAME)` is a pointer to an array of one.
    let pinning = member("pinning").and_then(|m| btf.pointee(m.ty));
    let pinned = pinning.and_then(|to| btf.stripped(to));
    EntryTypes {
        key: entry("key"),
        value: entry("value"),
        pinned: matches!(pinned, Some(Kind::Array { count: 1, .. })),
    }
}

struct Reader<'a> {
    btf: &'a Btf,
}

impl Reader<'_> {
    fn read(&self, id: u32, depth: usize, left: &mut usize) -> Type {
        let size = || self.btf.bytes(id).map_or(0, |b| b as usize);
        let Some(rest) = left.checked_sub(1).filter(|_| depth < DEEPEST) else {
            return Type::Bytes(size());
        };
        *left = rest;
        if let Some(named) = self.by_name(id) {
            return named;
        }
        match self.btf.stripped(id) {
            Some(Kind::Int { bytes, signed, .. } | Kind::Enum { bytes, signed, .. })
                if matches!(bytes, 1 | 2 | 4 | 8) =>
            {
                Type::Int {
                    bytes: *bytes as usize,
                    signed: *signed,
                }
            }
            Some(Kind::Array { element, count }) => {
                match self.read(*element, depth + 1, left) {
                    Type::Int { bytes: 1, .. } if *count == 6 => Type::Mac,
                    // Elements without a size would make a value of any count.
                    element if element.bytes() == 0 => Type::Bytes(0),
                    element => Type::Array {
                        element: Box::new(element),
                        count: *count as usize,
                    },
                }
            }
            Some(Kind::Struct {
                bytes,
                members,
                union: true,
            }) => match self.whole(members, *bytes) {
                Some(member) => self.read(member.ty, depth + 1, left),
                None => Type::Bytes(*bytes as usize),
            },
            Some(Kind::Struct {
                bytes,
                members,
                union: false,
            }) => {
                let mut fields = Vec::new();
                match self.fields(members, 0, *bytes as usize, depth, left, &mut fields) {
                    Some(()) => Type::Struct {
                        bytes: *bytes as usize,
                        fields,
                    },
                    None => Type::Bytes(*bytes as usize),
                }
            }
            _ => Type::Bytes(size()),
        }
    }

    /// The first member that is as long as its union: one that says the most of the bytes.
    fn whole<'a>(&self, members: &'a [Member], bytes: u32) -> Option<&'a Member> {
        let whole = |m: &&Member| m.offset == 0 && self.btf.bytes(m.ty) == Some(bytes.into());
        members.iter().find(whole)
    }

    /// Types that are known by their names.
    fn by_name(&self, mut id: u32) -> Option<Type> {
        for _ in 0..DEEPEST {
            let found = self.btf.get(id)?;
            let name = self.btf.string(found.name);
            match (&found.kind, name) {
                (Kind::Typedef(_), "__be16") => return Some(Type::Network { bytes: 2 }),
                (Kind::Typedef(_), "__be32") => return Some(Type::Ipv4),
                (Kind::Typedef(_), "__be64") => return Some(Type::Network { bytes: 8 }),
                (Kind::Struct { bytes: 4, .. }, "in_addr") => return Some(Type::Ipv4),
                (Kind::Struct { bytes: 16, .. }, "in6_addr" | "address") => {
                    return Some(Type::Ipv6);
                }
                (Kind::Typedef(to) | Kind::Qualifier { to, .. }, _) => id = *to,
                _ => return None,
            }
        }
        None
    }

    /// The members of a structure of `bytes` bytes that lies at `base`; those of an anonymous one count as
    /// the outer one's. None where one is a bit field or not inside of the structure.
    fn fields(
        &self,
        members: &[Member],
        base: usize,
        bytes: usize,
        depth: usize,
        left: &mut usize,
        fields: &mut Vec<Field>,
    ) -> Option<()> {
        for member in members {
            *left = left.checked_sub(1)?;
            // A bit field has its width in the highest byte, or does not begin with a byte.
            if member.offset >> 24 != 0 || member.offset % 8 != 0 {
                return None;
            }
            let offset = base + (member.offset / 8) as usize;
            let mut name = self.btf.string(member.name);
            let mut member = member;
            if let Some(Kind::Struct {
                bytes,
                members,
                union: true,
            }) = self.btf.stripped(member.ty)
                && name.is_empty()
                && let Some(whole) = self.whole(members, *bytes)
            {
                (name, member) = (self.btf.string(whole.name), whole);
            }
            match self.btf.stripped(member.ty) {
                Some(Kind::Struct {
                    members,
                    union: false,
                    ..
                }) if name.is_empty() && depth < DEEPEST => {
                    self.fields(members, offset, bytes, depth + 1, left, fields)?;
                    continue;
                }
                _ => {}
            }
            let ty = self.read(member.ty, depth + 1, left);
            if offset.checked_add(ty.bytes()).is_none_or(|end| end > bytes) {
                return None;
            }
            let name = match name {
                "" => format!("at_{offset}"),
                name => crate::error::printable(name),
            };
            fields.push(Field { name, offset, ty });
        }
        // Two members of one name, as lying type information may have them, could not be told apart.
        let mut names: Vec<_> = fields.iter().map(|f| f.name.as_str()).collect();
        names.sort_unstable();
        names
            .windows(2)
            .all(|w| w.first() != w.last())
            .then_some(())
    }
}
