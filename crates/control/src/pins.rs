//! Pinned maps: what is in them at the end of a run is there at the start of the next.
//!
//! A folder holds one file a map, `NAME.json`, in the form of `--map` (docs/maps.md). A file is replaced
//! whole: written beside, brought to the disk, and renamed over the old one (rename(2)), so that a process
//! that is killed at any moment leaves the old content or the new one, never a part.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_dataplane::mailbox::Job;
use millrace_dataplane::module::{Entry, KeyValue};
use rustix::fs::{FlockOperation, flock};
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use crate::contents;
use crate::exposed::Exposed;
use crate::trouble::Trouble;

/// The folder of a run's pinned maps, held so that no other run has it.
#[derive(Debug)]
pub struct Pins {
    folder: PathBuf,
    /// indexes of the objects
    objects: Vec<usize>,
    /// objects that were meant and are not kept, and why
    pub left_out: Vec<String>,
    /// the folder itself, locked
    _lock: File,
}

impl Pins {
    /// Takes a folder, which is made if it is not there, for the maps that the program declares pinned by
    /// name, or for `all` that have entries to set.
    ///
    /// # Errors
    /// There are no such maps, the folder cannot be made, or another run has it.
    pub fn open(folder: &Path, exposed: &Exposed, all: bool) -> Result<Self, Trouble> {
        let pinned = |name: &str| exposed.types.get(name).is_some_and(|t| t.pinned);
        let asked =
            |object: usize, name: &str| pinned(name) || (all && exposed.takes_entries(object));
        let mut objects = Vec::new();
        let mut left_out = Vec::new();
        for (i, o) in exposed.objects().filter(|(i, o)| asked(*i, &o.name)) {
            match unkept(exposed, i, &o.name) {
                None => objects.push(i),
                Some(why) => left_out.push(format!("{}: {why}", o.name)),
            }
        }
        let mut leasing = exposed.objects().filter(|(_, o)| o.kind.leases());
        if let Some((_, allocator)) = leasing.next() {
            return Err(Trouble::new(
                "pin",
                format!(
                    "--pin: numbers that {} leases may stand in the maps, and would be leased to others by the next run",
                    allocator.name
                ),
            )
            .help("keep all state of the function with --state FOLDER"));
        }
        if objects.is_empty() && left_out.is_empty() {
            return Err(
                Trouble::new("no-such-object", "--pin: no map is declared pinned by name").help(
                    "declare __uint(pinning, LIBBPF_PIN_BY_NAME), or keep all maps with --pin-all",
                ),
            );
        }
        let failed = |e: std::io::Error| {
            Trouble::new("folder", format!("{}: {e}", folder.display()))
                .help("choose another folder for --pin")
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = File::open(folder).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
            rustix::io::Errno::WOULDBLOCK => Trouble::new(
                "live",
                format!("{}: another run keeps its maps there", folder.display()),
            )
            .help("end it first, or choose another folder for --pin"),
            e => failed(e.into()),
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            objects,
            left_out,
            _lock: lock,
        })
    }

    /// Contents of the maps at the end of the last run.
    ///
    /// # Errors
    /// A file is malformed, or its entries do not fit the map as it is declared now.
    pub fn entries(&self, exposed: &Exposed) -> Result<Vec<Entry>, Trouble> {
        let mut entries = Vec::new();
        for object in &self.objects {
            let Some(path) = self.file(exposed, *object) else {
                continue;
            };
            match fs::symlink_metadata(&path) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                _ => {}
            }
            let of_map = contents::of_file(&path, exposed, *object).map_err(|t| {
                Trouble::new(&t.code, t.what)
                    .help("fix the file, or move it away to start with an empty map")
            })?;
            entries.extend(of_map);
        }
        Ok(entries)
    }

    /// The job at the end of the run: writes everything. Errors go to `failures`.
    #[must_use]
    pub fn keep(self, exposed: Arc<Exposed>, failures: Arc<std::sync::Mutex<Vec<Trouble>>>) -> Job {
        Box::new(move |desk| {
            let now = desk.now;
            let Some(instance) = desk.instance.as_deref_mut() else {
                return;
            };
            for object in &self.objects {
                let share = exposed.share(*object);
                let mut parts = vec![instance.entries(*object, usize::MAX, now)];
                let others = desk.others.iter_mut().filter(|_| share.parted());
                parts.extend(others.map(|other| other.entries(*object, usize::MAX, now)));
                let parts: Result<Vec<_>, _> = parts.into_iter().collect();
                let entries = parts.map(|parts| share.union(parts));
                let kept = entries
                    .map_err(|e| Trouble::new("pin", e))
                    .and_then(|entries| self.write(&exposed, *object, &entries));
                if let Err(trouble) = kept
                    && let Ok(mut failures) = failures.lock()
                {
                    failures.push(trouble);
                }
            }
        })
    }

    /// The file of a map.
    fn file(&self, exposed: &Exposed, object: usize) -> Option<PathBuf> {
        let name = &exposed.info(object).ok()?.name;
        is_plain(name).then(|| self.folder.join(format!("{name}.json")))
    }

    /// The objects that are kept, by their places among the function's.
    #[must_use]
    pub fn objects(&self) -> &[usize] {
        &self.objects
    }

    /// Keeps these entries of an object.
    ///
    /// # Errors
    /// They cannot be written; what was kept before is there still.
    pub fn write(
        &self,
        exposed: &Exposed,
        object: usize,
        entries: &[KeyValue],
    ) -> Result<(), Trouble> {
        let Some(path) = self.file(exposed, object) else {
            return Err(Trouble::new(
                "pin",
                "a map whose name is no file name is not kept",
            ));
        };
        let shown = entries.iter().map(|(key, value)| {
            (
                exposed.show_key(object, key),
                exposed.show_value(object, value),
            )
        });
        replace(&path, shown).map_err(|e| {
            Trouble::new("pin", format!("{}: {e}", path.display()))
                .help("the file of the run before is still there; make room")
        })
    }
}

