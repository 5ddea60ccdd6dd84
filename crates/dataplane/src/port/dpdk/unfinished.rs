//! Frames of local senders, which leave work to the device, as they would be on a wire.

use millrace_wire::Rule;

use super::raw;
use crate::port::device::{finish, looks_unfinished};

/// Makes a frame of a local sender what it would be on a wire: finishes its checksum. False when it cannot
/// be: the sender left it to the device to cut, and the driver has cut it short instead.
pub fn present(frame: &raw::Frame) -> bool {
    let length = frame.end.addr() - frame.data.addr();
    // SAFETY: the frame was just received and is lent to nobody yet.
    let bytes = unsafe { std::slice::from_raw_parts_mut(frame.data, length) };
    if short(bytes).is_some_and(|short| short) {
        return false;
    }
    match looks_unfinished(bytes) {
        Some((start, offset)) => finish(bytes, start, offset),
        None => true,
    }
}

/// Whether a frame ends before its IP packet does; none when it is not IP.
fn short(frame: &[u8]) -> Option<bool> {
    let end = millrace_wire::announced(frame, millrace_wire::link(frame, Rule::DEVICE))?;
    Some(end > frame.len())
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_frame_that_was_cut_short_is_seen() {
        let mut frame = vec![0; 60];
        assert_eq!(short(&frame), None);
        frame.splice(12..14, [0x08, 0x00]);
        frame.splice(16..18, 46_u16.to_be_bytes());
        assert_eq!(short(&frame), Some(false));
        frame.splice(16..18, 47_u16.to_be_bytes());
        assert_eq!(short(&frame), Some(true));
        frame.splice(12..18, [0x81, 0x00, 0, 1, 0x86, 0xdd]);
        frame.splice(22..24, 2_u16.to_be_bytes());
        assert_eq!(short(&frame), Some(false));
        frame.splice(22..24, 3_u16.to_be_bytes());
        assert_eq!(short(&frame), Some(true));
        assert!((0..18).all(|n| short(frame.get(..n).unwrap_or_default()).is_none()));
    }
}
