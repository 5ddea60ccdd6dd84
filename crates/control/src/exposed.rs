//! A function as it is seen from outside: its objects, and how their entries are written.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use millrace_dataplane::Module;
use millrace_dataplane::module::{Entry, Keeping, ObjectInfo};
use millrace_dataplane::share::Share;
use millrace_object::program::{Param, Program, StateObject};
use millrace_object::state::{classifier, lpm, lpm_trie};
use millrace_object::types::{EntryTypes, Type};
use millrace_place::{Held, Owning};
use millrace_state::digest;
use serde_json::{Value, json};

use crate::nested;
use crate::prefix;
use crate::trouble::Trouble;
use crate::value;

/// Facts about a function besides its code.
pub struct Exposed {
    /// of the function
    pub name: String,
    /// its state objects, in the module's order, and whether entries can be set in them
    pub objects: Vec<(ObjectInfo, bool)>,
    /// by object, whether its entries can be listed
    pub lists: Vec<bool>,
    /// types of entries, by object; empty for a module alone
    pub types: BTreeMap<String, EntryTypes>,
    /// names of the packet entries, in order; a program array holds their numbers from 1
    pub programs: Vec<String>,
    /// settings
    pub params: Vec<Param>,
    /// how each object stands on the workers, in the module's order
    pub shares: Vec<Share>,
    /// which worker has an entry of what is divided over them, where keys tell
    pub owning: Option<Arc<dyn Owning>>,
    /// what can be kept of each object, in the module's order
    pub keeping: Vec<Keeping>,
    /// what the content of each object depends on besides its sizes; empty where on nothing
    pub details: Vec<String>,
    /// number of classes of each object that has any, in the module's order; empty for a module alone
    pub classes: Vec<Option<u32>>,
    /// it was linked from several elements: names of objects and parameters are `ELEMENT:NAME`
    pub linked: bool,
}

/// The share of an object that there is not.
static COPIED: LazyLock<Share> = LazyLock::new(Share::default);

impl Exposed {
    /// A module, and the program that it was made from.
    #[must_use]
    pub fn new(
        name: &str,
        module: &Module,
        program: Option<&Program>,
        types: BTreeMap<String, EntryTypes>,
    ) -> Self {
        let programs = program.map_or_else(Vec::new, |p| {
            let functions = p
                .entries
                .iter()
                .filter_map(|e| p.functions.get(e.function.0));
            functions.map(|f| f.name.clone()).collect()
        });
        let params = program.map_or_else(Vec::new, |p| p.params.clone());
        let objects = module.objects().iter().enumerate();
        Self {
            name: name.to_owned(),
            objects: objects
                .map(|(index, info)| (info.clone(), module.settable(index)))
                .collect(),
            lists: (0..module.objects().len())
                .map(|o| module.lists(o))
                .collect(),
            programs,
            params,
            shares: { module.objects().iter().enumerate() }
                .map(|(o, info)| {
                    let held = match module.is_shared(o) {
                        true => Held::Locked,
                        false => Held::Copied,
                    };
                    Share::new(held, info.capacity)
                })
                .collect(),
            owning: None,
            keeping: (0..module.objects().len())
                .map(|o| module.keeping(o))
                .collect(),
            classes: program.map_or_else(Vec::new, |p| {
                let of = |o: &StateObject| o.kind.holds_rules().then(|| classifier::classes(o));
                p.objects.iter().map(of).collect()
            }),
            details: (0..module.objects().len())
                .map(|o| match module.takes_rules(o) {
                    true => key_detail(module, &types, o),
                    false => detail(module, program, o),
                })
                .collect(),
            types,
            linked: false,
        }
    }

    /// What can be kept of an object.
    #[must_use]
    pub fn keeping(&self, object: usize) -> Keeping {
        let keeping = self.keeping.get(object);
        keeping.copied().unwrap_or(Keeping::Nothing)
    }

    /// What the content of an object depends on besides its sizes.
    #[must_use]
    pub fn detail(&self, object: usize) -> &str {
        self.details.get(object).map_or("", String::as_str)
    }

    /// The objects that have entries: all but sections of globals.
    pub fn objects(&self) -> impl Iterator<Item = (usize, &ObjectInfo)> {
        let objects = self.objects.iter().map(|(info, _)| info).enumerate();
        objects.filter(|(_, o)| !o.kind.is_global())
    }

    /// Whether entries can be set in an object.
    #[must_use]
    pub fn takes_entries(&self, object: usize) -> bool {
        self.objects.get(object).is_some_and(|(_, takes)| *takes)
    }

    /// Whether the entries of an object can be listed.
    #[must_use]
    pub fn lists(&self, object: usize) -> bool {
        self.lists.get(object).copied().unwrap_or(false)
    }

    /// How an object stands on the workers.
    #[must_use]
    pub fn share(&self, object: usize) -> &Share {
        self.shares.get(object).unwrap_or(&COPIED)
    }

    /// Whether each worker has an element for every index of an object.
    #[must_use]
    pub fn indexed(&self, object: usize) -> bool {
        self.info(object).is_ok_and(|o| o.kind.has_all())
    }

