//! Elements that are no module: packets that they send of their own, their order, and how they are counted; packets that
//! they send back and forth.

use std::sync::{Arc, Mutex};

use super::tests::{Case, link};
use super::*;
use crate::worker::foreign::{DROP, Epilogue, Foreign, Given, KEEP, ON, OUT};

/// What becomes of a packet is its second byte. One that is kept is sent when the next burst is over, or nothing comes.
#[derive(Default)]
struct Keeper {
    kept: Vec<Vec<u8>>,
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
}

impl Foreign for Keeper {
    unsafe fn burst(&mut self, packets: &mut [Given]) {
        self.before.append(&mut self.kept);
        for packet in packets {
            // SAFETY: as the caller promises.
            let bytes = unsafe { std::slice::from_raw_parts(packet.data, packet.length as usize) };
            packet.fate = match bytes[1] {
                0 => ON,
                1 => DROP,
                2 => {
                    self.kept.push(bytes.to_vec());
                    KEEP
                }
                // Sent back, and shorter.
                3 => {
                    packet.length -= 1;
                    OUT
                }
                // Longer than it may become.
                4 => {
                    packet.length = packet.room + 1;
                    OUT + 1
                }
                // Goes on, and another one behind it.
                _ => {
                    self.after.push(vec![3, 1, 99]);
                    OUT + 1
                }
            };
        }
    }

    fn sent(&mut self, after: bool, each: &mut dyn FnMut(u16, &[u8])) {
        let list = if after {
            &mut self.after
        } else {
            &mut self.before
        };
        list.drain(..).for_each(|packet| each(1, &packet));
    }

    fn holds(&self) -> bool {
        !self.kept.is_empty()
    }

    fn idle(&mut self) {
        self.before.append(&mut self.kept);
    }

    fn finish(&mut self) -> Epilogue {
        assert!(self.kept.is_empty(), "it was not let send");
        Epilogue::default()
    }
}

fn keeper() -> Link {
    let element: Box<dyn Foreign> = Box::new(Keeper::default());
    Link {
        code: Code::Foreign(Arc::new(Mutex::new(vec![element]))),
        reasons: vec!["by_guest".into()],
        ..link("keeper")
    }
}

/// The fixture behind it forwards to the port that the second byte of `[3, PORT, …]` names.
#[test]
fn what_is_kept_leaves_later_and_is_created() {
    for behind in [false, true] {
        let mut case = Case::new(2, &[]);
        case.chain.push(keeper());
        if behind {
            case.chain.push(link("f"));
        }
        // For the fixture, 3 and 1: forward to port 1.
        let account = case.go(&[
            (1, &[3, 0, 10]),
            (2, &[3, 1, 11]),
            (3, &[3, 2, 12]),
            (4, &[3, 3, 13]),
            (5, &[3, 4, 14]),
            (6, &[3, 5, 15]),
        ]);
        let out = |port| -> Vec<u8> {
            let packets = case.written(port).into_iter();
            packets.map(|(_, bytes)| bytes[bytes.len() - 1]).collect()
        };
        assert_eq!(account.read, 6);
        assert_eq!((account.dropped, account.consumed), (2, 1));
        if behind {
            // The fixture sends back what names port 0 (10), aborts for ports that there are not (12, 15).
            assert!(out(1).contains(&99), "{:?}", out(1));
            continue;
        }
        assert_eq!((account.forwarded, account.created), (3, 2));
        assert_eq!(account.written, 5);
        // 12 was kept and left when nothing came; 99 left behind its burst.
        assert_eq!(out(1), [10, 15, 99, 12]);
        assert_eq!(case.written(0)[0].1, [3, 3]);
    }
}

/// Every packet leaves at this port.
struct Sends(u16);

impl Foreign for Sends {
    unsafe fn burst(&mut self, packets: &mut [Given]) {
        for packet in packets {
            packet.fate = OUT + self.0;
        }
    }

    fn idle(&mut self) {}

    fn finish(&mut self) -> Epilogue {
        Epilogue::default()
    }
}

/// Four times through the chain in each direction, whatever else is in the burst.
#[test]
fn a_packet_that_is_sent_back_and_forth_is_aborted() {
    let mut case = Case::new(2, &[]);
    for port in [1, 0] {
        let element: Box<dyn Foreign> = Box::new(Sends(port));
        case.chain.push(Link {
            code: Code::Foreign(Arc::new(Mutex::new(vec![element]))),
            ..link("sends")
        });
    }
    let account = case.go(&[(1, &[1]), (2, &[2]), (3, &[3])]);
    assert_eq!((account.read, account.aborted), (3, 3));
    assert_eq!(account.reasons.get("chain_loop"), Some(&3));
    let packets: Vec<_> = account.stages.iter().map(|s| s.packets).collect();
    assert_eq!(packets, [15, 12]);
}
