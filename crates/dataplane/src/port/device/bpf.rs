//! The few calls of bpf(2) that a live port needs: a map of sockets, a program that redirects to them,
//! and a link that attaches it.
//!
//! A link is detached when its last descriptor is closed, also by a kill: no interface is left with a
//! program that nobody owns.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::port::{PortError, Query};

/// Commands (enum bpf_cmd of linux/bpf.h).
const MAP_CREATE: u64 = 0;
const MAP_UPDATE_ELEM: u64 = 2;
const PROG_LOAD: u64 = 5;
const BTF_LOAD: u64 = 18;
const LINK_CREATE: u64 = 28;
/// Types there.
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// How a program is attached (XDP_FLAGS_* of linux/if_link.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// by the driver
    Native = 1 << 2,
    /// by the stack, for drivers that cannot
    Generic = 1 << 1,
}

impl Mode {
    /// Takes the option `mode=native|generic` of a port's word; none when it is not given.
    ///
    /// # Errors
    /// [`PortError::Option`] when it is neither.
    pub fn take(query: &mut Query) -> Result<Option<Self>, PortError> {
        match query.text("mode").as_deref() {
            None => Ok(None),
            Some("native") => Ok(Some(Self::Native)),
            Some("generic") => Ok(Some(Self::Generic)),
            Some(_) => Err(query.wrong("mode", "`native` or `generic`")),
        }
    }
}

/// Calls bpf(2) with a union of which these are the first words.
fn bpf(command: u64, words: &mut [u64]) -> io::Result<i64> {
    // SAFETY: `words` is memory of the size given, whose addresses (where the command has any) point
    // to memory that the callers below keep alive during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            words.as_mut_ptr(),
            size_of_val(words),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn descriptor(number: i64) -> OwnedFd {
    // SAFETY: a descriptor that the kernel has just opened for us.
    unsafe { OwnedFd::from_raw_fd(number as i32) }
}

/// Two 32-bit words as the union's 64-bit words have them.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The address of memory, for the kernel.
fn address<T>(of: &T) -> u64 {
    std::ptr::from_ref(of).expose_provenance() as u64
}

/// A map from receive queues to AF_XDP sockets.
pub struct SocketMap(OwnedFd);

impl SocketMap {
    /// Makes one for this many queues.
    ///
    /// # Errors
    /// The system's.
    pub fn new(queues: u32) -> io::Result<Self> {
        // type and key size, value size and entries
        let mut words = [pair(MAP_TYPE_XSKMAP, 4), pair(4, queues), 0, 0];
        bpf(MAP_CREATE, &mut words).map(|fd| Self(descriptor(fd)))
    }

    /// Puts a socket in.
    ///
    /// # Errors
    /// The system's.
    pub fn set(&self, queue: u32, socket: i32) -> io::Result<()> {
        let map = self.0.as_raw_fd() as u32;
        let mut words = [pair(map, 0), address(&queue), address(&socket), 0];
        bpf(MAP_UPDATE_ELEM, &mut words).map(|_| ())
    }
}

/// The type of a function in [`function_types`].
const FUNCTION: u32 = 3;

/// Loads the types (BTF, Documentation/bpf/btf.rst of the kernel) of a function that is static and returns an
/// int, which is what the verifier wants to know of one that makes tail calls.
fn function_types() -> io::Result<OwnedFd> {
    const NAMES: &[u8; 14] = b"\0int\0function\0";
    let types: [u32; 10] = [
        // int: its name, its kind, 4 bytes, signed with 32 bits
        1,
        1 << 24,
        4,
        1 << 24 | 32,
        // a prototype that returns it
        0,
        13 << 24,
        1,
        // a function of this prototype
        5,
        12 << 24,
        2,
    ];
    let length = size_of_val(&types) as u32;
    // Magic number, version 1; then the lengths of the header, types and names, and where they lie.
    let header = [0x0001_eb9f, 24, 0, length, length, NAMES.len() as u32];
    let words = header.iter().chain(&types);
    let mut blob: Vec<u8> = words.flat_map(|w| w.to_ne_bytes()).collect();
    blob.extend(NAMES);
    let mut words = [
        blob.as_ptr().expose_provenance() as u64,
        0,
        pair(blob.len() as u32, 0),
        0,
    ];
    bpf(BTF_LOAD, &mut words).map(descriptor)
}

/// What a program is loaded with besides its instructions.
pub struct Like<'a> {
    /// its license: some helpers are for those compatible with the GPL
    pub license: &'a CStr,
    /// its name, of which the kernel keeps 15 bytes
    pub name: &'a str,
    /// `BPF_F_*` of its loading
    pub flags: u32,
    /// where its functions begin, in instructions from 0 on, ascending; without them, none of those after the
    /// first may make tail calls
    pub functions: &'a [u32],
}

