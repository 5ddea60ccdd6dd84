//! Names of the symbols of state, taken apart.

/// Meaning of a symbol of state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
