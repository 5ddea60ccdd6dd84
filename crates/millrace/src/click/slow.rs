//! The slow path of a synthesised function: the reference interpreter on a thread of its own, beside the workers; over captures, where
//! nothing else may happen meanwhile, on that of the only worker.
//!
//! All workers have one in common, so that what elements hold is in one place. Each element has a queue of its own length
//! ([`MOST_WAITING`]), by the number with which the function hands its packets over: one that floods it takes no room from others, and
//! workers wait for nothing between live ports. What one packet may lead to is bounded ([`millrace_synth::interpreter::BOUNDS`]).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};

use millrace_click::interpreter::{Folder, Reading, Shared};
use millrace_click::language::Graph;
use millrace_dataplane::account::{SlowAccount, SlowElement};
use millrace_dataplane::worker::slow::{Handed, SlowPath, SlowPaths};
use millrace_synth::Synthesis;
use millrace_synth::function::{Function, Functions};
use millrace_synth::interpreter::{Ends, Interpreter};

/// Packets of one element that wait, at most.
pub const MOST_WAITING: u64 = 256;

/// What a slow path is made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    graph: Graph,
    /// names of devices, by port
    ports: Vec<String>,
    /// where files that it names are looked for
    folder: PathBuf,
    /// functions that are elements of it
    functions: Vec<Arc<Function>>,
    /// elements by the numbers with which their packets are handed over, and why
    elements: Vec<(String, String)>,
}

impl Configuration {
    /// That of a synthesis; none if it hands nothing over.
    #[must_use]
    pub fn of(of: &Synthesis, folder: PathBuf, functions: &[Arc<Function>]) -> Option<Self> {
        let titles = of.titles().into_iter().zip(&of.slow);
        of.slow.iter().any(|s| s.run).then(|| Self {
            graph: of.router.graph().clone(),
            ports: of.ports.clone(),
            folder,
            functions: functions.to_vec(),
            elements: titles.map(|(title, s)| (title, s.why.clone())).collect(),
        })
    }

    /// Elements whose packets are handed over, and why.
    #[must_use]
    pub fn elements(&self) -> &[(String, String)] {
        &self.elements
    }

    /// An interpreter of it, which has seen no packet yet.
    ///
    /// # Errors
    /// Its elements are wrong, or a file that one names is not there any more.
    pub fn interpreter(&self) -> Result<Interpreter, String> {
        let files: Shared = Rc::new(RefCell::new(Reading(Folder {
            folder: self.folder.clone(),
        })));
        let host = Rc::new(RefCell::new(Functions {
            inner: files,
            all: self.functions.clone(),
        }));
        let made = Interpreter::new(self.graph.clone(), &self.ports, host);
        made.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }
}

/// Counts of an element.
#[derive(Default)]
struct Counts {
    handed: AtomicU64,
    refused: AtomicU64,
    waiting: AtomicU64,
}

/// What workers and the interpreter have in common.
struct Common {
    /// unlike that of any other
    id: u64,
    configuration: Configuration,
    /// by the numbers of elements, from 0
    counts: Vec<Counts>,
    left: AtomicU64,
    dropped: AtomicU64,
    bounded: AtomicU64,
    /// when the interpreter has something to do by itself next, ns; `u64::MAX`: never
    due: AtomicU64,
}

thread_local! {
    /// interpreters of a worker that runs them itself, which stay on its thread
    static OWN: RefCell<BTreeMap<u64, Interpreter>> = const { RefCell::new(BTreeMap::new()) };
}

impl Common {
    /// Runs the interpreter of this thread; none where it cannot be made.
    fn own(&self, run: impl FnOnce(&Interpreter) -> Ends) -> Option<()> {
        OWN.with_borrow_mut(|all| {
            let interpreter = match all.entry(self.id) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(place) => place.insert(self.configuration.interpreter().ok()?),
            };
            self.note(run(interpreter));
            self.due(interpreter);
            Some(())
        })
    }

    fn due(&self, interpreter: &Interpreter) {
        let due = interpreter.next_timer().unwrap_or(u64::MAX);
        self.due.store(due, Ordering::Relaxed);
    }

    fn note(&self, ends: Ends) {
        self.left.fetch_add(ends.left, Ordering::Relaxed);
        self.dropped.fetch_add(ends.dropped, Ordering::Relaxed);
        self.bounded
            .fetch_add(u64::from(ends.bounded), Ordering::Relaxed);
    }
}

