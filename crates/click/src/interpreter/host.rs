//! What a configuration asks of the machine: files, and where text goes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::element::Element;

/// Files and streams. A path is what the configuration says.
pub trait Host {
    /// The content of a file; `-` is standard input.
    ///
    /// # Errors
    /// Why not.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String>;
    /// Writes a file, or adds to it; `-` is standard output.
    ///
    /// # Errors
    /// Why not.
    fn write(&mut self, path: &str, bytes: &[u8], append: bool) -> Result<(), String>;
    /// Text for standard error: messages, Print.
    fn note(&mut self, text: &[u8]);
    /// An element that the host has under a name (`Function`); mostly there are none.
    fn element(&mut self, name: &str) -> Option<Box<dyn Element>> {
        let _ = name;
        None
    }
}

/// Files in memory, for tests and for comparisons.
#[derive(Default)]
pub struct Memory {
    /// by their names; `-` is standard output, or input
    pub files: HashMap<String, Vec<u8>>,
    /// what went to standard error
    pub notes: Vec<u8>,
}

impl Host for Memory {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let file = self.files.get(path).cloned();
        file.ok_or_else(|| format!("{path}: no such file"))
    }

    fn write(&mut self, path: &str, bytes: &[u8], append: bool) -> Result<(), String> {
        let file = self.files.entry(path.to_owned()).or_default();
        if !append && path != "-" {
            file.clear();
        }
        file.extend_from_slice(bytes);
        Ok(())
    }

    fn note(&mut self, text: &[u8]) {
        self.notes.extend_from_slice(text);
    }
}

/// Bytes of a file that is read, at most: a device of zeros has no end.
const MOST: u64 = 1 << 30;

/// Reads a file to its end.
///
/// # Errors
/// It cannot be read, or is too long.
pub fn whole(path: &Path) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    bounded(file, MOST)
}

/// Reads to the end.
///
/// # Errors
/// It cannot be read, or has more than so many bytes.
fn bounded(from: impl std::io::Read, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut from = std::io::Read::take(from, most + 1);
    std::io::Read::read_to_end(&mut from, &mut bytes).map_err(|e| e.to_string())?;
    match bytes.len() as u64 > most {
        true => Err(format!("it has more than {most} bytes")),
        false => Ok(bytes),
    }
}

/// The files below a folder, and the streams of this process.
pub struct Folder {
    /// where relative paths begin
    pub folder: PathBuf,
}

impl Host for Folder {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let read = match path {
            "-" => bounded(std::io::stdin(), MOST),
            _ => whole(&self.folder.join(path)),
        };
        read.map_err(|e| format!("{path}: {e}"))
    }

    fn write(&mut self, path: &str, bytes: &[u8], append: bool) -> Result<(), String> {
        use std::io::Write;
        let written = match path {
            "-" => std::io::stdout().write_all(bytes),
            _ => std::fs::OpenOptions::new()
                .create(true)
                .write(true)
                .append(append)
                .truncate(!append)
                .open(self.folder.join(path))
                .and_then(|mut file| file.write_all(bytes)),
        };
        written.map_err(|e| format!("{path}: {e}"))
    }

    fn note(&mut self, text: &[u8]) {
        use std::io::Write;
        // Standard error that is closed is nobody's loss.
        let _ = std::io::stderr().write_all(text);
    }
}

/// The files below a folder, to read. Nothing is written and nothing printed: a configuration is other people's, and may name any file; who
/// looks at one, or runs a function that was made of it, wants none of its own overwritten.
pub struct Reading(pub Folder);

impl Host for Reading {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            "-" => Err("-: standard input is not read".into()),
            _ => self.0.read(path),
        }
    }

    fn write(&mut self, _: &str, _: &[u8], _: bool) -> Result<(), String> {
        Ok(())
    }

    fn note(&mut self, _: &[u8]) {}
}
