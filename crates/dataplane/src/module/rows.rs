//! Rows of a module whose state is replicated (abi.h, `mr_history`), as far as measuring what they cost needs it: a burst's rows, the
//! burst with them, and what they do to another replica.

use std::ffi::c_int;

use super::{Instance, Module, abi};
use crate::packet::Burst;
use crate::{clock, inside};

/// The rows of a burst's packets.
#[derive(Debug, Default)]
pub struct Rows {
    bytes: Vec<u8>,
    /// by packet: where its row begins
    at: Vec<Option<usize>>,
    /// how many there are
    count: u32,
    /// the place of the first one in the order of all
    first: u64,
    time: u64,
    ingress: u64,
}

impl Rows {
    /// The next ones have places from this one on in the order of all rows.
    pub fn follow(&mut self, place: u64) {
        (self.first, self.count) = (place, 0);
    }

    /// How many packets have one.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

impl Module {
    /// Whether its state is replicated.
    #[must_use]
    pub fn replicates(&self) -> bool {
        self.history().is_some()
    }

    fn history(&self) -> Option<&abi::History> {
        let history = self.table().history;
        // SAFETY: null, or constant data of the library in `self`.
        (!history.is_null()).then(|| unsafe { &*history })
    }
}

/// Packets of a burst, each with the memory of a row.
fn places(history: &abi::History, packets: usize, rows: &mut Rows) {
    rows.bytes.clear();
    rows.bytes.resize(packets * history.bytes as usize, 0);
    rows.at.clear();
    rows.count = 0;
}

impl Instance {
    /// Makes the rows of a burst's packets, at the places that [`Rows::follow`] said; ticks of [`crate::clock`] spent inside the module,
    /// none where state is not replicated.
    pub fn make_rows(&mut self, program: u32, burst: &mut Burst, rows: &mut Rows) -> Option<u64> {
        let history = self.module.history()?;
        let extract = history.extract?;
        let (pointers, count) = burst.descriptors();
        // SAFETY: `Burst` promises `count` descriptors there.
        let packets = unsafe { std::slice::from_raw_parts(pointers, count as usize) };
        places(history, packets.len(), rows);
        let bytes = history.bytes as usize;
        let begin = clock::ticks();
        for packet in packets {
            let at = rows.count as usize * bytes;
            let Some(row) = rows.bytes.get_mut(at..at + bytes) else {
                break;
            };
            // SAFETY: the instance is created and exclusively ours, the packet one of the burst's, the row as long as the table says.
            let has = inside::call(|| unsafe {
                extract(self.memory.as_ptr(), program, *packet, row.as_mut_ptr())
            });
            rows.at.push((has != 0).then_some(at));
            rows.count += u32::from(has != 0);
        }
        let ticks = clock::ticks().saturating_sub(begin);
        if let Some(first) = packets.first() {
            // SAFETY: as above.
            let first = unsafe { &**first };
            (rows.time, rows.ingress) = (first.time, first.number);
        }
        Some(ticks)
    }

    /// Runs a burst of which these are the rows, and sets the fate of each packet; ticks, none where state is not replicated.
    pub fn run_rows(&mut self, program: u32, burst: &mut Burst, rows: &Rows) -> Option<u64> {
        let run = self.module.history()?.burst?;
        let (pointers, count) = burst.descriptors();
        let own: Vec<*const u8> = (rows.at.iter())
            .map(|at| {
                let row = at.and_then(|at| rows.bytes.get(at..));
                row.map_or(std::ptr::null(), <[u8]>::as_ptr)
            })
            .collect();
        if own.len() != count as usize {
            return None;
        }
        let begin = clock::ticks();
        // SAFETY: the instance is created and exclusively ours; `count` packets of the burst's, and for each a row that lives, or none.
        let failed: c_int = inside::call(|| unsafe {
            run(
                self.memory.as_ptr(),
                program,
                pointers,
                own.as_ptr(),
                count,
                rows.first,
                rows.time,
                rows.ingress,
            )
        });
        (failed == 0).then(|| clock::ticks().saturating_sub(begin))
    }

    /// Does to state what the packets of these rows do; ticks, none where state is not replicated.
    pub fn repeat_rows(&mut self, rows: &Rows) -> Option<u64> {
        let replay = self.module.history()?.replay?;
        let begin = clock::ticks();
        // SAFETY: the instance is created and exclusively ours; `bytes` has `count` rows side by side.
        let failed = inside::call(|| unsafe {
            replay(
                self.memory.as_ptr(),
                rows.bytes.as_ptr(),
                rows.count,
                rows.first,
                rows.time,
                rows.ingress,
            )
        });
        (failed == 0).then(|| clock::ticks().saturating_sub(begin))
    }
}
