//! The user-space switch between host and guest, and the way into the host from a signal.
//!
//! A switch saves what the System V ABI says a call preserves (rbx, rbp, r12 to r15, the control words of SSE
//! and x87) on the stack that it leaves, and exchanges stack pointer and FS base, which names the TLS. Both
//! directions leave the same frame, from low to high addresses:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0 | mxcsr, 4 bytes; x87 control word, 2 bytes |
//! | 8, 16, 24, 32 | r15, r14, r13, r12 |
//! | 40, 48 | rbx, rbp |
//! | 56 | where to go on |
//!
//! The control words are loaded only where the two sides differ in them, exception flags aside, which no call
//! preserves. Both ways end in jumps, and nothing is called: the processor predicts returns from a stack of its own, on
//! which a call or return of the switch's would put all others out of step, on both sides.
//!
//! The guest's half of the way to the host stands in its preload (preload/yield.h); it finds the host
//! through GS, so that no address of the host's lies on a guest's stack. GS names the [`Thread`] of the kernel
//! thread; glibc does not use it on x86-64.
//!
//! With protection keys (`protect.rs`) PKRU is the guest's from the last thing that concerns the host's memory on the
//! way in until the first instruction on the way out; a signal's handler begins with the rights that every program
//! begins with, to key 0 alone, so that it must not touch its stack before it has the host's.
//!
//! Nothing here may touch the stack protector's canary or thread-local variables before FS is the host's
//! again, which is why it is assembly and the rest is not.

use std::arch::{asm, naked_asm};
use std::mem::offset_of;
use std::sync::atomic::AtomicU32;

use crate::protect;
use crate::thread::Thread;

/// Bytes of the frame below the address to go on at.
pub const FRAME: usize = 56;
/// The control words that a program starts with (System V ABI for x86-64, 3.4.1): all exceptions masked,
/// round to nearest, x87 with extended precision.
pub const CONTROL_WORDS: u64 = 0x0000_037f_0000_1f80;

/// Whether user space may read and write FS and GS base (`AT_HWCAP2`, bit 1); set before any guest runs.
pub static FSGSBASE: AtomicU32 = AtomicU32::new(0);

/// Leaves the host by one of [`enter`] and [`enter_saved`], and is back when the guest comes back through [`gate`] or
/// a signal handler leaves through [`resume_host`]. It stands in for a call that pushes nothing to the processor's
/// stack of return addresses.
///
/// # Safety
/// As of `way`.
#[inline(always)]
pub unsafe fn through(way: unsafe extern "C" fn(*mut Thread), thread: *mut Thread) {
    // SAFETY: as the caller promises; to the compiler it is a call by the C ABI, whose stack is aligned here and whose
    // return address is pushed by hand.
    unsafe {
        asm!(
            "lea rax, [rip + 2f]", "push rax",
            "jmp rsi",
            "2:",
            in("rsi") way,
            in("rdi") thread,
            clobber_abi("C"),
        );
    }
}

