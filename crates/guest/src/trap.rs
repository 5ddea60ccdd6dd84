//! Signals: a guest's system calls, its faults, and the kick that takes a thread out of it.
//!
//! A guest runs while its host thread stands in the call of [`crate::switch::enter`], so the host holds no lock
//! and is in no call of its C library: a handler that finds the guest interrupted may do whatever that call might,
//! allocate memory included. The kick, which may interrupt the host itself, does nothing then.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::call;
use crate::error::GuestError;
use crate::fault::Fault;
use crate::slot::is_guest;
use crate::switch::{resume_host, signal_entry};
use crate::thread::{self, Saved, Thread};

/// Why a handler took a thread out of its guest.
#[derive(Debug)]
pub enum Left {
    /// this thread of the guest's has ended
    Thread,
    /// the guest has ended with this status
    Exit(i32),
    /// it failed
    Fault(Box<Fault>),
    /// it did not come back in time; where it was
    Stuck(usize),
    /// the guest is being removed
    Removed,
    /// it is about to wait, and is the packets' own
    Blocked(Box<Saved>),
}

/// The registers of what a signal has interrupted.
pub struct Frame<'a> {
    /// as the kernel saved them, in the order of `libc::REG_*`
    pub registers: &'a mut [i64; 23],
    /// FS base
    pub fs: &'a mut usize,
}

impl Frame<'_> {
    /// A register by its number (`libc::REG_RIP` and so on); the numbers are below 23.
    #[must_use]
    pub fn get(&self, register: i32) -> usize {
        self.registers
            .get(register as usize)
            .map_or(0, |r| *r as usize)
    }

    /// Sets a register.
    pub fn set(&mut self, register: i32, value: usize) {
        if let Some(place) = self.registers.get_mut(register as usize) {
            *place = value as i64;
        }
    }
}

const FAULTS: [i32; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
];

/// What the signals did before; written once, before any guest runs.
static mut BEFORE: [Option<libc::sigaction>; 65] = [None; 65];
static INSTALLED: Once = Once::new();
static FAILED: AtomicBool = AtomicBool::new(false);

/// The signal that takes a thread out of its guest, or out of a wait on its behalf.
#[must_use]
pub fn kick() -> i32 {
    // The C library keeps the first real-time signals.
    libc::SIGRTMIN() + 6
}

/// Installs the handlers, once in a process.
pub fn install() -> Result<(), GuestError> {
    INSTALLED.call_once(|| {
        for signal in FAULTS.into_iter().chain([libc::SIGSYS, kick()]) {
            // SAFETY: zeroes are a valid sigaction, and all that matters is set; the entry has the type that
            // SA_SIGINFO asks for. `BEFORE` is written here only, under `Once`.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = signal_entry as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigfillset(&raw mut action.sa_mask);
                // A wait on a guest's behalf must be able to end.
                libc::sigdelset(&raw mut action.sa_mask, kick());
                let mut before: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, &raw const action, &raw mut before) != 0 {
                    FAILED.store(true, Ordering::Relaxed);
                }
                let place = (&raw mut BEFORE).cast::<Option<libc::sigaction>>();
                place.add(signal as usize).write(Some(before));
            }
        }
    });
    if FAILED.load(Ordering::Relaxed) {
        return Err(GuestError::system("signal handlers"));
    }
    Ok(())
}

