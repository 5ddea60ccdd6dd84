//! Memory protection keys: while a guest runs it can write to its own slot, and not to the host or to other guests.
//!
//! Every page has one of 16 keys, and the register PKRU has two bits for each: access denied, writing denied
//! (Intel SDM volume 3A, 4.6.2; pkeys(7)). Key 0 is what all memory has that nobody gave a key: the host's. A guest's
//! slot gets a key of its own. The switch (`switch.rs`) writes PKRU on the way in and as its first instruction on the
//! way out, so that a burst costs two writes of it, and what happens in between nothing.
//!
//! Rights of a guest: its own key everything; key 0 reading (its code calls the vDSO, and the preload finds the host
//! through GS); the key of alternate stacks everything, because kernels before 6.12 write a signal's frame with the
//! rights of who was interrupted; all others nothing. With more guests than keys, guests share one, and are told so.
//!
//! This contains faults. An instruction that writes PKRU is no privileged one, so a guest that means to can.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::GuestError;

/// Keys that a processor has.
const KEYS: usize = 16;
/// Rights that deny everything but key 0, which may not be written: both bits of each other key.
const DENY_ALL: u32 = !0b01;

/// Whether keys are in use: 1 or 0, for the assembly of the switch; set before any guest runs.
pub static IN_USE: AtomicU32 = AtomicU32::new(0);
/// The key of alternate signal stacks; 0 until there is one.
static ALTERNATE: AtomicI32 = AtomicI32::new(0);
/// How many guests use each key.
static USERS: Mutex<[u32; KEYS]> = Mutex::new([0; KEYS]);

/// How a guest is kept from the memory of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// a protection key, which this many guests share
    Key(i32, u32),
    /// not at all: the processor or the kernel has no protection keys
    None,
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key, 0 | 1) => write!(f, "protection key {key} of its own"),
            Self::Key(key, users) => write!(
                f,
                "protection key {key}, shared by {users} guests, which are not protected from one another"
            ),
            Self::None => write!(
                f,
                "no protection keys here: its stray writes into the host or other guests are not caught"
            ),
        }
    }
}

/// Whether this processor and kernel have protection keys (CPUID leaf 7, ECX bit 4: OSPKE).
#[must_use]
pub fn available() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        if __cpuid(0).eax < 7 || __cpuid_count(7, 0).ecx & 1 << 4 == 0 {
            return false;
        }
        let Ok(key) = allocate() else {
            return false;
        };
        ALTERNATE.store(key, Ordering::Relaxed);
        IN_USE.store(1, Ordering::Relaxed);
        true
    })
}

/// Whether guests run with keys; known once [`prepare`] has been called.
pub fn in_use() -> bool {
    IN_USE.load(Ordering::Relaxed) != 0
}

/// Finds out whether there are keys, before anything runs that asks [`IN_USE`].
pub fn prepare() {
    let _ = available();
}

fn allocate() -> std::io::Result<i32> {
    // SAFETY: plain values; changes this thread's rights to a key that nothing has yet.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, 0) };
    if key < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(key as i32)
}

/// A guest's key.
#[derive(Debug)]
pub struct Domain {
    key: i32,
}

impl Domain {
    /// A key that no guest has, or the one that the fewest share.
    #[must_use]
    pub fn take() -> Self {
        if !available() {
            return Self { key: 0 };
        }
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = allocate().unwrap_or_else(|_| {
            let taken = users.iter().enumerate().filter(|(_, n)| **n > 0);
            taken.min_by_key(|(_, n)| **n).map_or(0, |(k, _)| k as i32)
        });
        if let Some(count) = users.get_mut(key as usize).filter(|_| key > 0) {
            *count += 1;
        }
        Self { key }
    }

    /// The key of the guest's memory; 0 without keys.
    #[must_use]
    pub fn key(&self) -> i32 {
        self.key
    }

    /// PKRU while the guest runs.
    #[must_use]
    pub fn rights(&self) -> u32 {
        rights(self.key, ALTERNATE.load(Ordering::Relaxed))
    }

    /// The protection, and its limits.
    #[must_use]
    pub fn protection(&self) -> Protection {
        let users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        match users.get(self.key as usize) {
            Some(count) if self.key > 0 => Protection::Key(self.key, *count),
            _ => Protection::None,
        }
    }
}

fn rights(own: i32, alternate: i32) -> u32 {
    [own, alternate]
        .into_iter()
        .filter(|key| *key > 0)
        .fold(DENY_ALL, |all, key| all & !(0b11 << (2 * key as u32)))
}

