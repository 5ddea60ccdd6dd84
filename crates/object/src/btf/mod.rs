//! BTF, the type information of BPF objects: types, names, the variables of each section
//! (Linux, Documentation/bpf/btf.rst). Source lines are in [`ext`].
//!
//! Everything is looked up by number and may be missing or point in a circle, so every walk is
//! bounded and every lookup an `Option`.

pub(crate) mod ext;
mod types;

pub(crate) use types::{Enumerator, Kind, Member, Type};

use std::collections::HashMap;

use crate::bytes::{u16_at, u32_at, until_zero};
use crate::elf::{Elf, Section};
use crate::error::LoadError;

const MAGIC: u16 = 0xeb9f;

/// Type number 0 is `void`.
pub(crate) const VOID: u32 = 0;

/// The longest name, in bytes. Strings may share their bytes, so that many long names would cost the
/// square of the file's size.
const MAX_NAME: usize = 1024;

/// How many typedefs and qualifiers may stand before a type, and how deep arrays may nest.
const MAX_DEPTH: u32 = 64;

/// The type graph of one object.
pub(crate) struct Btf {
    types: Vec<Type>,
    strings: Vec<u8>,
    /// by name
    functions: HashMap<String, u32>,
}

/// The section's bytes with its relocations applied: offsets of variables and instructions are
/// distances from a symbol until then.
pub(crate) fn relocated(elf: &Elf<'_>, section: &Section<'_>) -> Vec<u8> {
    const R_BPF_64_ABS32: u32 = 3;
    const R_BPF_64_NODYLD32: u32 = 4;
    let mut bytes = section.data.to_vec();
    for relocation in &section.relocations {
        if !matches!(relocation.kind, R_BPF_64_ABS32 | R_BPF_64_NODYLD32) {
            continue;
        }
        let at = relocation.offset as usize;
        let value = elf.symbols.get(relocation.symbol).map_or(0, |s| s.value) as u32;
        let Some(addend) = u32_at(&bytes, at) else {
            continue;
        };
        let sum = addend
            .wrapping_add(value)
            .wrapping_add(relocation.addend as u32);
        if let Some(place) = bytes.get_mut(at..at.saturating_add(4)) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }
    bytes
}

/// A section of a `.BTF` or `.BTF.ext` file by offset and length, both counted from the end of the header.
fn part(bytes: &[u8], header: usize, offset: u32, length: u32) -> Option<&[u8]> {
    let start = header.checked_add(offset as usize)?;
    bytes.get(start..start.checked_add(length as usize)?)
}

/// Checks magic and version; gives the header's length.
fn header(bytes: &[u8]) -> Result<usize, String> {
    let short = || "shorter than its header".to_owned();
    let magic = u16_at(bytes, 0).ok_or_else(short)?;
    if magic == MAGIC.swap_bytes() {
        return Err("big-endian".to_owned());
    }
    if magic != MAGIC {
        return Err(format!("begins with {magic:#06x} instead of {MAGIC:#06x}"));
    }
    match bytes.get(2) {
        Some(1) => {}
        other => return Err(format!("has version {:?}, not 1", other.unwrap_or(&0))),
    }
    u32_at(bytes, 4).map(|n| n as usize).ok_or_else(short)
}

impl Btf {
    /// Reads the section `.BTF` if the file has one.
    pub fn of(elf: &Elf<'_>) -> Result<Option<Btf>, LoadError> {
        let Some((_, section)) = elf.section_named(".BTF") else {
            return Ok(None);
        };
        Btf::parse(&relocated(elf, section))
            .map(Some)
            .map_err(|e| LoadError::malformed(format!("type information {e}")).in_section(".BTF"))
    }

    /// Reads type information whose relocations are applied.
    pub fn parse(bytes: &[u8]) -> Result<Btf, String> {
        let start = header(bytes)?;
        let field = |at| u32_at(bytes, at).ok_or("shorter than its header");
        let types = part(bytes, start, field(8)?, field(12)?)
            .ok_or("names types beyond the end of the section")?;
        let strings = part(bytes, start, field(16)?, field(20)?)
            .ok_or("names strings beyond the end of the section")?;
        if strings.first() != Some(&0) || strings.last() != Some(&0) {
            return Err("has strings that do not begin and end with a zero byte".to_owned());
        }
        let mut btf = Btf {
            types: types::read(types)?,
            strings: strings.to_vec(),
            functions: HashMap::new(),
        };
        let is_function = |t: &Type| matches!(t.kind, Kind::Function { .. });
        let functions = btf.types().filter(|(_, t)| is_function(t));
        btf.functions = functions
            .map(|(id, t)| (btf.string(t.name).to_owned(), id))
            .collect();
        Ok(btf)
    }

