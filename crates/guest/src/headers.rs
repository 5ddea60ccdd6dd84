//! The headers of a program: what of an ELF file is hosted, and why the rest is not (System V ABI, gABI chapter 5).

use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::memory;
use crate::slot::{FIXED, PAGE};

/// The most address space that one file may want.
const LARGEST: usize = 1 << 30;

/// The headers of a program.
#[derive(Debug)]
pub struct Headers {
    pub(crate) entry: usize,
    pub(crate) headers_at: u64,
    pub(crate) count: usize,
    pub(crate) segments: Vec<Segment>,
    /// it lies where it was linked to (no PIE)
    pub fixed: bool,
    /// its interpreter
    pub interpreter: Option<PathBuf>,
    /// it is a program of Go's
    go: bool,
}

/// Why a file cannot be hosted, and what to do about it.
pub type Refusal = (String, &'static str);

/// A file that is none that anything could run.
pub(crate) fn broken(what: &str) -> Refusal {
    (what.to_owned(), "give a program that runs by itself")
}

/// A part of a program that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// where it belongs, before the bias
    pub address: usize,
    /// bytes in memory
    pub memory: usize,
    /// where it begins in the file
    pub offset: u64,
    /// bytes in the file
    pub bytes: usize,
    /// `PROT_*`
    pub protection: i32,
}

impl Headers {
    /// From the first bytes of a file of `length` bytes.
    ///
    /// # Errors
    /// Why it is no program that can be hosted; whatever the bytes are.
    pub fn read(data: &[u8], length: u64) -> Result<Self, Refusal> {
        match data {
            [b'#', b'!', ..] => {
                return Err((
                    "a script, not a program".into(),
                    "name its interpreter and the script",
                ));
            }
            [0x7f, b'E', b'L', b'F', 1, ..] => {
                return Err(("a 32-bit program".into(), "give its 64-bit version"));
            }
            [0x7f, b'E', b'L', b'F', ..] => {}
            _ => return Err(broken("not an ELF file")),
        }
        let header = FileHeader64::<Endianness>::parse(data).map_err(|e| broken(&e.to_string()))?;
        let endian = header.endian().map_err(|e| broken(&e.to_string()))?;
        if header.e_machine(endian) != elf::EM_X86_64 || endian != Endianness::Little {
            return Err((
                "a program of another processor".into(),
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
        let segments = segments(headers, endian, length).map_err(|what| broken(&what))?;
        let interpreter = headers
            .iter()
            .find_map(|h| h.interpreter(endian, data).transpose())
            .transpose()
            .map_err(|e| broken(&format!("interpreter: {e}")))?
            .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()));
        let fixed = kind == elf::ET_EXEC;
        let outside = |s: &Segment| s.address < FIXED.start || s.address + s.memory > FIXED.end;
        // One without an interpreter is told so by `load`.
        if fixed && interpreter.is_some() && segments.iter().any(outside) {
            return Err((
                format!(
                    "it is linked to fixed addresses (no PIE) beyond {:#x} to {:#x}, which guests can have",
                    FIXED.start, FIXED.end
                ),
                "build it as a position-independent program (-pie), dynamically linked",
            ));
        }
        Ok(Self {
            entry: header.e_entry(endian) as usize,
            headers_at: header.e_phoff(endian),
            count: headers.len(),
            segments,
            fixed,
            interpreter,
            go: headers.iter().any(|h| is_go(h, endian, data)),
        })
    }

    /// Refuses a program without a dynamic loader.
    ///
    /// # Errors
    /// Why, and what to do.
    pub fn loader(&self) -> Result<&Path, Refusal> {
        match (&self.interpreter, self.go) {
            (Some(loader), _) => Ok(loader),
            (None, true) => Err((
                "a program of Go's, linked statically: it has no dynamic loader that could give it a packet library"
                    .into(),
                "build it with -buildmode=pie -ldflags=-linkmode=external",
            )),
            (None, false) => Err((
                "it is linked statically: it has no dynamic loader that could give it a packet library".into(),
                "build it dynamically linked",
            )),
        }
    }
}

/// Whether a header is of notes that the Go linker has written: they are named "Go".
fn is_go(header: &ProgramHeader64<Endianness>, endian: Endianness, data: &[u8]) -> bool {
    let Ok(Some(mut notes)) = header.notes(endian, data) else {
        return false;
    };
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"Go" {
            return true;
        }
    }
    false
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    /// Headers of a real program with bytes changed at random: whatever is accepted can be mapped without overflow.
    #[test]
    fn headers_of_any_bytes_are_refused_or_in_bounds() {
        let program = std::env::current_exe().unwrap();
        let mut bytes = Vec::new();
        let file = File::open(program).unwrap();
        let length = file.metadata().unwrap().len();
        file.take(8192).read_to_end(&mut bytes).unwrap();
        assert!(Headers::read(&bytes, length).is_ok());
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        };
        let mut accepted = 0;
        for round in 0..20_000 {
            let mut bad = bytes.clone();
            for _ in 0..1 + round % 6 {
                let at = draw(64 + 14 * 56);
                *bad.get_mut(at).unwrap() = draw(256) as u8;
            }
            bad.truncate(if round % 16 == 0 { draw(8192) } else { 8192 });
            let Ok(headers) = Headers::read(&bad, length) else {
                continue;
            };
            accepted += 1;
            for segment in &headers.segments {
                assert!(segment.address + segment.memory <= LARGEST);
                assert!(segment.bytes <= segment.memory);
                assert!(segment.offset + segment.bytes as u64 <= length);
                assert_ne!(segment.protection & 6, 6);
            }
        }
        assert!(accepted > 1000 && accepted < 19_000, "{accepted}");
    }
}