    /// Whether entries can be set in an object, listed, and set again from what is listed.
    #[must_use]
    pub fn keeps(&self, object: usize) -> bool {
        let maps = self.info(object).is_ok_and(|o| o.kind.holds_maps());
        self.takes_entries(object) && self.lists(object) && !maps
    }

    /// An object by its name.
    ///
    /// # Errors
    /// There is none.
    pub fn index(&self, name: &str) -> Result<usize, Trouble> {
        let found = self.objects.iter().position(|(o, _)| o.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.objects().map(|(_, o)| o.name.as_str()).collect();
            let help = match names.as_slice() {
                [] => "the function has no state objects".into(),
                names => format!("the function has {}", names.join(", ")),
            };
            Trouble::new("no-such-object", "there is no such object").help(help)
        })
    }

    /// An object by its name, if entries can be set in it.
    ///
    /// # Errors
    /// There is none, or it has nothing to set.
    pub fn settable(&self, name: &str) -> Result<usize, Trouble> {
        let index = self.index(name)?;
        if self.takes_entries(index) {
            return Ok(index);
        }
        if self.takes_rules(index) {
            return Err(Trouble::new(
                "not-settable",
                "a classifier takes rules, all of them at once",
            )
            .help("write them into a file: --map NAME=FILE, or `millrace map import NAME FILE`"));
        }
        Err(
            Trouble::new("not-settable", "this kind of object takes no entries")
                .help("name a map, a vector or an array"),
        )
    }

    /// The entries that an entry somebody wrote stands for: one, or in a map of maps those of the map that is
    /// its value as well. The key is left out where the object has none.
    ///
    /// # Errors
    /// The key or the value is not of the object's size, or nothing that can be read.
    pub fn entries(
        &self,
        object: usize,
        key: Option<&Value>,
        value: &Value,
    ) -> Result<Vec<Entry>, String> {
        let info = self.info(object)?;
        let key = match key {
            Some(key) => self.key(object, key).map_err(|e| format!("key: {e}"))?,
            None => self.plain_key(None, info.key_bytes)?,
        };
        if info.kind.holds_maps() {
            return nested::entries(self, object, &key, value);
        }
        let list = value.as_array().and_then(|l| l.first());
        let value = self.value(object, value).map_err(|e| {
            if list.is_some_and(|first| first.get("value").is_some()) {
                "value: entries, where only a map of maps has any".to_owned()
            } else {
                format!("value: {e}")
            }
        })?;
        Ok(vec![Entry::new(object, key, value)])
    }

    /// A key of which no type is known.
    pub(crate) fn plain_key(&self, key: Option<&Value>, bytes: usize) -> Result<Vec<u8>, String> {
        match key {
            Some(key) => value::read(key, bytes, None).map_err(|e| format!("key: {e}")),
            None if bytes == 0 => Ok(Vec::new()),
            None => Err("there is no \"key\"".into()),
        }
    }

    /// A key from what somebody wrote.
    ///
    /// # Errors
    /// It is not of the object's size, or nothing that can be read.
    pub fn key(&self, object: usize, key: &Value) -> Result<Vec<u8>, String> {
        let info = self.info(object)?;
        if *info.kind == lpm::KIND {
            return prefix::read(key, info.key_bytes, self.key_type(info));
        }
        let prefix = key.as_str().filter(|_| *info.kind == lpm_trie::KIND);
        if let Some(key) = prefix.and_then(value::prefix)
            && key.len() == info.key_bytes
        {
            return Ok(key);
        }
        value::read(key, info.key_bytes, self.key_type(info))
    }

    fn value(&self, object: usize, text: &Value) -> Result<Vec<u8>, String> {
        let info = self.info(object)?;
        // In an array of programs a program's name stands for its number, from 1.
        if info.kind.holds_programs()
            && let Some(name) = text.as_str()
            && let Some(at) = self.programs.iter().position(|p| p == name)
        {
            return value::read(&Value::from(at + 1), info.value_bytes, None);
        }
        value::read(text, info.value_bytes, self.value_type(info))
    }

    /// A key as people write it.
    #[must_use]
    pub fn show_key(&self, object: usize, key: &[u8]) -> Value {
        let Ok(info) = self.info(object) else {
            return value::show(key, None);
        };
        if *info.kind == lpm::KIND
            && key.len() == info.control_key_bytes()
            && let Some(prefix) = prefix::show(key)
        {
            return Value::String(prefix);
        }
        let prefix = Some(key).filter(|_| *info.kind == lpm_trie::KIND);
        match prefix.and_then(value::show_prefix) {
            Some(prefix) => Value::String(prefix),
            None => value::show(key, self.key_type(info)),
        }
    }

    /// A value as people write it.
    #[must_use]
    pub fn show_value(&self, object: usize, bytes: &[u8]) -> Value {
        let Ok(info) = self.info(object) else {
            return value::show(bytes, None);
        };
        let number = value::show(bytes, None);
        let program = number.as_u64().filter(|_| info.kind.holds_programs());
        let name =
            program.and_then(|n| self.programs.get(usize::try_from(n).ok()?.checked_sub(1)?));
        match name {
            Some(name) => Value::String(name.clone()),
            None => value::show(bytes, self.value_type(info)),
        }
    }

    /// Key and value as one text each, as a CSV file has them.
    #[must_use]
    pub fn words(&self, object: usize, key: &[u8], bytes: &[u8]) -> (String, String) {
        let text = |value: Value, bytes: &[u8], ty: Option<&Type>| match value {
            Value::String(text) => text,
            _ => value::words(bytes, ty),
        };
        let info = self.info(object).ok();
        (
            text(
                self.show_key(object, key),
                key,
                info.and_then(|i| self.key_type(i)),
            ),
            text(
                self.show_value(object, bytes),
                bytes,
                info.and_then(|i| self.value_type(i)),
            ),
        )
    }

    /// Description of an object; `entries` of all workers together and of each, where that was counted.
    #[must_use]
    pub fn describe(&self, object: usize, entries: Option<u64>, each: &[Option<u64>]) -> Value {
        let Ok(info) = self.info(object) else {
            return Value::Null;
        };
        let share = self.share(object);
        let whole = match share.divided() {
            true => share.whole,
            false => info.capacity,
        };
        let mut described = json!({
            "name": info.name,
            "kind": info.kind,
            "key_bytes": info.key_bytes,
            "value_bytes": info.value_bytes,
            "capacity": whole,
            "bytes": info.bytes,
            "entries": entries,
            "settable": self.takes_entries(object),
            "pinned": self.types.get(&info.name).is_some_and(|t| t.pinned),
            "key": self.key_type(info).map(fields),
            "value": self.value_type(info).map(fields),
        });
        if share.divided()
            && !self.indexed(object)
            && let Some(members) = described.as_object_mut()
        {
            members.insert("by_worker".into(), json!(each));
        }
        described
    }

    /// The module's description of an object.
    ///
    /// # Errors
    /// There is no such object.
    pub fn info(&self, object: usize) -> Result<&ObjectInfo, String> {
        let info = self.objects.get(object).map(|(info, _)| info);
        info.ok_or_else(|| "there is no such object".into())
    }

    pub(crate) fn key_type(&self, info: &ObjectInfo) -> Option<&Type> {
        let ty = self.types.get(&info.name)?.key.as_ref();
        ty.filter(|t| t.bytes() == info.key_bytes)
    }

    fn value_type(&self, info: &ObjectInfo) -> Option<&Type> {
        let ty = self.types.get(&info.name)?.value.as_ref();
        ty.filter(|t| t.bytes() == info.value_bytes)
    }
}

