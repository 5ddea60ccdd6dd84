//! Roles of an object's sections, and the state objects found in them.

use std::collections::{BTreeMap, HashSet};

use crate::btf::Btf;
use crate::elf::Elf;
use crate::error::LoadError;
use crate::helper::TIMER_FIRED;
use crate::program::{FunctionId, Nesting, ObjectId, StateObject};
use crate::state::{StateKind, limits};
use crate::{configuration, globals, handlers, maps};

/// Meaning of an address into a section.
pub(crate) enum Content {
    /// functions
    Code,
    /// variables: the section is one state object
    Global {
        object: ObjectId,
        bytes: u32,
        /// its initial values contain addresses, so they are not known
        holds_pointers: bool,
    },
    /// declarations of state objects, ascending
    Objects(Vec<Record>),
    /// names of drop reasons: where each begins, and its index
    Reasons(BTreeMap<u64, u32>),
    /// nothing a program may address
    Other,
}

/// A declaration of a state object at bytes `start..end` of its section.
pub(crate) struct Record {
    pub start: u64,
    pub end: u64,
    /// where the values stand that it has at start, programs or maps, if any; in bytes of the section
    pub values: Option<u64>,
    /// iproute2's number for it, by which sections of programs name a program array
    pub id: Option<u32>,
    /// index and place in the section of a map that is a value at start, where it is not said by `values`
    pub holds: Option<(u32, u64)>,
    /// or why there is none: what no program uses may be declared as it likes
    pub object: Result<ObjectId, LoadError>,
}

/// Most state objects of a program; the kernel admits 64.
const MAX_OBJECTS: usize = 1024;

/// Sections that there is one of.
const DECLARING: [&str; 3] = [
    maps::declared::SECTION,
    handlers::state::SECTION,
    handlers::names::REASONS,
];

/// The sections of one object file.
pub(crate) struct Layout {
    /// by section index
    contents: Vec<Content>,
    pub objects: Vec<StateObject>,
    pub reasons: Vec<String>,
}

/// A declaration as its section's reader found it.
pub(crate) struct Declaration {
    pub start: u64,
    pub end: u64,
    /// where the values stand that it has at start, programs or maps, if any; in bytes of the section
    pub values: Option<u64>,
    /// iproute2's number for it
    pub id: Option<u32>,
    /// what is known of maps that are its values
    pub inner: Option<Inner>,
    pub object: Result<StateObject, LoadError>,
}

/// Of a map of maps: what its values are like.
pub(crate) struct Inner {
    pub shape: StateObject,
    /// index and place in the section of one that is there at start, where `values` does not say it
    pub holds: Option<(u32, u64)>,
}

/// The name of the object that says what the maps in a map are like, by that one's.
fn inner_name(holder: &str) -> String {
    format!("{holder}.maps")
}

impl Layout {
    /// `capacities` are for maps whose authors left theirs open, see [`open_capacity`].
    pub fn of(
        elf: &Elf<'_>,
        btf: Option<&Btf>,
        capacities: &[(String, u64)],
    ) -> Result<Layout, LoadError> {
        let mut layout = Layout {
            contents: Vec::with_capacity(elf.sections.len()),
            objects: Vec::new(),
            reasons: vec!["dropped".to_owned()],
        };
        let mut globals_left = globals::MAX_BYTES;
        let mut seen = HashSet::new();
        for (index, section) in elf.sections.iter().enumerate() {
            if DECLARING.contains(&section.name) && !seen.insert(section.name) {
                return Err(LoadError::malformed("there are two sections of this name")
                    .in_section(section.name));
            }
            let content = if section.executable {
                Content::Code
            } else if !section.loaded || section.size == 0 {
                Content::Other
            } else if section.name == maps::declared::SECTION {
                let declarations = maps::declared::read(elf, index, btf)?;
                layout
                    .declare(open(declarations, capacities))
                    .map_err(|e| e.in_section(section.name))?
            } else if maps::legacy::is_section(section.name) {
                let place = |e: LoadError| e.in_section(section.name);
                let declarations = maps::legacy::read(elf, index).map_err(place)?;
                layout
                    .declare(open(declarations, capacities))
                    .map_err(place)?
            } else if section.name == handlers::state::SECTION {
                let declarations = handlers::state::read(elf, index)?;
                let place = |e: LoadError| e.in_section(section.name);
                let content = layout.declare(declarations).map_err(place)?;
                if let Content::Objects(records) = &content {
                    // No handler is declared without being meant.
                    let refused = records.iter().find_map(|r| r.object.as_ref().err());
                    if let Some(refused) = refused {
                        return Err(place(refused.clone()));
                    }
                }
                content
            } else if section.name == handlers::names::REASONS {
                let (names, starts) = handlers::names::reasons(section)?;
                layout.reasons = names;
                Content::Reasons(starts)
            } else if globals::is_section(section.name) {
                let mut object = globals::read(section, &mut globals_left)?;
                if let (configuration::SECTION, Some(btf), Some(bytes)) =
                    (section.name, btf, object.initial.as_mut())
                {
                    configuration::fill(elf, btf, bytes);
                }
                let bytes = object.value_bytes;
                let holds_pointers = !section.relocations.is_empty();
                let object = layout.add(object).map_err(|e| e.in_section(section.name))?;
                Content::Global {
                    object,
                    bytes,
                    holds_pointers,
                }
            } else {
                Content::Other
            };
            layout.contents.push(content);
        }
        Ok(layout)
    }

