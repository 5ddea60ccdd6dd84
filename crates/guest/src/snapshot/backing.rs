//! A guest's mappings, in a form that can be mapped elsewhere: files by path and digest.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::SnapshotError;
use super::image::{Backing, Maps, Region};
use crate::shared::Shared;

/// A line of /proc/self/maps: what is mapped at some addresses.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    start: usize,
    end: usize,
    shared: bool,
    offset: u64,
    inode: u64,
    path: PathBuf,
}

fn line(text: &str) -> Option<Line> {
    let mut words = text.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let flags = words.next()?;
    let offset = words.next()?;
    let _device = words.next()?;
    let inode = words.next()?.parse().ok()?;
    Some(Line {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        shared: flags.ends_with('s'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        inode,
        path: words.next().unwrap_or_default().trim_start().into(),
    })
}

/// Digests of files, each computed once as long as the file does not change.
#[derive(Default)]
pub struct Digests(BTreeMap<PathBuf, (u64, u64, Option<SystemTime>, String)>);

impl Digests {
    /// The digest of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(&mut self, path: &Path) -> io::Result<String> {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        let state = (meta.ino(), meta.len(), meta.modified().ok());
        if let Some((inode, length, time, digest)) = self.0.get(path)
            && (*inode, *length, *time) == state
        {
            return Ok(digest.clone());
        }
        let mut sum = Sha256::new();
        let mut bytes = vec![0; 256 << 10];
        loop {
            match file.read(&mut bytes)? {
                0 => break,
                got => sum.update(bytes.get(..got).unwrap_or_default()),
            }
        }
        let mut digest = String::new();
        for byte in sum.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(digest, "{byte:02x}");
        }
        let (inode, length, time) = state;
        self.0
            .insert(path.to_owned(), (inode, length, time, digest.clone()));
        Ok(digest)
    }
}

/// The guest's current mappings. A file that is not at its path any more (an upgrade has replaced it) is none: its
/// ranges come second, and all of their pages belong to the snapshot.
///
/// # Errors
/// [`SnapshotError::Guest`] when a file is mapped so that what is written goes to it.
pub fn mapped(
    shared: &Shared,
    digests: &mut Digests,
) -> Result<(Maps, Vec<std::ops::Range<usize>>), SnapshotError> {
    // The areas cannot change while they are looked at.
    let state = shared.state();
    let text = std::fs::read_to_string("/proc/self/maps")?;
    let slot = shared.slot.range();
    let lines: Vec<Line> = text.lines().filter_map(line).collect();
    let mut maps = Maps::default();
    let mut whole = Vec::new();
    for (start, area) in state.space.areas() {
        let mut region = Region {
            start,
            end: area.end,
            protection: area.protection,
            name: area.file.as_ref().map(|(n, o)| (n.to_string(), *o)),
            file: None,
        };
        let found = lines.partition_point(|l| l.start <= start);
        let found = found.checked_sub(1).and_then(|at| lines.get(at));
        let found = found.filter(|l| l.end > start && slot.contains(&l.start));
        if let Some(line) = found.filter(|l| l.inode != 0) {
            if line.shared {
                return Err(SnapshotError::Guest(format!(
                    "it has mapped {} to write to it (MAP_SHARED), which cannot be moved",
                    line.path.display()
                )));
            }
            let meta = std::fs::metadata(&line.path);
            if meta.is_ok_and(|m| m.is_file() && m.ino() == line.inode) {
                region.file = Some(Backing {
                    digest: digests.of(&line.path)?,
                    offset: line.offset + (start - line.start) as u64,
                    path: line.path.clone(),
                });
            } else {
                whole.push(start..area.end);
            }
        }
        maps.regions.push(region);
    }
    Ok((maps, whole))
}

/// The ranges of `now` that show something else than `before` did at their addresses: their pages have to be copied.
#[must_use]
pub fn fresh(now: &Maps, before: &Maps) -> Vec<std::ops::Range<usize>> {
    let mut fresh = Vec::new();
    for region in &now.regions {
        let mut at = region.start;
        while at < region.end {
            let behind = before.regions.partition_point(|r| r.end <= at);
            let old = before.regions.get(behind).filter(|r| r.start < region.end);
            let Some(old) = old else {
                fresh.push(at..region.end);
                break;
            };
            if old.start > at {
                fresh.push(at..old.start);
                at = old.start;
            }
            let end = old.end.min(region.end);
            if !alike(region, old, at) {
                fresh.push(at..end);
            }
            at = end;
        }
    }
    fresh
}

/// Whether both show the same at an address in both.
fn alike(a: &Region, b: &Region, at: usize) -> bool {
    let shown = |r: &Region| {
        let file = r.file.as_ref()?;
        Some((
            file.path.clone(),
            file.digest.clone(),
            file.offset + (at - r.start) as u64,
        ))
    };
    shown(a) == shown(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read() {
        let text = "7f00-7f01f r-xp 00002000 fd:01 1234                       /usr/lib/a b.so";
        let found = line(text).unwrap();
        assert_eq!(
            (found.start, found.end, found.offset),
            (0x7f00, 0x7f01f, 0x2000)
        );
        assert_eq!((found.inode, found.shared), (1234, false));
        assert_eq!(found.path, Path::new("/usr/lib/a b.so"));
        let found = line("10-20 rw-s 00000000 00:00 0").unwrap();
        assert!(found.shared && found.path.as_os_str().is_empty());
        assert_eq!(line("nonsense"), None);
    }

    fn region(start: usize, end: usize, file: Option<u64>) -> Region {
        Region {
            start,
            end,
            protection: 0,
            name: None,
            file: file.map(|offset| Backing {
                path: "/f".into(),
                offset,
                digest: String::new(),
            }),
        }
    }

    #[test]
    fn only_what_shows_something_else_is_fresh() {
        let maps = |regions: Vec<Region>| Maps { regions };
        let before = maps(vec![region(10, 20, None), region(30, 50, Some(0))]);
        assert_eq!(fresh(&before, &Maps::default()), [10..20, 30..50]);
        assert_eq!(fresh(&before, &before), []);
        // Cut, grown, another file's offset, a file where zeros were.
        let now = maps(vec![
            region(5, 15, None),
            region(15, 20, Some(7)),
            region(20, 25, None),
            region(35, 40, Some(5)),
            region(40, 45, Some(11)),
        ]);
        assert_eq!(fresh(&now, &before), [5..10, 15..20, 20..25, 40..45]);
    }
}
