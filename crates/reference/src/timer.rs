//! Timers in the values of maps, by the address of the timer: a list that is searched, where the fast path
//! has a heap.

use std::collections::BTreeMap;

use millrace_object::program::{ObjectId, Role, StateObject, TIMER_BYTES};

use super::callback::FUNCTIONS;
use super::exact::{EINVAL, error};
use super::{APART, End, INSET, Machine, Violation, violation};

const EBUSY: i64 = 16;
const EDEADLK: i64 = 35;

/// More timers started between two packets than this, and implementations may differ.
const MOST: u64 = 4096;

#[derive(Default)]
struct Timer {
    callback: Option<usize>,
    /// moment and order
    due: Option<(u64, u64)>,
}

/// The time, and the timers that are set.
#[derive(Default)]
pub struct Clock {
    now: u64,
    /// by address, those that are ready
    timers: BTreeMap<u64, Timer>,
    started: u64,
    /// the time of the packet that waits while timers fire
    until: Option<u64>,
    /// whose function runs
    fired: Option<u64>,
}

impl Clock {
    /// Time that has come, without anything that was due on the way.
    pub(super) fn at(&mut self, now: u64, started: u64) {
        self.now = now;
        self.started = self.started.max(started);
    }

    /// The time.
    pub(super) fn time(&self) -> u64 {
        self.now
    }

    /// A timer that is ready: its function and, if it is running, when it fires and which of those started it is.
    pub(super) fn ready(&mut self, at: u64, callback: Option<usize>, due: Option<(u64, u64)>) {
        self.timers.insert(at, Timer { callback, due });
    }

    /// The place of what is started now in the order of all that is.
    pub(super) fn next_start(&mut self) -> u64 {
        self.started += 1;
        self.started - 1
    }
}

/// What is due: the moment and the order, and which entry of a map, or the address of which timer.
enum Due {
    Timer(u64),
    Entry(ObjectId, Vec<u8>),
}