/// Runs the guest whose context stands in the thread's [`Thread`]; for [`through`].
///
/// # Safety
/// `thread` is this kernel thread's own and GS names it; `guest_rsp` points to a frame as the table above.
/// What the guest does to memory is its own affair: this contains faults, not malice.
#[unsafe(naked)]
pub unsafe extern "C" fn enter(thread: *mut Thread) {
    naked_asm!(
        "push rbp", "push rbx", "push r12", "push r13", "push r14", "push r15",
        "sub rsp, 8", "stmxcsr [rsp]", "fnstcw [rsp + 4]",
        "mov [rdi + {host_rsp}], rsp",
        "mov rax, [rdi + {guest_fs}]",
        "mov rsp, [rdi + {guest_rsp}]",
        // From here on a fault is the guest's, also one that a damaged frame causes below.
        "mov dword ptr [rdi + {in_guest}], 1",
        "cmp dword ptr [rip + {fsgsbase}], 0",
        "je 2f",
        "wrfsbase rax",
        "3:",
        "cmp dword ptr [rip + {keys}], 0",
        "jne 4f",
        "5:",
        // Exception flags, the lower six bits, are not kept.
        "mov rsi, [rdi + {host_rsp}]",
        "mov eax, [rsi]", "xor eax, [rsp]", "test eax, 0xffffffc0", "jne 6f",
        "movzx eax, word ptr [rsi + 4]", "cmp ax, [rsp + 4]", "jne 6f",
        "7:",
        "add rsp, 8",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbx", "pop rbp", "pop rcx",
        // A program's entry wants rdx = 0 (nothing to run at exit), a thread's wants rax = 0.
        "xor eax, eax", "xor edx, edx",
        "jmp rcx",
        "6:",
        "ldmxcsr [rsp]", "fldcw [rsp + 4]", "jmp 7b",
        "2:",
        "mov r8, rdi",
        "mov rsi, rax", "mov edi, 0x1002", "mov eax, 158", // arch_prctl(ARCH_SET_FS)
        "syscall",
        "mov rdi, r8",
        "jmp 3b",
        "4:",
        "mov eax, [rdi + {rights}]", "xor ecx, ecx", "xor edx, edx", "wrpkru",
        "jmp 5b",
        host_rsp = const offset_of!(Thread, host_rsp),
        guest_rsp = const offset_of!(Thread, guest_rsp),
        guest_fs = const offset_of!(Thread, guest_fs),
        in_guest = const offset_of!(Thread, in_guest),
        rights = const offset_of!(Thread, rights),
        fsgsbase = sym FSGSBASE,
        keys = sym protect::IN_USE,
    )
}

/// Goes on with a guest's thread that was interrupted ([`crate::rest::Parked`]): a breakpoint's handler finds it in
/// the thread's `restore` and makes the return from the signal a return to the guest, which is how all registers
/// come back. Comes back as [`enter`] does.
///
/// # Safety
/// As [`enter`]; `restore` is set.
#[unsafe(naked)]
pub unsafe extern "C" fn enter_saved(thread: *mut Thread) {
    naked_asm!(
        "push rbp", "push rbx", "push r12", "push r13", "push r14", "push r15",
        "sub rsp, 8", "stmxcsr [rsp]", "fnstcw [rsp + 4]",
        "mov [rdi + {host_rsp}], rsp",
        // The frame of the breakpoint has the guest's rights, and so has the return from it.
        "cmp dword ptr [rip + {keys}], 0",
        "je 2f",
        "mov eax, [rdi + {rights}]", "xor ecx, ecx", "xor edx, edx", "wrpkru",
        "2:",
        "int3",
        "ud2",
        host_rsp = const offset_of!(Thread, host_rsp),
        rights = const offset_of!(Thread, rights),
        keys = sym protect::IN_USE,
    )
}

/// Where a guest that asks for packets jumps to, its frame complete on its stack.
#[unsafe(naked)]
pub unsafe extern "C" fn gate() {
    naked_asm!(
        "cmp dword ptr [rip + {keys}], 0",
        "je 4f",
        "xor eax, eax", "xor ecx, ecx", "xor edx, edx", "wrpkru",
        "4:",
        "mov gs:[{guest_rsp}], rsp",
        // While a fault is still the guest's.
        "mov r8d, [rsp]", "movzx r9d, word ptr [rsp + 4]",
        "cmp dword ptr [rip + {fsgsbase}], 0",
        "je 2f",
        "rdfsbase rax", "mov gs:[{guest_fs}], rax",
        "mov rax, gs:[{host_fs}]", "wrfsbase rax",
        "3:",
        "mov rsp, gs:[{host_rsp}]",
        "mov dword ptr gs:[{in_guest}], 0",
        "xor r8d, [rsp]", "test r8d, 0xffffffc0", "jne 5f",
        "cmp r9w, [rsp + 4]", "jne 5f",
        "6:",
        "add rsp, 8",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbx", "pop rbp", "pop rcx",
        "jmp rcx",
        "5:",
        "ldmxcsr [rsp]", "fldcw [rsp + 4]", "jmp 6b",
        // Without FSGSBASE the guest cannot change FS but by arch_prctl, which is seen: guest_fs is right.
        "2:",
        "mov rsi, gs:[{host_fs}]", "mov edi, 0x1002", "mov eax, 158",
        "syscall",
        "jmp 3b",
        host_rsp = const offset_of!(Thread, host_rsp),
        host_fs = const offset_of!(Thread, host_fs),
        guest_rsp = const offset_of!(Thread, guest_rsp),
        guest_fs = const offset_of!(Thread, guest_fs),
        in_guest = const offset_of!(Thread, in_guest),
        fsgsbase = sym FSGSBASE,
        keys = sym protect::IN_USE,
    )
}

