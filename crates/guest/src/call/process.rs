//! Threads, identity, limits: what is the process's stays as it is; what a guest may believe, it believes.

use super::{Answer, Arg, Call, Entry, How, entry, kernel};
use crate::memory::Errno;
use crate::thread::{Context, first_frame};
use crate::trap::Left;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(libc::SYS_exit, "exit", How::End(exit)),
    entry(libc::SYS_exit_group, "exit_group", How::End(exit_group)),
    entry(libc::SYS_clone, "clone", How::Here(clone)),
    // glibc goes on to clone.
    entry(libc::SYS_clone3, "clone3", How::Absent(libc::ENOSYS)),
    entry(libc::SYS_fork, "fork", How::Here(fork)),
    entry(libc::SYS_vfork, "vfork", How::Refuse(libc::EPERM)),
    entry(libc::SYS_execve, "execve", How::Refuse(libc::EPERM)),
    entry(libc::SYS_execveat, "execveat", How::Refuse(libc::EPERM)),
    entry(libc::SYS_wait4, "wait4", How::Absent(libc::ECHILD)),
    entry(libc::SYS_waitid, "waitid", How::Absent(libc::ECHILD)),
    entry(libc::SYS_ptrace, "ptrace", How::Refuse(libc::EPERM)),
    entry(
        libc::SYS_process_vm_readv,
        "process_vm_readv",
        How::Refuse(libc::EPERM),
    ),
    entry(
        libc::SYS_process_vm_writev,
        "process_vm_writev",
        How::Refuse(libc::EPERM),
    ),
    entry(
        libc::SYS_io_uring_setup,
        "io_uring_setup",
        How::Refuse(libc::EPERM),
    ),
    entry(libc::SYS_seccomp, "seccomp", How::Refuse(libc::EPERM)),
    entry(
        libc::SYS_set_tid_address,
        "set_tid_address",
        How::Here(set_tid_address),
    ),
    entry(libc::SYS_gettid, "gettid", How::Here(gettid)),
    entry(libc::SYS_getpid, "getpid", How::Here(getpid)),
    entry(libc::SYS_getppid, "getppid", How::Kernel(&[])),
    entry(libc::SYS_getpgrp, "getpgrp", How::Kernel(&[])),
    entry(libc::SYS_getpgid, "getpgid", How::Kernel(&[Arg::Value])),
    entry(libc::SYS_getsid, "getsid", How::Kernel(&[Arg::Value])),
    entry(libc::SYS_setsid, "setsid", How::Refuse(libc::EPERM)),
    entry(libc::SYS_setpgid, "setpgid", How::Refuse(libc::EPERM)),
    entry(libc::SYS_set_robust_list, "set_robust_list", How::Accept),
    entry(libc::SYS_mlockall, "mlockall", How::Accept),
    entry(libc::SYS_munlockall, "munlockall", How::Accept),
    entry(libc::SYS_iopl, "iopl", How::Absent(libc::EPERM)),
    entry(
        libc::SYS_get_mempolicy,
        "get_mempolicy",
        How::Absent(libc::ENOSYS),
    ),
    entry(libc::SYS_rseq, "rseq", How::Absent(libc::ENOSYS)),
    entry(libc::SYS_arch_prctl, "arch_prctl", How::Here(arch_prctl)),
    entry(libc::SYS_prctl, "prctl", How::Here(prctl)),
    entry(libc::SYS_getuid, "getuid", How::Here(own_id)),
    entry(libc::SYS_geteuid, "geteuid", How::Here(own_id)),
    entry(libc::SYS_getgid, "getgid", How::Here(own_id)),
    entry(libc::SYS_getegid, "getegid", How::Here(own_id)),
    entry(libc::SYS_getresuid, "getresuid", How::Here(get_ids)),
    entry(libc::SYS_getresgid, "getresgid", How::Here(get_ids)),
    entry(libc::SYS_setuid, "setuid", How::Here(set_ids)),
    entry(libc::SYS_setgid, "setgid", How::Here(set_ids)),
    entry(libc::SYS_setreuid, "setreuid", How::Here(set_ids)),
    entry(libc::SYS_setregid, "setregid", How::Here(set_ids)),
    entry(libc::SYS_setresuid, "setresuid", How::Here(set_ids)),
    entry(libc::SYS_setresgid, "setresgid", How::Here(set_ids)),
    entry(libc::SYS_ioprio_set, "ioprio_set", How::Accept),
    entry(libc::SYS_setfsuid, "setfsuid", How::Accept),
    entry(libc::SYS_setfsgid, "setfsgid", How::Accept),
    entry(libc::SYS_setgroups, "setgroups", How::Accept),
    entry(libc::SYS_getgroups, "getgroups", How::Accept),
    entry(
        libc::SYS_capget,
        "capget",
        How::Kernel(&[Arg::Memory, Arg::Memory]),
    ),
    entry(libc::SYS_capset, "capset", How::Accept),
    entry(
        libc::SYS_sched_setaffinity,
        "sched_setaffinity",
        How::Accept,
    ),
    entry(
        libc::SYS_sched_getaffinity,
        "sched_getaffinity",
        How::Kernel(&[Arg::Value, Arg::Value, Arg::Memory]),
    ),
    entry(
        libc::SYS_sched_setscheduler,
        "sched_setscheduler",
        How::Accept,
    ),
    entry(libc::SYS_sched_setparam, "sched_setparam", How::Accept),
    entry(
        libc::SYS_sched_getparam,
        "sched_getparam",
        How::Kernel(&[Arg::Value, Arg::Memory]),
    ),
    entry(
        libc::SYS_sched_getscheduler,
        "sched_getscheduler",
        How::Kernel(&[Arg::Value]),
    ),
    entry(
        libc::SYS_sched_get_priority_max,
        "sched_get_priority_max",
        How::Kernel(&[Arg::Value]),
    ),
    entry(
        libc::SYS_sched_get_priority_min,
        "sched_get_priority_min",
        How::Kernel(&[Arg::Value]),
    ),
    entry(libc::SYS_sched_yield, "sched_yield", How::Accept),
    entry(libc::SYS_setpriority, "setpriority", How::Accept),
    entry(
        libc::SYS_getpriority,
        "getpriority",
        How::Kernel(&[Arg::Value, Arg::Value]),
    ),
    entry(
        libc::SYS_getcpu,
        "getcpu",
        How::Kernel(&[Arg::Memory, Arg::Memory]),
    ),
    entry(
        libc::SYS_getrlimit,
        "getrlimit",
        How::Kernel(&[Arg::Value, Arg::Memory]),
    ),
    entry(libc::SYS_setrlimit, "setrlimit", How::Accept),
    entry(libc::SYS_prlimit64, "prlimit64", How::Here(prlimit)),
    entry(
        libc::SYS_getrusage,
        "getrusage",
        How::Kernel(&[Arg::Value, Arg::Memory]),
    ),
    entry(libc::SYS_sysinfo, "sysinfo", How::Kernel(&[Arg::Memory])),
    entry(libc::SYS_uname, "uname", How::Kernel(&[Arg::Memory])),
    entry(
        libc::SYS_getrandom,
        "getrandom",
        How::Kernel(&[Arg::Memory, Arg::Value, Arg::Value]),
    ),
];

