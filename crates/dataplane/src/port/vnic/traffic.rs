//! What the device receives: a capture in memory, with each packet's queue, hash and port worked out
//! before anything runs, so that the device's own time is spent on what costs a device time too.

use millrace_steer::Rss;
use millrace_traffic::capture::Reader;
use millrace_traffic::split::{Side, Split};

use super::settings::{Settings, Steering};
use crate::packet::MAX_FRAME;
use crate::port::PortError;

/// Packets lie at multiples of a cache line, so that they are copied by whole lines.
pub const LINE: usize = 64;

/// A cache line of packet bytes.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Line(#[expect(dead_code, reason = "lines are copied whole")] [u8; LINE]);

/// A packet of the capture.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// index of its first line
    pub line: usize,
    /// bytes
    pub length: u16,
    /// the function's port
    pub port: u16,
    /// the queue, where it follows from the packet
    pub queue: u32,
    /// hash of its fields, 0 where nothing is hashed
    pub hash: u32,
    /// length on the wire, bytes
    pub wire: u32,
}

/// The packets of a capture.
pub struct Traffic {
    /// their bytes
    pub lines: Vec<Line>,
    /// in the order of the capture
    pub entries: Vec<Entry>,
}

impl Traffic {
    /// The bytes of the packet of an entry; none where there is no such entry.
    #[must_use]
    pub fn of(&self, entry: Option<usize>) -> &[u8] {
        let entry = entry.and_then(|at| self.entries.get(at));
        entry.map_or(&[], |entry| self.bytes(entry))
    }

    /// The bytes of a packet.
    #[must_use]
    pub fn bytes(&self, entry: &Entry) -> &[u8] {
        let length = usize::from(entry.length);
        let lines = length.div_ceil(LINE);
        let lines = self.lines.get(entry.line..entry.line + lines);
        let lines = lines.unwrap_or(&[]);
        let length = length.min(std::mem::size_of_val(lines));
        // SAFETY: lines lie one behind the other without padding (they are as long as they are aligned), and `length`
        // bytes of them are borrowed.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast::<u8>(), length) }
    }

    /// Reads the capture of a software NIC; `port` is the function's port that it is.
    ///
    /// # Errors
    /// When it cannot be read, or holds no packets.
    pub fn read(settings: &Settings, port: u32) -> Result<Self, PortError> {
        let mut reader = Reader::open(&settings.file)?;
        let (mut lines, mut entries) = (Vec::new(), Vec::new());
        while let Some(record) = reader.next()? {
            let frame = record.data.get(..MAX_FRAME).unwrap_or(record.data);
            let enters = entry_port(settings.split.as_ref(), frame, port);
            let of = |rss: &Rss| (rss.hash(frame).hash.unwrap_or(0), rss.queue(frame));
            let (hash, queue) = match &settings.steering {
                Steering::Rss(rss) => of(rss),
                Steering::Told(all) => {
                    let rss = all.get(enters as usize).or(all.last());
                    rss.map_or((0, 0), of)
                }
                Steering::Spray => (0, 0),
            };
            entries.push(Entry {
                line: lines.len(),
                length: frame.len() as u16,
                port: enters as u16,
                queue: queue.min(settings.queues - 1),
                hash,
                wire: record.original_length,
            });
            // An empty packet has a line too: the device copies at least one.
            let padded = frame.chunks(LINE).map(|chunk| {
                let mut line = [0; LINE];
                line.iter_mut()
                    .zip(chunk)
                    .for_each(|(to, from)| *to = *from);
                Line(line)
            });
            lines.extend(padded);
            if frame.is_empty() {
                lines.push(Line([0; LINE]));
            }
        }
        if entries.is_empty() {
            return Err(PortError::Hollow {
                word: settings.word.clone(),
            });
        }
        lines.shrink_to_fit();
        entries.shrink_to_fit();
        Ok(Self { lines, entries })
    }
}

/// With a split a device is two ports: those that the split names enter at `port`, others at the next
/// (for `wan=` the other way round).
fn entry_port(split: Option<&Split>, frame: &[u8], port: u32) -> u32 {
    let Some(split) = split else { return port };
    let second = split.port().eq_ignore_ascii_case("wan");
    let named = split.side(frame) == Side::Named;
    port + u32::from(named == second)
}
