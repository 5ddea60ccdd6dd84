//! Loading an object: its programs, its parameters, the capacities of its maps.

use std::path::Path;

use libbpf_rs::{AsRawLibbpf, Object, ObjectBuilder, ProgramType};
use millrace_dataplane::port::PortError;

use crate::{contents, trouble};

/// An entry that is there before the first packet.
pub struct Content {
    /// the map's name
    pub map: String,
    /// its key
    pub key: Vec<u8>,
    /// its value; in a map of programs the number of a program from 1, in one of interfaces the number of a port
    /// from 1, both 32 bits
    pub value: Vec<u8>,
}

/// The function to run.
pub struct Wanted<'a> {
    /// the object file
    pub object: &'a Path,
    /// the program that takes packets
    pub program: &'a str,
    /// the license that it declares
    pub license: &'a str,
    /// all programs that take packets, in order: those that it may call
    pub programs: &'a [String],
    /// what constant sections hold, by name: the settings are there
    pub constants: Vec<(&'a str, &'a [u8])>,
    /// capacities of maps that are not their authors'
    pub capacities: &'a [(String, u64)],
    /// entries
    pub contents: Vec<Content>,
}

/// Loads it.
pub fn load(word: &str, wanted: &Wanted<'_>) -> Result<Object, PortError> {
    trouble::listen();
    let no = |what: &'static str| move |e: libbpf_rs::Error| trouble::refused(word, what, &e, "");
    let mut builder = ObjectBuilder::default();
    let mut open = builder
        .open_file(wanted.object)
        .map_err(no("libbpf does not take the object"))?;
    for mut program in open.progs_mut() {
        let packets = wanted
            .programs
            .iter()
            .any(|name| program.name() == name.as_str());
        if packets {
            // Whatever its section is called.
            program.set_prog_type(ProgramType::Xdp);
        }
        program.set_autoload(packets);
    }
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        contents::unpin(word, map.as_libbpf_object())?;
        if let Some((_, entries)) = wanted.capacities.iter().find(|(n, _)| *n == name) {
            let entries = u32::try_from(*entries).unwrap_or(u32::MAX);
            map.set_max_entries(entries)
                .map_err(no("cannot set a capacity"))?;
        }
        // The kernel's name of a section's map has the object's before it.
        let constant = wanted
            .constants
            .iter()
            .find(|(section, _)| name.ends_with(section));
        if let Some((_, bytes)) = constant {
            map.set_initial_value(bytes)
                .map_err(no("cannot set parameters"))?;
        }
    }
    open.load()
        .map_err(no("the kernel does not take the program"))
}
