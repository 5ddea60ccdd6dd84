//! Clocks, and sleeping: the packets' own thread does not sleep, because the chain would.

use super::{Arg, Call, Entry, How, entry};
use crate::memory::Errno;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(libc::SYS_time, "time", How::Kernel(&[Arg::Out])),
    entry(libc::SYS_times, "times", How::Kernel(&[Arg::Out])),
    entry(
        libc::SYS_gettimeofday,
        "gettimeofday",
        How::Kernel(&[Arg::Out, Arg::Out]),
    ),
    entry(
        libc::SYS_clock_gettime,
        "clock_gettime",
        How::Kernel(&[Arg::Any, Arg::Out]),
    ),
    entry(
        libc::SYS_clock_getres,
        "clock_getres",
        How::Kernel(&[Arg::Any, Arg::Out]),
    ),
    entry(libc::SYS_nanosleep, "nanosleep", How::Here(sleep)),
    entry(
        libc::SYS_clock_nanosleep,
        "clock_nanosleep",
        How::Here(sleep),
    ),
    entry(
        libc::SYS_settimeofday,
        "settimeofday",
        How::Refuse(libc::EPERM),
    ),
    entry(
        libc::SYS_clock_settime,
        "clock_settime",
        How::Refuse(libc::EPERM),
    ),
];

fn sleep(call: &mut Call<'_>) -> Result<i64, Errno> {
    if call.running.worker {
        return Ok(0);
    }
    match call.number {
        libc::SYS_nanosleep => call.kernel(&[Arg::Bytes(16), Arg::Out]),
        _ => call.kernel(&[Arg::Any, Arg::Any, Arg::Bytes(16), Arg::Out]),
    }
}
