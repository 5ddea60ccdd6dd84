//! The kernel as an oracle: loads an XDP object with libbpf, runs packets through
//! `BPF_PROG_TEST_RUN`, reads its maps. Nothing here uses our own loader, so that a mistake in it
//! cannot hide.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use libbpf_rs::{
    MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, ProgramInput, ProgramType,
    RingBufferBuilder,
};

/// What the kernel did with one packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// `XDP_ABORTED` 0, `XDP_DROP` 1, `XDP_PASS` 2, `XDP_TX` 3, `XDP_REDIRECT` 4
    pub verdict: u32,
    /// the frame afterwards
    pub packet: Vec<u8>,
}

/// The live entries of a map, by key.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// What an inner map is like.
#[derive(Clone, Copy, Debug)]
pub struct Like {
    /// its type
    pub kind: MapType,
    /// bytes of a key
    pub key_bytes: u32,
    /// bytes of a value
    pub value_bytes: u32,
    /// most entries
    pub capacity: u32,
}

/// A map that was made to be a value of another.
pub struct Inner(MapHandle);

impl Inner {
    /// Sets an entry.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let set = self.0.update(key, value, MapFlags::ANY);
        set.map_err(|e| e.to_string())
    }

    /// Its entries.
    ///
    /// # Errors
    /// When the kernel does not let them be read.
    pub fn entries(&self) -> Result<Entries, String> {
        entries(&self.0)
    }
}

fn entries(map: &impl MapCore) -> Result<Entries, String> {
    let mut entries = Entries::new();
    for key in map.keys() {
        if let Some(value) = map.lookup(&key, MapFlags::ANY).map_err(|e| e.to_string())? {
            entries.insert(key, value);
        }
    }
    Ok(entries)
}

/// An object that the kernel has loaded, and which of its programs is run.
pub struct Kernel {
    object: Object,
    program: Option<String>,
}

/// Why the kernel cannot be asked on this machine, or `None` if it can.
#[must_use]
pub fn unavailable() -> Option<String> {
    // Creating the smallest map needs the same rights as loading a program needs.
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    MapHandle::create(MapType::Array, Option::<&str>::None, 4, 4, 1, &options)
        .err()
        .map(|e| format!("this machine does not let us load BPF ({e})"))
}

impl Kernel {
    /// Loads the object. Fails when the kernel's verifier refuses it, with the verifier's words.
    ///
    /// # Errors
    /// libbpf's, as text.
    pub fn load(path: &Path) -> Result<Self, String> {
        Self::load_with(path, None)
    }

    /// The same with another content of `.rodata`, where parameters are.
    ///
    /// # Errors
    /// libbpf's, as text.
    pub fn load_with(path: &Path, rodata: Option<&[u8]>) -> Result<Self, String> {
        libbpf_rs::set_print(None);
        let wrong = |e: libbpf_rs::Error| format!("{}: {e:#}", path.display());
        let mut object = ObjectBuilder::default().open_file(path).map_err(wrong)?;
        if let Some(rodata) = rodata {
            // The kernel's name has the object's before it.
            let mut map = object
                .maps_mut()
                .find(|m| m.name().to_string_lossy().ends_with(".rodata"))
                .ok_or_else(|| format!("{}: no .rodata", path.display()))?;
            map.set_initial_value(rodata).map_err(wrong)?;
        }
        let object = object.load().map_err(wrong)?;
        Ok(Self {
            object,
            program: None,
        })
    }

    /// The same for an object of others: the named programs are for packets, whatever their sections
    /// are called, all others are left out, and maps whose authors left their capacity open get this one.
    ///
    /// # Errors
    /// libbpf's, as text.
    pub fn load_public(path: &Path, programs: &[String], capacity: u32) -> Result<Self, String> {
        libbpf_rs::set_print(None);
        let failed = |e: libbpf_rs::Error| format!("{}: {e:#}", path.display());
        let mut open = ObjectBuilder::default().open_file(path).map_err(failed)?;
        for mut program in open.progs_mut() {
            let packets = programs.iter().any(|name| program.name() == name.as_str());
            if packets {
                program.set_prog_type(ProgramType::Xdp);
            }
            program.set_autoload(packets);
        }
        for mut map in open.maps_mut() {
            if map.max_entries() == 0 && capacity > 0 {
                map.set_max_entries(capacity).map_err(failed)?;
            }
        }
        let object = open.load().map_err(failed)?;
        Ok(Self {
            object,
            program: None,
        })
    }

    /// Runs this program of the object from now on, where there are several.
    #[must_use]
    pub fn program(mut self, name: &str) -> Self {
        self.program = Some(name.to_owned());
        self
    }

