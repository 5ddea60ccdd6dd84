//! Waiting for descriptors and for other threads. The packets' own thread looks, but does not wait for descriptors.

use std::sync::atomic::Ordering;

use super::{Arg, Call, Entry, How, entry, kernel};
use crate::memory::Errno;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(libc::SYS_futex, "futex", How::Here(futex)),
    entry(libc::SYS_poll, "poll", How::Here(poll)),
    entry(libc::SYS_ppoll, "ppoll", How::Here(poll)),
    entry(libc::SYS_select, "select", How::Here(select)),
    entry(libc::SYS_pselect6, "pselect6", How::Here(select)),
    entry(
        libc::SYS_epoll_ctl,
        "epoll_ctl",
        How::Kernel(&[Arg::Fd, Arg::Any, Arg::Fd, Arg::Bytes(12)]),
    ),
    entry(libc::SYS_epoll_wait, "epoll_wait", How::Here(epoll_wait)),
    entry(libc::SYS_epoll_pwait, "epoll_pwait", How::Here(epoll_wait)),
];

/// A second word has only commands that move waiters or write there: for all others its register holds what was there
/// before, and a wake that is refused for that would be lost.
fn futex(call: &mut Call<'_>) -> Result<i64, Errno> {
    const SECOND: [i32; 5] = [
        libc::FUTEX_REQUEUE,
        libc::FUTEX_CMP_REQUEUE,
        libc::FUTEX_WAKE_OP,
        libc::FUTEX_WAIT_REQUEUE_PI,
        libc::FUTEX_CMP_REQUEUE_PI,
    ];
    let second = match SECOND.contains(&(call.int(1) & libc::FUTEX_CMD_MASK)) {
        true => Arg::Out,
        false => Arg::Any,
    };
    call.kernel(&[Arg::Out, Arg::Any, Arg::Any, Arg::Any, second, Arg::Any])
}

/// The most descriptors in one call.
const MOST: usize = 1024;

/// Whether a call of a packets' own thread is to be made by another thread, which may wait, while the worker goes on
/// with others. That is for guests that poll for packets: others come back by themselves, and are not waited for.
pub fn is_long(call: &Call<'_>) -> bool {
    let poll = match call.number {
        libc::SYS_read | libc::SYS_readv => call.int(0) == 0,
        libc::SYS_poll | libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6 => true,
        _ => false,
    };
    if poll && call.guest.polls() {
        // It may be for its input that it waits: the end of which is then the way to end it.
        call.guest.arrivals.input.store(true, Ordering::Relaxed);
    }
    if !call.running.worker || !call.guest.polls() {
        return false;
    }
    let place = match call.number {
        libc::SYS_futex => {
            let command = call.int(1) & libc::FUTEX_CMD_MASK;
            return command == libc::FUTEX_WAIT || command == libc::FUTEX_WAIT_BITSET;
        }
        libc::SYS_read | libc::SYS_readv => {
            let wait = call.fd(call.int(0)).is_ok_and(|fd| !ready(fd));
            return wait;
        }
        libc::SYS_poll => 2,
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => 3,
        // A structure: whether it says 0 is not worth looking.
        libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6 => return true,
        libc::SYS_pause | libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => return true,
        _ => return false,
    };
    call.int(place) != 0
}

/// Whether a read of a descriptor of the host's would come back at once.
fn ready(fd: i32) -> bool {
    let mut asked = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    kernel(libc::SYS_poll, [(&raw mut asked).addr(), 1, 0, 0, 0, 0]) != Ok(0)
}

/// A time-out in ms (below 0: none) from a structure of seconds and parts of which there are `per_second`.
fn milliseconds(call: &Call<'_>, address: usize, per_second: i64) -> Result<i32, Errno> {
    if address == 0 {
        return Ok(-1);
    }
    let bytes: [u8; 16] = call.get(address)?;
    let (seconds, parts) = bytes.split_at(8);
    let number = |b: &[u8]| b.try_into().map(i64::from_le_bytes).unwrap_or(0);
    let (seconds, parts) = (number(seconds), number(parts));
    if seconds < 0 || parts < 0 {
        return Err(libc::EINVAL);
    }
    let ms = seconds
        .saturating_mul(1000)
        .saturating_add(parts.saturating_mul(1000) / per_second.max(1));
    Ok(i32::try_from(ms).unwrap_or(i32::MAX))
}