fn exit(call: &mut Call<'_>) -> Answer {
    let clear = call.running.clear;
    // Whoever joins this thread waits for its number to become 0, and then may free its stack: it is not touched
    // any more after this.
    if clear != 0 && call.put(clear, &0_i32.to_le_bytes()).is_ok() {
        let wake = libc::FUTEX_WAKE as usize;
        let _ = kernel(libc::SYS_futex, [clear, wake, i32::MAX as usize, 0, 0, 0]);
    }
    Answer::Leave(Left::Thread)
}

fn exit_group(call: &mut Call<'_>) -> Answer {
    Answer::Leave(Left::Exit(call.int(0)))
}

/// What it would do in a process of its own is missing from what it does.
fn fork(call: &mut Call<'_>) -> Result<i64, Errno> {
    let mut state = call.guest.state();
    state.forks = true;
    state.note("a process of its own (fork) was denied".into());
    Err(libc::EPERM)
}

/// A thread, which gets one of the host's; anything else would be a process.
fn clone(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [flags, stack, parent, child, tls, _] = call.args;
    let flags = flags as i32;
    let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_SETTLS;
    if flags & thread != thread {
        // Of a program that is to be executed, only it is missing.
        if flags & libc::CLONE_VFORK == 0 {
            return fork(call);
        }
        call.guest
            .state()
            .note("a program of its own (vfork) was denied".into());
        return Err(libc::EPERM);
    }
    let slot = &call.guest.slot;
    if !slot.contains(stack) || !slot.contains(stack.wrapping_sub(128)) {
        return Err(libc::EINVAL);
    }
    let number = {
        let mut state = call.guest.state();
        state.last_thread += 1;
        state.last_thread
    };
    let text = number.to_le_bytes();
    if flags & libc::CLONE_PARENT_SETTID != 0 {
        call.put(parent, &text)?;
    }
    if flags & libc::CLONE_CHILD_SETTID != 0 {
        call.put(child, &text)?;
    }
    let registers = [
        libc::REG_RBX,
        libc::REG_RBP,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];
    let preserved = registers.map(|r| call.frame.get(r) as u64);
    // The frame is written like anything that a guest names: its stack may not be mapped.
    call.put(stack - 128, &[0; 128])?;
    // SAFETY: the 128 bytes below `stack` have just been written to.
    let rsp = unsafe { first_frame(stack, call.frame.get(libc::REG_RIP), preserved) };
    let context = Context {
        rsp,
        fs: tls,
        number,
        clear: if flags & libc::CLONE_CHILD_CLEARTID == 0 {
            0
        } else {
            child
        },
    };
    call.guest.spawn(context).map_err(|_| libc::EAGAIN)?;
    Ok(i64::from(number))
}