/// On a thread that runs guests, only what concerns guests may interrupt: other handlers of the process would
/// run on the guest's stack with the guest's TLS.
pub fn mask() {
    // SAFETY: a set on this stack.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        for signal in FAULTS.into_iter().chain([libc::SIGSYS, kick()]) {
            libc::sigdelset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Called by [`signal_entry`] with the host's FS base in place.
///
/// # Safety
/// `info` and `context` are the kernel's; `fs` is where the interrupted FS base stands, or null on a thread that
/// never ran a guest.
pub unsafe extern "C" fn trap(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
    fs: *mut usize,
) {
    let thread = if fs.is_null() {
        std::ptr::null_mut()
    } else {
        thread::this()
    };
    // SAFETY: this thread's own; null only where it never ran a guest.
    let Some(own) = (unsafe { thread.as_mut() }) else {
        if signal != kick() {
            not_ours(signal);
        }
        return;
    };
    // SAFETY: the kernel's frame, on this thread's alternate stack, ours until we return; gregset_t is 23 longs.
    let (registers, vectors, fs) = unsafe {
        let context = context.cast::<libc::ucontext_t>();
        let machine = &mut (*context).uc_mcontext;
        (&mut machine.gregs, vectors_of(machine.fpregs), &mut *fs)
    };
    let mut frame = Frame { registers, fs };
    let at = frame.get(libc::REG_RIP);
    let inside =
        own.in_guest.load(Ordering::Relaxed) != 0 && own.in_trap.load(Ordering::Relaxed) == 0;
    if signal == kick() {
        if inside
            && is_guest(at)
            && let Some(left) = taken_out(own, at)
        {
            leave(own, &mut frame, left);
        }
        return;
    }
    if signal == libc::SIGTRAP
        && let Some(saved) = own.restore.take()
    {
        go_on(own, &mut frame, vectors, &saved);
        return;
    }
    if !inside {
        not_ours(signal);
        return;
    }
    own.in_trap.store(1, Ordering::Relaxed);
    let left = if signal == libc::SIGSYS {
        match call::answer(own, &mut frame) {
            call::Answer::Value(value) => {
                frame.set(libc::REG_RAX, value as usize);
                taken_out(own, at)
            }
            call::Answer::Leave(left) => Some(left),
            call::Answer::Wait => blocked(own, &frame, vectors),
        }
    } else {
        // SAFETY: si_addr is set for these signals.
        let address = unsafe { (*info).si_addr() }.addr();
        let guest = own.running.as_ref().map(|r| &r.guest);
        Some(Left::Fault(Box::new(Fault::of(
            signal, address, &frame, guest,
        ))))
    };
    own.in_trap.store(0, Ordering::Relaxed);
    if let Some(left) = left {
        leave(own, &mut frame, left);
    }
}

/// Whether this thread is to leave its guest: because that is being removed, or was too long at it.
fn taken_out(own: &Thread, at: usize) -> Option<Left> {
    let running = own.running.as_ref()?;
    if running.guest.is_dead() {
        Some(Left::Removed)
    } else if running.worker && running.guest.watch.overdue() {
        Some(Left::Stuck(at))
    } else {
        None
    }
}

/// Bytes of the processor's extended state in a signal frame: the legacy area's last 48 bytes say how many there are
/// (`struct _fpx_sw_bytes`: a magic number, then the size), if there are more than its own 512.
///
/// # Safety
/// `state` is null or the kernel's, and lives as long as what is given back is used.
unsafe fn vectors_of<'a>(state: *mut libc::_libc_fpstate) -> &'a mut [u8] {
    const LEGACY: usize = 512;
    const SOFTWARE: usize = 464;
    const MAGIC: u32 = 0x4650_5853;
    if state.is_null() {
        return &mut [];
    }
    let bytes = state.cast::<u8>();
    // SAFETY: as the caller promises; the kernel writes the whole legacy area.
    unsafe {
        let magic = bytes.add(SOFTWARE).cast::<u32>().read_unaligned();
        let size = bytes.add(SOFTWARE + 4).cast::<u32>().read_unaligned() as usize;
        let size = if magic == MAGIC { size } else { LEGACY };
        std::slice::from_raw_parts_mut(bytes, size)
    }
}

/// Bytes of the instruction `syscall`.
const SYSCALL: usize = 2;

/// Takes a worker's thread out of its guest before a system call that would wait.
fn blocked(own: &Thread, frame: &Frame<'_>, vectors: &[u8]) -> Option<Left> {
    let running = own.running.as_ref()?;
    let mut saved = Saved {
        registers: *frame.registers,
        vectors: vectors.to_vec(),
        fs: *frame.fs,
        number: running.number,
        clear: running.clear,
    };
    // The filter stops a call behind its instruction, with the number where it was: it can be made again.
    if let Some(at) = saved.registers.get_mut(libc::REG_RIP as usize) {
        *at -= SYSCALL as i64;
    }
    Some(Left::Blocked(Box::new(saved)))
}

/// Makes the return from the handler a return to what was interrupted elsewhere.
fn go_on(own: &mut Thread, frame: &mut Frame<'_>, vectors: &mut [u8], saved: &Saved) {
    // Segments and what the signal was about stay this thread's own.
    const OWN: [i32; 5] = [
        libc::REG_CSGSFS,
        libc::REG_ERR,
        libc::REG_TRAPNO,
        libc::REG_OLDMASK,
        libc::REG_CR2,
    ];
    for (number, register) in saved.registers.iter().enumerate() {
        if !OWN.contains(&(number as i32)) {
            frame.set(number as i32, *register as usize);
        }
    }
    // Frames of one processor have one size.
    if vectors.len() == saved.vectors.len() {
        vectors.copy_from_slice(&saved.vectors);
    }
    *frame.fs = saved.fs;
    own.in_guest.store(1, Ordering::Relaxed);
}

/// Makes the return from the handler a return to the host.
fn leave(own: &mut Thread, frame: &mut Frame<'_>, left: Left) {
    /// direction, single step and alignment check: nothing the host was compiled for
    const FLAGS: usize = 1 << 10 | 1 << 8 | 1 << 18;
    own.left = Some(left);
    own.in_guest.store(0, Ordering::Relaxed);
    frame.set(libc::REG_RIP, resume_host as *const () as usize);
    frame.set(libc::REG_RSP, own.host_rsp);
    frame.set(libc::REG_EFL, frame.get(libc::REG_EFL) & !FLAGS);
    *frame.fs = own.host_fs;
}

/// A fault of the host's own: what would have happened without guests happens when the instruction is run again.
fn not_ours(signal: i32) {
    // SAFETY: `BEFORE` was written before any handler could run.
    unsafe {
        let place = (&raw const BEFORE).cast::<Option<libc::sigaction>>();
        let before = place.add(signal as usize).read();
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(
            signal,
            &raw const *before.as_ref().unwrap_or(&default),
            std::ptr::null_mut(),
        );
    }
}
