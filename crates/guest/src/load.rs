//! Userland exec: a program and its interpreter, mapped into a slot as the kernel would map them.
//!
//! Every guest has its own dynamic loader and so its own C library, TLS, heap and symbol scope; its preload
//! concerns nobody else. What can be mapped is what can be preloaded: position-independent programs of x86-64
//! with an interpreter (System V ABI, gABI chapter 5; x86-64 psABI chapter 5).

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::Endianness;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::error::GuestError;
use crate::memory::{self, Mapping};
use crate::slot::PAGE;
use crate::space::{Space, pages};

/// How much of a file is read for its headers.
const HEAD: u64 = 1 << 20;
/// The most address space that one file may want.
const LARGEST: usize = 1 << 30;

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
    entry: usize,
    headers_at: u64,
    count: usize,
    segments: Vec<Segment>,
    /// its interpreter
    pub interpreter: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    address: usize,
    memory: usize,
    offset: u64,
    bytes: usize,
    protection: i32,
}

impl Program {
    /// Reads the headers.
    ///
    /// # Errors
    /// [`GuestError::Program`] when the file is not a program that can be hosted.
    pub fn open(path: &Path) -> Result<Self, GuestError> {
        let wrong = |what: &str, help: &'static str| GuestError::Program {
            path: path.to_owned(),
            what: what.to_owned(),
            help,
        };
        let broken = |what: &str| wrong(what, "give a program that runs by itself");
        let mut file = File::open(path).map_err(|e| broken(&e.to_string()))?;
        let meta = file.metadata().map_err(|e| broken(&e.to_string()))?;
        if !meta.is_file() {
            return Err(broken("not a file"));
        }
        if meta.mode() & 0o6000 != 0 {
            return Err(wrong(
                "it is set-user-ID or set-group-ID, and a guest gets no rights of its own",
                "run a copy without these bits",
            ));
        }
        let mut bytes = Vec::new();
        (&mut file)
            .take(HEAD)
            .read_to_end(&mut bytes)
            .map_err(|e| broken(&e.to_string()))?;
        let data = bytes.as_slice();
        match data {
            [b'#', b'!', ..] => {
                return Err(wrong(
                    "a script, not a program",
                    "name its interpreter and the script",
                ));
            }
            [0x7f, b'E', b'L', b'F', 1, ..] => {
                return Err(wrong("a 32-bit program", "give its 64-bit version"));
            }
            [0x7f, b'E', b'L', b'F', ..] => {}
            _ => return Err(broken("not an ELF file")),
        }
        let header = FileHeader64::<Endianness>::parse(data).map_err(|e| broken(&e.to_string()))?;
        let endian = header.endian().map_err(|e| broken(&e.to_string()))?;
        if header.e_machine(endian) != elf::EM_X86_64 || endian != Endianness::Little {
            return Err(wrong(
                "a program of another processor",
                "give its x86-64 version",
            ));
        }
        let kind = header.e_type(endian);
        if kind != elf::ET_DYN && kind != elf::ET_EXEC {
            return Err(broken("neither a program nor a shared library"));
        }
        let headers = header
            .program_headers(endian, data)
            .map_err(|e| broken(&format!("program headers: {e}")))?;
        let segments = segments(headers, endian, meta.len()).map_err(|what| broken(&what))?;
        let interpreter = headers
            .iter()
            .find_map(|h| h.interpreter(endian, data).transpose())
            .transpose()
            .map_err(|e| broken(&format!("interpreter: {e}")))?
            .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()));
        // One without an interpreter is told so by `load`.
        if kind == elf::ET_EXEC && interpreter.is_some() {
            return Err(wrong(
                "it is linked to fixed addresses (no PIE), which are no slot's",
                "build it as a position-independent program (-pie), dynamically linked",
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            entry: header.e_entry(endian) as usize,
            headers_at: header.e_phoff(endian),
            count: headers.len(),
            segments,
            interpreter,
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
            .segments
            .iter()
            .map(|s| s.address & !(PAGE - 1))
            .min()
            .unwrap_or(0);
        let to = self
            .segments
            .iter()
            .map(|s| s.address + s.memory)
            .max()
            .unwrap_or(0);
        let length = pages(to - from).ok_or_else(|| wrong("too large".into()))?;
        let place = space.place(length).ok_or_else(|| refused(libc::ENOMEM))?;
        let bias = place.wrapping_sub(from);
        let name: Arc<str> = self.path.display().to_string().into();
        let mut headers = 0;
        for segment in &self.segments {
            self.segment(space, segment, bias, &name).map_err(refused)?;
            let within = self.headers_at.checked_sub(segment.offset);
            if let Some(into) = within.filter(|into| *into < segment.bytes as u64) {
                headers = bias.wrapping_add(segment.address) + into as usize;
            }
        }
        Ok(Image {
            bias,
            entry: bias.wrapping_add(self.entry),
            headers,
            count: self.count,
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

/// The loadable segments, each within bounds that cannot overflow.
fn segments(
    headers: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    file: u64,
) -> Result<Vec<Segment>, String> {
    let mut found = Vec::new();
    for header in headers.iter().filter(|h| h.p_type(endian) == elf::PT_LOAD) {
        let (address, memory) = (header.p_vaddr(endian), header.p_memsz(endian));
        let (offset, bytes) = (header.p_offset(endian), header.p_filesz(endian));
        if memory == 0 {
            continue;
        }
        let end = address
            .checked_add(memory)
            .filter(|end| *end <= LARGEST as u64);
        if end.is_none() || bytes > memory {
            return Err("a segment that is larger than it can be".into());
        }
        if offset.checked_add(bytes).is_none_or(|end| end > file) {
            return Err("a segment beyond the end of the file".into());
        }
        if offset % PAGE as u64 != address % PAGE as u64 {
            return Err("a segment that is not aligned to pages".into());
        }
        let flags = header.p_flags(endian);
        let bits = [
            (elf::PF_R, libc::PROT_READ),
            (elf::PF_W, libc::PROT_WRITE),
            (elf::PF_X, libc::PROT_EXEC),
        ];
        let protection = bits
            .iter()
            .filter(|(f, _)| flags.0 & f.0 != 0)
            .fold(0, |all, (_, p)| all | p);
        if memory::sane(protection).is_err() {
            return Err("a segment that is both writable and executable".into());
        }
        found.push(Segment {
            address: address as usize,
            memory: memory as usize,
            offset,
            bytes: bytes as usize,
            protection,
        });
    }
    if found.is_empty() {
        return Err("nothing to load".into());
    }
    Ok(found)
}

/// Maps a program and its interpreter: the program's image, and the interpreter's.
///
/// # Errors
/// [`GuestError::Program`] when one of them cannot be hosted.
pub fn load(path: &Path, space: &mut Space) -> Result<(Image, Image), GuestError> {
    let program = Program::open(path)?;
    let Some(interpreter) = &program.interpreter else {
        return Err(GuestError::Program {
            path: path.to_owned(),
            what: "it is linked statically: it has no dynamic loader that could give it a packet library".into(),
            help: "build it dynamically linked; programs of Go need -linkmode=external and -buildmode=pie",
        });
    };
    let loader = Program::open(interpreter)?;
    Ok((program.map(space)?, loader.map(space)?))
}