/// Packets that leave: port and bytes.
type Left = Vec<(u16, Vec<u8>)>;

/// What a worker says to the interpreter.
enum Message {
    /// a worker that has this number gets its answers here
    Worker(usize, Sender<Left>),
    /// a packet of a worker: the number of its element, from 0, its port, time, bytes
    Packet(usize, usize, u8, u64, Vec<u8>),
    /// a worker's time
    Time(usize, u64),
}

/// A slow path, which begins when a worker opens it.
pub struct Slow {
    common: Arc<Common>,
    /// the way to the interpreter, and how many workers there are
    open: Mutex<Option<(Sender<Message>, usize)>>,
}

impl Slow {
    /// Of a configuration.
    ///
    /// # Errors
    /// As [`Configuration::interpreter`].
    pub fn new(configuration: Configuration) -> Result<Self, String> {
        // The interpreter is made on its thread, where nobody could be told what is wrong.
        configuration.interpreter()?;
        let counts = configuration.elements.iter().map(|_| Counts::default());
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            common: Arc::new(Common {
                id: NEXT.fetch_add(1, Ordering::Relaxed),
                counts: counts.collect(),
                configuration,
                left: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
                bounded: AtomicU64::new(0),
                due: AtomicU64::new(u64::MAX),
            }),
            open: Mutex::new(None),
        })
    }
}

impl SlowPaths for Slow {
    fn open(&self) -> Box<dyn SlowPath> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (send, workers) = open.get_or_insert_with(|| {
            let (send, messages) = channel();
            let common = self.common.clone();
            // One that does not begin, or ends by a panic, takes no packet: workers are refused, and count that.
            let _ = std::thread::Builder::new()
                .name("slow path".into())
                .spawn(move || work(&common, &messages));
            (send, 0)
        });
        let (answers, back) = channel();
        let worker = *workers;
        *workers += 1;
        // Refused like packets where the interpreter is gone.
        let _ = send.send(Message::Worker(worker, answers));
        Box::new(Way {
            common: self.common.clone(),
            worker,
            send: send.clone(),
            back,
            waiting: 0,
            own: false,
            ready: Vec::new(),
        })
    }

    fn account(&self) -> SlowAccount {
        let common = &*self.common;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let elements = common.configuration.elements.iter().zip(&common.counts);
        let elements = elements.map(|((element, why), counts)| SlowElement {
            element: element.clone(),
            why: why.clone(),
            handed: get(&counts.handed),
            refused: get(&counts.refused),
        });
        let elements: Vec<_> = elements.collect();
        SlowAccount {
            handed: elements.iter().map(|e| e.handed).sum(),
            refused: elements.iter().map(|e| e.refused).sum(),
            left: get(&common.left),
            dropped: get(&common.dropped),
            bounded: get(&common.bounded),
            elements,
        }
    }
}

/// The interpreter's thread: until no worker is left.
fn work(common: &Common, messages: &Receiver<Message>) {
    let Ok(interpreter) = common.configuration.interpreter() else {
        return;
    };
    let mut workers: Vec<Option<Sender<Left>>> = Vec::new();
    for message in messages {
        let mut left = Vec::new();
        let mut each = |port: u8, bytes: &[u8]| left.push((u16::from(port), bytes.to_vec()));
        let (worker, ends) = match message {
            Message::Worker(worker, answers) => {
                if workers.len() <= worker {
                    workers.resize_with(worker + 1, || None);
                }
                if let Some(slot) = workers.get_mut(worker) {
                    *slot = Some(answers);
                }
                continue;
            }
            Message::Packet(worker, element, port, time, bytes) => {
                let ends = interpreter.enter(port, time, &bytes, &mut each);
                if let Some(counts) = common.counts.get(element) {
                    counts.waiting.fetch_sub(1, Ordering::Relaxed);
                }
                (worker, ends)
            }
            Message::Time(worker, time) => (worker, interpreter.pass_time(time, &mut each)),
        };
        common.note(ends);
        common.due(&interpreter);
        if let Some(Some(answers)) = workers.get(worker) {
            // A worker that has ended takes nothing.
            let _ = answers.send(left);
        }
    }
}

/// A worker's way to the interpreter.
struct Way {
    common: Arc<Common>,
    worker: usize,
    send: Sender<Message>,
    back: Receiver<Left>,
    /// messages that are not answered
    waiting: usize,
    /// the interpreter is on this thread
    own: bool,
    /// what has come back from that
    ready: Left,
}

