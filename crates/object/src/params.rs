//! Settings: where they are, and how text becomes their bytes.

use std::collections::HashMap;

use crate::btf::{Btf, Kind};
use crate::configuration;
use crate::elf::{Elf, SymbolKind};
use crate::error::{LoadError, printable};
use crate::globals::PARAMS;
use crate::layout::{Content, Layout};
use crate::program::{Dialect, Param, Program};

/// Most settings of a program.
const MAX_PARAMS: usize = 1024;

/// Finds the settings of a program: the variables of `.rodata.params`, and in XDP programs the
/// `const volatile` numbers of `.rodata`, which is how their authors mean it, and those of the kernel's
/// configuration.
pub(crate) fn find(
    elf: &Elf<'_>,
    btf: Option<&Btf>,
    layout: &mut Layout,
    dialect: Dialect,
) -> Result<Vec<Param>, LoadError> {
    let mut params = Vec::new();
    let (Some(btf), globals) = (btf, global_sections(elf, layout)) else {
        return Ok(params);
    };
    let mut symbols = symbols(elf);
    for section in [PARAMS, ".rodata", configuration::SECTION] {
        if section != PARAMS && dialect != Dialect::Xdp {
            continue;
        }
        for variable in btf.variables(section) {
            if section != configuration::SECTION && !btf.is_volatile(variable.ty) {
                continue;
            }
            // A variable that is listed twice is one setting.
            let Some(place) = symbols.remove(variable.name) else {
                continue;
            };
            let (index, value) = match place {
                // Static variables of different functions may share a name; then it is nobody's.
                None => continue,
                Some(place) => place,
            };
            let Some((object, bytes)) = globals.get(&index) else {
                continue;
            };
            let Some((size, signed)) = number(btf, variable.ty) else {
                if section == PARAMS {
                    return Err(LoadError::new(
                        "parameter-type",
                        format!(
                            "parameter `{}` is {}",
                            printable(variable.name),
                            btf.written(variable.ty)
                        ),
                        "use an integer, a boolean or an enumeration of at most 8 bytes",
                    )
                    .in_section(section)
                    .at_symbol(variable.name));
                }
                continue;
            };
            let end = value.checked_add(u64::from(size));
            if end.is_none_or(|end| end > u64::from(*bytes)) {
                return Err(
                    LoadError::malformed("a parameter beyond the end of its section")
                        .in_section(section)
                        .at_symbol(variable.name),
                );
            }
            if params.len() == MAX_PARAMS {
                return Err(LoadError::new(
                    "too-many-parameters",
                    format!("more than {MAX_PARAMS} parameters"),
                    "read a table from a map instead",
                )
                .in_section(section));
            }
            params.push(Param {
                name: printable(variable.name),
                object: *object,
                offset: value as u32,
                bytes: size,
                signed,
                type_name: btf.written(variable.ty),
            });
            if let Some(object) = layout.objects.get_mut(object.0) {
                object.settable = true;
            }
        }
    }
    Ok(params)
}

type Globals = HashMap<usize, (crate::program::ObjectId, u32)>;

fn global_sections(elf: &Elf<'_>, layout: &Layout) -> Globals {
    let sections = elf.sections.iter().enumerate();
    let read_only =
        sections.filter(|(_, s)| s.name.starts_with(".rodata") || s.name == configuration::SECTION);
    read_only
        .filter_map(|(index, _)| match layout.content(index) {
            Content::Global { object, bytes, .. } => Some((index, (*object, *bytes))),
            _ => None,
        })
        .collect()
}

/// Section and offset of each variable by name; `None` when several have it.
fn symbols<'a>(elf: &Elf<'a>) -> HashMap<&'a str, Option<(usize, u64)>> {
    let mut symbols = HashMap::new();
    for symbol in &elf.symbols {
        if let (SymbolKind::Object, Some(section)) = (symbol.kind, symbol.section) {
            symbols
                .entry(symbol.name)
                .and_modify(|place| *place = None)
                .or_insert(Some((section, symbol.value)));
        }
    }
    symbols
}

/// Bytes and signedness of a number's type.
fn number(btf: &Btf, ty: u32) -> Option<(u32, bool)> {
    let (bytes, signed) = match btf.stripped(ty)? {
        Kind::Int {
            bytes,
            signed,
            boolean,
        } => (*bytes, *signed && !boolean),
        Kind::Enum { bytes, signed, .. } => (*bytes, *signed),
        _ => return None,
    };
    matches!(bytes, 1 | 2 | 4 | 8).then_some((bytes, signed))
}

/// Why a setting was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParamError {
    /// the program has no parameter of this name
    #[error("there is no parameter `{name}`; there {exist}")]
    Unknown {
        /// the name that was asked for
        name: String,
        /// those that exist, e.g. `are limit, timeout`
        exist: String,
    },
    /// the text is not a number
    #[error(
        "`{text}` is not a number: give `{name}` ({type_name}) a decimal or 0x… number, true or false"
    )]
    NotANumber {
        /// the parameter
        name: String,
        /// the text
        text: String,
        /// the parameter's type
        type_name: String,
    },
    /// the number does not fit the parameter's type
    #[error("{text} is out of range: `{name}` ({type_name}) takes {min} to {max}")]
    OutOfRange {
        /// the parameter
        name: String,
        /// the text
        text: String,
        /// the parameter's type
        type_name: String,
        /// smallest value
        min: i128,
        /// largest value
        max: i128,
    },
    /// an option of a state object's declaration cannot be so
    #[error("{name}: {reason}")]
    Option {
        /// OBJECT.OPTION
        name: String,
        /// why
        reason: String,
    },
}

