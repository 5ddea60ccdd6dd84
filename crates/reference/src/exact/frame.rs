//! Frames that move: headroom, metadata and frame are one piece of memory, and helpers move the borders.

use super::super::{APART, Machine};
use super::{EINVAL, MOST, error};

/// Bytes of an Ethernet header: a packet never gets shorter.
const LEAST: i64 = 14;
const EACCES: i64 = 13;
/// Most bytes of metadata.
const META: i64 = 252;

impl Machine<'_> {
    /// The frame's bytes as they are now.
    #[must_use]
    pub fn packet_bytes(&self) -> &[u8] {
        let meta = self.exact.as_ref().map_or(0, |e| e.meta);
        let memory = self.memory.get(&(self.packet / APART));
        memory.and_then(|m| m.bytes.get(meta..)).unwrap_or(&[])
    }

    /// Gives the packet at hand room to grow at its end.
    pub fn tailroom(&mut self, bytes: usize) {
        if let Some(exact) = &mut self.exact {
            exact.tailroom = bytes as i64;
        }
    }

    /// The address of the frame's first byte.
    pub(super) fn frame(&self) -> u64 {
        self.packet + self.exact.as_ref().map_or(0, |e| e.meta as u64)
    }

    /// Bytes of headroom, of metadata, of the frame; and all of them one after another.
    fn rooms(&self) -> (i64, i64, i64, Vec<u8>) {
        let memory = self.memory.get(&(self.packet / APART));
        let bytes = memory.map_or(&[][..], |m| &m.bytes);
        let (headroom, meta) = match &self.exact {
            Some(exact) => (exact.headroom.as_slice(), exact.meta as i64),
            None => (&[][..], 0),
        };
        let frame = bytes.len() as i64 - meta;
        (
            headroom.len() as i64,
            meta,
            frame,
            [headroom, bytes].concat(),
        )
    }

    /// Puts the borders there. Whatever the helper returned, pointers into the packet of before are no
    /// longer valid.
    fn renew(&mut self, mut all: Vec<u8>, headroom: i64, meta: i64) {
        let region = all.split_off((headroom.max(0) as usize).min(all.len()));
        self.place_packet(region);
        if let Some(exact) = &mut self.exact {
            (exact.headroom, exact.meta) = (all, meta as usize);
        }
    }

    pub(super) fn move_head(&mut self, by: i64) -> u64 {
        let (headroom, meta, frame, mut all) = self.rooms();
        if by > frame - LEAST || by < -headroom || frame - by > MOST {
            self.renew(all, headroom, meta);
            return error(EINVAL);
        }
        // The metadata goes with the frame's start.
        let (from, to) = (headroom as usize, (headroom + by) as usize);
        all.copy_within(from..from + meta as usize, to);
        self.renew(all, headroom + by, meta);
        0
    }

    pub(super) fn move_meta(&mut self, by: i64) -> u64 {
        let (headroom, meta, _, all) = self.rooms();
        let size = meta - by;
        let result = if size < 0 || size > headroom + meta {
            error(EINVAL)
        } else if size % 4 != 0 || size > META {
            error(EACCES)
        } else {
            self.renew(all, headroom + by, size);
            return 0;
        };
        self.renew(all, headroom, meta);
        result
    }

    pub(super) fn move_tail(&mut self, by: i64) -> u64 {
        let (headroom, meta, frame, mut all) = self.rooms();
        let tailroom = self.exact.as_ref().map_or(0, |e| e.tailroom);
        let fits = by <= tailroom && (LEAST..=MOST).contains(&(frame + by));
        if fits {
            all.resize((headroom + meta + frame + by) as usize, 0);
            if let Some(exact) = &mut self.exact {
                exact.tailroom -= by;
            }
        }
        self.renew(all, headroom, meta);
        if fits { 0 } else { error(EINVAL) }
    }
}