impl SlowPath for Way {
    fn take(&mut self, packet: &Handed<'_>) -> bool {
        let element = (packet.number as usize).wrapping_sub(1);
        let Some(counts) = self.common.counts.get(element) else {
            return false;
        };
        let (port, time) = (packet.port as u8, packet.time);
        let ready = &mut self.ready;
        let taken = match self.own {
            true => {
                let mut each =
                    |port: u8, bytes: &[u8]| ready.push((u16::from(port), bytes.to_vec()));
                let run = |i: &Interpreter| i.enter(port, time, packet.bytes, &mut each);
                self.common.own(run).is_some()
            }
            false if counts.waiting.load(Ordering::Relaxed) < MOST_WAITING => {
                counts.waiting.fetch_add(1, Ordering::Relaxed);
                let bytes = packet.bytes.to_vec();
                let message = Message::Packet(self.worker, element, port, time, bytes);
                let sent = self.send.send(message).is_ok();
                self.waiting += usize::from(sent);
                sent
            }
            false => false,
        };
        let count = if taken {
            &counts.handed
        } else {
            &counts.refused
        };
        count.fetch_add(1, Ordering::Relaxed);
        taken
    }

    fn pass_time(&mut self, time: u64) {
        if self.own {
            let ready = &mut self.ready;
            let mut each = |port: u8, bytes: &[u8]| ready.push((u16::from(port), bytes.to_vec()));
            // One that cannot be made takes no packet, and so has no timers.
            let _ = self.common.own(|i| i.pass_time(time, &mut each));
            return;
        }
        // Asked once: the answer says when it is due again.
        self.common.due.store(u64::MAX, Ordering::Relaxed);
        let sent = self.send.send(Message::Time(self.worker, time)).is_ok();
        self.waiting += usize::from(sent);
    }

    fn due(&self) -> u64 {
        self.common.due.load(Ordering::Relaxed)
    }

    fn at_once(&mut self) {
        self.own = true;
    }

    fn back(&mut self, each: &mut dyn FnMut(u16, &[u8])) {
        { self.ready.drain(..) }.for_each(|(port, bytes)| each(port, &bytes));
        while self.waiting > 0 {
            match self.back.try_recv() {
                Ok(left) => {
                    self.waiting -= 1;
                    left.iter().for_each(|(port, bytes)| each(*port, bytes));
                }
                Err(TryRecvError::Empty) => return,
                // The interpreter is gone, and with it what it had.
                Err(TryRecvError::Disconnected) => self.waiting = 0,
            }
        }
    }

    fn waits(&self) -> bool {
        self.waiting > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flooded() -> Slow {
        let element = |name: &str| (name.to_owned(), "a test".to_owned());
        Slow::new(Configuration {
            graph: Graph::default(),
            ports: Vec::new(),
            functions: Vec::new(),
            folder: PathBuf::new(),
            elements: vec![element("a"), element("b")],
        })
        .unwrap()
    }

    /// An interpreter that never comes to its packets.
    #[test]
    fn a_flood_takes_no_room_from_others() {
        let slow = flooded();
        let (send, _messages) = channel();
        *slow.open.lock().unwrap() = Some((send, 0));
        let mut way = slow.open();
        let packet = |number| Handed {
            number,
            port: 0,
            time: 0,
            bytes: &[0; 60],
        };
        let taken = (0..10_000).filter(|_| way.take(&packet(1))).count() as u64;
        assert_eq!(taken, MOST_WAITING);
        assert!(way.take(&packet(2)));
        assert!(!way.take(&packet(3)), "there is no such element");
        let account = slow.account();
        assert_eq!(account.handed, MOST_WAITING + 1);
        assert_eq!(account.refused, 10_000 - MOST_WAITING);
        assert_eq!(account.elements[1].handed, 1);
        assert!(way.waits());
    }

    #[test]
    fn an_interpreter_that_is_gone_takes_nothing() {
        let slow = flooded();
        let (send, messages) = channel();
        *slow.open.lock().unwrap() = Some((send, 0));
        let mut way = slow.open();
        drop(messages);
        assert!(!way.take(&Handed {
            number: 1,
            port: 0,
            time: 0,
            bytes: &[],
        }));
        way.back(&mut |_, _| {});
        assert!(!way.waits());
    }
}
