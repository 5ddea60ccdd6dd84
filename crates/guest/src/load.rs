//! Userland exec: a program and its interpreter, mapped into a slot as the kernel would map them.
//!
//! Every guest has its own dynamic loader and so its own C library, TLS, heap and symbol scope; its preload
//! concerns nobody else. What can be mapped is what can be preloaded: programs of x86-64 with an interpreter
//! (System V ABI, gABI chapter 5; x86-64 psABI chapter 5). One that is not position independent lies where it was
//! linked to, and all else that belongs to it in the slot.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::GuestError;
use crate::headers::{Headers, Refusal, Segment, broken};
use crate::memory::{self, Mapping};
use crate::slot::{PAGE, Slot};
use crate::space::{Space, pages};

/// How much of a file is read for its headers.
const HEAD: u64 = 1 << 20;

/// A mapped file.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// what to add to its addresses
    pub bias: usize,
    /// where it begins to run
    pub entry: usize,
    /// where its program headers are mapped; 0: nowhere
    pub headers: usize,
    /// how many there are
    pub count: usize,
}

/// A program that has been looked at.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    file: File,
    headers: Headers,
}

impl Program {
    /// Reads the headers.
    ///
    /// # Errors
    /// [`GuestError::Program`] when the file is not a program that can be hosted.
    pub fn open(path: &Path) -> Result<Self, GuestError> {
        let refused = |(what, help): Refusal| GuestError::Program {
            path: path.to_owned(),
            what,
            help,
        };
        let broken = |what: &str| refused(broken(what));
        // A pipe without a writer would never be opened.
        let mut file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|e| broken(&e.to_string()))?;
        let meta = file.metadata().map_err(|e| broken(&e.to_string()))?;
        if !meta.is_file() {
            return Err(broken("not a file"));
        }
        if meta.mode() & 0o6000 != 0 {
            return Err(refused((
                "it is set-user-ID or set-group-ID, and a guest gets no rights of its own".into(),
                "run a copy without these bits",
            )));
        }
        let mut bytes = Vec::new();
        (&mut file)
            .take(HEAD)
            .read_to_end(&mut bytes)
            .map_err(|e| broken(&e.to_string()))?;
        let headers = Headers::read(&bytes, meta.len()).map_err(refused)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            headers,
        })
    }

    /// Maps it into a slot.
    ///
    /// # Errors
    /// [`GuestError::Program`] when there is no room or the kernel refuses.
    pub fn map(&self, space: &mut Space) -> Result<Image, GuestError> {
        let wrong = |what: String| GuestError::Program {
            path: self.path.clone(),
            what,
            help: "give a program that runs by itself, or more memory",
        };
        let refused = |errno: i32| wrong(std::io::Error::from_raw_os_error(errno).to_string());
        let from = self
            .headers
            .segments
            .iter()
            .map(|s| s.address & !(PAGE - 1))
            .min()
            .unwrap_or(0);
        let to = self
            .headers
            .segments
            .iter()
            .map(|s| s.address + s.memory)
            .max()
            .unwrap_or(0);
        let length = pages(to - from).ok_or_else(|| wrong("too large".into()))?;
        let bias = if self.headers.fixed {
            0
        } else {
            let place = space.place(length).ok_or_else(|| refused(libc::ENOMEM))?;
            place.wrapping_sub(from)
        };
        let name: Arc<str> = self.path.display().to_string().into();
        let mut headers = 0;
        for segment in &self.headers.segments {
            self.segment(space, segment, bias, &name).map_err(refused)?;
            let within = self.headers.headers_at.checked_sub(segment.offset);
            if let Some(into) = within.filter(|into| *into < segment.bytes as u64) {
                headers = bias.wrapping_add(segment.address) + into as usize;
            }
        }
        Ok(Image {
            bias,
            entry: bias.wrapping_add(self.headers.entry),
            headers,
            count: self.headers.count,
        })
    }

    fn segment(
        &self,
        space: &mut Space,
        segment: &Segment,
        bias: usize,
        name: &Arc<str>,
    ) -> Result<(), i32> {
        let address = bias.wrapping_add(segment.address);
        let start = address & !(PAGE - 1);
        let before = address - start;
        let end = address + segment.memory;
        let file_end = address + segment.bytes;
        let mut mapped = start;
        if segment.bytes > 0 {
            let length = before + segment.bytes;
            memory::map(
                space,
                &Mapping {
                    start,
                    length,
                    protection: segment.protection,
                    flags: libc::MAP_PRIVATE,
                    file: Some((self.file.as_raw_fd(), segment.offset - before as u64)),
                    name: Some(name.clone()),
                },
            )?;
            mapped = start + pages(length).ok_or(libc::EINVAL)?;
            // What follows the file's bytes on their last page is the file's. It must be zero to the page's end:
            // glibc's loader allocates from there.
            if segment.protection & libc::PROT_WRITE != 0 {
                let zeros = vec![0; mapped - file_end];
                if !memory::write(file_end, &zeros) {
                    return Err(libc::EFAULT);
                }
            }
        }
        if end > mapped {
            memory::map(
                space,
                &Mapping {
                    start: mapped,
                    length: end - mapped,
                    protection: segment.protection,
                    flags: libc::MAP_PRIVATE,
                    file: None,
                    name: None,
                },
            )?;
        }
        Ok(())
    }
}

/// Maps a program and its interpreter: the program's image, and the interpreter's.
///
/// # Errors
/// [`GuestError::Program`] when one of them cannot be hosted.
pub fn load(path: &Path, slot: &Slot, space: &mut Space) -> Result<(Image, Image), GuestError> {
    let program = Program::open(path)?;
    let interpreter = program
        .headers
        .loader()
        .map_err(|(what, help)| GuestError::Program {
            path: path.to_owned(),
            what,
            help,
        })?;
    let loader = Program::open(interpreter)?;
    if program.headers.fixed {
        let taken = slot.take_fixed().map_err(|why| GuestError::Program {
            path: path.to_owned(),
            what: format!("it is linked to fixed addresses (no PIE), and {why}"),
            help: "one such program at a time can be hosted: end the other, or build it as a position-independent one (-pie)",
        })?;
        space.fixed = Some(taken);
    }
    Ok((program.map(space)?, loader.map(space)?))
}