    /// Every record of a section that declares maps, with the section's index.
    pub fn records(&self) -> impl Iterator<Item = (usize, &Record)> {
        let sections = self.contents.iter().enumerate();
        sections.flat_map(|(section, content)| {
            let records = match content {
                Content::Objects(records) => records.as_slice(),
                _ => &[],
            };
            records.iter().map(move |record| (section, record))
        })
    }

    pub fn content(&self, section: usize) -> &Content {
        self.contents.get(section).unwrap_or(&Content::Other)
    }

    /// Makes an object the packet set, whose entries' expiry runs this function.
    pub fn packet_set(
        &mut self,
        object: ObjectId,
        expiry: Option<FunctionId>,
    ) -> Result<(), LoadError> {
        let Some(object) = self.objects.get_mut(object.0) else {
            return Ok(());
        };
        if object.kind.does(&TIMER_FIRED).is_none() {
            return Err(LoadError::new(
                "state-declaration",
                format!("a packet set that is a {}", object.kind.name),
                "declare it with PACKET_SET",
            )
            .at_symbol(&object.name));
        }
        object.packet_set = true;
        object.expiry = expiry;
        valid(object)
    }

    fn add(&mut self, object: StateObject) -> Result<ObjectId, LoadError> {
        valid(&object)?;
        if self.objects.len() == MAX_OBJECTS {
            return Err(too_many());
        }
        self.objects.push(object);
        Ok(ObjectId(self.objects.len() - 1))
    }

    /// Adds an object, and behind it what its values are like, if they are maps.
    fn add_with(
        &mut self,
        object: StateObject,
        inner: Option<Inner>,
    ) -> Result<ObjectId, LoadError> {
        let Some(Inner { mut shape, .. }) = inner.filter(|_| object.kind.holds_maps()) else {
            if object.kind.holds_maps() {
                return Err(maps::no_inner().at_symbol(&object.name));
            }
            return self.add(object);
        };
        if !shape.kind.nests() {
            return Err(maps::never_inside(shape.kind).at_symbol(&object.name));
        }
        if shape.timer.is_some() {
            return Err(maps::no_timers_inside().at_symbol(&object.name));
        }
        let holder = self.add(object)?;
        shape.name = inner_name(self.objects.get(holder.0).map_or("", |o| &o.name));
        shape.nesting = Some(Nesting::Shape(holder));
        let added = self.add(shape);
        match (added, self.objects.get_mut(holder.0)) {
            (Ok(shape), Some(object)) => {
                let values = Vec::new();
                object.nesting = Some(Nesting::Holds { shape, values });
                Ok(holder)
            }
            (added, _) => {
                self.objects.truncate(holder.0);
                added
            }
        }
    }

    fn declare(&mut self, mut declarations: Vec<Declaration>) -> Result<Content, LoadError> {
        declarations.sort_by_key(|d| d.start);
        let mut records: Vec<Record> = Vec::with_capacity(declarations.len());
        for Declaration {
            start,
            end,
            values,
            id,
            inner,
            object,
        } in declarations
        {
            if records.last().is_some_and(|r| start < r.end) {
                let overlap = LoadError::malformed("its declaration overlaps another");
                return Err(match object {
                    Ok(object) => overlap.at_symbol(&object.name),
                    Err(_) => overlap,
                });
            }
            let holds = inner.as_ref().and_then(|i| i.holds);
            let object = match object.map(|object| self.add_with(object, inner)) {
                Ok(Err(e)) if e.rule == TOO_MANY => return Err(e),
                Ok(added) => added,
                Err(e) => Err(e),
            };
            records.push(Record {
                start,
                end,
                values,
                id,
                holds,
                object,
            });
        }
        Ok(Content::Objects(records))
    }
}

