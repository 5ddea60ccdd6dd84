//! Packets of classes that other machines have, or that wait for their owner.

use std::collections::VecDeque;
use std::sync::Arc;

use super::By;
use crate::classes::Classes;
use crate::classes::away::{Elsewhere, Refusal, Stray, Whose};
use crate::port::Frame;

/// One worker's part of what goes between machines at a port.
pub struct Parked {
    elsewhere: Arc<dyn Elsewhere>,
    /// in the order that they came in, of all classes that wait
    frames: VecDeque<Frame>,
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
            Whose::Worker(worker) if accepts => return Some(worker),
            Whose::Worker(_) => self.drop(frame, Refusal::NoLease, back),
            Whose::Waits => self.park(frame, most, back),
            Whose::Away => self.sends_on(frame, back),
        }
        None
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
                Whose::Waits => self.frames.push_back(frame),
                Whose::Away => self.sends_on(&frame, back),
                Whose::Worker(_) if !accepts => self.drop(&frame, Refusal::NoLease, back),
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
            self.elsewhere.parked();
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
