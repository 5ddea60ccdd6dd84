//! `millrace/state`: one record a state object, `{ K *key; V *value; struct millrace_object; }`
//! (include/millrace/object.h).

use crate::bytes::{u32_at, u64_at};
use crate::elf::{Elf, SymbolKind};
use crate::error::{LoadError, printable};
use crate::layout::{Declaration, admits, blank, too_many};
use crate::program::StateObject;
use crate::state;

/// The section's name.
pub(crate) const SECTION: &str = "millrace/state";

/// Rules that classifiers begin with: a variable `millrace_rules_NAME` for each, in the form in which rules are saved.
const RULES: &str = "millrace/rules";
const RULES_OF: &str = "millrace_rules_";

/// Bytes of a record: two pointers, four 32-bit fields, the options.
const RECORD: u64 = 72;
/// Where the staleness is that newer headers declare behind it.
const STALENESS: u64 = 72;

/// Reads every record: each is a variable of the section.
pub(crate) fn read(elf: &Elf<'_>, index: usize) -> Result<Vec<Declaration>, LoadError> {
    let section = elf.section(index)?;
    let mut declarations = Vec::new();
    for symbol in &elf.symbols {
        if symbol.section != Some(index) || symbol.kind != SymbolKind::Object {
            continue;
        }
        let place = |e: LoadError| e.in_section(SECTION).at_symbol(symbol.name);
        // A type of the author's that is aligned to more than 8 bytes pads the variable at its end.
        if symbol.size < RECORD {
            return Err(place(LoadError::new(
                "state-declaration",
                format!("a record of {} bytes instead of {RECORD}", symbol.size),
                "declare it with MAP, VECTOR and their kin; compile with the headers of this release",
            )));
        }
        let end = symbol.value.checked_add(RECORD);
        let bytes = end.and_then(|end| section.data.get(symbol.value as usize..end as usize));
        let (Some(end), Some(bytes)) = (end, bytes) else {
            return Err(place(LoadError::malformed(
                "a record beyond the end of its section",
            )));
        };
        let mut object = record(symbol.name, bytes).map_err(place)?;
        if symbol.size >= STALENESS + 8 {
            let at = symbol.value.saturating_add(STALENESS) as usize;
            object.staleness = u64_at(section.data, at)
                .ok_or_else(|| place(LoadError::malformed("a record is cut short")))?;
            distributed(&object).map_err(place)?;
        }
        if !admits(declarations.len() + 1) {
            return Err(too_many().in_section(SECTION));
        }
        declarations.push(Declaration {
            start: symbol.value,
            end,
            values: None,
            id: None,
            inner: None,
            object: Ok(object),
        });
    }
    if declarations.is_empty() {
        return Err(LoadError::new(
            "state-declaration",
            "no symbol names the records of state objects",
            "do not strip the object file",
        )
        .in_section(SECTION));
    }
    rules(elf, &mut declarations)?;
    Ok(declarations)
}

/// Gives classifiers the rules that stand beside them.
fn rules(elf: &Elf<'_>, declarations: &mut [Declaration]) -> Result<(), LoadError> {
    let Some((index, section)) = elf.section_named(RULES) else {
        return Ok(());
    };
    for symbol in &elf.symbols {
        if symbol.section != Some(index) || symbol.kind != SymbolKind::Object {
            continue;
        }
        let place = |e: LoadError| e.in_section(RULES).at_symbol(symbol.name);
        let object = symbol.name.strip_prefix(RULES_OF).and_then(|name| {
            let mut objects = declarations
                .iter_mut()
                .filter_map(|d| d.object.as_mut().ok());
            objects.find(|o| o.name == name && o.kind.holds_rules())
        });
        let Some(object) = object else {
            return Err(place(LoadError::new(
                "state-declaration",
                "rules of no classifier",
                format!("name them {RULES_OF} and the classifier's name"),
            )));
        };
        let end = symbol.value.checked_add(symbol.size);
        let bytes = end.and_then(|end| section.data.get(symbol.value as usize..end as usize));
        let bytes = bytes
            .ok_or_else(|| place(LoadError::malformed("rules beyond the end of the section")))?;
        object.rules = Some(bytes.to_vec());
    }
    Ok(())
}

/// Refuses a bound on the staleness of what is no `DISTRIBUTED`.
fn distributed(object: &StateObject) -> Result<(), LoadError> {
    let is = *object.kind == state::distributed::KIND;
    if is || object.staleness == 0 {
        return Ok(());
    }
    Err(LoadError::new(
        "state-declaration",
        format!("a {} takes no .staleness", object.kind.name),
        "leave it out, or declare numbers that packets add to with DISTRIBUTED",
    ))
}

fn record(name: &str, bytes: &[u8]) -> Result<StateObject, LoadError> {
    let cut = || LoadError::malformed("a record is cut short");
    let word = |at| u32_at(bytes, at).ok_or_else(cut);
    let long = |at| u64_at(bytes, at).ok_or_else(cut);
    let number = word(16)?;
    let kind = state::by_handler_kind(number).ok_or_else(|| {
        let kinds = state::KINDS.iter().filter(|k| k.handler_kind.is_some());
        let exist = kinds.map(|k| k.name).collect::<Vec<_>>().join(", ");
        LoadError::new(
            "unknown-state-kind",
            format!("`{}` is of the unknown kind {number}", printable(name)),
            format!("there are {exist}"),
        )
    })?;
    for (at, what) in [(28, "the record"), (68, "its options")] {
        if word(at)? != 0 {
            return Err(LoadError::new(
                "state-declaration",
                format!("the reserved field of {what} is not zero"),
                "compile with the headers of this release",
            ));
        }
    }
    let mut object = blank(name, kind);
    object.key_bytes = word(20)?;
    object.value_bytes = word(24)?;
    object.capacity = long(32)?;
    object.expire_after = long(40)?;
    object.first = long(48)?;
    object.window = long(56)?;
    object.rows = word(64)?;
    if kind.holds_rules() {
        // What the author leaves out.
        object.capacity = state::classifier::room(&object);
        object.rows = state::classifier::classes(&object);
    }
    Ok(object)
}
