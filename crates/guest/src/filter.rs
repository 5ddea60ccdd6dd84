//! The seccomp filter: a system call that is made from where guests live is a signal to the host.
//!
//! It looks at the instruction pointer, not at the thread, so the host's own calls on the same thread pass. It
//! is of the thread and of the threads that it makes, and cannot be taken off.

use crate::error::GuestError;
use crate::slot::{BASE, END, FIXED, fixed_is_free};

const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: (libc::BPF_JMP | code | libc::BPF_K) as u16,
        jt,
        jf,
        k,
    }
}

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Offset of the upper half of `instruction_pointer` in `struct seccomp_data`, little endian.
const POINTER_HIGH: u32 = 12;
/// Slots begin and end at multiples of 4 GiB, so that the upper half decides.
const LOW: u32 = (BASE >> 32) as u32;
const HIGH: u32 = (END >> 32) as u32;
const _: () = assert!(BASE.trailing_zeros() >= 32 && END.trailing_zeros() >= 32);
const _: () = assert!(FIXED.end >> 32 == 0);

/// Puts the filter on this thread.
pub fn install() -> Result<(), GuestError> {
    // Code below 4 GiB is a guest's that is linked to fixed addresses, unless the host's own is there.
    let low = if fixed_is_free() { 0 } else { LOW };
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, POINTER_HIGH),
        jump(libc::BPF_JEQ, low, 2, 0),
        jump(libc::BPF_JGE, LOW, 0, 2),
        jump(libc::BPF_JGE, HIGH, 1, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_TRAP),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: plain values; the program outlives the call, which copies it.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const filter,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(GuestError::system("a seccomp filter"))
    }
}
