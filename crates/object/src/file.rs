//! Files that somebody names: read to a bound, whatever they turn out to be.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for the next bytes of a pipe: who reads a file for a run may be asked for others meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks into a pipe.
const PAUSE: Duration = Duration::from_millis(5);

/// `O_NONBLOCK` (asm-generic/fcntl.h): to open a pipe does not wait for a writer, to read it not for bytes.
const O_NONBLOCK: i32 = 0o4000;

/// The bytes of a file of at most `most` bytes. A device or a pipe that has more ends there as well.
///
/// # Errors
/// It cannot be read, has more, or is a pipe into which nothing is written for 5 s.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = most.saturating_add(1);
    if std::fs::metadata(path)?.file_type().is_fifo() {
        let mut options = OpenOptions::new();
        let pipe = options.read(true).custom_flags(O_NONBLOCK).open(path)?;
        drain(pipe.take(limit), &mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > most {
        let what = format!("more than {most} bytes, which is the most that is read");
        return Err(Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// All that is written into a pipe until its last writer closes it. A pipe that nobody has opened yet looks as one at its
/// end, so that the end counts behind the first byte.
fn drain(mut pipe: impl Read, bytes: &mut Vec<u8>) -> Result<()> {
    let mut since = Instant::now();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) if !bytes.is_empty() => return Ok(()),
            Ok(0) => {}
            Ok(n) => {
                bytes.extend(chunk.iter().take(n));
                since = Instant::now();
                continue;
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if since.elapsed() > PATIENCE {
            let what = format!(
                "a pipe, into which nothing was written for {} s",
                PATIENCE.as_secs()
            );
            return Err(Error::new(ErrorKind::TimedOut, what));
        }
        std::thread::sleep(PAUSE);
    }
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

    #[test]
    fn a_pipe_is_read_to_its_end_and_not_waited_for_without_one() {
        let name = format!("millrace-pipe-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = read(&path, 1000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || std::fs::write(path, vec![b'x'; 100_000]))
        };
        assert_eq!(read(&path, 1 << 20).unwrap().len(), 100_000);
        writer.join().unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