/// What the content of an object depends on besides its sizes: where variables lie, which the compiler decides; functions
/// and programs, which it names by their numbers.
fn detail(module: &Module, program: Option<&Program>, object: usize) -> String {
    let Some(program) = program else {
        let info = module.objects().get(object);
        let numbered = info.is_some_and(|o| o.kind.is_global() || o.kind.holds_programs());
        return match numbered {
            true => format!("module {}", file_digest(module.path())),
            false => String::new(),
        };
    };
    let Some(declared) = program.objects.get(object) else {
        return String::new();
    };
    let names = |of: &mut dyn Iterator<Item = &String>| {
        of.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    if declared.kind.is_global() {
        let code = program.functions.iter().map(|f| format!("{:?}", f.insns));
        return format!("code {}", digest(code.collect::<String>().as_bytes()));
    }
    if declared.kind.holds_programs() {
        let entries = program.entries.iter();
        let mut functions = entries.filter_map(|e| program.functions.get(e.function.0));
        return format!(
            "programs {}",
            names(&mut functions.by_ref().map(|f| &f.name))
        );
    }
    match declared.timer {
        Some(_) => format!(
            "functions {}",
            names(&mut program.functions.iter().map(|f| &f.name))
        ),
        None => String::new(),
    }
}

/// Rules are of fields, which the key's type says.
fn key_detail(module: &Module, types: &BTreeMap<String, EntryTypes>, object: usize) -> String {
    let info = module.objects().get(object);
    let key = info.and_then(|o| types.get(&o.name)?.key.as_ref());
    key.map_or_else(String::new, |key| format!("key {}", fields(key)))
}

fn file_digest(path: &std::path::Path) -> String {
    std::fs::read(path).map_or_else(|e| e.to_string(), |bytes| digest(&bytes))
}

/// A type in words, or the fields of a structure.
fn fields(ty: &Type) -> Value {
    match ty {
        Type::Int { bytes, signed } => {
            let sign = if *signed { "s" } else { "u" };
            json!(format!("{sign}{}", bytes * 8))
        }
        Type::Network { bytes } => json!(format!("be{}", bytes * 8)),
        Type::Ipv4 => json!("ipv4"),
        Type::Ipv6 => json!("ipv6"),
        Type::Mac => json!("mac"),
        Type::Bytes(n) => json!(format!("bytes:{n}")),
        Type::Array { element, count } => json!([fields(element), count]),
        Type::Struct {
            fields: members, ..
        } => members
            .iter()
            .map(|f| (f.name.clone(), fields(&f.ty)))
            .collect(),
    }
}
