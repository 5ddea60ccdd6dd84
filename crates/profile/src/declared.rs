//! Where the author declares an object.

use std::path::{Path, PathBuf};

/// The author's sources.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<(String, Vec<String>)>,
}

/// The most bytes of a source that are read.
const MOST: u64 = 4 << 20;

impl Sources {
    /// Those of a folder that these lines (`FILE:LINE`) name, and the function's own; those that cannot be read are none.
    #[must_use]
    pub fn read<'l>(folder: &Path, own: &str, lines: impl Iterator<Item = &'l str>) -> Self {
        let file = |line: &'l str| Some(line.rsplit_once(':')?.0.rsplit('/').next()?.to_owned());
        let named = lines.filter_map(file);
        let mut names: Vec<String> = named.chain([own.to_owned()]).collect();
        names.sort();
        names.dedup();
        let read = |name: String| {
            let path: PathBuf = folder.join(Path::new(&name).file_name()?);
            let small = std::fs::metadata(&path).ok()?.len() <= MOST;
            let text = small.then(|| std::fs::read(&path).ok())??;
            let text = String::from_utf8_lossy(&text).into_owned();
            Some((name, text.lines().map(str::to_owned).collect()))
        };
        Self {
            files: names.into_iter().filter_map(read).collect(),
        }
    }

    /// From texts that are at hand.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        let of = |(name, text): &(&str, &str)| ((*name).to_owned(), lines(text));
        Self {
            files: files.iter().map(of).collect(),
        }
    }

    /// The files, each with its lines.
    #[must_use]
    pub fn files(&self) -> &[(String, Vec<String>)] {
        &self.files
    }

    /// The line of a declaration: a macro in capitals, or a definition in `SEC(".maps")`, that names the object.
    #[must_use]
    pub fn declaration(&self, object: &str) -> Option<(&str, u32)> {
        let declares = |line: &str| {
            let line = line.trim();
            let words: Vec<&str> = line
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .filter(|w| !w.is_empty())
                .collect();
            let macro_of = words.get(1) == Some(&object)
                && words.first().is_some_and(|w| {
                    w.len() > 2 && w.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                });
            macro_of || words.contains(&object) && line.contains("SEC(\".maps\")")
        };
        self.files.iter().find_map(|(file, lines)| {
            let at = lines.iter().position(|l| declares(l))?;
            Some((file.as_str(), at as u32 + 1))
        })
    }

    /// The first line that uses an object, `FILE:LINE`.
    #[must_use]
    pub fn used(&self, object: &str) -> Option<String> {
        let uses = |line: &str| {
            line.match_indices('&').any(|(at, _)| {
                let rest = line.get(at + 1..).unwrap_or_default();
                let rest = rest.strip_prefix(object);
                rest.is_some_and(|r| !r.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            })
        };
        self.files.iter().find_map(|(file, lines)| {
            let at = lines.iter().position(|l| uses(l))?;
            Some(format!("{file}:{}", at + 1))
        })
    }

    /// A line's text.
    #[must_use]
    pub fn line(&self, place: &str) -> Option<&str> {
        let (file, line) = place.rsplit_once(':')?;
        let at = line.parse::<usize>().ok()?.checked_sub(1)?;
        let (_, lines) = self.files.iter().find(|(name, _)| name == file)?;
        lines.get(at).map(|l| l.trim())
    }
}
