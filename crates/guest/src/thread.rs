//! The state of a kernel thread of the host that runs guests: GS, an alternate stack, a seccomp filter.
//!
//! A thread is made ready at its first guest and stays so until it ends, because a filter cannot be taken off.

use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::GuestError;
use crate::filter;
use crate::protect;
use crate::rest::Parked;
use crate::shared::Shared;
use crate::switch::{self, FSGSBASE, enter, gate};
use crate::trap::{self, Left};

/// Bytes of a thread's alternate stack: the handlers open files and format text.
const ALTERNATE: usize = 256 << 10;
const ARCH_SET_GS: i32 = 0x1001;
const ARCH_GET_FS: i32 = 0x1003;
/// `AT_HWCAP2`: user space may use rdfsbase and the like.
const HWCAP2_FSGSBASE: u64 = 2;

/// What GS names. The first two fields are for preloads (preload/port.h).
#[repr(C)]
pub struct Thread {
    gate: usize,
    port: usize,
    pub(crate) host_rsp: usize,
    pub(crate) host_fs: usize,
    pub(crate) guest_rsp: usize,
    pub(crate) guest_fs: usize,
    /// mxcsr and the x87 control word as a guest has left them, for the switch
    pub(crate) words: [u32; 2],
    /// PKRU while the guest runs, with protection keys
    pub(crate) rights: u32,
    /// the guest is running, or the host on its behalf in a signal handler
    pub(crate) in_guest: AtomicU32,
    /// a handler is at work for the guest
    pub(crate) in_trap: AtomicU32,
    /// whom this thread runs; null while it runs none
    running: *mut Running,
    /// why a handler has left the guest
    pub(crate) left: Option<Left>,
    /// what the handler of [`switch::enter_saved`]'s breakpoint is to go on with
    pub(crate) restore: Option<Box<Parked>>,
    alternate: usize,
}

impl Thread {
    /// Whom this thread runs, for a handler that has interrupted it.
    pub(crate) fn running(&mut self) -> Option<&mut Running> {
        // SAFETY: null, or what `run` borrows for as long as it is set; handlers are the only ones to ask meanwhile.
        unsafe { self.running.as_mut() }
    }
}

const _: () = assert!(offset_of!(Thread, gate) == 0 && offset_of!(Thread, port) == 8);

/// A guest's thread of execution, at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// its stack pointer: a frame of [`crate::switch`]
    pub rsp: usize,
    /// its FS base
    pub fs: usize,
    /// its thread number, as it knows it
    pub number: i32,
    /// where to write 0 and wake waiters when it ends; 0: nowhere
    pub clear: usize,
}

/// Whom a kernel thread runs.
pub struct Running {
    /// the guest
    pub guest: Arc<Shared>,
    /// thread number, as the guest knows it
    pub number: i32,
    /// as [`Context::clear`]
    pub clear: usize,
    /// the packets' own thread: what blocks, blocks the chain
    pub worker: bool,
}

/// Why a guest is not running any more.
#[derive(Debug)]
pub enum Stop {
    /// it asks for packets
    Receive(Context),
    /// a handler has left it
    Left(Left),
    /// it is about to wait, which the worker must not
    Blocked(Box<Parked>),
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
    /// What `OWN` holds, without the looks that a value with a destructor costs at each access.
    static MADE: Cell<*mut Thread> = const { Cell::new(std::ptr::null_mut()) };
}

/// A thread's own [`Thread`]; taken down when the thread ends.
struct Own(Box<Thread>);

impl Drop for Own {
    fn drop(&mut self) {
        MADE.set(std::ptr::null_mut());
        let off = libc::stack_t {
            ss_sp: std::ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: this thread runs no guest any more; GS and the alternate stack are its own, and the stack was
        // mapped by `make`.
        unsafe {
            libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, 0);
            libc::sigaltstack(&raw const off, std::ptr::null_mut());
            libc::munmap(self.0.alternate as *mut libc::c_void, ALTERNATE);
        }
    }
}

impl Own {
    fn make() -> Result<Self, GuestError> {
        // SAFETY: asks for a constant of the process.
        let features = unsafe { libc::getauxval(libc::AT_HWCAP2) };
        FSGSBASE.store(
            u32::from(features & HWCAP2_FSGSBASE != 0),
            Ordering::Relaxed,
        );
        // Before the first handler: its first instructions ask whether there are keys.
        protect::prepare();
        protect::open();
        protect::without_rseq();
        trap::install()?;
        let mut fs = 0_usize;
        // SAFETY: writes this thread's FS base to `fs`.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_FS, &raw mut fs) };
        let (write, anonymous) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping, wherever the kernel likes.
        let alternate =
            unsafe { libc::mmap(std::ptr::null_mut(), ALTERNATE, write, anonymous, -1, 0) };
        if alternate == libc::MAP_FAILED {
            return Err(GuestError::system("an alternate stack"));
        }
        let own = Self(Box::new(Thread {
            gate: gate as *const () as usize,
            port: 0,
            host_rsp: 0,
            host_fs: fs,
            guest_rsp: 0,
            guest_fs: 0,
            words: [0; 2],
            rights: 0,
            in_guest: AtomicU32::new(0),
            in_trap: AtomicU32::new(0),
            running: std::ptr::null_mut(),
            left: None,
            restore: None,
            alternate: alternate.addr(),
        }));
        protect::tag_alternate(alternate.addr(), ALTERNATE)?;
        let stack = libc::stack_t {
            ss_sp: alternate,
            ss_flags: 0,
            ss_size: ALTERNATE,
        };
        // SAFETY: the stack is mapped and stays so until `drop` takes it off; GS is nobody else's on x86-64, and
        // the box does not move.
        let (stacked, based) = unsafe {
            (
                libc::sigaltstack(&raw const stack, std::ptr::null_mut()),
                libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, &raw const *own.0),
            )
        };
        if stacked != 0 || based != 0 {
            return Err(GuestError::system("GS and an alternate stack"));
        }
        trap::mask();
        filter::install()?;
        Ok(own)
    }
}