impl Drop for Domain {
    /// Its owner has unmapped the memory: a key that is given out again must stand for nothing of before.
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = users.get_mut(self.key as usize).filter(|_| self.key > 0) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            // SAFETY: plain values; no page has the key any more.
            unsafe { libc::syscall(libc::SYS_pkey_free, self.key) };
        }
    }
}

/// Gives a mapped range a key; key 0 leaves it as it is.
///
/// # Errors
/// The kernel's errno.
pub fn tag(start: usize, length: usize, protection: i32, key: i32) -> Result<(), i32> {
    if key == 0 {
        return Ok(());
    }
    // SAFETY: callers own the range; its protection stays what it was.
    let done = unsafe { libc::syscall(libc::SYS_pkey_mprotect, start, length, protection, key) };
    if done == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO))
}

/// Lets a thread's alternate stack be written by whatever rights it has when a signal comes.
///
/// # Errors
/// When the kernel refuses.
pub fn tag_alternate(start: usize, length: usize) -> Result<(), GuestError> {
    let key = ALTERNATE.load(Ordering::Relaxed);
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    tag(start, length, writable, key).map_err(|errno| GuestError::System {
        what: "a protection key for an alternate stack",
        source: std::io::Error::from_raw_os_error(errno),
    })
}

/// Gives this thread of the host's the rights to guests' memory: threads begin with none but to key 0, or with those
/// of the thread that made them.
pub fn open() {
    if !in_use() {
        return;
    }
    // SAFETY: the kernel has enabled PKRU (OSPKE); ecx must be 0, and edx for writing. Allowing everything is what
    // the host's code was compiled for.
    unsafe {
        let rights: u32;
        std::arch::asm!("rdpkru", in("ecx") 0, out("eax") rights, out("edx") _, options(nomem, nostack));
        if rights != 0 {
            std::arch::asm!("wrpkru", in("eax") 0, in("ecx") 0, in("edx") 0, options(nostack));
        }
    }
}

/// What `rseq` is signed with on x86 (`RSEQ_SIG`), and the flag that ends a registration.
const RSEQ_SIGNATURE: usize = 0x5305_3053;
const RSEQ_UNREGISTER: usize = 1;
/// `AT_RSEQ_FEATURE_SIZE` and `AT_RSEQ_ALIGN`.
const AT_RSEQ: [u64; 2] = [27, 28];

/// Ends this thread's restartable sequences, which the C library has registered: the kernel writes to their area
/// whenever it preempts the thread, with the rights of the guest that was running, which are none to the host's TLS.
/// The C library then asks the kernel for the processor's number.
pub fn without_rseq() {
    if !in_use() {
        return;
    }
    // SAFETY: looks up a variable of the C library's (since glibc 2.35): the area's offset from the thread pointer.
    let area = unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        if offset.is_null() {
            return;
        }
        let thread: usize;
        std::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly));
        thread.wrapping_add_signed(*offset)
    };
    // SAFETY: asks for constants of the process.
    let [feature, align] = AT_RSEQ.map(|what| unsafe { libc::getauxval(what) } as usize);
    // Registered with 32 bytes, or with what the kernel has said that it wants.
    for length in [32, feature.next_multiple_of(align.max(32))] {
        // SAFETY: an area that is not the one registered, or of another size, is refused and nothing changes.
        let done = unsafe {
            libc::syscall(
                libc::SYS_rseq,
                area,
                length,
                RSEQ_UNREGISTER,
                RSEQ_SIGNATURE,
            )
        };
        if done == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_may_write_its_own_key_and_read_the_hosts() {
        let bits = |rights: u32, key: u32| rights >> (2 * key) & 0b11;
        let rights = rights(5, 1);
        assert_eq!(bits(rights, 0), 0b10, "the host's: reading only");
        assert_eq!((bits(rights, 5), bits(rights, 1)), (0, 0));
        for other in [2, 3, 4, 6, 15] {
            assert_eq!(bits(rights, other), 0b11);
        }
        assert_eq!(super::rights(0, 0), DENY_ALL);
    }

    #[test]
    fn what_is_told_says_whether_strays_are_caught() {
        assert!(Protection::None.to_string().contains("not caught"));
        assert!(Protection::Key(3, 1).to_string().contains("of its own"));
        assert!(Protection::Key(3, 2).to_string().contains("shared by 2"));
    }
}