    fn selected(&mut self) -> Result<libbpf_rs::ProgramMut<'_>, String> {
        let wanted = self.program.clone();
        self.object
            .progs_mut()
            .find(|p| wanted.as_deref().is_none_or(|name| p.name() == name))
            .ok_or_else(|| format!("the object has no program {}", wanted.unwrap_or_default()))
    }

    /// Runs the program on one packet. The kernel refuses frames shorter than an
    /// Ethernet header; callers leave those out.
    ///
    /// # Errors
    /// The kernel's, as text.
    pub fn run(&mut self, packet: &[u8]) -> Result<Outcome, String> {
        let mut room = vec![0; packet.len() + 512];
        let program = self.selected()?;
        let input = ProgramInput {
            data_in: Some(packet),
            data_out: Some(&mut room),
            ..ProgramInput::default()
        };
        let output = program.test_run(input).map_err(|e| e.to_string())?;
        let length = output.data.as_deref().map_or(0, <[u8]>::len);
        let verdict = output.return_value;
        room.truncate(length);
        Ok(Outcome {
            verdict,
            packet: room,
        })
    }

    /// Nanoseconds a run of the program takes on this packet, over `repeat` runs in the kernel.
    ///
    /// # Errors
    /// The kernel's, as text.
    pub fn time(&mut self, packet: &[u8], repeat: u32) -> Result<u64, String> {
        let program = self.selected()?;
        let input = ProgramInput {
            data_in: Some(packet),
            repeat,
            ..ProgramInput::default()
        };
        let output = program.test_run(input).map_err(|e| e.to_string())?;
        u64::try_from(output.duration.as_nanos()).map_err(|e| e.to_string())
    }

    /// The entries of a hash or array map.
    ///
    /// # Errors
    /// When there is no such map, or it cannot be read.
    pub fn entries(&self, name: &str) -> Result<Entries, String> {
        entries(&self.map(name)?)
    }

    /// Records that have arrived in a ring buffer since the last call.
    ///
    /// # Errors
    /// When there is no such map, or it is no ring buffer.
    pub fn records(&self, name: &str) -> Result<Vec<Vec<u8>>, String> {
        let map = self.map(name)?;
        let mut records = Vec::new();
        {
            let mut builder = RingBufferBuilder::new();
            builder
                .add(&map, |bytes| {
                    records.push(bytes.to_vec());
                    0
                })
                .map_err(|e| e.to_string())?;
            let ring = builder.build().map_err(|e| e.to_string())?;
            ring.consume().map_err(|e| e.to_string())?;
        }
        Ok(records)
    }

    /// Sets an entry of a map.
    ///
    /// # Errors
    /// When there is no such map, or the kernel does not take the entry.
    pub fn set(&self, name: &str, key: &[u8], value: &[u8]) -> Result<(), String> {
        let map = self.map(name)?;
        map.update(key, value, MapFlags::ANY)
            .map_err(|e| e.to_string())
    }

    /// Removes an entry of a map.
    ///
    /// # Errors
    /// When there is no such map, or no such entry.
    pub fn remove(&self, name: &str, key: &[u8]) -> Result<(), String> {
        self.map(name)?.delete(key).map_err(|e| e.to_string())
    }

    /// Puts a new, empty map under a key of a map of maps.
    ///
    /// # Errors
    /// When there is no such map, or the kernel does not take the new one.
    pub fn nest(&self, holder: &str, key: &[u8], like: &Like) -> Result<Inner, String> {
        let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let map = MapHandle::create(
            like.kind,
            Option::<&str>::None,
            like.key_bytes,
            like.value_bytes,
            like.capacity,
            &options,
        );
        let map = map.map_err(|e| e.to_string())?;
        self.set(holder, key, &map.as_fd().as_raw_fd().to_ne_bytes())?;
        Ok(Inner(map))
    }

    /// Takes every value out of a queue or a stack, in the order they leave.
    ///
    /// # Errors
    /// When there is no such map, or it has a key.
    pub fn take(&self, name: &str) -> Result<Vec<Vec<u8>>, String> {
        let map = self.map(name)?;
        let mut values = Vec::new();
        while let Some(value) = map.lookup_and_delete(&[]).map_err(|e| e.to_string())? {
            values.push(value);
        }
        Ok(values)
    }

    /// Names and kinds of the maps, globals left out.
    #[must_use]
    pub fn maps(&self) -> Vec<(String, MapType)> {
        self.object
            .maps()
            .map(|m| (m.name().to_string_lossy().into_owned(), m.map_type()))
            .filter(|(name, _)| !name.contains('.'))
            .collect()
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, String> {
        self.object
            .maps()
            .find(|m| m.name().to_string_lossy() == name)
            .ok_or_else(|| format!("the kernel has no map {name}"))
    }
}
