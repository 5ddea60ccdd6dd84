//! Search for a clang that supports what emitted code needs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use super::link::{self, Link};
use crate::cache::Cache;
use crate::error::Error;

/// The oldest clang that compiles handlers: `-mcpu=v4` came with 18.
const OLDEST: u32 = 18;
/// The newest release that is looked for under its own name.
const NEWEST: u32 = 24;
const PACKAGE: &str = "clang-19";

/// A clang that will do.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// the program
    pub clang: PathBuf,
    /// what it says of itself, whole: it goes into every cache key
    pub version: String,
    /// the major release
    pub major: u32,
    /// how it links shared objects; none where it does not say so in words that are understood
    pub link: Option<Link>,
}

/// Finds the newest clang on the path.
///
/// It is asked for its version and its way to link once for each program file: the answer is kept in the cache under the
/// file's path, time and length, so that a warm start starts no process.
///
/// # Errors
/// [`Error::Toolchain`] when there is none, or only older ones.
pub fn find(cache: &Cache) -> Result<Toolchain, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let names = (OLDEST..=NEWEST)
        .rev()
        .map(|n| format!("clang-{n}"))
        .chain(["clang".to_owned()]);
    let mut refused = Vec::new();
    for name in names {
        for program in folders.iter().map(|folder| folder.join(&name)) {
            if !program.is_file() {
                continue;
            }
            match usable(&program, cache) {
                Ok(toolchain) => return Ok(toolchain),
                Err(reason) => refused.push(reason),
            }
        }
    }
    let reason = if refused.is_empty() {
        format!("no clang on the path; {OLDEST} or newer is needed")
    } else {
        format!(
            "no clang that will do; {OLDEST} or newer is needed ({})",
            refused.join("; ")
        )
    };
    Err(Error::Toolchain {
        reason,
        package: PACKAGE,
    })
}

fn usable(program: &Path, cache: &Cache) -> Result<Toolchain, String> {
    let said = said(program, cache).map_err(|e| format!("{}: {e}", program.display()))?;
    let words = said.find("\n \"").unwrap_or(said.len());
    let (version, words) = said.split_at_checked(words).unwrap_or((&said, ""));
    match major(version) {
        Some(major) if major >= OLDEST => Ok(Toolchain {
            clang: program.to_owned(),
            version: version.to_owned(),
            major,
            link: Link::of(words),
        }),
        Some(major) => Err(format!("{} is {major}", program.display())),
        None => Err(format!("{} does not say its version", program.display())),
    }
}

/// What it says of itself and of how it links.
fn said(program: &Path, cache: &Cache) -> Result<String, String> {
    // The file behind the links: an upgrade replaces it.
    let real = program.canonicalize().map_err(|e| e.to_string())?;
    let file = real.metadata().map_err(|e| e.to_string())?;
    let modified = file
        .modified()
        .ok()
        .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |d| d.as_nanos());
    let identity = format!("link\0{}\0{modified}\0{}", real.display(), file.len());
    let entry = cache.entry("clang", &crate::cache::key(&[identity.as_bytes()]), "txt");
    // What it links with is of another package, which may be upgraded alone.
    if let Ok(known) = std::fs::read_to_string(&entry)
        && Link::of(&known).is_none_or(|link| link.stands())
    {
        return Ok(known);
    }
    let output = Command::new(program)
        .args(link::QUESTION)
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("-### ends with {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    cache
        .write(&entry, text.as_bytes())
        .map_err(|e| e.to_string())?;
    Ok(text)
}

/// `Debian clang version 19.1.7 (…)` gives 19.
fn major(version: &str) -> Option<u32> {
    let after = version.split("clang version ").nth(1)?;
    after
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn reads_versions() {
        assert_eq!(
            major("Debian clang version 19.1.7 (3+b1)\nTarget: x86_64"),
            Some(19)
        );
        assert_eq!(major("clang version 22.0.0git"), Some(22));
        assert_eq!(major("gcc (Debian 12.2.0) 12.2.0"), None);
    }
}
