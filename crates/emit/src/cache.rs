//! Compiled things, kept by the content they were made from.
//!
//! The cache holds code that will be loaded into the process, so its folder must be the user's own
//! and nobody else's to write. An entry's name is a hash of everything it depends on; entries are
//! made beside their place and renamed into it, so that any number of processes may share a cache.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::headers;

/// What the cache may hold: 1 GiB.
const MOST_BYTES: u64 = 1 << 30;
/// Entries younger than this stay even then: another process may be about to load one.
const SETTLED: Duration = Duration::from_secs(120);
/// An entry's time is renewed on use when it is older than this, so that eviction takes what is unused.
const RENEW: Duration = Duration::from_secs(3600);

/// A cache folder that has been found trustworthy.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// A hash over parts, each delimited, as hexadecimal text.
#[must_use]
pub fn key(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

impl Cache {
    /// The user's cache: `$MILLRACE_CACHE`, `$XDG_CACHE_HOME/millrace` or `~/.cache/millrace`.
    ///
    /// # Errors
    /// See [`Cache::at`]; also when none of the three variables is set.
    pub fn of_user() -> Result<Cache, Error> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let root = variable("MILLRACE_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|p| p.join("millrace")))
            .or_else(|| variable("HOME").map(|p| p.join(".cache/millrace")));
        match root {
            Some(root) => Cache::at(&root),
            None => Err(Error::Cache {
                path: PathBuf::from("cache"),
                reason: "neither HOME nor XDG_CACHE_HOME is set".into(),
            }),
        }
    }

    /// The cache in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Cache`] unless the folder belongs to this user and to nobody else's access.
    pub fn at(root: &Path) -> Result<Cache, Error> {
        let refuse = |reason: String| Error::Cache {
            path: root.to_owned(),
            reason,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(|e| refuse(format!("the cache folder cannot be made ({e})")))?;
        let root = root.canonicalize().map_err(|e| refuse(e.to_string()))?;
        let folder = fs::symlink_metadata(&root).map_err(|e| refuse(e.to_string()))?;
        // Not the owner of /proc/self: that is root where the program has file capabilities (proc(5)).
        let us = rustix::process::geteuid().as_raw();
        if folder.uid() != us {
            return Err(refuse(format!(
                "the cache folder belongs to user {}, not to {us}",
                folder.uid()
            )));
        }
        if folder.mode() & 0o077 != 0 {
            return Err(refuse(format!(
                "others may use the cache folder (mode {:o}; chmod 700 it)",
                folder.mode() & 0o777
            )));
        }
        Ok(Cache { root })
    }

    /// Where an entry lies, or would.
    #[must_use]
    pub fn entry(&self, shelf: &str, key: &str, extension: &str) -> PathBuf {
        self.root.join(shelf).join(format!("{key}.{extension}"))
    }

    /// The folder of models (`millrace_model::kept`), which has names of its own; it is trimmed with the rest.
    #[must_use]
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// Whether an entry is there; if so it counts as used.
    #[must_use]
    pub fn has(&self, entry: &Path) -> bool {
        let Ok(file) = fs::metadata(entry) else {
            return false;
        };
        let old = file
            .modified()
            .ok()
            .and_then(|t| t.elapsed().ok())
            .is_some_and(|age| age > RENEW);
        if old && let Ok(file) = fs::File::options().append(true).open(entry) {
            // Only its place in the order of eviction depends on it.
            let _ = file.set_modified(SystemTime::now());
        }
        true
    }

    /// A path beside an entry, in its folder, for something that is made by another program.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn workplace(&self, entry: &Path) -> Result<tempfile::TempDir, Error> {
        let folder = entry.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        tempfile::Builder::new()
            .prefix(".making-")
            .tempdir_in(folder)
            .map_err(Error::io(folder))
    }

    /// Puts what was made into its place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn place(&self, made: &Path, entry: &Path) -> Result<(), Error> {
        fs::rename(made, entry).map_err(Error::io(entry))
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, entry: &Path, content: &[u8]) -> Result<(), Error> {
        let folder = entry.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(Error::io(folder))?;
        file.write_all(content).map_err(Error::io(entry))?;
        file.persist(entry).map_err(|e| Error::io(entry)(e.error))?;
        Ok(())
    }

    /// The folder with the headers that this binary carries: `fastpath/` and `include/` in it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn headers(&self) -> Result<PathBuf, Error> {
        let place = self.root.join("headers").join(headers::digest());
        if place.is_dir() {
            return Ok(place);
        }
        let work = self.workplace(&place)?;
        for (name, text) in headers::FILES {
            let file = work.path().join(name);
            let folder = file.parent().unwrap_or(work.path());
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
            fs::write(&file, text).map_err(Error::io(&file))?;
        }
        match fs::rename(work.path(), &place) {
            Ok(()) => {
                // It is no longer where the guard would remove it.
                let _ = work.keep();
                Ok(place)
            }
            // Another process was faster, with the same content.
            Err(_) if place.is_dir() => Ok(place),
            Err(error) => Err(Error::io(place)(error)),
        }
    }

    /// Removes the entries that were not used for longest while the cache holds more than it may. What came since it was last done
    /// would stay in any case, and looking at some thousand entries takes as long as some compilations: so not before these are settled.
    pub fn trim(&self) {
        let mark = self.root.join("trimmed");
        let age = |file: fs::Metadata| file.modified().ok().and_then(|at| at.elapsed().ok());
        if fs::metadata(&mark)
            .ok()
            .and_then(age)
            .is_some_and(|age| age < SETTLED)
        {
            return;
        }
        // Where it cannot be written each time is the time.
        let _ = fs::write(&mark, []);
        self.trim_to(MOST_BYTES, SETTLED);
    }

    fn trim_to(&self, most: u64, settled: Duration) {
        let mut entries = Vec::new();
        for shelf in SHELVES {
            let Ok(folder) = fs::read_dir(self.root.join(shelf)) else {
                continue;
            };
            for entry in folder.flatten() {
                if let Ok(file) = entry.metadata()
                    && let Ok(modified) = file.modified()
                {
                    entries.push((modified, file.len(), entry.path()));
                }
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (modified, bytes, path) in entries {
            if total <= most || modified.elapsed().is_ok_and(|age| age < settled) {
                break;
            }
            // What cannot be removed now is tried again next time.
            let gone = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            if gone.is_ok() {
                total -= bytes;
            }
        }
    }
}

/// What is evicted; headers and compiler versions are small and few.
const SHELVES: &[&str] = &["models", "modules", "objects", "sources"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_delimit_their_parts() {
        assert_ne!(key(&[b"ab", b"c"]), key(&[b"a", b"bc"]));
        assert_eq!(key(&[b"ab"]).len(), 64);
    }

    #[test]
    fn refuses_a_folder_that_others_may_write() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Cache::at(folder.path()).unwrap_err().to_string();
        assert!(error.contains("mode 777"), "{error}");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Cache::at(folder.path()).unwrap();
    }

    #[test]
    fn makes_its_folder_private() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a/b");
        Cache::at(&root).unwrap();
        assert_eq!(fs::metadata(&root).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn trims_the_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("cache")).unwrap();
        for (age, name) in [(30u64, "old"), (20, "middle"), (10, "new")] {
            let entry = cache.entry("modules", name, "so");
            cache.write(&entry, &[0; 100]).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age);
            fs::File::options()
                .append(true)
                .open(&entry)
                .unwrap()
                .set_modified(then)
                .unwrap();
        }
        cache.trim_to(250, Duration::from_secs(3600));
        assert!(
            cache.entry("modules", "old", "so").exists(),
            "young entries stay"
        );
        cache.trim_to(250, Duration::ZERO);
        assert!(!cache.entry("modules", "old", "so").exists());
        assert!(cache.entry("modules", "middle", "so").exists());
        assert!(cache.entry("modules", "new", "so").exists());
    }

    #[test]
    fn trims_again_when_entries_have_settled() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("cache")).unwrap();
        let old = cache.entry("modules", "old", "so");
        let fill = || {
            cache.write(&old, &[]).unwrap();
            let file = fs::File::options().append(true).open(&old).unwrap();
            // Of no blocks, and more than all may have.
            file.set_len(MOST_BYTES + 1).unwrap();
            file.set_modified(SystemTime::now() - 2 * SETTLED).unwrap();
        };
        fill();
        cache.trim();
        assert!(!old.exists());
        fill();
        cache.trim();
        assert!(old.exists(), "it was done a moment ago");
        let mark = fs::File::options()
            .append(true)
            .open(cache.root.join("trimmed"));
        mark.unwrap()
            .set_modified(SystemTime::now() - 2 * SETTLED)
            .unwrap();
        cache.trim();
        assert!(!old.exists());
    }

    #[test]
    fn writes_the_headers_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("cache")).unwrap();
        let headers = cache.headers().unwrap();
        assert!(headers.join("fastpath/abi.h").is_file());
        assert!(headers.join("fastpath/codegen.h").is_file());
        assert!(headers.join("include/millrace/nf.h").is_file());
        assert_eq!(cache.headers().unwrap(), headers);
        assert_eq!(
            fs::read_dir(folder.path().join("cache/headers"))
                .unwrap()
                .count(),
            1,
            "nothing half made stays"
        );
    }
}