/// Refuses sizes and options that no object can have.
fn valid(object: &StateObject) -> Result<(), LoadError> {
    (object.kind.validate)(object).map_err(|problem| {
        LoadError::new(
            "absurd-size",
            format!("{} `{}`: {problem}", object.kind.name, object.name),
            "change the declaration",
        )
        .at_symbol(&object.name)
    })
}

/// The rule of [`too_many`].
const TOO_MANY: &str = "too-many-objects";

/// Gives maps whose authors left the capacity to the loader (`max_entries` 0, which the kernel
/// refuses) the one that the operator names: by the map's name, or `*` for all such maps.
fn open(mut declarations: Vec<Declaration>, capacities: &[(String, u64)]) -> Vec<Declaration> {
    for declaration in &mut declarations {
        let Ok(object) = &mut declaration.object else {
            continue;
        };
        let name = object.name.clone();
        let mut opened = open_one(object, &name, capacities);
        if let (Ok(()), Some(inner)) = (&opened, &mut declaration.inner) {
            opened = open_one(&mut inner.shape, &inner_name(&name), capacities);
        }
        if let Err(open) = opened {
            declaration.object = Err(open.at_symbol(&name));
        }
    }
    declarations
}

fn open_one(
    object: &mut StateObject,
    name: &str,
    capacities: &[(String, u64)],
) -> Result<(), LoadError> {
    let given = |wanted: &str| capacities.iter().rfind(|(name, _)| name == wanted);
    if object.capacity != 0 {
        if BY_KEY.contains(&object.kind.bpf_type.unwrap_or(0)) {
            feasible(object, given(name).map(|(_, capacity)| *capacity));
        }
        return Ok(());
    }
    if let Some((_, capacity)) = given(name).or_else(|| given("*")) {
        object.capacity = *capacity;
    } else if let Some(capacity) = object.kind.open_capacity() {
        object.capacity = capacity;
    } else {
        return Err(LoadError::new(
            "open-capacity",
            format!("`{name}` has max_entries 0, to be set by the program that loads it"),
            format!("say how many entries it is to have: `--capacity {name}=NUMBER`"),
        ));
    }
    Ok(())
}

/// `BPF_MAP_TYPE_…` of maps that find entries by their keys: HASH, PERCPU_HASH, LRU_HASH, LRU_PERCPU_HASH, LPM_TRIE.
const BY_KEY: &[u32] = &[1, 5, 9, 10, 11];

/// Gives a map that is declared for more entries than are possible the most that are, or what the operator says. The
/// kernel takes the memory of such maps entry by entry, and `max_entries` is only the number at which it refuses one;
/// of an array it would be the number of elements, which cannot be another.
fn feasible(object: &mut StateObject, given: Option<u64>) {
    if (object.kind.validate)(object).is_ok() {
        return;
    }
    let mut fewer = object.clone();
    fewer.capacity = given.unwrap_or(fewer.capacity.min(limits::MAX_CAPACITY));
    while given.is_none() && fewer.capacity > 1 && (object.kind.validate)(&fewer).is_err() {
        fewer.capacity /= 2;
    }
    // What is refused for another reason is refused as it was declared.
    if given.is_some() || (object.kind.validate)(&fewer).is_ok() {
        *object = fewer;
    }
}

/// More state objects than a program may have.
pub(crate) fn too_many() -> LoadError {
    LoadError::new(
        TOO_MANY,
        format!("more than {MAX_OBJECTS} state objects"),
        "split the program",
    )
}

/// Whether so many declarations are admitted; asked before they are read.
pub(crate) fn admits(declarations: usize) -> bool {
    declarations <= MAX_OBJECTS
}

/// The record that contains an offset.
pub(crate) fn record_at(records: &[Record], offset: i64) -> Option<&Record> {
    let offset = u64::try_from(offset).ok()?;
    let after = records.partition_point(|r| r.start <= offset);
    let record = records.get(after.checked_sub(1)?)?;
    (offset < record.end).then_some(record)
}

/// An object of a kind with everything else zero.
pub(crate) fn blank(name: &str, kind: &'static StateKind) -> StateObject {
    StateObject::new(crate::error::printable(name), kind, 0, 0, 0)
}
