//! An element that is there once for each packet class.
//!
//! What is foreign has one state and runs on one thread at a time. With several workers there is one of it for each
//! class ([`crate::classes`]), and the worker that has the class runs it: a class that moves finds its element in the
//! same place, from another thread, and nothing of it is copied. A worker takes the lock of an element for each burst
//! that has packets for it; nobody else wants it, since a class has one worker, and changes it only while no packet of
//! the class is with any.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::condition::Condition;
use super::foreign::{Epilogue, Foreign, Given};
use super::stage::burst;
use crate::classes::Classes;
use crate::clock;
use crate::module::abi;
use crate::port::Frame;

/// One element's: one for each class.
pub struct Guests {
    classes: Arc<Classes>,
    each: Vec<Seat>,
}

/// That of one class.
struct Seat {
    element: Mutex<Option<Box<dyn Foreign>>>,
    packets: AtomicU64,
}

impl Guests {
    /// These, in the order of their classes.
    #[must_use]
    pub fn new(classes: &Arc<Classes>, each: Vec<Box<dyn Foreign>>) -> Arc<Self> {
        let seat = |element| Seat {
            element: Mutex::new(Some(element)),
            packets: AtomicU64::new(0),
        };
        Arc::new(Self {
            classes: classes.clone(),
            each: each.into_iter().map(seat).collect(),
        })
    }

    /// The states of the elements, in the order of their classes.
    #[must_use]
    pub fn conditions(&self) -> Vec<Arc<Condition>> {
        let of = |seat: &Seat| seat.lock().as_ref().and_then(|e| e.condition());
        self.each.iter().filter_map(of).collect()
    }

    /// As [`Foreign::decides`], of any of them.
    pub(super) fn decides(&self) -> bool {
        let elements = self.each.iter().map(Seat::lock);
        elements
            .into_iter()
            .any(|e| e.as_ref().is_none_or(|e| e.decides()))
    }

    /// Packets that the element of a class has had.
    #[must_use]
    pub fn packets(&self, class: usize) -> u64 {
        let seat = self.each.get(class);
        seat.map_or(0, |seat| seat.packets.load(Ordering::Relaxed))
    }
}

impl Seat {
    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Foreign>>> {
        // A worker that died in it has left it as a failed guest is left.
        self.element.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same, on one worker.
pub struct Classed {
    guests: Arc<Guests>,
    worker: usize,
    given: Vec<Given>,
    /// scratch: class and place of each packet of a burst
    order: Vec<(u16, usize)>,
    /// classes whose elements have run since they were last asked what they send
    ran: Vec<u16>,
}

// SAFETY: `given` is scratch of one call of `run`; all else moves between threads.
unsafe impl Send for Classed {}

impl Classed {
    /// Of worker `worker`.
    pub fn new(guests: &Arc<Guests>, worker: usize) -> Self {
        Self {
            guests: guests.clone(),
            worker,
            given: Vec::new(),
            order: Vec::new(),
            ran: Vec::new(),
        }
    }

    /// Calls for each element whose class this worker has.
    fn own(&self, mut each: impl FnMut(u16, &mut dyn Foreign)) {
        for (class, seat) in (0..).zip(&self.guests.each) {
            if self.guests.classes.worker(class) == self.worker
                && let Some(element) = &mut *seat.lock()
            {
                each(class, &mut **element);
            }
        }
    }

    /// As [`Foreign::idle`].
    pub fn idle(&mut self) {
        let mut ran = std::mem::take(&mut self.ran);
        self.own(|class, element| {
            element.idle();
            ran.push(class);
        });
        self.ran = ran;
    }

    /// As [`Foreign::sent`], each with its class.
    pub fn sent(&mut self, after: bool, each: &mut dyn FnMut(u16, u16, &[u8])) {
        for class in &self.ran {
            if let Some(seat) = self.guests.each.get(usize::from(*class))
                && let Some(element) = &mut *seat.lock()
            {
                element.sent(after, &mut |port, bytes| each(*class, port, bytes));
            }
        }
        if after {
            self.ran.clear();
        }
    }

    /// As [`Foreign::holds`].
    pub fn holds(&self) -> bool {
        let mut holds = false;
        self.own(|_, element| holds |= element.holds());
        holds
    }

    /// The end of those whose classes this worker has. What became of them.
    pub fn finish(&self) -> Option<Epilogue> {
        let mut whole: Option<Epilogue> = None;
        for (class, seat) in (0..).zip(&self.guests.each) {
            if self.guests.classes.worker(class) != self.worker {
                continue;
            }
            let Some(mut element) = seat.lock().take() else {
                continue;
            };
            let own = element.finish();
            let whole = whole.get_or_insert_default();
            let packets = self.guests.packets(usize::from(class));
            whole.facts.push(format!(
                "class {class}: {packets} packets, at last on worker {}",
                self.worker
            ));
            let facts = own.facts.iter();
            whole
                .facts
                .extend(facts.map(|fact| format!("class {class}: {fact}")));
            whole.memory += own.memory;
            if let Some((what, help)) = own.failure {
                let what = format!("class {class}: {what}");
                whole.failure = Some(match whole.failure.take() {
                    Some((before, help)) => (format!("{before}; {what}"), help),
                    None => (what, help),
                });
            }
        }
        whole
    }

    /// As `Stage::run`.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn run(
        &mut self,
        pointers: &[*mut abi::Packet],
        chosen: &[usize],
        frames: &[Frame],
    ) -> u64 {
        let begin = clock::ticks();
        let class_of = |index: &usize| frames.get(*index).map_or(0, |frame| frame.class);
        self.order.clear();
        let places = chosen.iter().map(class_of).zip(0..pointers.len());
        self.order.extend(places);
        // By place within a class: packets stay in order.
        self.order.sort_unstable();
        for of_class in self.order.chunk_by(|a, b| a.0 == b.0) {
            let class = of_class.first().map_or(0, |(class, _)| *class);
            let Some(seat) = self.guests.each.get(usize::from(class)) else {
                continue;
            };
            seat.packets
                .fetch_add(of_class.len() as u64, Ordering::Relaxed);
            let each = of_class.iter().filter_map(|(_, place)| {
                let index = chosen.get(*place)?;
                Some((*pointers.get(*place)?, frames.get(*index)))
            });
            let mut element = seat.lock();
            // SAFETY: as the caller promises; places are distinct.
            unsafe { burst(element.as_mut(), &mut self.given, each) };
            if element.is_some() {
                self.ran.push(class);
            }
        }
        clock::ticks().saturating_sub(begin)
    }
}
