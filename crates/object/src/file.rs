//! Files that somebody names: read to a bound, whatever they turn out to be.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The bytes of a file of at most `most` bytes. A device or a pipe that has more ends there as well.
///
/// # Errors
/// It cannot be read, or has more.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("more than {most} bytes, which is the most that is read");
        return Err(Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// The same of a text.
///
/// # Errors
/// As [`read`], or it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_never_ends_is_read_to_the_bound() {
        let error = read(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("1000 bytes"));
        assert!(read(Path::new("/dev/null"), 0).unwrap().is_empty());
        assert!(read_text(Path::new("/proc/self/cmdline"), 4096).is_ok());
        assert!(read_text(Path::new("/proc/self/exe"), 1 << 30).is_err());
    }
}
