//! A guest's system calls: what is not in the table is denied.
//!
//! The kernel turns each into a signal (`filter.rs`), and it is answered here: done as it is by the host,
//! done within the guest's slot, done as far as the guest can see, or refused. One file a subject; a call is one
//! line in its file's table.

pub mod files;
mod interface;
mod memory;
mod paths;
mod process;
pub mod signals;
mod sockets;
mod time;
mod wait;

use std::sync::Arc;
use std::sync::OnceLock;

use crate::memory::Errno;
use crate::shared::Shared;
use crate::slot;
use crate::thread::{Running, Thread};
use crate::trap::{Frame, Left};

/// Outcome of a call.
pub enum Answer {
    /// its result: a value, or an errno below zero
    Value(i64),
    /// the guest does not go on on this thread
    Leave(Left),
    /// it would wait, and the worker must not: to be made again on another thread
    Wait,
}

/// An argument that is handed to the kernel.
///
/// The kernel reads and writes with the host's rights to protection keys: what a guest could not do by itself must not
/// reach it. It may read its own slot and the host's memory, where packets lie, and write to its slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// a number
    Value,
    /// a descriptor of the guest's
    Fd,
    /// an address: null, or in the guest's slot
    Memory,
    /// an address of bytes that are read, as many as the argument at this place says: in no other guest's slot
    Data(usize),
}

/// Where bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// to the guest
    In,
    /// from the guest
    Out,
}

/// How a call is answered.
#[derive(Clone, Copy)]
pub enum How {
    /// by the kernel, after its arguments are checked; what is not listed is 0
    Kernel(&'static [Arg]),
    /// by a function
    Here(fn(&mut Call<'_>) -> Result<i64, Errno>),
    /// by one that may end the thread
    End(fn(&mut Call<'_>) -> Answer),
    /// with this errno, silently: the caller has another way
    Absent(Errno),
    /// with success, although nothing is done
    Accept,
    /// with this errno, and a note
    Refuse(Errno),
}

/// A call by its number.
pub struct Entry {
    number: i64,
    name: &'static str,
    how: How,
}

/// A line of a table.
pub const fn entry(number: i64, name: &'static str, how: How) -> Entry {
    Entry { number, name, how }
}

const TABLES: [&[Entry]; 8] = [
    files::CALLS,
    memory::CALLS,
    paths::CALLS,
    process::CALLS,
    signals::CALLS,
    sockets::CALLS,
    time::CALLS,
    wait::CALLS,
];

/// Above any number of x86-64.
const NUMBERS: usize = 512;

fn find(number: i64) -> Option<&'static Entry> {
    static INDEX: OnceLock<Vec<Option<&'static Entry>>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index = vec![None; NUMBERS];
        for entry in TABLES.into_iter().flatten() {
            if let Some(place) = index.get_mut(entry.number as usize) {
                *place = Some(entry);
            }
        }
        index
    });
    *index.get(usize::try_from(number).ok()?)?
}

/// A call that is being answered.
pub struct Call<'a> {
    /// whose it is
    pub guest: Arc<Shared>,
    /// which of its threads
    pub running: &'a mut Running,
    /// the thread's FS base, kept for processors that cannot read it
    pub kept_fs: &'a mut usize,
    /// the registers
    pub frame: &'a mut Frame<'a>,
    /// its number
    pub number: i64,
    /// its arguments
    pub args: [usize; 6],
}

impl Call<'_> {
    /// An argument by its place, 0 to 5.
    #[must_use]
    pub fn arg(&self, place: usize) -> usize {
        self.args.get(place).copied().unwrap_or(0)
    }

    /// An argument that is an `int`.
    #[must_use]
    pub fn int(&self, place: usize) -> i32 {
        self.arg(place) as i32
    }

    /// Makes sure that an address is the guest's own; null is for the kernel to judge. What begins in a slot ends
    /// there: reading and writing go upwards, and stop at the gap behind it.
    ///
    /// # Errors
    /// EFAULT.
    pub fn own(&self, address: usize) -> Result<usize, Errno> {
        if address == 0 || self.guest.slot.contains(address) {
            Ok(address)
        } else {
            Err(libc::EFAULT)
        }
    }

    /// Makes sure that `length` bytes that are to be read lie in no other guest's slot: packets lie in the host's memory,
    /// which a guest may read (`protect.rs`).
    ///
    /// # Errors
    /// EFAULT.
    pub fn data(&self, address: usize, length: usize) -> Result<usize, Errno> {
        // What begins in a slot ends there, at the gap behind it (`slot.rs`).
        if self.guest.slot.contains(address) {
            return Ok(address);
        }
        let own = self.guest.slot.number();
        let other = |at| slot::number_at(at).is_some_and(|n| n != own);
        let last = address.saturating_add(length.saturating_sub(1));
        // What is longer than a slot could have one in its middle.
        if other(address) || other(last) || last - address >= slot::SIZE {
            return Err(libc::EFAULT);
        }
        Ok(address)
    }

    /// Writes to the guest's memory.
    ///
    /// # Errors
    /// EFAULT.
    pub fn put(&self, address: usize, bytes: &[u8]) -> Result<(), Errno> {
        let written = address != 0 && crate::memory::write(self.own(address)?, bytes);
        if written { Ok(()) } else { Err(libc::EFAULT) }
    }