    /// The string at an offset, empty when there is none, or none that could be a name.
    pub fn string(&self, offset: u32) -> &str {
        let tail = self.strings.get(offset as usize..).unwrap_or(&[]);
        let tail = tail.get(..=MAX_NAME).unwrap_or(tail);
        std::str::from_utf8(until_zero(tail, 0).unwrap_or(&[])).unwrap_or("")
    }

    /// Every type with its number, from 1.
    pub fn types(&self) -> impl Iterator<Item = (u32, &Type)> {
        (1..).zip(self.types.iter())
    }

    pub fn get(&self, id: u32) -> Option<&Type> {
        self.types.get((id as usize).checked_sub(1)?)
    }

    pub fn name(&self, id: u32) -> &str {
        self.get(id).map_or("", |t| self.string(t.name))
    }

    /// The type behind typedefs, qualifiers and tags.
    pub fn strip(&self, mut id: u32) -> u32 {
        for _ in 0..MAX_DEPTH {
            match self.get(id).map(|t| &t.kind) {
                Some(Kind::Typedef(to) | Kind::Qualifier { to, .. }) => id = *to,
                _ => return id,
            }
        }
        VOID
    }

    /// The type behind typedefs, qualifiers and tags.
    pub fn stripped(&self, id: u32) -> Option<&Kind> {
        self.get(self.strip(id)).map(|t| &t.kind)
    }

    /// The target type of a pointer.
    pub fn pointee(&self, id: u32) -> Option<u32> {
        match self.stripped(id)? {
            Kind::Pointer(to) => Some(*to),
            _ => None,
        }
    }

    /// Whether `volatile` stands before the type, possibly behind typedefs.
    pub fn is_volatile(&self, mut id: u32) -> bool {
        for _ in 0..MAX_DEPTH {
            match self.get(id).map(|t| &t.kind) {
                Some(Kind::Qualifier { volatile: true, .. }) => return true,
                Some(Kind::Typedef(to) | Kind::Qualifier { to, .. }) => id = *to,
                _ => return false,
            }
        }
        false
    }

    /// Bytes of a value of the type; `None` for types without a size.
    pub fn bytes(&self, id: u32) -> Option<u64> {
        let mut id = id;
        let mut times: u64 = 1;
        for _ in 0..MAX_DEPTH {
            let one = match self.stripped(id)? {
                Kind::Int { bytes, .. }
                | Kind::Struct { bytes, .. }
                | Kind::Enum { bytes, .. }
                | Kind::Float { bytes } => u64::from(*bytes),
                Kind::Pointer(_) => 8,
                Kind::Array { element, count } => {
                    times = times.checked_mul(u64::from(*count))?;
                    id = *element;
                    continue;
                }
                _ => return None,
            };
            return one.checked_mul(times);
        }
        None
    }

    /// The type as its author wrote it, without qualifiers: `__u32`, `struct key`, `enum mode`.
    pub fn written(&self, mut id: u32) -> String {
        for _ in 0..MAX_DEPTH {
            let Some(found) = self.get(id) else {
                return "void".to_owned();
            };
            let name = crate::error::printable(self.string(found.name));
            return match &found.kind {
                Kind::Qualifier { to, .. } => {
                    id = *to;
                    continue;
                }
                Kind::Pointer(_) => "pointer".to_owned(),
                Kind::Array { .. } => "array".to_owned(),
                Kind::Struct { union: true, .. } => format!("union {name}"),
                Kind::Struct { .. } => format!("struct {name}"),
                Kind::Enum { .. } => format!("enum {name}"),
                Kind::Forward => format!("struct {name}"),
                _ => name,
            };
        }
        "void".to_owned()
    }

    /// The variables of a section: name, type, offset as the file has it, bytes.
    pub fn variables(&self, section: &str) -> Vec<Variable<'_>> {
        let mut found = Vec::new();
        for (_, ty) in self.types() {
            let Kind::DataSection(variables) = &ty.kind else {
                continue;
            };
            if self.string(ty.name) != section {
                continue;
            }
            for entry in variables {
                let Some(variable) = self.get(entry.variable) else {
                    continue;
                };
                if let Kind::Variable { ty } = variable.kind {
                    found.push(Variable {
                        name: self.string(variable.name),
                        ty,
                        offset: entry.offset,
                    });
                }
            }
        }
        found
    }

    /// Return type and parameter types of a function type (or of the function that has one).
    pub fn signature(&self, id: u32) -> Option<(u32, &[u32])> {
        match &self.get(id)?.kind {
            Kind::Function { prototype } => match &self.get(*prototype)?.kind {
                Kind::Prototype { returns, params } => Some((*returns, params)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }
}

/// A variable of a section.
pub(crate) struct Variable<'a> {
    pub name: &'a str,
    pub ty: u32,
    /// from the start of the section
    pub offset: u32,
}