impl Running {
    /// Of a context that is to run; `worker` when it asks for packets.
    #[must_use]
    pub fn new(guest: &Arc<Shared>, context: &Context, worker: bool) -> Self {
        Self {
            guest: guest.clone(),
            number: context.number,
            clear: context.clear,
            worker,
        }
    }

    /// Of another of the same guest's contexts.
    pub fn turn_to(&mut self, context: &Context) {
        (self.number, self.clear) = (context.number, context.clear);
    }
}

/// Runs a guest's context on this thread until it asks for packets or is left.
///
/// # Errors
/// [`GuestError::System`] when the thread cannot be made ready.
// Each return between a switch and the next one is predicted wrong if the guest returns as often (switch.rs).
#[inline(always)]
pub fn run(running: &mut Running, context: &Context) -> Result<Stop, GuestError> {
    let thread = made()?;
    // SAFETY: `thread` is this thread's own; the context is a frame that `gate` or `stack` has left.
    unsafe {
        (*thread).guest_rsp = context.rsp;
        (*thread).guest_fs = context.fs;
        Ok(go(thread, running, enter))
    }
}

/// Goes on, on a thread of its own, with what was interrupted on a worker: makes its system call again, and waits.
///
/// # Errors
/// As [`run`].
pub fn go_on(guest: &Arc<Shared>, parked: Box<Parked>) -> Result<Stop, GuestError> {
    let thread = made()?;
    let mut running = Running {
        guest: guest.clone(),
        number: parked.number,
        clear: parked.clear,
        worker: false,
    };
    // SAFETY: `thread` is this thread's own, and `restore` is set, as `enter_saved` asks.
    unsafe {
        (*thread).guest_fs = parked.fs;
        (*thread).restore = Some(parked);
        Ok(go(thread, &mut running, switch::enter_saved))
    }
}

/// This thread's [`Thread`], made ready at the first call.
#[inline]
fn made() -> Result<*mut Thread, GuestError> {
    let thread = this();
    if thread.is_null() { make() } else { Ok(thread) }
}

#[cold]
fn make() -> Result<*mut Thread, GuestError> {
    let thread = OWN.with_borrow_mut(|own| {
        let made = Own::make()?;
        Ok::<_, GuestError>(&raw mut *own.insert(made).0)
    })?;
    MADE.set(thread);
    Ok(thread)
}

/// Enters the guest by one of the switches.
///
/// # Safety
/// `thread` is this thread's own, with what that switch goes on with.
#[inline(always)]
unsafe fn go(
    thread: *mut Thread,
    running: &mut Running,
    by: unsafe extern "C" fn(*mut Thread),
) -> Stop {
    let (port, rights) = (running.guest.port_address(), running.guest.rights);
    let running = &raw mut *running;
    // SAFETY: `thread` is this thread's own box, which lives as long as the thread; signal handlers on this thread
    // are the only others that touch it and what `running` points to, and none does while no guest runs.
    unsafe {
        (*thread).port = port;
        (*thread).rights = rights;
        (*thread).running = running;
        switch::through(by, thread);
        (*thread).running = std::ptr::null_mut();
        if (*thread).left.is_some()
            && let Some(left) = (*thread).left.take()
        {
            return match left {
                Left::Blocked(parked) => Stop::Blocked(parked),
                left => Stop::Left(left),
            };
        }
        Stop::Receive(Context {
            rsp: (*thread).guest_rsp,
            fs: (*thread).guest_fs,
            number: (*running).number,
            clear: (*running).clear,
        })
    }
}

/// The [`Thread`] of this kernel thread; null when it never ran a guest. May be asked in a signal handler.
#[inline]
pub fn this() -> *mut Thread {
    MADE.get()
}

/// Writes a context's first frame below `rsp` in a guest's stack, and gives its address. Registers that are not
/// named begin as 0.
///
/// # Safety
/// The bytes below `rsp`, as many as a frame has, are mapped, writable and the guest's.
pub unsafe fn first_frame(rsp: usize, to: usize, preserved: [u64; 6]) -> usize {
    let at = rsp - switch::FRAME - 8;
    let [rbx, rbp, r12, r13, r14, r15] = preserved;
    let frame = [
        switch::CONTROL_WORDS,
        r15,
        r14,
        r13,
        r12,
        rbx,
        rbp,
        to as u64,
    ];
    // SAFETY: as the caller promises; the frame's eight words end at `rsp`.
    unsafe {
        std::ptr::copy_nonoverlapping(
            frame.as_ptr().cast::<u8>(),
            at as *mut u8,
            size_of_val(&frame),
        );
    };
    at
}