/// Where a signal handler sends a thread that must not go on in its guest: rsp is `host_rsp` and FS the
/// host's already. x87 may hold anything, so it is emptied.
#[unsafe(naked)]
pub unsafe extern "C" fn resume_host() {
    naked_asm!(
        "cmp dword ptr [rip + {keys}], 0",
        "je 2f",
        "xor eax, eax",
        "xor ecx, ecx",
        "xor edx, edx",
        "wrpkru",
        "2:",
        "cld",
        "fninit",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "pop rcx",
        "jmp rcx",
        keys = sym protect::IN_USE,
    )
}

/// The handler of every signal that guests may raise: gives the host its FS base for as long as
/// [`crate::trap::trap`] runs, because a signal leaves it as it was, and the return from one does too.
///
/// A thread that never ran a guest has GS base 0 and its own FS base.
#[unsafe(naked)]
pub unsafe extern "C" fn signal_entry(
    number: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    naked_asm!(
        "cmp dword ptr [rip + {keys}], 0",
        "je 6f",
        "mov r8, rdx",
        "xor eax, eax", "xor ecx, ecx", "xor edx, edx", "wrpkru",
        "mov rdx, r8",
        "6:",
        // At entry rsp is 8 below a multiple of 16: two pushes and 8 bytes align it for the calls.
        "push rbx", "push r12", "sub rsp, 24", // [rsp]: FS base of what was interrupted
        "mov qword ptr [rsp], 0",
        "cmp dword ptr [rip + {fsgsbase}], 0",
        "je 2f",
        "rdgsbase rax", "test rax, rax", "jz 4f",
        "rdfsbase rbx", "mov [rsp], rbx",
        "mov rax, gs:[{host_fs}]", "wrfsbase rax",
        "mov rcx, rsp",
        "call {trap}",
        "mov rbx, [rsp]", "wrfsbase rbx",
        "add rsp, 24", "pop r12", "pop rbx", "ret",
        "4:",
        "xor ecx, ecx",
        "call {trap}",
        "add rsp, 24", "pop r12", "pop rbx", "ret",
        // The same by system calls.
        "2:",
        "mov [rsp + 8], rdi", "mov [rsp + 16], rsi", "mov r12, rdx",
        "mov edi, 0x1004", "mov rsi, rsp", "mov eax, 158", "syscall", // ARCH_GET_GS
        "mov rbx, [rsp]", "mov qword ptr [rsp], 0",
        "test rbx, rbx", "jz 5f",
        "mov edi, 0x1003", "mov rsi, rsp", "mov eax, 158", "syscall", // ARCH_GET_FS
        "mov edi, 0x1002", "mov rsi, gs:[{host_fs}]", "mov eax, 158", "syscall",
        "mov rdi, [rsp + 8]", "mov rsi, [rsp + 16]", "mov rdx, r12", "mov rcx, rsp",
        "call {trap}",
        "mov edi, 0x1002", "mov rsi, [rsp]", "mov eax, 158", "syscall",
        "add rsp, 24", "pop r12", "pop rbx", "ret",
        "5:",
        "mov rdi, [rsp + 8]", "mov rsi, [rsp + 16]", "mov rdx, r12", "xor ecx, ecx",
        "call {trap}",
        "add rsp, 24", "pop r12", "pop rbx", "ret",
        host_fs = const offset_of!(Thread, host_fs),
        fsgsbase = sym FSGSBASE,
        keys = sym protect::IN_USE,
        trap = sym crate::trap::trap,
    )
}
