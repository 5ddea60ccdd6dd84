//! Packets that a guest sends and that are none of a burst's: taken out of the ring that its preload writes.

use std::mem::size_of;

use crate::port::{Header, Port, SENT};

/// One that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// the element's port that it leaves at, 0 or 1
    pub port: u16,
    /// behind what leaves of the burst there, not before it
    pub after: bool,
    /// its bytes
    pub bytes: Vec<u8>,
}

/// Takes all that is there. What stands in the ring is the guest's word: lengths stay within it, and what makes no
/// sense empties it.
///
/// # Safety
/// `port` is a guest's port, mapped.
pub unsafe fn take(port: *mut Port, into: &mut Vec<Sent>) {
    // SAFETY: as the caller promises. No reference is made: threads of the guest's may write at any time.
    let (head, mut tail) = unsafe {
        let head = (&raw const (*port).head).read_volatile();
        // What was written before `head` is to be seen.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        (head, (&raw const (*port).tail).read())
    };
    if head == tail {
        return;
    }
    // SAFETY: as above.
    let ring = unsafe { (&raw const (*port).sent).cast::<u8>() };
    let copy = |at: u32, bytes: &mut [u8]| {
        let place = at as usize % SENT;
        let first = bytes.len().min(SENT - place);
        let rest = bytes.len() - first;
        // SAFETY: `place + first` is at most the ring's size, and so is `rest`, because nobody asks for more.
        unsafe {
            std::ptr::copy_nonoverlapping(ring.add(place), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(ring, bytes.as_mut_ptr().add(first), rest);
        }
    };
    const HEADER: u32 = size_of::<Header>() as u32;
    while head != tail && head.wrapping_sub(tail) <= SENT as u32 {
        let mut words = [0; size_of::<Header>()];
        copy(tail, &mut words);
        let [a, b, c, d, e, f, g, h, ..] = words;
        let length = u32::from_le_bytes([a, b, c, d]);
        let whole = HEADER + length.min(0xffff).next_multiple_of(HEADER);
        if length > 0xffff || whole > head.wrapping_sub(tail) {
            break;
        }
        let mut bytes = vec![0; length as usize];
        copy(tail.wrapping_add(HEADER), &mut bytes);
        into.push(Sent {
            port: u16::from_le_bytes([e, f]).min(1),
            after: u16::from_le_bytes([g, h]) != 0,
            bytes,
        });
        tail = tail.wrapping_add(whole);
    }
    // SAFETY: as above.
    unsafe {
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        (&raw mut (*port).tail).write_volatile(head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> Box<Port> {
        // SAFETY: integers and addresses: zeroes are values of all of them.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn put(port: &mut Port, length: u32, bytes: &[u8]) {
        let mut record = length.to_le_bytes().to_vec();
        record.extend([1, 0, 1, 0]);
        record.extend([0; 8]);
        record.extend(bytes);
        record.resize(record.len().next_multiple_of(size_of::<Header>()), 0);
        for byte in record {
            port.sent[port.head as usize % SENT] = byte;
            port.head = port.head.wrapping_add(1);
        }
    }

    #[test]
    fn records_wrap_around() {
        let mut port = port();
        (port.head, port.tail) = (SENT as u32 - 32, SENT as u32 - 32);
        put(&mut port, 40, &[7; 40]);
        put(&mut port, 0, &[]);
        let mut into = Vec::new();
        // SAFETY: a port of the test's own.
        unsafe { take(&raw mut *port, &mut into) };
        let bytes: Vec<&[u8]> = into.iter().map(|s| s.bytes.as_slice()).collect();
        assert_eq!(bytes, [&[7; 40][..], &[]]);
        assert!(into.iter().all(|s| s.port == 1 && s.after));
        assert_eq!(port.head, port.tail);
    }

    #[test]
    fn nonsense_empties_the_ring() {
        for (head, length) in [
            (16, 40),
            (16, u32::MAX),
            (u32::MAX, 0),
            (0x9000_0000, 1),
            (8, 0),
        ] {
            let mut port = port();
            put(&mut port, length, &[]);
            port.head = head;
            let mut into = Vec::new();
            // SAFETY: a port of the test's own.
            unsafe { take(&raw mut *port, &mut into) };
            assert_eq!((into.len(), port.tail), (0, head), "{head} {length}");
        }
    }
}
