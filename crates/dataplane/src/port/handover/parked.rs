//! Packets of classes that other machines have, or that wait for their owner.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::By;
use crate::classes::Classes;
use crate::classes::away::{Elsewhere, MARK, MARKED, Refusal, Stray, Whose};
use crate::port::Frame;

/// Stands for the machine of no packet yet, and of one that went to no machine.
const NOWHERE: u16 = u16::MAX;
/// Stands for this machine.
const HERE: u16 = u16::MAX - 1;

/// A mark whose answer is waited for.
struct Mark {
    class: u16,
    number: u64,
    sent: Instant,
}

/// One worker's part of what goes between machines at a port.
pub struct Parked {
    elsewhere: Arc<dyn Elsewhere>,
    /// in the order that they came in, of all classes that wait
    frames: VecDeque<Frame>,
    /// by class: the machine that got the last packet of it that came in here
    ways: Vec<u16>,
    /// of classes that have another way than before
    marks: Vec<Mark>,
    /// packets that no worker gets, by port and reason: how many, and their bytes
    refused: Vec<((u32, Refusal), (u64, u64))>,
}

impl Parked {
    /// Where other machines have classes.
    pub fn of(by: &By) -> Option<Self> {
        let By::Class { classes, .. } = by else {
            return None;
        };
        Some(Self {
            elsewhere: classes.elsewhere()?.clone(),
            frames: VecDeque::new(),
            ways: vec![NOWHERE; classes.count()],
            marks: Vec::new(),
            refused: Vec::new(),
        })
    }

    /// Whether this machine may accept packets now.
    #[inline]
    pub fn accepts(&self) -> bool {
        self.elsewhere.accepts()
    }

    /// Sees to a packet that came: gives the worker that gets it, or has it parked, sent on or dropped. Its buffer is in `back` then, unless it is
    /// parked, which it is where fewer than `most` are.
    pub fn sees(
        &mut self,
        frame: &Frame,
        whose: Whose,
        (accepts, most): (bool, usize),
        back: &mut Vec<Frame>,
    ) -> Option<usize> {
        // Behind others of its class.
        let waits = self.frames.iter().any(|f| f.class == frame.class);
        match whose {
            _ if waits => self.park(frame, most, back),
            Whose::Worker(_) if !accepts => self.drop(frame, Refusal::NoLease, back),
            Whose::Waits => self.park(frame, most, back),
            _ if !self.is_next(frame, whose) => self.park(frame, most, back),
            Whose::Worker(worker) => return Some(worker),
            Whose::Away => self.sends_on(frame, back),
        }
        None
    }

    /// Whether a packet may go its way now: those of its class that came in here before it went the same way, or are through.
    #[inline]
    fn is_next(&mut self, frame: &Frame, whose: Whose) -> bool {
        // What others have sent on is behind a mark of theirs.
        if frame.hops != 0 {
            return true;
        }
        let class = frame.class;
        let to = match whose {
            Whose::Worker(_) => HERE,
            Whose::Waits | Whose::Away => self.elsewhere.owner(class).unwrap_or(NOWHERE),
        };
        let Some(way) = self.ways.get_mut(usize::from(class)) else {
            return true;
        };
        let before = std::mem::replace(way, to);
        if !self.marks.is_empty() && self.marks.iter().any(|m| m.class == class) {
            // None of it went anywhere since the mark was sent.
            return self.passed(class);
        }
        // A class leaves this machine when its workers are through with all packets of it.
        if before == to || before == NOWHERE || before == HERE {
            return true;
        }
        let Some(number) = self.elsewhere.mark(class, frame.port, before) else {
            return true;
        };
        self.marks.push(Mark {
            class,
            number,
            sent: Instant::now(),
        });
        false
    }

