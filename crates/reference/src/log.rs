//! A log of an execution's accesses to state, call by call and load by load, for comparison with a prediction.

use std::collections::{BTreeMap, HashMap};

use millrace_object::helper::{Arg, Helper, MAP_LOOKUP_ELEM};
use millrace_object::program::ObjectId;
use millrace_object::state::lpm_trie;

use super::exact::target::{Redirected, redirected};
use super::{APART, Machine, Violation};

/// One access to state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touch {
    /// the object
    pub object: ObjectId,
    /// the helper's name, `load`, `store` or `atomic`
    pub operation: &'static str,
    /// the key as the program gave it, of a prefix that is changed with its bits behind it (1 byte), or 8 bytes of a
    /// number; empty for globals, and where a value is reached by a prefix that was put
    pub key: Vec<u8>,
    /// the value that is handed in, or what is stored
    pub value: Vec<u8>,
    /// first byte of the value that a load or store touches
    pub offset: Option<u32>,
    /// whether there was an entry of this key
    pub there: bool,
    /// what a call answered
    pub result: u64,
}

/// A conditional branch, and what it compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branched {
    /// how many instructions had begun: one more than its index in the trail
    pub at: u64,
    /// function and instruction
    pub insn: (usize, usize),
    /// the operand on the left
    pub left: u64,
    /// the operand on the right
    pub right: u64,
    /// whether its condition held
    pub taken: bool,
}

/// A store into the packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// how many instructions had begun: one more than the index in the trail of its own
    pub at: u64,
    /// first byte, from the first of the frame as it was then
    pub offset: i64,
    /// the bytes before
    pub before: Vec<u8>,
    /// the bytes after
    pub after: Vec<u8>,
}

/// Accesses to state and results of helpers since [`Machine::record`].
#[derive(Clone, Default, Debug)]
pub struct Log {
    /// accesses in order
    pub touches: Vec<Touch>,
    /// answers of helpers that know no state, in order
    pub answers: Vec<(&'static str, u64)>,
    /// what was there before the first access, by object and key; a key has as many bytes as the object's keys
    pub before: BTreeMap<(ObjectId, Vec<u8>), Option<Vec<u8>>>,
    /// the element of a program array whose program went on with the packet, for each time that one did
    pub went_on: Vec<(ObjectId, u32)>,
    /// of each of `touches`, how many instructions had begun: one more than the index in the trail of its own
    pub touched_at: Vec<u64>,
    /// the same of each of `answers`
    pub answered_at: Vec<u64>,
    /// conditional branches in order
    pub branches: Vec<Branched>,
    /// stores into the packet in order
    pub stores: Vec<Stored>,
    /// instructions that have begun
    pub steps: u64,
    /// whose value lies in a region
    owners: HashMap<u64, (ObjectId, Vec<u8>)>,
}

/// A number as the key of an element or a lease, in this many bytes; none if it has no room there.
#[must_use]
pub fn index_key(number: u64, bytes: u32) -> Option<Vec<u8>> {
    let all = number.to_le_bytes();
    let (key, rest) = all.split_at((bytes as usize).min(8));
    rest.iter().all(|b| *b == 0).then(|| key.to_vec())
}

/// Calls whose second argument is a number of an entry.
fn takes_number(helper: &str) -> bool {
    matches!(
        helper,
        "vector_at" | "allocator_get" | "allocator_refresh" | "allocator_free"
    )
}

/// Calls whose second argument is the number of a member.
fn takes_member(helper: &str) -> bool {
    matches!(
        helper,
        "distributed_add" | "distributed_max" | "distributed_or" | "distributed_read"
    )
}

/// Handlers' calls that change a prefix, whose third argument is its bits.
fn changes_prefix(helper: &str) -> bool {
    matches!(helper, "lpm_put" | "lpm_delete")
}

impl Machine<'_> {
    /// Begins a new log.
    pub fn record(&mut self) {
        self.trail.clear();
        let globals = self.values.iter();
        let globals = globals.filter(|(id, _)| {
            let object = self.program.objects.get(id.0);
            // Constants are no state.
            object.is_some_and(|o| o.kind.is_global() && (!o.read_only || o.settable))
        });
        let owners = globals.map(|(id, at)| (at / APART, (*id, Vec::new())));
        self.log = Some(Log {
            owners: owners.collect(),
            ..Log::default()
        });
    }

