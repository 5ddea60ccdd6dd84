//! Rules of classifiers from outside: which fields their keys have, files of rules, and rules sent as text.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use millrace_classify::{Budget, Classifier, Field, Form, Key, MOST_CLASSES, Order, Rules, Why};
use millrace_dataplane::module::Entry;
use millrace_object::types::Type;
use serde_json::{Value, json};

use crate::exposed::Exposed;
use crate::trouble::Trouble;

/// What to do about a file of rules.
pub const FORMS: &str = "docs/maps.md says how rules are written";

impl Exposed {
    /// Whether an object takes rules.
    #[must_use]
    pub fn takes_rules(&self, object: usize) -> bool {
        self.info(object).is_ok_and(|o| o.kind.holds_rules())
    }

    /// The fields of an object's key by which rules are written: members of its type, in network order where their type says
    /// so or they are bytes. Of a key without a known type, `at_0` and so on, 16 bytes each.
    ///
    /// # Errors
    /// There is no such object, or its key has too many fields.
    pub fn rule_key(&self, object: usize) -> Result<Key, Trouble> {
        let wrong = |what: String| Trouble::new("malformed", what).help(FORMS);
        let info = self.info(object).map_err(wrong)?;
        let bytes = info.key_bytes as u32;
        let mut fields = Vec::new();
        match self.key_type(info) {
            Some(ty) => flatten("", 0, ty, &mut fields),
            None => return Key::whole(bytes).map_err(|e| wrong(e.to_string())),
        }
        Key::new(bytes, fields).map_err(|e| wrong(format!("{}: {e}", info.name)))
    }

    /// Number of classes of an object.
    #[must_use]
    pub fn classes(&self, object: usize) -> u32 {
        // A module alone says it when rules are attached.
        self.classes
            .get(object)
            .copied()
            .flatten()
            .unwrap_or(MOST_CLASSES)
    }

    /// Rules in a text.
    ///
    /// # Errors
    /// The first line that is none.
    pub fn rules(&self, object: usize, from: impl BufRead) -> Result<Arc<Classifier>, Trouble> {
        let key = self.rule_key(object)?;
        let room = self.info(object).map_or(0, |o| o.capacity);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let read = Rules::read(from, &key, self.classes(object), room)
            .map_err(|e| Trouble::new("malformed", e.to_string()).help(FORMS))?;
        Ok(Arc::new(Classifier::build(read.rules, &Budget::default())))
    }

    /// The entry that a file of rules stands for.
    ///
    /// # Errors
    /// The file cannot be read, or has a line that is no rule.
    pub fn rules_of_file(&self, object: usize, path: &Path) -> Result<Entry, Trouble> {
        let name = path.display();
        let file = millrace_object::file::read(path, millrace_classify::MOST_BYTES);
        let file = file.map_err(|e| {
            Trouble::new("unreadable", format!("{name}: {e}")).help("give a file of rules")
        })?;
        let rules = self.rules(object, file.as_slice()).map_err(|t| Trouble {
            what: format!("{name}: {}", t.what),
            ..t
        })?;
        Ok(Entry {
            object,
            rules: Some(rules),
            ..Entry::default()
        })
    }
}

/// The members of a type, with the names of those around them before theirs.
fn flatten(prefix: &str, base: usize, ty: &Type, fields: &mut Vec<Field>) {
    let mut field = |bytes: usize, order| {
        let name = if prefix.is_empty() { "key" } else { prefix };
        fields.push(Field {
            name: name.to_owned(),
            offset: base as u32,
            bytes: bytes as u32,
            order,
        });
    };
    match ty {
        Type::Int { bytes: 1, .. } => field(1, Order::Network),
        Type::Int { bytes, .. } => field(*bytes, Order::Host),
        Type::Network { .. } | Type::Ipv4 | Type::Ipv6 | Type::Mac => {
            field(ty.bytes(), Order::Network);
        }
        Type::Bytes(n @ 1..=16) => field(*n, Order::Network),
        Type::Array { element, count } => match **element {
            Type::Int { bytes: 1, .. } if (1..=16).contains(count) => field(*count, Order::Network),
            _ => {
                // A key of more words is refused anyway.
                for i in 0..*count.min(&(1 + MOST_ELEMENTS)) {
                    let name = format!("{prefix}[{i}]");
                    flatten(&name, base + i * element.bytes(), element, fields);
                }
            }
        },
        Type::Struct {
            fields: members, ..
        } => {
            for m in members {
                let name = match prefix {
                    "" => m.name.clone(),
                    _ => format!("{prefix}.{}", m.name),
                };
                flatten(&name, base + m.offset, &m.ty, fields);
            }
        }
        Type::Bytes(_) => {}
    }
}

/// Elements of an array that become fields.
const MOST_ELEMENTS: usize = 16;

/// Rules in force, for people and programs. Redundant rules by the lines of their files.
#[must_use]
pub fn describe(c: &Classifier) -> Value {
    let line = |index: usize| c.rules().get(index).map_or(0, |r| r.line);
    let redundant = c.redundant().iter().map(|r| {
        let (why, by) = match r.why {
            Why::Shadowed(by) => ("shadowed", Some(line(by))),
            Why::Repeated(by) => ("repeated", Some(line(by))),
            Why::Default => ("default", None),
        };
        json!({ "line": line(r.index), "why": why, "by": by })
    });
    json!({
        "rules": c.rules().len(),
        "classes": c.rules().classes(),
        "form": c.form(),
        "table_bytes": c.table().bytes(),
        "redundant": redundant.collect::<Vec<_>>(),
        "compared": c.compared(),
    })
}

/// The same in a line.
#[must_use]
pub fn summary(name: &str, c: &Classifier) -> String {
    let lines: Vec<String> = (c.redundant().iter().take(8))
        .filter_map(|r| c.rules().get(r.index).map(|r| r.line.to_string()))
        .collect();
    let redundant = match c.redundant().len() {
        0 => "none redundant".to_owned(),
        n => {
            let more = if n > lines.len() { ", …" } else { "" };
            format!(
                "{n} cannot change a class (lines {}{more})",
                lines.join(", ")
            )
        }
    };
    let form = match c.form() {
        Form::Diagram => "a diagram",
        Form::Trees => "cut trees, as the diagram would pass its budget",
    };
    let compared = match c.compared() {
        true => "",
        false => "; not all rules were compared",
    };
    format!(
        "{name}: {} rules, {redundant}; {form} of {} KiB{compared}",
        c.rules().len(),
        c.table().bytes().div_ceil(1024)
    )
}
