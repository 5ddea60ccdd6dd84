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
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// a value
    Any,
    /// memory that is read, as many bytes as the argument at this place says: not another guest's
    In(usize),
    /// the same, of this many bytes
    Bytes(usize),
    /// a descriptor of the guest's
    Fd,
    /// memory that is written: null, or in the guest's slot
    Out,
}

/// How a call is answered.
#[derive(Clone, Copy)]
pub enum How {
    /// by the kernel, after its arguments are looked at
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

    /// Makes sure that memory that is to be written is the guest's; null is for the kernel to judge.
    ///
    /// # Errors
    /// EFAULT.
    pub fn out(&self, address: usize) -> Result<usize, Errno> {
        if address == 0 || self.guest.slot.range().contains(&address) {
            Ok(address)
        } else {
            Err(libc::EFAULT)
        }
    }

    /// Makes sure that memory that is to be read, `length` bytes of it, is not another guest's: the kernel reads it with
    /// the host's rights to all keys. The host's own a guest may read, as with its own loads (`protect.rs`).
    ///
    /// # Errors
    /// EFAULT.
    pub fn input(&self, address: usize, length: usize) -> Result<usize, Errno> {
        // What begins in a slot leads no further than the gap behind it (`slot.rs`).
        if self.guest.slot.range().contains(&address) {
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

    /// Bytes that a guest points to, at most `most` of them.
    ///
    /// # Errors
    /// EFAULT.
    pub fn bytes(&self, address: usize, length: usize, most: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length.min(most)];
        let got = crate::memory::read(self.input(address, bytes.len())?, &mut bytes);
        if got == bytes.len() {
            Ok(bytes)
        } else {
            Err(libc::EFAULT)
        }
    }

    /// Writes to the guest's memory.
    ///
    /// # Errors
    /// EFAULT.
    pub fn put(&self, address: usize, bytes: &[u8]) -> Result<(), Errno> {
        let written = address != 0 && crate::memory::write(self.out(address)?, bytes);
        if written { Ok(()) } else { Err(libc::EFAULT) }
    }

    /// Reads `N` bytes of the guest's memory.
    ///
    /// # Errors
    /// EFAULT.
    pub fn get<const N: usize>(&self, address: usize) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        if crate::memory::read(self.input(address, N)?, &mut bytes) == N {
            Ok(bytes)
        } else {
            Err(libc::EFAULT)
        }
    }

    /// The host's descriptor behind one of the guest's.
    ///
    /// # Errors
    /// EBADF.
    pub fn fd(&self, fd: i32) -> Result<i32, Errno> {
        self.guest.state().files.host(fd)
    }

    /// Asks the kernel, after looking at the arguments.
    fn kernel(&self, args: &[Arg]) -> Result<i64, Errno> {
        let mut seen = self.args;
        for (value, arg) in seen.iter_mut().zip(args) {
            match arg {
                Arg::Any => {}
                Arg::In(length) => *value = self.input(*value, self.arg(*length))?,
                Arg::Bytes(length) => *value = self.input(*value, *length)?,
                Arg::Fd => *value = self.fd(*value as i32)? as usize,
                Arg::Out => *value = self.out(*value)?,
            }
        }
        kernel(self.number, seen)
    }
}

/// A system call of the host's, on a guest's behalf.
///
/// # Errors
/// The kernel's.
pub fn kernel(number: i64, args: [usize; 6]) -> Result<i64, Errno> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: every caller has made sure that what the kernel writes to is the guest's memory or its own.
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
