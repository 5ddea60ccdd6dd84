//! Packets that a function hands over: taken, refused, and what comes back, in the order of packets.

use std::sync::Arc;

use super::slow::{Handed, SlowPath, SlowPaths};
use super::tests::{Case, link};
use crate::account::SlowAccount;

/// Takes packets with the number 1, and sends two of each by port 1.
struct Twice;

#[derive(Default)]
struct Way(Vec<Vec<u8>>);

impl SlowPaths for Twice {
    fn open(&self) -> Box<dyn SlowPath> {
        Box::new(Way::default())
    }

    fn account(&self) -> SlowAccount {
        SlowAccount {
            handed: 2,
            ..SlowAccount::default()
        }
    }
}

impl SlowPath for Way {
    fn take(&mut self, packet: &Handed<'_>) -> bool {
        let takes = packet.number == 1;
        if takes {
            assert_eq!((packet.port, packet.bytes.len()), (0, 3));
            self.0.extend([packet.bytes.to_vec(), vec![3, 1, 99]]);
        }
        takes
    }

    fn pass_time(&mut self, _: u64) {}

    fn due(&self) -> u64 {
        u64::MAX
    }

    fn at_once(&mut self) {}

    fn back(&mut self, each: &mut dyn FnMut(u16, &[u8])) {
        self.0.drain(..).for_each(|bytes| each(1, &bytes));
    }

    fn waits(&self) -> bool {
        !self.0.is_empty()
    }
}

/// For the fixture, 3 and 1: forward to port 1; 2 and a number: hand over.
#[test]
fn what_is_handed_over_is_consumed_and_what_comes_back_is_created() {
    for behind in [false, true] {
        let mut case = Case::new(2, &[]);
        let mut first = link("f");
        first.slow = Some(Arc::new(Twice));
        case.chain.push(first);
        if behind {
            case.chain.push(link("g"));
        }
        let account = case.go(&[
            (1, &[3, 1, 10]),
            (2, &[2, 1, 11]),
            (3, &[3, 1, 12]),
            (4, &[2, 2, 13]),
            (5, &[2, 0, 14]),
            (6, &[2, 1, 15]),
        ]);
        let left = case.written(1).into_iter();
        let left: Vec<u8> = left.map(|(_, bytes)| bytes[bytes.len() - 1]).collect();
        assert!(account.balances(), "{account:?}");
        assert_eq!(account.read, 6);
        assert_eq!((account.consumed, account.dropped), (2, 1));
        assert_eq!(account.reasons.get("slow_path_full"), Some(&1));
        assert_eq!(account.stages[0].slow.as_ref().map(|s| s.handed), Some(2));
        match behind {
            // The second function passes what begins with 2.
            true => {
                assert_eq!((account.passed, account.created), (1, 2));
                assert_eq!(left, [10, 99, 12, 99]);
            }
            false => {
                assert_eq!((account.passed, account.created), (1, 4));
                assert_eq!(left, [10, 11, 99, 12, 15, 99]);
            }
        }
    }
}
