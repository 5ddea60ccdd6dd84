//! The records of the type graph.

use crate::bytes::u32_at;

pub(crate) struct Type {
    /// offset of the name among the strings
    pub name: u32,
    pub kind: Kind,
}

pub(crate) enum Kind {
    Int {
        bytes: u32,
        signed: bool,
        boolean: bool,
    },
    Pointer(u32),
    Array {
        element: u32,
        count: u32,
    },
    /// also unions
    Struct {
        bytes: u32,
        members: Vec<Member>,
        union: bool,
    },
    Enum {
        bytes: u32,
        signed: bool,
        values: Vec<Enumerator>,
    },
    Forward,
    Typedef(u32),
    /// `const`, `volatile`, `restrict`, type tags
    Qualifier {
        to: u32,
        volatile: bool,
    },
    Function {
        prototype: u32,
    },
    Prototype {
        returns: u32,
        params: Vec<u32>,
    },
    Variable {
        ty: u32,
    },
    DataSection(Vec<SectionVariable>),
    Float {
        bytes: u32,
    },
    /// a note on a declaration (`btf_decl_tag`); its text is the name
    DeclTag {
        of: u32,
    },
}

pub(crate) struct Member {
    pub name: u32,
    pub ty: u32,
    /// in bits from the start of the structure
    pub offset: u32,
    /// of a bit field, its bits; else 0
    pub bits: u32,
}

pub(crate) struct Enumerator {
    pub name: u32,
    /// sign- or zero-extended
    pub value: u64,
}

pub(crate) struct SectionVariable {
    pub variable: u32,
    pub offset: u32,
}

/// Reads all records; they are numbered from 1 in the order they stand in.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Type>, String> {
    let mut types = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let number = types.len() + 1;
        let cut = || format!("ends inside type {number}");
        let word = |offset: usize| u32_at(bytes, at + offset).ok_or_else(cut);
        let (name, info, last) = (word(0)?, word(4)?, word(8)?);
        let count = (info & 0xffff) as usize;
        let flag = info >> 31 == 1;
        // What follows the three words, checked to be there before anything is allocated for it.
        let follows = |words: usize| match bytes.len() - at - 12 >= words * 4 {
            true => Ok(words * 4),
            false => Err(cut()),
        };
        let (kind, extra) = match info >> 24 & 0x1f {
            1 => {
                let encoding = word(12)? >> 24;
                let kind = Kind::Int {
                    bytes: last,
                    signed: encoding & 1 != 0,
                    boolean: encoding & 4 != 0,
                };
                (kind, 4)
            }
            2 => (Kind::Pointer(last), 0),
            3 => {
                let extra = follows(3)?;
                let (element, count) = (word(12)?, word(20)?);
                (Kind::Array { element, count }, extra)
            }
            kind @ (4 | 5) => {
                let extra = follows(count * 3)?;
                let member = |i: usize| {
                    let (name, ty) = (word(12 + i * 12)?, word(16 + i * 12)?);
                    let place = word(20 + i * 12)?;
                    // With the flag the upper byte is the width of a bit field.
                    let (offset, bits) = if flag {
                        (place & 0x00ff_ffff, place >> 24)
                    } else {
                        (place, 0)
                    };
                    Ok(Member {
                        name,
                        ty,
                        offset,
                        bits,
                    })
                };
                let members = (0..count).map(member).collect::<Result<_, String>>()?;
                let union = kind == 5;
                (
                    Kind::Struct {
                        bytes: last,
                        members,
                        union,
                    },
                    extra,
                )
            }
            6 => {
                let extra = follows(count * 2)?;
                let one = |i: usize| {
                    let (name, value) = (word(12 + i * 8)?, word(16 + i * 8)?);
                    let value = if flag {
                        i64::from(value as i32) as u64
                    } else {
                        u64::from(value)
                    };
                    Ok(Enumerator { name, value })
                };
                let values = (0..count).map(one).collect::<Result<_, String>>()?;
                (
                    Kind::Enum {
                        bytes: last,
                        signed: flag,
                        values,
                    },
                    extra,
                )
            }
            7 => (Kind::Forward, 0),
            8 => (Kind::Typedef(last), 0),
            kind @ (9 | 10 | 11 | 18) => (
                Kind::Qualifier {
                    to: last,
                    volatile: kind == 9,
                },
                0,
            ),
            12 => (Kind::Function { prototype: last }, 0),
            13 => {
                let extra = follows(count * 2)?;
                let param = |i: usize| word(16 + i * 8);
                let params = (0..count).map(param).collect::<Result<_, String>>()?;
                (
                    Kind::Prototype {
                        returns: last,
                        params,
                    },
                    extra,
                )
            }
            14 => (Kind::Variable { ty: last }, follows(1)?),
            15 => {
                let extra = follows(count * 3)?;
                let entry = |i: usize| {
                    let (variable, offset) = (word(12 + i * 12)?, word(16 + i * 12)?);
                    Ok(SectionVariable { variable, offset })
                };
                let entries = (0..count).map(entry).collect::<Result<_, String>>()?;
                (Kind::DataSection(entries), extra)
            }
            16 => (Kind::Float { bytes: last }, 0),
            17 => (Kind::DeclTag { of: last }, follows(1)?),
            19 => {
                let extra = follows(count * 3)?;
                let one = |i: usize| {
                    let (name, low) = (word(12 + i * 12)?, word(16 + i * 12)?);
                    let high = word(20 + i * 12)?;
                    let value = u64::from(high) << 32 | u64::from(low);
                    Ok(Enumerator { name, value })
                };
                let values = (0..count).map(one).collect::<Result<_, String>>()?;
                (
                    Kind::Enum {
                        bytes: last,
                        signed: flag,
                        values,
                    },
                    extra,
                )
            }
            kind => return Err(format!("has a type {number} of unknown kind {kind}")),
        };
        types.push(Type { name, kind });
        at += 12 + extra;
    }
    Ok(types)
}
