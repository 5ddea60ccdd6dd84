//! Counting around the program: what is attached is a few instructions of ours that call the program as a function,
//! count its verdict, and return it. The program's own instructions are those that libbpf made ready, unchanged,
//! behind ours (calls and jumps are relative, so that they may be moved). After a tail call it is the last
//! program's verdict that returns to us. Trace points of the kernel could tell where redirected packets went, but
//! need CAP_PERFMON and BTF of the kernel; this needs what loading the program needs.
//!
//! Instructions are those of RFC 9669; helpers have the kernel's numbers (linux/bpf.h).

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Program, libbpf_sys};
use millrace_dataplane::account::{ABORTED, Account, PortAccount, QueueAccount};
use millrace_dataplane::port::PortError;
use millrace_dataplane::port::xdp::{Like, XdpProgram};

use crate::trouble;

/// The most interfaces of one run.
pub const MOST_PORTS: usize = 16;

/// Rows a port has: verdicts 0 to 4 (enum xdp_action), and all others, which the kernel takes for aborted.
const KINDS: usize = 6;
const DROPPED: usize = 1;
const PASSED: usize = 2;
const ANSWERED: usize = 3;
const REDIRECTED: usize = 4;

/// Content of one element of the map of counts: packets, their bytes as they came in, and as the program left them.
const COUNT_BYTES: u32 = 24;

/// Packets, bytes that came in, bytes that left, by kind.
type Row = [[u64; 3]; KINDS];

/// A program with counters around it.
pub struct Counters {
    program: XdpProgram,
    counts: MapHandle,
    word: String,
}

impl Counters {
    /// Loads a program once more, with counters around it; the ports are these interfaces, in order.
    pub fn around(
        word: &str,
        program: &Program<'_>,
        license: &str,
        interfaces: &[u32],
    ) -> Result<Self, PortError> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let entries = (interfaces.len() + 1) * KINDS;
        let counts = MapHandle::create(
            MapType::PercpuArray,
            Some("counts"),
            4,
            COUNT_BYTES,
            entries as u32,
            &options,
        );
        let counts = counts.map_err(|e| {
            trouble::refused(word, "cannot make a map of counters", &e, "free memory")
        })?;
        let mut code = before_and_behind(counts.as_fd().as_raw_fd(), interfaces);
        let ours = code.len() as u32;
        code.extend(program.insns().iter().map(word_of));
        let mut functions = vec![0];
        functions.extend(beginnings(program.insns()).into_iter().map(|at| at + ours));
        let license = CString::new(license).unwrap_or_default();
        let name = program.name().to_string_lossy();
        let like = Like {
            license: &license,
            name: &name,
            flags: program.flags(),
            functions: &functions,
        };
        let program = XdpProgram::load_like(&code, &like).map_err(|(error, said)| {
            let lines: Vec<&str> = said.lines().collect();
            let last = lines.get(lines.len().saturating_sub(8)..).unwrap_or_default();
            trouble::live(
                word,
                format!("the kernel does not take the program with counters around it: {error}\n  {}", last.join("\n  ")),
                "counting needs Linux 5.18 and 16 bytes of the program's stack; use afxdp: otherwise",
            )
        })?;
        Ok(Self {
            program,
            counts,
            word: word.to_owned(),
        })
    }

    /// The program to attach.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.fd()
    }

    fn row(&self, port: usize) -> Result<Row, libbpf_rs::Error> {
        let mut row = Row::default();
        for (kind, count) in row.iter_mut().enumerate() {
            let key = ((port * KINDS + kind) as u32).to_ne_bytes();
            let each = self.counts.lookup_percpu(&key, MapFlags::ANY)?;
            for value in each.unwrap_or_default() {
                for (number, bytes) in count.iter_mut().zip(value.as_chunks().0) {
                    *number += u64::from_ne_bytes(*bytes);
                }
            }
        }
        Ok(row)
    }

    /// The account so far, in the terms of other ports.
    pub fn account(&self, words: &[&str]) -> Result<Account, PortError> {
        let mut account = Account::default();
        let mut redirected = PortAccount {
            name: "redirected".into(),
            ..PortAccount::default()
        };
        for (number, word) in words.iter().enumerate() {
            let row = self.row(number).map_err(|e| {
                trouble::live(
                    &self.word,
                    format!("the counters cannot be read: {e}"),
                    "try again",
                )
            })?;
            count(&mut account, &mut redirected, &number.to_string(), &row);
            account.queues.push(QueueAccount {
                name: (*word).to_owned(),
                ..QueueAccount::default()
            });
        }
        if redirected.sent > 0 {
            account.ports.push(redirected);
        }
        Ok(account)
    }
}

/// Adds a port's row to the account.
fn count(account: &mut Account, redirected: &mut PortAccount, name: &str, row: &Row) {
    let of = |kind: usize| row.get(kind).copied().unwrap_or_default();
    let [dropped, passed, answered, onward] = [DROPPED, PASSED, ANSWERED, REDIRECTED].map(of);
    let read: u64 = row.iter().map(|[packets, _, _]| packets).sum();
    let forwarded = answered[0] + onward[0];
    let port = PortAccount {
        name: name.to_owned(),
        read,
        read_bytes: row.iter().map(|[_, bytes, _]| bytes).sum(),
        forwarded,
        dropped: dropped[0],
        passed: passed[0],
        consumed: 0,
        aborted: read - forwarded - dropped[0] - passed[0],
        sent: answered[0],
        sent_bytes: answered[2],
    };
    redirected.sent += onward[0];
    redirected.sent_bytes += onward[2];
    account.read += port.read;
    account.forwarded += port.forwarded;
    account.dropped += port.dropped;
    account.passed += port.passed;
    account.aborted += port.aborted;
    for (reason, packets) in [("dropped", port.dropped), (ABORTED, port.aborted)] {
        if packets > 0 {
            *account.reasons.entry(reason.to_owned()).or_default() += packets;
        }
    }
    account.ports.push(port);
}