    /// The log since [`Machine::record`], and ends it.
    pub fn take_log(&mut self) -> Log {
        self.log.take().unwrap_or_default()
    }

    /// Notes what is under a key, unless that is known already.
    fn note_before(&mut self, object: ObjectId, key: Vec<u8>) {
        let known = |log: &Log| log.before.contains_key(&(object, key.clone()));
        if self.log.as_ref().is_none_or(known) {
            return;
        }
        let value = self.peek(object, &key);
        if let Some(log) = &mut self.log {
            log.before.insert((object, key), value);
        }
    }

    /// Entry of the log for a call that is about to be made; none if it is on no object.
    pub(super) fn before_call(
        &mut self,
        h: &Helper,
        a: [u64; 5],
    ) -> Result<Option<Touch>, Violation> {
        if self.log.is_none() {
            return Ok(None);
        }
        if h.args.first() == Some(&Arg::Record) {
            return Ok(self.before_giving_back(h, a[0]));
        }
        let Some(at) = h.object_argument() else {
            return Ok(None);
        };
        let object = Self::named(a[at]);
        let Some(o) = self.declaration(object) else {
            return Ok(None);
        };
        let argument = |want: Arg| h.args.iter().position(|g| *g == want).map(|i| a[i]);
        let value = match argument(Arg::Value) {
            Some(at) => self.bytes_at(at, o.value_bytes)?,
            None if h.name == "ringbuf_output" => self.bytes_at(a[1], a[2] as u32)?,
            // Behind the program's bytes are as many of the packet as the flags' upper half says.
            None if h.name == "perf_event_output" => {
                let packet = self.packet_bytes().get(..(a[2] >> 32) as usize);
                let packet = packet.unwrap_or_default().to_vec();
                let own = self.bytes_at(a[3], a[4] as u32)?;
                own.into_iter().chain(packet).collect()
            }
            None => Vec::new(),
        };
        let (key, stored) = match argument(Arg::Key) {
            Some(at) => {
                let key = self.bytes_at(at, o.key_bytes)?;
                let bits = changes_prefix(h.name).then_some(a[2] as u8);
                (key.iter().copied().chain(bits).collect(), Some(key))
            }
            None if takes_number(h.name) => {
                (a[1].to_le_bytes().to_vec(), index_key(a[1], o.key_bytes))
            }
            None if takes_member(h.name) => {
                (a[1].to_le_bytes().to_vec(), index_key(0, o.key_bytes))
            }
            // An index of 32 bits, unless it is all entries' turn.
            None if h.name == "redirect_map" => match redirected(o, a[2]) {
                Redirected::Nowhere => return Ok(None),
                Redirected::All => (Vec::new(), None),
                Redirected::One => {
                    let key = (a[1] as u32).to_le_bytes().to_vec();
                    (key.clone(), Some(key))
                }
            },
            None if h.name == "tail_call" => {
                let key = (a[2] as u32).to_le_bytes().to_vec();
                (key.clone(), Some(key))
            }
            None => (Vec::new(), None),
        };
        let mut there = false;
        if let Some(stored) = stored {
            let value = self.peek(object, &stored);
            there = value.is_some_and(|v| o.holds(&v));
            if *o.kind == lpm_trie::KIND && *h != MAP_LOOKUP_ELEM {
                there = self.has_prefix(object, &stored);
            }
            self.note_before(object, stored);
        }
        Ok(Some(Touch {
            object,
            operation: h.name,
            key,
            value,
            offset: None,
            there,
            result: 0,
        }))
    }