    /// Reads `N` bytes of the guest's memory.
    ///
    /// # Errors
    /// EFAULT.
    pub fn get<const N: usize>(&self, address: usize) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        if crate::memory::read(self.own(address)?, &mut bytes) == N {
            Ok(bytes)
        } else {
            Err(libc::EFAULT)
        }
    }

    /// Reads `length` bytes of the guest's or of a packet, at most `most` of them.
    ///
    /// # Errors
    /// EFAULT.
    pub fn bytes(&self, address: usize, length: usize, most: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length.min(most)];
        if crate::memory::read(self.data(address, bytes.len())?, &mut bytes) == bytes.len() {
            Ok(bytes)
        } else {
            Err(libc::EFAULT)
        }
    }

    /// Reads `count` parts of what is to be read or written (`struct iovec`): addresses and lengths. The kernel gets this
    /// copy, which the guest's other threads cannot change.
    ///
    /// # Errors
    /// EFAULT.
    pub fn vector(&self, at: usize, count: usize, way: Way) -> Result<Vec<[usize; 2]>, Errno> {
        let mut parts = Vec::with_capacity(count);
        for index in 0..count {
            let [base, length] = self.words::<2, 16>(at.wrapping_add(index * 16))?;
            let base = match way {
                Way::In => self.own(base)?,
                Way::Out => self.data(base, length)?,
            };
            parts.push([base, length]);
        }
        Ok(parts)
    }

    /// Reads `N` words of 64 bits, which are `B` bytes.
    ///
    /// # Errors
    /// EFAULT.
    pub fn words<const N: usize, const B: usize>(&self, at: usize) -> Result<[usize; N], Errno> {
        let bytes: [u8; B] = self.get(at)?;
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.try_into().map(usize::from_ne_bytes).unwrap_or(0);
        }
        Ok(words)
    }

    /// The host's descriptor behind one of the guest's.
    ///
    /// # Errors
    /// EBADF.
    pub fn fd(&self, fd: i32) -> Result<i32, Errno> {
        self.guest.state().files.host(fd)
    }

    /// Asks the kernel, after checking the arguments; what is not listed is 0.
    fn kernel(&self, args: &[Arg]) -> Result<i64, Errno> {
        let mut checked = [0; 6];
        for ((checked, value), arg) in checked.iter_mut().zip(self.args).zip(args) {
            *checked = match arg {
                Arg::Value => value,
                Arg::Fd => self.fd(value as i32)? as usize,
                Arg::Memory => self.own(value)?,
                Arg::Data(length) => self.data(value, self.arg(*length))?,
            };
        }
        kernel(self.number, checked)
    }
}

/// A system call of the host's, on a guest's behalf.
///
/// # Errors
/// The kernel's.
pub fn kernel(number: i64, args: [usize; 6]) -> Result<i64, Errno> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: every caller has made sure that addresses for the kernel are in the guest's memory or its own.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 {
        return Err(std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO));
    }
    Ok(result)
}

/// Answers the call that a thread was interrupted at.
pub fn answer(own: &mut Thread, frame: &mut Frame<'_>) -> Answer {
    let kept_fs = &raw mut own.guest_fs;
    let Some(running) = own.running() else {
        return Answer::Leave(Left::Removed);
    };
    let registers = [
        libc::REG_RDI,
        libc::REG_RSI,
        libc::REG_RDX,
        libc::REG_R10,
        libc::REG_R8,
        libc::REG_R9,
    ];
    let number = frame.get(libc::REG_RAX) as i64;
    let args = registers.map(|r| frame.get(r));
    let mut frame = Frame {
        registers: &mut *frame.registers,
        fs: &mut *frame.fs,
    };
    let guest = running.guest.clone();
    let mut call = Call {
        guest,
        running,
        // SAFETY: another field of this thread's than the one that `running` was read from.
        kept_fs: unsafe { &mut *kept_fs },
        frame: &mut frame,
        number,
        args,
    };
    let Some(entry) = find(number) else {
        call.guest
            .state()
            .note(format!("system call {number} was denied"));
        return Answer::Value(i64::from(-libc::ENOSYS));
    };
    if wait::is_long(&call) {
        return Answer::Wait;
    }
    let result = match entry.how {
        How::Kernel(args) => call.kernel(args),
        How::Here(function) => function(&mut call),
        How::End(function) => return function(&mut call),
        How::Absent(errno) => Err(errno),
        How::Accept => Ok(0),
        How::Refuse(errno) => {
            call.guest
                .state()
                .note(format!("{} was denied", entry.name));
            Err(errno)
        }
    };
    Answer::Value(result.unwrap_or_else(|errno| i64::from(-errno)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_stands_in_one_table_and_is_found() {
        let mut seen = std::collections::BTreeMap::new();
        for entry in TABLES.into_iter().flatten() {
            assert!((entry.number as usize) < NUMBERS);
            assert_eq!(
                seen.insert(entry.number, entry.name),
                None,
                "{} stands twice",
                entry.name
            );
            assert!(find(entry.number).is_some_and(|found| found.name == entry.name));
        }
        assert!(find(libc::SYS_kexec_load).is_none() && find(-1).is_none());
    }
}