fn set_tid_address(call: &mut Call<'_>) -> Result<i64, Errno> {
    call.running.clear = call.arg(0);
    Ok(i64::from(call.running.number))
}

fn getpid(call: &mut Call<'_>) -> Result<i64, Errno> {
    Ok(i64::from(call.guest.state().process))
}

fn gettid(call: &mut Call<'_>) -> Result<i64, Errno> {
    Ok(i64::from(call.running.number))
}

fn arch_prctl(call: &mut Call<'_>) -> Result<i64, Errno> {
    const SET_FS: i32 = 0x1002;
    const GET_FS: i32 = 0x1003;
    match call.int(0) {
        SET_FS => {
            // FS base in the frame is what the guest goes on with.
            *call.frame.fs = call.arg(1);
            *call.kept_fs = call.arg(1);
            Ok(0)
        }
        GET_FS => call
            .put(call.arg(1), &call.frame.fs.to_le_bytes())
            .map(|()| 0),
        // GS is the host's; the rest (shadow stacks) is not offered.
        _ => Err(libc::EINVAL),
    }
}

fn prctl(call: &mut Call<'_>) -> Result<i64, Errno> {
    match call.int(0) {
        // Names and rights are the process's: the guest may believe that it has set them.
        libc::PR_SET_NAME
        | libc::PR_SET_KEEPCAPS
        | libc::PR_CAPBSET_DROP
        | libc::PR_SET_NO_NEW_PRIVS
        | libc::PR_SET_DUMPABLE
        | libc::PR_SET_PDEATHSIG
        | libc::PR_SET_SECUREBITS
        | libc::PR_CAP_AMBIENT => Ok(0),
        libc::PR_GET_NAME => {
            let mut name = [0; 16];
            for (place, byte) in name.iter_mut().zip(call.guest.name.bytes().take(15)) {
                *place = byte;
            }
            call.put(call.arg(1), &name).map(|()| 0)
        }
        libc::PR_CAPBSET_READ
        | libc::PR_GET_SECUREBITS
        | libc::PR_GET_KEEPCAPS
        | libc::PR_GET_DUMPABLE => kernel(libc::SYS_prctl, call.args),
        _ => Err(libc::EINVAL),
    }
}

fn own_id(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [uid, euid, gid, egid] = call.guest.state().ids;
    Ok(i64::from(match call.number {
        libc::SYS_getuid => uid,
        libc::SYS_geteuid => euid,
        libc::SYS_getgid => gid,
        _ => egid,
    }))
}

fn get_ids(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [uid, euid, gid, egid] = call.guest.state().ids;
    let (real, effective) = if call.number == libc::SYS_getresuid {
        (uid, euid)
    } else {
        (gid, egid)
    };
    for (place, id) in [real, effective, effective].into_iter().enumerate() {
        call.put(call.arg(place), &id.to_le_bytes())?;
    }
    Ok(0)
}

/// A guest that gives up rights believes that it has: they are the process's, and it had none through them.
fn set_ids(call: &mut Call<'_>) -> Result<i64, Errno> {
    let user = matches!(
        call.number,
        libc::SYS_setuid | libc::SYS_setreuid | libc::SYS_setresuid
    );
    let one = matches!(call.number, libc::SYS_setuid | libc::SYS_setgid);
    let (real, effective) = (
        call.arg(0) as u32,
        if one { call.arg(0) } else { call.arg(1) } as u32,
    );
    let mut state = call.guest.state();
    let [uid, euid, gid, egid] = &mut state.ids;
    let (r, e) = if user { (uid, euid) } else { (gid, egid) };
    for (id, new) in [(r, real), (e, effective)] {
        if new != u32::MAX {
            *id = new;
        }
    }
    if user {
        state.note(format!(
            "it changed user to {effective}: in its own eyes only, a process has one"
        ));
    }
    Ok(0)
}

fn prlimit(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [_, resource, _, old, ..] = call.args;
    if old == 0 {
        // Limits are the process's: the guest may believe that it has set one.
        return Ok(0);
    }
    kernel(libc::SYS_prlimit64, [0, resource, 0, call.own(old)?, 0, 0])
}