/// Waits for descriptors of the host's.
fn wait(call: &Call<'_>, fds: &mut [libc::pollfd], ms: i32) -> Result<i64, Errno> {
    let ms = if call.running.worker { 0 } else { ms };
    kernel(
        libc::SYS_poll,
        [fds.as_mut_ptr().addr(), fds.len(), ms as usize, 0, 0, 0],
    )
}

fn poll(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [array, count, timeout, ..] = call.args;
    if count > MOST {
        return Err(libc::EINVAL);
    }
    let ms = match call.number {
        libc::SYS_poll => timeout as i32,
        _ => milliseconds(call, timeout, 1_000_000_000)?,
    };
    let mut asked = Vec::new();
    for index in 0..count {
        let [a, b, c, d, e, f, ..]: [u8; 8] = call.get(array.wrapping_add(index * 8))?;
        let fd = i32::from_le_bytes([a, b, c, d]);
        asked.push((fd, i16::from_le_bytes([e, f])));
    }
    let mut fds = Vec::new();
    for (fd, events) in &asked {
        // One that is closed is told as such by the kernel, which knows none of our numbers above any limit.
        let host = if *fd < 0 {
            -1
        } else {
            call.fd(*fd).unwrap_or(i32::MAX)
        };
        fds.push(libc::pollfd {
            fd: host,
            events: *events,
            revents: 0,
        });
    }
    let ready = wait(call, &mut fds, ms)?;
    for (index, fd) in fds.iter().enumerate() {
        call.put(array + index * 8 + 6, &fd.revents.to_le_bytes())?;
    }
    Ok(ready)
}

fn select(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [count, read, write, except, timeout, _] = call.args;
    let count = count.min(MOST);
    let per_second = if call.number == libc::SYS_select {
        1_000_000
    } else {
        1_000_000_000
    };
    let ms = milliseconds(call, timeout, per_second)?;
    let events = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    let sets = [read, write, except];
    let mut asked = Vec::new();
    for (set, event) in sets.into_iter().zip(events) {
        if set == 0 {
            continue;
        }
        for word in 0..count.div_ceil(64) {
            let bits = u64::from_le_bytes(call.get(set + word * 8)?);
            for bit in (0..64).filter(|b| bits >> b & 1 != 0 && word * 64 + b < count) {
                asked.push((set, word * 64 + bit, event));
            }
        }
    }
    let mut fds = Vec::new();
    for (_, fd, event) in &asked {
        fds.push(libc::pollfd {
            fd: call.fd(*fd as i32)?,
            events: *event,
            revents: 0,
        });
    }
    wait(call, &mut fds, ms)?;
    let mut ready = 0;
    for set in sets.into_iter().filter(|s| *s != 0) {
        let mut words = vec![0_u64; count.div_ceil(64)];
        for ((_, fd, event), polled) in asked.iter().zip(&fds).filter(|((s, ..), _)| *s == set) {
            let wanted = event
                | libc::POLLERR
                | if *event == libc::POLLIN {
                    libc::POLLHUP
                } else {
                    0
                };
            if polled.revents & wanted != 0
                && let Some(word) = words.get_mut(fd / 64)
            {
                *word |= 1 << (fd % 64);
                ready += 1;
            }
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        call.put(set, &bytes)?;
    }
    Ok(ready)
}

fn epoll_wait(call: &mut Call<'_>) -> Result<i64, Errno> {
    if call.running.worker
        && let Some(timeout) = call.args.get_mut(3)
    {
        *timeout = 0;
    }
    call.kernel(&[Arg::Fd, Arg::Out, Arg::Any, Arg::Any])
}
