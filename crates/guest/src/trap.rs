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
use crate::rest::{self, Parked};
use crate::slot::is_guest;
use crate::switch::{resume_host, signal_entry};
use crate::thread::{self, Thread};

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
    let (registers, fs, extended) = unsafe {
        let context = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext;
        (&mut context.gregs, &mut *fs, context.fpregs.cast::<u8>())
    };
    let mut frame = Frame { registers, fs };
    let at = frame.get(libc::REG_RIP);
    let inside =
        own.in_guest.load(Ordering::Relaxed) != 0 && own.in_trap.load(Ordering::Relaxed) == 0;
    if signal == kick() {
        if inside && is_guest(at) {
            if rests(own) {
                own.in_trap.store(1, Ordering::Relaxed);
                // SAFETY: this frame's.
                unsafe { stay(own, &frame, extended) };
                own.in_trap.store(0, Ordering::Relaxed);
            }
            if let Some(left) = taken_out(own, at) {
                leave(own, &mut frame, left);
            }
        }
        return;
    }
    if !inside {
        not_ours(signal);
        return;
    }
    own.in_trap.store(1, Ordering::Relaxed);
    let left = if signal == libc::SIGSYS
        && let Some(parked) = begins(own, at)
    {
        // SAFETY: this frame's.
        if unsafe { rest::replace(&mut frame, extended, &parked) } {
            taken_out(own, at)
        } else {
            Some(Left::Removed)
        }
    } else if signal == libc::SIGSYS {
        let number = frame.get(libc::REG_RAX);
        match call::answer(own, &mut frame) {
            call::Answer::Value(value) => {
                frame.set(libc::REG_RAX, value as usize);
                if rests(own) {
                    if value == i64::from(-libc::EINTR) {
                        // It was interrupted for this: the call is made again, two bytes before.
                        frame.set(libc::REG_RIP, at.wrapping_sub(2));
                        frame.set(libc::REG_RAX, number);
                    }
                    // SAFETY: this frame's.
                    unsafe { stay(own, &frame, extended) };
                }
                taken_out(own, at)
            }
            call::Answer::Leave(left) => Some(left),
        }
    } else {
        // SAFETY: the kernel's; si_addr is set for these signals.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
        let guest = own.running().map(|r| &r.guest);
        Some(Left::Fault(Box::new(Fault::of(
            signal, code, address, &frame, guest,
        ))))
    };
    own.in_trap.store(0, Ordering::Relaxed);
    if let Some(left) = left {
        leave(own, &mut frame, left);
    }
}

/// Whether this thread, in its guest, is to come to rest; the packets' own is at rest elsewhere.
fn rests(own: &mut Thread) -> bool {
    own.running()
        .is_some_and(|r| !r.worker && r.guest.rest.wanted())
}

/// Keeps this thread in its handler until its guest goes on.
///
/// # Safety
/// `extended` is the frame's.
unsafe fn stay(own: &mut Thread, frame: &Frame<'_>, extended: *const u8) {
    if let Some(running) = own.running() {
        // SAFETY: as the caller promises.
        let parked = unsafe { rest::registers(frame, extended, running.number, running.clear) };
        rest::park(&running.guest, parked);
    }
}

/// What a thread begins with that comes from elsewhere: it has made the call at `thaw` of its guest's vDSO.
fn begins(own: &mut Thread, at: usize) -> Option<Parked> {
    let running = own.running()?;
    let begins = at == crate::vdso::thaw(running.guest.places.vdso) + 2;
    begins.then(|| running.guest.rest.thawed(running.number))?
}

/// Whether this thread is to leave its guest: because that is being removed, or was too long at it.
fn taken_out(own: &mut Thread, at: usize) -> Option<Left> {
    let running = own.running()?;
    if running.guest.is_dead() {
        Some(Left::Removed)
    } else if running.worker && running.guest.watch.overdue() {
        Some(Left::Stuck(at))
    } else {
        None
    }
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