impl Machine<'_> {
    pub(super) fn now(&self) -> u64 {
        self.exact.as_ref().map_or(0, |e| e.clock.now)
    }

    /// The timer in the value at this address is the helpers' alone.
    pub(super) fn forbid_timer(&mut self, object: &StateObject, value: u64) {
        if let Some(memory) = self.memory.get_mut(&(value / APART)) {
            memory.timer = object.timer.map(|at| at as usize);
        }
    }

    /// Checks that this is the address of a timer.
    pub(super) fn is_timer(&self, at: u64) -> Result<(), Violation> {
        let memory = self.memory.get(&(at / APART));
        let timer = memory.and_then(|m| m.timer);
        if timer.is_some_and(|t| at % APART == INSET + t as u64) {
            return Ok(());
        }
        violation(format!("{at:#x} is not the address of a timer"))
    }

    /// The entry whose value is at this address has gone, come or been overwritten.
    pub(super) fn timer_as_new(&mut self, object: ObjectId, value: u64) {
        let declaration = self.declaration(object);
        let Some(at) = declaration.and_then(|o| o.timer) else {
            return;
        };
        if let Some(declaration) = declaration {
            self.forbid_timer(declaration, value);
        }
        if let Some(memory) = self.memory.get_mut(&(value / APART)) {
            let (at, end) = (at as usize, (at + TIMER_BYTES) as usize);
            memory.bytes[at..end].fill(0);
        }
        if let Some(exact) = &mut self.exact {
            let at = value + u64::from(at);
            exact.clock.timers.remove(&at);
            exact.clock.fired.take_if(|f| *f == at);
        }
    }

    /// A call of one of the helpers.
    pub(super) fn timer(&mut self, name: &str, a: [u64; 5]) -> u64 {
        let Some(exact) = &mut self.exact else {
            return 0;
        };
        let clock = &mut exact.clock;
        if name == "timer_init" {
            if ![0, 1, 7].contains(&a[2]) {
                return error(EINVAL);
            }
            if clock.timers.contains_key(&a[0]) {
                return error(EBUSY);
            }
            clock.timers.insert(a[0], Timer::default());
            return 0;
        }
        let Some(timer) = clock.timers.get_mut(&a[0]) else {
            return error(EINVAL);
        };
        match name {
            "timer_set_callback" => {
                timer.callback = usize::try_from(a[1] - FUNCTIONS).ok();
                0
            }
            "timer_start" => {
                if a[2] > 3 || timer.callback.is_none() {
                    return error(EINVAL);
                }
                // Time is a signed number that is never negative.
                let last = i64::MAX as u64;
                let asked = match (a[2] & 1 == 1, a[1] > last) {
                    (true, true) => 0,
                    (true, false) => a[1],
                    (false, _) => clock.now.saturating_add(a[1]).min(last),
                };
                let due = match clock.until {
                    Some(until) if asked <= clock.now => until.saturating_add(1).min(last),
                    _ => asked.max(clock.now),
                };
                timer.due = Some((due, clock.started));
                clock.started += 1;
                0
            }
            _ if clock.fired == Some(a[0]) => error(EDEADLK),
            _ => {
                timer.callback = None;
                u64::from(timer.due.take().is_some())
            }
        }
    }

    /// Fires the timers that are due at `time`, ns, before a packet of that time; gives how many.
    ///
    /// # Errors
    /// A step that an admitted program never takes, and more firings than are compared.
    pub fn advance(&mut self, time: u64, steps: u64) -> Result<u64, Violation> {
        let mut count = 0;
        loop {
            let Some(exact) = &mut self.exact else {
                return Ok(count);
            };
            let timers = exact.clock.timers.iter();
            let timers = timers.filter_map(|(at, t)| Some((t.due?, Due::Timer(*at))));
            let entries = exact.own.puts.iter().flat_map(|(id, puts)| {
                let stamps = exact.own.stamps.get(id);
                let life = (self.program.objects.get(id.0)).map_or(u64::MAX, |o| o.expire_after);
                puts.iter().filter_map(move |(key, put)| {
                    let due = stamps?.get(key)?.saturating_add(life).min(i64::MAX as u64);
                    Some(((due, *put), Due::Entry(*id, key.clone())))
                })
            });
            let first = timers.chain(entries).min_by_key(|(due, _)| *due);
            let first = first.filter(|((due, _), _)| *due <= time);
            let clock = &mut exact.clock;
            let Some(((due, _), what)) = first else {
                clock.now = time;
                clock.until = None;
                return Ok(count);
            };
            clock.until = Some(time);
            clock.now = due;
            let at = match what {
                Due::Timer(at) => at,
                Due::Entry(id, key) => {
                    count += 1;
                    if count > MOST {
                        return violation("more timers at once than are compared");
                    }
                    self.expire(id, key, steps)?;
                    continue;
                }
            };
            clock.fired = Some(at);
            let timer = clock.timers.get_mut(&at);
            let callback = timer.and_then(|t| {
                t.due = None;
                t.callback
            });
            let entry = exact.maps.iter().find_map(|(id, entries)| {
                let mut all = entries.iter();
                let found = all.find(|(_, value)| *value / APART == at / APART)?;
                Some((*id, found.0.clone(), *found.1))
            });
            count += 1;
            if count > MOST {
                return violation("more timers at once than are compared");
            }
            let (Some(callback), Some((id, key, value))) = (callback, entry) else {
                return violation("a timer without an entry or a function");
            };
            let key = self.map(key, true, false);
            let map = Some(Self::pointer(id));
            let call = self.call(callback, [map, Some(key), Some(value), None, None]);
            if self.execute(call, Role::Timer, steps)? == End::OutOfSteps {
                return violation("a timer's function does not end");
            }
            if let Some(exact) = &mut self.exact {
                exact.clock.fired = None;
            }
        }
    }

    /// Ends an entry whose expiry runs a function, and runs it with copies of key and value.
    fn expire(&mut self, id: ObjectId, key: Vec<u8>, steps: u64) -> Result<(), Violation> {
        let value = self.value_of(id, &key);
        let value = value.and_then(|at| self.memory.get(&(at / APART)));
        let value = value.map_or_else(Vec::new, |m| m.bytes.clone());
        if let Some(exact) = &mut self.exact {
            if let Some(entries) = exact.maps.get_mut(&id) {
                entries.remove(&key);
            }
            for all in [&mut exact.own.stamps, &mut exact.own.puts] {
                if let Some(of) = all.get_mut(&id) {
                    of.remove(&key);
                }
            }
        }
        let function = self.declaration(id).and_then(|o| o.expiry);
        let Some(function) = function else {
            return violation("the expiry of an entry runs no function");
        };
        self.place_packet(Vec::new());
        let (context, key) = (self.context, self.map(key, true, true));
        let value = self.map(value, true, true);
        let call = self.call(
            function.0,
            [Some(context), Some(key), Some(value), None, None],
        );
        match self.execute(call, Role::Expiry, steps)? {
            End::OutOfSteps => violation("the function of an expiry does not end"),
            End::Verdict(_) => Ok(()),
        }
    }
}