/// A program, loaded.
pub struct XdpProgram(OwnedFd);

impl XdpProgram {
    /// Loads the program that gives a packet to the socket of its receive queue, and to the host's own
    /// stack where there is none:
    ///
    /// ```text
    /// r2 = *(u32 *)(r1 + 16)          struct xdp_md: rx_queue_index
    /// r1 = map
    /// r3 = XDP_PASS                   what to do when the map has no socket for the queue
    /// call bpf_redirect_map
    /// exit
    /// ```
    ///
    /// # Errors
    /// The system's.
    pub fn to_sockets(map: &SocketMap) -> io::Result<Self> {
        const PASS: u64 = 2;
        const REDIRECT_MAP: u64 = 51;
        // Opcode, registers (source in the high half), offset, immediate: RFC 9669, section 3.
        let insn = |opcode: u64, dst: u64, src: u64, offset: u64, imm: u64| {
            opcode | dst << 8 | src << 12 | offset << 16 | imm << 32
        };
        let fd = self::fd(map);
        let code = [
            insn(0x61, 2, 1, 16, 0),
            insn(0x18, 1, 1, 0, fd),
            insn(0, 0, 0, 0, 0),
            insn(0xb7, 3, 0, 0, PASS),
            insn(0x85, 0, 0, 0, REDIRECT_MAP),
            insn(0x95, 0, 0, 0, 0),
        ];
        Self::load(&code)
    }

    /// Its descriptor.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn load(code: &[u64]) -> io::Result<Self> {
        let like = Like {
            license: c"MIT",
            name: "millrace",
            flags: 0,
            functions: &[],
        };
        Self::load_like(code, &like).map_err(|(error, _)| error)
    }

    /// Loads instructions (RFC 9669, each as the 64 bits that it has in memory).
    ///
    /// # Errors
    /// The system's, and what its verifier said.
    pub fn load_like(code: &[u64], like: &Like<'_>) -> Result<Self, (io::Error, String)> {
        let mut name = [0_u8; 16];
        // The last byte stays zero.
        for (to, from) in name.iter_mut().take(15).zip(like.name.bytes()) {
            *to = from;
        }
        let [first, second] = [0, 8].map(|at| {
            let bytes = name.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |b| u64::from_ne_bytes(*b))
        });
        let said = |e| (e, String::new());
        let types = if like.functions.is_empty() {
            None
        } else {
            Some(function_types().map_err(said)?)
        };
        // struct bpf_func_info: where a function begins, its type.
        let functions: Vec<[u32; 2]> = like.functions.iter().map(|at| [*at, FUNCTION]).collect();
        let mut words = [
            pair(PROG_TYPE_XDP, code.len() as u32),
            code.as_ptr().expose_provenance() as u64,
            like.license.as_ptr().expose_provenance() as u64,
            0,
            0,
            pair(0, like.flags),
            first,
            second,
            pair(0, ATTACH_XDP),
            pair(types.as_ref().map_or(0, |t| t.as_raw_fd() as u32), 8),
            functions.as_ptr().expose_provenance() as u64,
            pair(functions.len() as u32, 0),
        ];
        let error = match bpf(PROG_LOAD, &mut words) {
            Ok(fd) => return Ok(Self(descriptor(fd))),
            Err(error) => error,
        };
        // Once more, for the verifier's words.
        let mut log = vec![0_u8; 1 << 16];
        let [_, _, _, size, buffer, ..] = &mut words;
        *size = pair(1, log.len() as u32);
        *buffer = log.as_mut_ptr().expose_provenance() as u64;
        match bpf(PROG_LOAD, &mut words) {
            Ok(fd) => Ok(Self(descriptor(fd))),
            Err(_) => {
                let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
                log.truncate(end);
                Err((error, String::from_utf8_lossy(&log).into_owned()))
            }
        }
    }
}

fn fd(map: &SocketMap) -> u64 {
    map.0.as_raw_fd() as u64
}

/// A program attached to an interface, as long as this lives.
pub struct Link(#[allow(dead_code, reason = "held open")] OwnedFd);

impl Link {
    /// Attaches a program.
    ///
    /// # Errors
    /// The system's; `EBUSY` where another program is attached.
    pub fn attach(program: BorrowedFd<'_>, interface: u32, mode: Mode) -> io::Result<Self> {
        let program = program.as_raw_fd() as u32;
        let mut words = [
            pair(program, interface),
            pair(ATTACH_XDP, mode as u32),
            0,
            0,
        ];
        bpf(LINK_CREATE, &mut words).map(|fd| Self(descriptor(fd)))
    }
}
