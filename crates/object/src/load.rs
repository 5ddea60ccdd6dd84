//! The reader from end to end.

use std::collections::HashSet;
use std::path::Path;

use crate::btf::Btf;
use crate::btf::ext::{Ext, Lines};
use crate::configuration;
use crate::core::Core;
use crate::elf::{Elf, MAX_FILE};
use crate::error::LoadError;
use crate::functions::Functions;
use crate::helper;
use crate::insn::Insn;
use crate::layout::Layout;
use crate::link::Linker;
use crate::maps::slots::Slots;
use crate::program::{Dialect, Entry, Function, Program, Role, StateObject};
use crate::state::routes;
use crate::{file, handlers, maps, params, xdp};

/// Reads an object file.
///
/// # Errors
/// The file cannot be read, or see [`load`].
pub fn load_file(path: &Path) -> Result<Program, LoadError> {
    load_file_with(path, &[])
}

/// The same with [`load_with`]'s capacities.
///
/// # Errors
/// The file cannot be read, or see [`load`].
pub fn load_file_with(path: &Path, capacities: &[(String, u64)]) -> Result<Program, LoadError> {
    let stem = path
        .file_stem()
        .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let bytes = read_file(path)?;
    read(&bytes, &stem, capacities, None).map_err(|e| e.in_file(&path.display().to_string()))
}

/// Bytes of an object file, at most.
pub const MOST_BYTES: u64 = MAX_FILE as u64;

/// The bytes of an object file, for [`load`].
///
/// # Errors
/// The file cannot be read, or is longer than an object may be.
pub fn read_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    file::read(path, MOST_BYTES).map_err(|e| {
        LoadError::new(
            "unreadable",
            format!("the file cannot be read ({e})"),
            "give the object file",
        )
        .in_file(&path.display().to_string())
    })
}

/// Reads the bytes of an object file; `name` becomes the program's.
///
/// Work and memory are bounded by the length of `bytes`, which is at most 64 MiB.
///
/// # Errors
/// The bytes are not a BPF object, contradict their format, or ask for what does not exist: the
/// error names the place, what was wrong and what to do.
pub fn load(bytes: &[u8], name: &str) -> Result<Program, LoadError> {
    load_with(bytes, name, &[])
}

/// The same for an object whose author left the capacities of maps to the loader (`max_entries` 0):
/// each of `capacities` is a map's name, or `*` for all maps that are left open, and its entries.
/// Maps with a capacity of their own keep it; [`Program::set_capacity`] changes those.
///
/// # Errors
/// See [`load`].
pub fn load_with(
    bytes: &[u8],
    name: &str,
    capacities: &[(String, u64)],
) -> Result<Program, LoadError> {
    read(bytes, name, capacities, None).map_err(|e| e.in_file(name))
}

/// The same, with these functions as the programs for packets, in this order, whatever their sections and
/// types say: for suites whose programs are about instructions and are of other types. Functions that a
/// program array names come behind them.
///
/// # Errors
/// See [`load`], and a function that does not exist.
pub fn load_functions(
    bytes: &[u8],
    name: &str,
    functions: &[&str],
    capacities: &[(String, u64)],
) -> Result<Program, LoadError> {
    read(bytes, name, capacities, Some(functions)).map_err(|e| e.in_file(name))
}

fn read(
    bytes: &[u8],
    name: &str,
    capacities: &[(String, u64)],
    functions: Option<&[&str]>,
) -> Result<Program, LoadError> {
    let mut elf = Elf::parse(bytes)?;
    let btf = Btf::of(&elf)?;
    let btf = btf.as_ref();
    if let Some(btf) = btf {
        configuration::define(&mut elf, btf);
    }
    let ext = match btf {
        Some(btf) => Ext::of(&elf, btf)?,
        None => Ext::default(),
    };
    let dialect = if functions.is_none() && handlers::is_dialect(&elf) {
        Dialect::Handlers
    } else {
        Dialect::Xdp
    };
    let mut layout = Layout::of(&elf, btf, capacities)?;
    let spans = Functions::of(&elf);
    let starts = match dialect {
        Dialect::Handlers => handlers::entries::find(&elf, &spans, btf, &ext)?,
        Dialect::Xdp => {
            let slots = Slots::of(&layout);
            let found = match functions {
                None => xdp::find(&elf, &spans, btf, &ext, &slots)?,
                Some(functions) => {
                    let mut found = xdp::named(&spans, functions)?;
                    let others = maps::programs::named(&elf, &spans, &layout);
                    found.extend(others);
                    let mut seen = HashSet::new();
                    found.retain(|span| seen.insert(*span));
                    found
                }
            };
            maps::programs::fill(&elf, &spans, &found, &mut layout)?;
            maps::slots::fill(&spans, &found, &slots, &mut layout)?;
            maps::nested::fill(&elf, &mut layout)?;
            found.into_iter().map(|span| (Role::Xdp, span)).collect()
        }
    };
    let set = match dialect {
        Dialect::Handlers => handlers::expiry::read(&elf, &spans, &layout, Lines::new(btf, &ext))?,
        Dialect::Xdp => None,
    };
    let params = params::find(&elf, btf, &mut layout, dialect)?;
    let ports = handlers::names::ports(&elf)?;
    let mut linker = Linker::new(
        &elf,
        &spans,
        &layout,
        Lines::new(btf, &ext),
        Core::new(btf, &ext),
    );
    let entry = |(role, span)| Entry {
        role,
        function: linker.function(span),
    };
    let entries = starts.into_iter().map(entry).collect();
    let set = set.map(|set| (set.object, set.expiry.map(|span| linker.function(span))));
    let functions = linker.finish()?;
    if let Some((object, expiry)) = set {
        layout.packet_set(object, expiry)?;
    }
    layout
        .objects
        .extend(implied(&functions, &layout.objects, capacities));
    names_are_unique(&layout.objects)?;
    Ok(Program {
        name: name.to_owned(),
        dialect,
        functions,
        entries,
        objects: layout.objects,
        ports,
        params,
        reasons: layout.reasons,
        license: license(&elf),
    })
}

/// Refuses two objects of one name. Users name objects, and how one lives on several workers is found by its name: of
/// two, one would be locked, or divided, as the other is. No compiler makes such objects.
fn names_are_unique(objects: &[StateObject]) -> Result<(), LoadError> {
    let mut seen = HashSet::new();
    match objects.iter().find(|o| !seen.insert(o.name.as_str())) {
        Some(twice) => Err(
            LoadError::malformed("another state object has this name, too").at_symbol(&twice.name),
        ),
        None => Ok(()),
    }
}

/// Objects that helpers work on without naming them.
fn implied(
    functions: &[Function],
    there: &[StateObject],
    capacities: &[(String, u64)],
) -> Vec<StateObject> {
    let calls = functions.iter().flat_map(|f| &f.insns);
    let routes = calls
        .filter_map(|insn| match insn {
            Insn::Call { helper } => helper::by_number(*helper),
            _ => None,
        })
        .any(|h| helper::implied(h).is_some());
    if !routes || there.iter().any(|o| o.kind == &routes::KIND) {
        return Vec::new();
    }
    let asked = capacities.iter().find(|(name, _)| name == routes::NAME);
    vec![routes::object(
        asked.map_or(routes::CAPACITY, |(_, entries)| *entries),
    )]
}

fn license(elf: &Elf<'_>) -> String {
    let data = elf
        .section_named("license")
        .map_or(&[][..], |(_, s)| s.data);
    let text = data.split(|b| *b == 0).next().unwrap_or(&[]);
    crate::error::printable(&String::from_utf8_lossy(text))
}
