//! Preloads: libraries of ours that a guest's loader finds before its own, as files that exist for it alone.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::ReadCache;
use object::read::elf::FileHeader;

use crate::error::GuestError;

/// Where a guest's loader finds the one for packets and libpcap, and the one for DPDK.
const FILES: [&str; 2] = ["/millrace/guest.so", "/millrace/dpdk.so"];
/// The libraries, the one for DPDK empty where this was built without it.
pub static BYTES: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/preload.so")),
    include_bytes!(concat!(env!("OUT_DIR"), "/preload-dpdk.so")),
];
/// DPDK's base library, whose number is that of the ABI.
const DPDK: &str = "librte_eal.so.";

/// The preloads of one guest.
#[derive(Debug)]
pub struct Preloads {
    files: Vec<(&'static str, OwnedFd)>,
}

impl Preloads {
    /// Those that a program needs.
    ///
    /// # Errors
    /// [`GuestError::Program`] when it is one of a DPDK that this was not built for, [`GuestError::System`] when
    /// descriptors are short.
    pub fn of(program: &Path) -> Result<Self, GuestError> {
        let needs = needed(program);
        let dpdk = needs.iter().find(|library| library.starts_with(DPDK));
        if let Some(library) = dpdk
            && !names(BYTES[1], library)
        {
            let here = if BYTES[1].is_empty() {
                "without DPDK"
            } else {
                "for another version of it"
            };
            return Err(GuestError::Program {
                path: program.to_owned(),
                what: format!("it needs DPDK's {library}, and this was built {here}"),
                help: "install libdpdk-dev of the version that the program uses, and build again (cargo clean -p millrace-guest first)",
            });
        }
        let count = if dpdk.is_some() { 2 } else { 1 };
        let files = FILES.into_iter().zip(BYTES).take(count);
        let files = files.map(|(path, bytes)| Ok((path, in_memory(bytes)?)));
        Ok(Self {
            files: files.collect::<Result<_, GuestError>>()?,
        })
    }

    /// Whether the program is one of DPDK.
    #[must_use]
    pub fn dpdk(&self) -> bool {
        self.files.len() > 1
    }

    /// The value of `LD_PRELOAD`.
    #[must_use]
    pub fn variable(&self) -> String {
        let paths: Vec<&str> = self.files.iter().map(|(path, _)| *path).collect();
        format!("LD_PRELOAD={}", paths.join(" "))
    }

    /// The file behind a path that a guest names, if it names a preload.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<PathBuf> {
        let (_, file) = self
            .files
            .iter()
            .find(|(name, _)| path == Path::new(name))?;
        Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }
}

/// Libraries that a program says it needs; none when its file makes no sense, which the loader will say.
fn needed(program: &Path) -> Vec<String> {
    let Ok(file) = std::fs::File::open(program) else {
        return Vec::new();
    };
    // Of a file of megabytes it is a few pages.
    let cache = ReadCache::new(file);
    let data = &cache;
    let read = || -> object::Result<Vec<String>> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let table = sections.dynamic_table(endian, data)?;
        let needed = table.iter().filter(|d| d.tag == elf::DT_NEEDED);
        needed
            .map(|d| Ok(String::from_utf8_lossy(table.string(d)?).into_owned()))
            .collect()
    };
    read().unwrap_or_default()
}

/// Whether a library's file has this string.
fn names(bytes: &[u8], library: &str) -> bool {
    let wanted = [library.as_bytes(), &[0]].concat();
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// A file in memory with this content.
fn in_memory(bytes: &[u8]) -> Result<OwnedFd, GuestError> {
    use std::io::Write;
    // SAFETY: a literal name; the descriptor is new and nobody else's.
    let file = unsafe {
        let fd = libc::memfd_create(c"millrace-guest".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(GuestError::system("a file in memory"));
        }
        OwnedFd::from_raw_fd(fd)
    };
    let mut file = std::fs::File::from(file);
    file.write_all(bytes).map_err(|source| GuestError::System {
        what: "a file in memory",
        source,
    })?;
    Ok(file.into())
}