    /// Whether the answer to a class's mark has come, or is not waited for any more.
    #[cold]
    fn passed(&mut self, class: u16) -> bool {
        let Some(at) = self.marks.iter().position(|m| m.class == class) else {
            return true;
        };
        let over = self.marks.get(at).is_none_or(|mark| {
            let passed = self.elsewhere.passed(mark.number);
            let late = !passed && mark.sent.elapsed() > MARKED;
            if late {
                self.elsewhere.unmarked();
            }
            passed || late
        });
        if over {
            self.marks.swap_remove(at);
        }
        over
    }

    /// A mark has come to this worker.
    pub fn reached(&self, mark: &Frame) {
        // SAFETY: as in `sends_on`.
        let bytes = unsafe { std::slice::from_raw_parts(mark.data, mark.length()) };
        self.elsewhere.reached(mark.class, bytes);
    }

    /// Has packets go whose class has a place by now, but for class `moves`; `hand` gives one to a worker, if there is room.
    pub fn go(
        &mut self,
        classes: &Classes,
        moves: Option<u16>,
        back: &mut Vec<Frame>,
        mut hand: impl FnMut(&Frame, usize) -> bool,
    ) {
        let accepts = self.accepts();
        // Behind one that stays, those of its class stay.
        let mut stay: Vec<u16> = moves.into_iter().collect();
        for _ in 0..self.frames.len() {
            let Some(frame) = self.frames.pop_front() else {
                break;
            };
            let whose = classes.whose(frame.class);
            match whose {
                _ if stay.contains(&frame.class) => self.frames.push_back(frame),
                Whose::Worker(_) if !accepts => self.drop(&frame, Refusal::NoLease, back),
                // It may be settled before the next one is looked at.
                Whose::Waits => {
                    stay.push(frame.class);
                    self.frames.push_back(frame);
                }
                _ if !self.is_next(&frame, whose) => {
                    stay.push(frame.class);
                    self.frames.push_back(frame);
                }
                Whose::Away => self.sends_on(&frame, back),
                Whose::Worker(worker) => {
                    if !hand(&frame, worker) {
                        stay.push(frame.class);
                        self.frames.push_back(frame);
                    }
                }
            }
        }
    }

    fn park(&mut self, frame: &Frame, most: usize, back: &mut Vec<Frame>) {
        if self.frames.len() < most {
            if frame.hops & MARK == 0 {
                self.elsewhere.parked();
            }
            self.frames.push_back(*frame);
        } else {
            self.drop(frame, Refusal::Waits, back);
        }
    }

    fn sends_on(&mut self, frame: &Frame, back: &mut Vec<Frame>) {
        let length = frame.length();
        // SAFETY: the queue lends the frame: `length` bytes lie between its bounds, and nobody else has it.
        let bytes = unsafe { std::slice::from_raw_parts(frame.data, length) };
        let sent = self.elsewhere.send(&Stray {
            class: frame.class,
            port: frame.port,
            hops: frame.hops,
            frame: bytes,
        });
        match sent {
            Ok(()) => back.push(*frame),
            Err(why) => self.drop(frame, why, back),
        }
    }

    fn drop(&mut self, frame: &Frame, why: Refusal, back: &mut Vec<Frame>) {
        if frame.hops & MARK != 0 {
            // No packet. Its sender waits no longer than it may.
            back.push(*frame);
            return;
        }
        let (of, bytes) = ((frame.port, why), frame.length() as u64);
        match self.refused.iter_mut().find(|(key, _)| *key == of) {
            Some((_, (packets, all))) => {
                *packets += 1;
                *all += bytes;
            }
            None => self.refused.push((of, (1, bytes))),
        }
        back.push(*frame);
    }

    /// Packets that were dropped since the last call.
    pub fn refused(&mut self, each: &mut dyn FnMut(u32, Refusal, u64, u64)) {
        for ((port, why), (packets, bytes)) in self.refused.drain(..) {
            each(port, why, packets, bytes);
        }
    }

    /// How many packets are parked.
    pub fn count(&self) -> usize {
        self.frames.len()
    }

    /// Whether none is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Gives up what is parked.
    pub fn abandon(&mut self, into: &mut Vec<Frame>) {
        into.extend(self.frames.drain(..));
    }
}