/// Why an object is not kept; none where it is.
fn unkept(exposed: &Exposed, object: usize, name: &str) -> Option<&'static str> {
    if !is_plain(name) {
        return Some("its name is no file name");
    }
    if !exposed.takes_entries(object) {
        return Some("this kind of object takes no entries");
    }
    if !exposed.lists(object) {
        return Some("this kind of object does not list its entries");
    }
    (!exposed.keeps(object)).then_some("its values are maps, which are made anew by each run")
}

/// Whether a name, which comes from the object file, is one that a file can have.
fn is_plain(name: &str) -> bool {
    let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(known)
}

/// Writes entries, one a line, as a JSON array.
///
/// # Errors
/// The writer's.
pub fn write_entries(
    out: &mut dyn Write,
    entries: impl Iterator<Item = (Value, Value)>,
) -> std::io::Result<()> {
    out.write_all(b"[")?;
    for (at, (key, value)) in entries.enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        // In this order, which a map of serde_json would not keep.
        let mut line = serde_json::Serializer::new(&mut *out);
        let mut entry = line.serialize_map(Some(2))?;
        entry.serialize_entry("key", &key)?;
        entry.serialize_entry("value", &value)?;
        SerializeMap::end(entry)?;
    }
    out.write_all(b"\n]\n")
}

/// Replaces a file by these entries, whole or not at all.
///
/// # Errors
/// It cannot be written. The old file is there still.
pub fn replace(path: &Path, entries: impl Iterator<Item = (Value, Value)>) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    // One run has the folder, so one name is enough; what a killed run has left there goes.
    let beside = path.with_extension("json.new");
    match fs::remove_file(&beside) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = File::create_new(&beside)?;
    let written = (|| {
        let mut out = BufWriter::new(&file);
        write_entries(&mut out, entries)?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    // The new name is on the disk once the folder is.
    File::open(folder)?.sync_all()
}
