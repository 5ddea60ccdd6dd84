//! Rows of replicated state over the border: what the treatment `replicate` exports (`struct mr_history`, abi.h).

use super::{Instance, Module, abi};
use crate::inside;

/// The largest row, bytes (`millrace_history::MOST_BYTES`, and the most that a sequencer takes).
pub(super) const MOST_ROW: u32 = 64;

/// A packet of which a row is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// its bytes
    pub frame: &'a [u8],
    /// the port of the function that it comes in at
    pub port: u32,
    /// how many ports there are
    pub ports: u32,
    /// the time that the program sees, ns since the epoch
    pub time: u64,
    /// its ingress number
    pub number: u64,
}

impl Module {
    pub(super) fn history(&self) -> Option<&abi::History> {
        // SAFETY: `verify` has seen the table; the pointer is null or names a constant of the library, which stays
        // loaded as long as `self`.
        unsafe { self.table().history.as_ref() }
    }

    /// Bytes of a row, where its state is replicated; none where it is not.
    #[must_use]
    pub fn row_bytes(&self) -> Option<usize> {
        self.history().map(|h| h.bytes as usize)
    }

    /// Whether timers in the values of its maps may be due.
    #[must_use]
    pub fn has_alarms(&self) -> bool {
        self.table().alarms.is_some()
    }
}

impl Instance {
    /// Fills a packet's row, of [`Module::row_bytes`]; false where the packet touches no state and has none. It depends on
    /// the packet and on settings, and not on state.
    pub fn extract(&mut self, program: usize, seen: &Seen<'_>, row: &mut [u8]) -> bool {
        let Some(history) = self.module.history() else {
            return false;
        };
        let Some(extract) = history.extract else {
            return false;
        };
        if row.len() < history.bytes as usize || seen.frame.len() > usize::from(u16::MAX) {
            return false;
        }
        let range = seen.frame.as_ptr_range();
        let (data, end) = (range.start.cast_mut(), range.end.cast_mut());
        let packet = abi::Packet {
            data,
            end,
            meta: data,
            floor: data,
            ceiling: end,
            bared: data,
            time: seen.time,
            number: seen.number,
            port: seen.port,
            ports: seen.ports,
            ..abi::Packet::empty()
        };
        // SAFETY: the instance is created and exclusively ours. The descriptor's pointers bound the frame, which `extract`
        // does not write (a program that writes before its first access to state gets a copy, abi.h); the row has the bytes
        // that the module asked for.
        inside::call(|| unsafe {
            extract(
                self.memory.as_ptr(),
                program as u32,
                &raw const packet,
                row.as_mut_ptr(),
            )
        }) != 0
    }

    /// Does to state what the packets of `rows` do, which lie one behind the other, the first at place `number` from 0.
    /// `time` (ns) and `ingress`, the time and the number of a packet near them, say what a row's few bits of these are part
    /// of. False where one is no row; it and those behind it have no effect.
    pub fn replay(&mut self, rows: &[u8], number: u64, time: u64, ingress: u64) -> bool {
        let Some(history) = self.module.history() else {
            return false;
        };
        let count = rows.len() / (history.bytes as usize).max(1);
        let Some(replay) = history.replay else {
            return false;
        };
        // SAFETY: the instance is created and exclusively ours, and `rows` holds `count` rows.
        let result = inside::call(|| unsafe {
            replay(
                self.memory.as_ptr(),
                rows.as_ptr(),
                count as u32,
                number,
                time,
                ingress,
            )
        });
        result == 0
    }

    /// Runs packet entry `program` on a packet with its row, or without one, at place `number` of all rows; sets its fate.
    /// A row that is too short is not run, and leaves the fate as it is.
    ///
    /// # Safety
    /// The descriptor describes a packet as abi.h asks for, in memory that nobody else uses during the call.
    pub(crate) unsafe fn process(
        &mut self,
        program: usize,
        packet: *mut abi::Packet,
        row: Option<&[u8]>,
        number: u64,
    ) {
        let Some(history) = self.module.history() else {
            return;
        };
        // Rows come from a ring that was made for this module.
        if row.is_some_and(|r| r.len() < history.bytes as usize) {
            return;
        }
        let row = row.map_or(std::ptr::null(), <[u8]>::as_ptr);
        if let Some(process) = history.process {
            // SAFETY: the instance is created and exclusively ours; the row is null or has the module's bytes; the
            // rest as the caller promises.
            inside::call(|| unsafe {
                process(self.memory.as_ptr(), program as u32, packet, row, number);
            });
        }
    }
}
