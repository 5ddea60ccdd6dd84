//! Options of a declaration by their names, so that they can be set without a change of the source.

use crate::params::ParamError;
use crate::program::{Program, StateObject};
use crate::state::distributed;

/// An option that a declaration may have.
pub struct ObjectOption {
    /// its name, as in a declaration
    pub name: &'static str,
    /// whether its value is a time, ns
    pub time: bool,
    /// its value
    pub get: fn(&StateObject) -> u64,
    /// sets it, as much of the number as it has room for
    set: fn(&mut StateObject, u64),
}

const fn option(
    name: &'static str,
    time: bool,
    get: fn(&StateObject) -> u64,
    set: fn(&mut StateObject, u64),
) -> ObjectOption {
    ObjectOption {
        name,
        time,
        get,
        set,
    }
}

/// All of them. What an object's kind has no use for its own check refuses.
pub const OPTIONS: &[ObjectOption] = &[
    option("capacity", false, |o| o.capacity, |o, n| o.capacity = n),
    option(
        "expire_after",
        true,
        |o| o.expire_after,
        |o, n| o.expire_after = n,
    ),
    option("staleness", true, |o| o.staleness, |o, n| o.staleness = n),
    option("first", false, |o| o.first, |o, n| o.first = n),
    option(
        "rows",
        false,
        |o| u64::from(o.rows),
        |o, n| o.rows = n as u32,
    ),
    option("window", true, |o| o.window, |o, n| o.window = n),
];

/// A number, or a time with its unit: `10`, `1ms`, `2s`, `500us`, `7ns`.
#[must_use]
pub fn number(text: &str, time: bool) -> Option<u64> {
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    if time {
        for (unit, ns) in units {
            if let Some(digits) = text.strip_suffix(unit) {
                return digits.parse::<u64>().ok()?.checked_mul(ns);
            }
        }
    }
    text.parse().ok()
}

impl Program {
    /// Sets an option of a state object's declaration.
    ///
    /// # Errors
    /// There is no such object or option, or the object's kind refuses the value.
    pub fn set_option(&mut self, name: &str, option: &str, text: &str) -> Result<(), ParamError> {
        let refused = |reason: String| ParamError::Option {
            name: format!("{name}.{option}"),
            reason,
        };
        let known: Vec<String> = self.objects.iter().map(|o| o.name.clone()).collect();
        let object = self.objects.iter_mut().find(|o| o.name == name);
        let object = object.ok_or_else(|| {
            refused(format!(
                "there is no such object; there are {}",
                known.join(", ")
            ))
        })?;
        let found = OPTIONS.iter().find(|o| o.name == option);
        let found = found.ok_or_else(|| {
            let names: Vec<&str> = OPTIONS.iter().map(|o| o.name).collect();
            refused(format!(
                "there is no such option; there are {}",
                names.join(", ")
            ))
        })?;
        let value = number(text, found.time).ok_or_else(|| {
            let unit = if found.time {
                ", or a time as in 1ms"
            } else {
                ""
            };
            refused(format!("`{text}` is not a number{unit}"))
        })?;
        if object.initial.is_some() {
            return Err(refused("the variables of a program have no options".into()));
        }
        let mut changed = object.clone();
        (found.set)(&mut changed, value);
        if (found.get)(&changed) != value {
            return Err(refused(format!("{value} is too large")));
        }
        // What a kind ignores it has not: a declaration with it would be refused as well.
        let has = (found.get)(object) != 0 || option == "staleness";
        if !has && option != "expire_after" {
            return Err(refused(format!("a {} has none", object.kind.name)));
        }
        if option == "staleness" && *object.kind != distributed::KIND {
            return Err(refused(
                "it is of numbers that packets add to (DISTRIBUTED)".into(),
            ));
        }
        (object.kind.validate)(&changed).map_err(refused)?;
        *object = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_where_they_are_times() {
        assert_eq!(number("2s", true), Some(2_000_000_000));
        assert_eq!(number("500us", true), Some(500_000));
        assert_eq!(number("7", true), Some(7));
        assert_eq!(number("7ms", false), None);
        assert_eq!(number("99999999999999999999s", true), None);
        assert_eq!(number("-1", false), None);
    }
}