    /// A record that is handed on, with its bytes, or given up.
    fn before_giving_back(&self, h: &Helper, at: u64) -> Option<Touch> {
        let owner = self.log.as_ref()?.owners.get(&(at / APART))?;
        let bytes = self.memory.get(&(at / APART)).map(|m| m.bytes.clone());
        let submitted = h.name == "ringbuf_submit";
        Some(Touch {
            object: owner.0,
            operation: h.name,
            key: Vec::new(),
            value: bytes.filter(|_| submitted).unwrap_or_default(),
            offset: None,
            there: true,
            result: 0,
        })
    }

    /// Notes a call when its result is known.
    pub(super) fn after_call(&mut self, h: &Helper, touch: Option<Touch>, result: u64) {
        let Some(mut touch) = touch else {
            if let Some(log) = &mut self.log {
                log.answers.push((h.name, result));
                log.answered_at.push(log.steps);
            }
            return;
        };
        touch.result = result;
        if h.name == "allocator_lease" && result != u64::MAX {
            touch.key = result.to_le_bytes().to_vec();
            let bytes = self.declaration(touch.object).map_or(0, |o| o.key_bytes);
            // The number was free.
            if let (Some(key), Some(log)) = (index_key(result, bytes), &mut self.log) {
                log.before.entry((touch.object, key)).or_insert(None);
            }
        }
        let region = result / APART;
        // A small number is no address, but would lie in the packet's region.
        let is_value = region != self.packet / APART && self.memory.contains_key(&region);
        if let Some(log) = &mut self.log {
            if is_value {
                // Which keys lead to a prefix that was put is more than its address says.
                let key = match changes_prefix(h.name) {
                    true => Vec::new(),
                    false => touch.key.clone(),
                };
                log.owners.insert(region, (touch.object, key));
            }
            log.touches.push(touch);
            log.touched_at.push(log.steps);
        }
    }

    /// Counts an instruction that begins.
    pub(super) fn begins_step(&mut self, insn: (usize, usize)) {
        let Some(log) = &mut self.log else { return };
        log.steps += 1;
        if self.trail.len() < super::TRAIL {
            self.trail.push(insn);
        }
    }

    /// Notes a branch.
    pub(super) fn note_branch(
        &mut self,
        insn: (usize, usize),
        (left, right): (u64, u64),
        taken: bool,
    ) {
        let Some(log) = &mut self.log else { return };
        if log.branches.len() < super::TRAIL {
            log.branches.push(Branched {
                at: log.steps,
                insn,
                left,
                right,
                taken,
            });
        }
    }

    /// Notes a store into the packet, before it happens.
    pub(super) fn note_store(&mut self, at: u64, after: Vec<u8>) {
        if self.log.is_none() || at / APART != self.packet / APART {
            return;
        }
        let offset = at.wrapping_sub(self.first_byte()) as i64;
        let Ok((memory, from)) = self.place(at, after.len()) else {
            return;
        };
        let before = memory.bytes.get(from..from + after.len());
        let before = before.unwrap_or_default().to_vec();
        if let Some(log) = &mut self.log
            && log.stores.len() < super::TRAIL
        {
            log.stores.push(Stored {
                at: log.steps,
                offset,
                before,
                after,
            });
        }
    }

    /// Notes a load or store, before it happens, if it is of a value.
    pub(super) fn note_touch(&mut self, operation: &'static str, at: u64, value: Vec<u8>) {
        let owner = self
            .log
            .as_ref()
            .and_then(|log| log.owners.get(&(at / APART)));
        let Some((object, key)) = owner.cloned() else {
            return;
        };
        if key.is_empty() {
            self.note_before(object, Vec::new());
        }
        let offset = (at % APART).wrapping_sub(super::INSET) as u32;
        if let Some(log) = &mut self.log {
            log.touches.push(Touch {
                object,
                operation,
                key,
                value,
                offset: Some(offset),
                there: true,
                result: 0,
            });
            log.touched_at.push(log.steps);
        }
    }
}

/// The lowest bytes of a number.
pub(super) fn bytes_of(number: u64, len: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().take(len).collect()
}
