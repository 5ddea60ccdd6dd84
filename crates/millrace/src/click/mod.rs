//! Click configurations as functions: synthesised to C, which goes the way of every source.

pub mod compare;
pub mod function;
pub mod joined;
pub mod slow;

use std::path::{Path, PathBuf};

use millrace_emit::cache::{self, Cache};
use millrace_synth::{Options, Synthesis, emit, graph, synthesise};

use crate::Error;

/// The file that a word names and how it is synthesised, by what is behind its name (`FILE.click:early-discard`, `FILE.click:whole`,
/// `FILE.click:lists`); none where it is no configuration.
#[must_use]
pub fn named(word: &str) -> Option<(&str, Options)> {
    let (mut file, mut options) = (word, Options::default());
    while let Some((rest, last)) = file.rsplit_once(':') {
        match last {
            "early-discard" => options.early_discard = true,
            "whole" => options.whole = true,
            "lists" => options.lists = true,
            _ => return None,
        }
        file = rest;
    }
    file.ends_with(".click").then_some((file, options))
}

/// Reads and synthesises a configuration. Lines are named by its whole path, or as it was given.
///
/// # Errors
/// It cannot be read, is wrong, or cannot be synthesised: each with its place.
pub fn read(path: &Path, whole: bool, options: Options) -> Result<Synthesis, Error> {
    let named = match whole {
        true => std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        false => path.to_owned(),
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new(""));
    let done = graph(&named).and_then(|graph| synthesise(&name, graph, folder, options));
    done.map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Error {
            detail: Some(all.join("\n\n")),
            ..Error::wrong(format!("{}: no function can be made of it", path.display()))
        }
    })
}

/// The C that a configuration becomes, in the user's cache, and its slow path, if it has one.
///
/// # Errors
/// Those of [`read`], and of the cache.
pub(crate) fn source(
    path: &Path,
    options: Options,
) -> Result<(PathBuf, Option<slow::Configuration>), Error> {
    let synthesis = read(path, true, options)?;
    let entry = written(&synthesis, &Cache::of_user()?)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok((entry, slow::Configuration::of(&synthesis, folder, &[])))
}

/// The C of a synthesis, in a cache.
fn written(of: &Synthesis, cache: &Cache) -> Result<PathBuf, Error> {
    let text = emit::lined(of);
    let key = cache::key(&[text.as_bytes()]);
    let entry = cache.entry("click", &format!("{key}/{}", of.name), "c");
    if !cache.has(&entry) {
        cache.write(&entry, text.as_bytes())?;
    }
    Ok(entry)
}