/// An instruction of libbpf's as the 64 bits that it has in memory.
fn word_of(insn: &libbpf_sys::bpf_insn) -> u64 {
    let registers = u64::from(insn.dst_reg()) | u64::from(insn.src_reg()) << 4;
    u64::from(insn.code)
        | registers << 8
        | u64::from(insn.off as u16) << 16
        | u64::from(insn.imm as u32) << 32
}

/// Where the functions of a program begin: the first, and those that are called or whose address is taken.
fn beginnings(insns: &[libbpf_sys::bpf_insn]) -> BTreeSet<u32> {
    const CALL: u8 = 0x85;
    const LOAD_ADDRESS: u8 = 0x18;
    let called = insns.iter().enumerate().filter_map(|(at, insn)| {
        // BPF_PSEUDO_CALL, BPF_PSEUDO_FUNC: the distance from the next instruction.
        let function = matches!((insn.code, insn.src_reg()), (CALL, 1) | (LOAD_ADDRESS, 4));
        let target = i64::try_from(at).ok()? + 1 + i64::from(insn.imm);
        u32::try_from(target).ok().filter(|_| function)
    });
    std::iter::once(0).chain(called).collect()
}

/// The instructions around a program, which is to be put behind them.
///
/// ```text
/// r6 = context                       r7 = first element of the port's row
/// r8 = verdict                       r9 = length, then the element
/// ```
fn before_and_behind(counts: i32, interfaces: &[u32]) -> Vec<u64> {
    const LOOKUP: u32 = 1;
    const BUFFER_LENGTH: u32 = 188;
    let insn = |opcode: u64, dst: u64, src: u64, offset: i16, imm: u32| {
        opcode | dst << 8 | src << 12 | u64::from(offset as u16) << 16 | u64::from(imm) << 32
    };
    let call = |helper| insn(0x85, 0, 0, 0, helper);
    let mut code = vec![
        insn(0xbf, 6, 1, 0, 0), // r6 = r1
        call(BUFFER_LENGTH),
        insn(0xbf, 9, 0, 0, 0),                                 // r9 = r0
        insn(0x61, 1, 6, 12, 0), // r1 = *(u32 *)(r6 + 12): struct xdp_md, ingress_ifindex
        insn(0xb7, 7, 0, 0, (interfaces.len() * KINDS) as u32), // r7 = the row of none
    ];
    for (port, interface) in interfaces.iter().enumerate() {
        code.push(insn(0x56, 1, 0, 1, *interface)); // if w1 != interface skip one
        code.push(insn(0xb7, 7, 0, 0, (port * KINDS) as u32)); // r7 = row
    }
    let behind = [
        insn(0xbc, 8, 0, 0, 0),                // w8 = w0
        insn(0x7b, 10, 8, -8, 0),              // *(u64 *)(r10 - 8) = r8: what is returned
        insn(0xa6, 8, 0, 1, KINDS as u32 - 1), // if w8 < 5 skip one
        insn(0xb7, 8, 0, 0, KINDS as u32 - 1), // r8 = 5
        insn(0x0f, 7, 8, 0, 0),                // r7 += r8
        insn(0x63, 10, 7, -12, 0),             // *(u32 *)(r10 - 12) = r7
        insn(0x18, 1, 1, 0, counts as u32),    // r1 = map
        0,
        insn(0xbf, 2, 10, 0, 0),             // r2 = r10
        insn(0x07, 2, 0, 0, -12_i32 as u32), // r2 += -12
        call(LOOKUP),
        insn(0x15, 0, 0, 10, 0), // if r0 == 0 go to the end
        insn(0x79, 1, 0, 0, 0),  // r1 = *(u64 *)(r0 + 0)
        insn(0x07, 1, 0, 0, 1),  // r1 += 1
        insn(0x7b, 0, 1, 0, 0),  // *(u64 *)(r0 + 0) = r1
        insn(0x79, 1, 0, 8, 0),
        insn(0x0f, 1, 9, 0, 0), // r1 += r9
        insn(0x7b, 0, 1, 8, 0),
        insn(0xbf, 9, 0, 0, 0), // r9 = r0
        insn(0xbf, 1, 6, 0, 0), // r1 = r6
        call(BUFFER_LENGTH),
        insn(0xdb, 9, 0, 16, 0),  // lock *(u64 *)(r9 + 16) += r0
        insn(0x79, 0, 10, -8, 0), // the end: r0 = *(u64 *)(r10 - 8)
        insn(0x95, 0, 0, 0, 0),   // exit
    ];
    code.push(insn(0xbf, 1, 6, 0, 0)); // r1 = r6
    code.push(insn(0x85, 0, 1, 0, behind.len() as u32)); // call what stands behind
    code.extend(behind);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_has_one_fate() {
        let row = [1, 10, 20, 30, 40, 2].map(|n| [n, 60 * n, 64 * n]);
        let (mut account, mut redirected) = (Account::default(), PortAccount::default());
        count(&mut account, &mut redirected, "0", &row);
        account.ports.push(redirected);
        assert!(account.balances(), "{account:?}");
        assert_eq!((account.read, account.forwarded), (103, 70));
        assert_eq!(
            (account.dropped, account.passed, account.aborted),
            (10, 20, 3)
        );
        assert_eq!(account.ports[0].sent_bytes, 30 * 64);
        assert_eq!(account.ports[1].sent, 40);
    }
}