/// The type of parameters that are IPv4 addresses (include/millrace/ipv4.h).
const IPV4_ADDRESS: &str = "ipv4_address";

/// A decimal or hexadecimal number with an optional sign, or `true` or `false`; for a parameter of type
/// `ipv4_address`, also an address in dotted notation.
fn parse(text: &str, type_name: &str) -> Option<i128> {
    match text {
        "true" => return Some(1),
        "false" => return Some(0),
        _ => {}
    }
    if type_name == IPV4_ADDRESS
        && let Ok(address) = text.parse::<std::net::Ipv4Addr>()
    {
        return Some(i128::from(address.to_bits()));
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        Some(rest) => (rest, 16),
        None => (digits, 10),
    };
    // `from_str_radix` would take a second sign.
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -value } else { value })
}

impl Program {
    /// Sets a parameter before start: `text` is a decimal or 0x… number, possibly negative, `true` or
    /// `false`, or for an `ipv4_address` (a number in host order) also 192.0.2.1. It changes the initial bytes of the object that holds the parameter.
    ///
    /// # Errors
    /// No such parameter, not a number, or beyond the range of the parameter's type.
    pub fn set_param(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        // OBJECT.OPTION: a parameter's name has no point.
        if let Some((object, option)) = name.rsplit_once('.') {
            return self.set_option(object, option, text);
        }
        let Some(param) = self.params.iter().find(|p| p.name == name) else {
            let names: Vec<&str> = self.params.iter().map(|p| p.name.as_str()).collect();
            let exist = match names.as_slice() {
                [] => "are none".to_owned(),
                _ => format!("are {}", names.join(", ")),
            };
            return Err(ParamError::Unknown {
                name: name.to_owned(),
                exist,
            });
        };
        let value = param.encoded(text)?;
        let start = param.offset as usize;
        let initial = self
            .objects
            .get_mut(param.object.0)
            .and_then(|o| o.initial.as_mut());
        // `find` saw that the parameter lies in its section.
        if let Some(place) = initial.and_then(|i| i.get_mut(start..start + value.len())) {
            place.copy_from_slice(&value);
        }
        Ok(())
    }
}

impl Param {
    /// The bits of its value at start, as the program has them now; 0 where its object has no content.
    #[must_use]
    pub fn declared(&self, program: &Program) -> u64 {
        let object = program.objects.get(self.object.0);
        let initial = object.and_then(|o| o.initial.as_ref());
        let start = self.offset as usize;
        let bytes = initial.and_then(|i| i.get(start..start + self.bytes as usize));
        bytes.map_or(0, |b| {
            b.iter()
                .take(8)
                .rev()
                .fold(0, |n, b| n << 8 | u64::from(*b))
        })
    }

    /// The bytes of a value, as [`Program::set_param`] takes it: `bytes` of them.
    ///
    /// # Errors
    /// Not a number, or beyond the range of the parameter's type.
    pub fn encoded(&self, text: &str) -> Result<Vec<u8>, ParamError> {
        let value = parse(text.trim(), &self.type_name).ok_or_else(|| ParamError::NotANumber {
            name: self.name.clone(),
            text: text.to_owned(),
            type_name: self.type_name.clone(),
        })?;
        let (min, max) = self.range();
        if !(min..=max).contains(&value) {
            return Err(ParamError::OutOfRange {
                name: self.name.clone(),
                text: text.to_owned(),
                type_name: self.type_name.clone(),
                min,
                max,
            });
        }
        let mut bytes = value.to_le_bytes().to_vec();
        bytes.truncate(self.bytes as usize);
        Ok(bytes)
    }

    /// The value that some bytes are, least significant first; at most eight of them.
    #[must_use]
    pub fn decoded(&self, bytes: &[u8]) -> i128 {
        let value = bytes
            .iter()
            .rev()
            .fold(0_i128, |n, b| n << 8 | i128::from(*b));
        let (_, max) = self.range();
        match self.signed && value > max {
            true => value - (1 << (8 * bytes.len().min(8))),
            false => value,
        }
    }

    /// A value of this parameter as a person reads it, and [`Program::set_param`] takes it.
    #[must_use]
    pub fn written(&self, value: i128) -> String {
        match u32::try_from(value) {
            Ok(address) if self.type_name == IPV4_ADDRESS => {
                std::net::Ipv4Addr::from_bits(address).to_string()
            }
            _ => value.to_string(),
        }
    }

    /// The smallest and the largest value of the parameter's type.
    #[must_use]
    pub fn range(&self) -> (i128, i128) {
        let bits = self.bytes.min(8) * 8;
        if matches!(self.type_name.as_str(), "_Bool" | "bool") {
            (0, 1)
        } else if self.signed {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_in_dotted_notation() {
        assert_eq!(parse("192.0.2.1", IPV4_ADDRESS), Some(0xc000_0201));
        assert_eq!(parse("0xc0000201", IPV4_ADDRESS), Some(0xc000_0201));
        assert_eq!(parse("192.0.2", IPV4_ADDRESS), None);
        assert_eq!(parse("192.0.2.1", "__u32"), None);
        let param = Param {
            name: "public_address".into(),
            object: crate::program::ObjectId(0),
            offset: 0,
            bytes: 4,
            signed: false,
            type_name: IPV4_ADDRESS.into(),
        };
        assert_eq!(param.written(0xc000_0201), "192.0.2.1");
    }
}
