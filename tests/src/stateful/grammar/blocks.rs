//! The blocks of a program: what each asks of which objects.

use rand::{Rng, RngExt};

use super::{Drawing, chance, pick, pick_of};
use crate::stateful::case::{Action, Amount, Block, Key, Kind, Leak, Miss, Protocol, Source, When};

impl<R: Rng> Drawing<'_, R> {
    /// Counters that are only added to.
    pub(super) fn statistics(&mut self, leak: Leak) {
        use Action::{Add, AddTwo, AtomicAdd, Subtract};
        let action = if self.xdp() {
            pick(self.random, &[Add, AddTwo, AtomicAdd, AtomicAdd, Subtract])
        } else {
            pick(self.random, &[Add, AddTwo])
        };
        let percpu = self.xdp() && chance(self.random, 3);
        let key = match self.random.random_range(0..4) {
            0 => self.field(),
            _ => pick(
                self.random,
                &[Key::Constant(0), Key::Proto, Key::Low, Key::Ttl],
            ),
        };
        let object = self.object(key, percpu, action);
        let (miss, amount, when) = (self.miss(), self.amount(), self.when());
        let source = Source::Value {
            object,
            key,
            miss,
            action,
            amount,
        };
        self.blocks.push(Block { when, source, leak });
    }

    /// A change that does not commute, or one that is observed, where a statistic would be.
    pub(super) fn observed(&mut self, leak: Leak) {
        use Action::{Add, AddOwn, AtomicOwn, Count, Fetch, Or, Overlap, Put, Read, Saturate, Xor};
        let action = if self.xdp() {
            pick(
                self.random,
                &[
                    AddOwn, AtomicOwn, Overlap, Fetch, Count, Saturate, Xor, Or, Put, Count, Count,
                ],
            )
        } else {
            pick(self.random, &[AddOwn, Overlap, Count, Saturate, Xor, Put])
        };
        let shared = self.blocks.len() > 1 && chance(self.random, 4);
        let key = if chance(self.random, 3) {
            self.field()
        } else {
            Key::Constant(self.random.random_range(0..2))
        };
        let percpu = self.xdp() && chance(self.random, 6);
        let object = self.object(key, percpu, action);
        let (miss, amount, when) = (self.miss(), self.amount(), self.when());
        self.blocks.push(Block {
            when,
            source: Source::Value {
                object,
                key,
                miss,
                action: if shared { Add } else { action },
                amount,
            },
            leak: if shared { Leak::None } else { leak },
        });
        if shared {
            self.blocks.push(Block {
                when: When::Always,
                source: Source::Value {
                    object,
                    key,
                    miss: Miss::Skip,
                    action: Read,
                    amount: Amount::One,
                },
                leak,
            });
        }
    }

    /// Where a number goes, by which it is seen.
    pub(super) fn leak(&mut self) -> Leak {
        let last = self.random.random_range(0..12);
        let above = Leak::Above(pick(self.random, &[3, 10, 40]));
        if self.xdp() {
            use Leak::{
                Byte, Compare, Csum, Head, Number, Odd, PerfLength, Place, Port, Record,
                RecordLength, RecordWhether, Tail, TailCall, Text,
            };
            pick(
                self.random,
                &[
                    Odd,
                    above,
                    above,
                    Port,
                    Byte,
                    Place,
                    Tail,
                    Head,
                    Record,
                    RecordLength,
                    RecordWhether,
                    PerfLength,
                    TailCall,
                    Csum,
                    Text,
                    Number,
                    Compare,
                ],
            )
        } else {
            match last {
                0..4 => above,
                4..6 => Leak::Odd,
                6..8 => Leak::Port,
                8..10 => Leak::Byte,
                _ => Leak::Place,
            }
        }
    }

    /// State under a key, changed in any way, mostly observed.
    pub(in crate::stateful) fn keyed(&mut self, key: Key) {
        self.keyed_in(key, false);
    }

    pub(super) fn keyed_in(&mut self, key: Key, percpu: bool) {
        use Action::{
            Add, AddTwo, AtomicAdd, Bucket, Count, Exchange, Fetch, Last, Max, Mix, Or, Put,
            Saturate, Window, Xor,
        };
        let mut leak = self.leak();
        if chance(self.random, 6) {
            leak = Leak::None;
        }
        let when = self.when();
        let hash = |d: &Self, object: usize| {
            let kind = d.objects.get(object).map(|o| o.kind);
            matches!(
                kind,
                Some(Kind::Hash | Kind::Lru | Kind::PercpuHash | Kind::PercpuLru)
            )
        };
        if chance(self.random, 8) {
            let object = self.object(key, percpu, Count);
            if hash(self, object) {
                let source = Source::First { object, key };
                self.blocks.push(Block { when, source, leak });
                return;
            }
            self.objects.pop();
        }
        let action = if self.xdp() {
            pick(
                self.random,
                &[
                    Add, AddTwo, AtomicAdd, Fetch, Fetch, Count, Window, Window, Bucket, Max, Xor,
                    Or, Last, Mix, Saturate, Exchange, Put,
                ],
            )
        } else {
            pick(
                self.random,
                &[
                    Add, Count, Window, Window, Bucket, Bucket, Max, Last, Mix, Saturate, Put,
                ],
            )
        };
        // These have no number that could go anywhere.
        if matches!(action, Add | AddTwo | AtomicAdd | Put) {
            leak = Leak::None;
        }
        let object = self.object(key, percpu, action);
        let (miss, mut amount) = (self.miss(), self.amount());
        if !self.blocks.is_empty() && chance(self.random, 6) {
            amount = Amount::Of(self.random.random_range(0..self.blocks.len()));
        }
        let source = Source::Value {
            object,
            key,
            miss,
            action,
            amount,
        };
        self.blocks.push(Block { when, source, leak });
        if chance(self.random, 6) && hash(self, object) {
            let when = When::To(443);
            let ports = self.parse.protocol != Protocol::NoPorts;
            let when = if ports { when } else { When::Port(1) };
            self.blocks.push(Block {
                when,
                source: Source::Delete { object, key },
                leak: Leak::None,
            });
        }
    }

    /// The latest object once more, under the same key.
    pub(super) fn again(&mut self, key: Key) {
        let object = self.objects.len() - 1;
        let action = pick(
            self.random,
            &[Action::Read, Action::Count, Action::Saturate],
        );
        let (leak, when) = (self.leak(), self.when());
        self.blocks.push(Block {
            when,
            source: Source::Value {
                object,
                key,
                miss: Miss::Skip,
                action,
                amount: Amount::One,
            },
            leak,
        });
    }

    /// The latest object once more, under another key of the same shape.
    pub(super) fn other_way(&mut self, key: Key) {
        let object = self.objects.len() - 1;
        let other = match key {
            Key::Src => Key::Dst,
            Key::Dst => Key::Side,
            Key::Tuple => Key::Reversed,
            Key::Reversed => Key::Tuple,
            Key::Pair => Key::Ordered,
            Key::Source => Key::Destination,
            Key::Destination => Key::Source,
            Key::SixSrc => Key::SixDst,
            Key::MacSrc => Key::MacDst,
            same => same,
        };
        let (leak, when) = (self.leak(), self.when());
        self.blocks.push(Block {
            when,
            source: Source::Value {
                object,
                key: other,
                miss: Miss::Skip,
                action: pick(self.random, &[Action::Read, Action::Read, Action::Count]),
                amount: Amount::One,
            },
            leak,
        });
    }

    pub(super) fn percpu(&mut self) {
        if !self.xdp() {
            let key = self.shared();
            return self.keyed(key);
        }
        // What CPUs have under a key that packets can be separated by is sharded as any other table.
        if self.random.random() {
            let key = self.field();
            return self.keyed_in(key, true);
        }
        use Action::{Add, AddTwo, Count, Max, Put, Scratch};
        let key = pick(
            self.random,
            &[Key::Constant(0), Key::Constant(0), Key::Proto, Key::Src],
        );
        let action = pick(
            self.random,
            &[Scratch, Scratch, Add, AddTwo, Put, Count, Max],
        );
        let object = self.object(key, true, action);
        let leak = match action {
            Scratch => self.leak(),
            Count | Max if chance(self.random, 2) => self.leak(),
            _ => Leak::None,
        };
        let (miss, amount, when) = (self.miss(), self.amount(), self.when());
        self.blocks.push(Block {
            when,
            source: Source::Value {
                object,
                key,
                miss,
                action,
                amount,
            },
            leak,
        });
    }

    pub(super) fn elsewhere(&mut self) {
        let source = if self.xdp() {
            let key = Key::Src;
            pick_of(
                self.random,
                &[
                    Source::Queue,
                    Source::Stack,
                    Source::Bloom(key),
                    Source::Ring,
                    Source::RingQuery,
                    Source::Cpu,
                    Source::Random,
                    Source::Time,
                    Source::Ingress,
                    Source::Length,
                ],
            )
        } else {
            let key = self.field();
            pick_of(
                self.random,
                &[
                    Source::Sketch(key),
                    Source::Sketch(key),
                    Source::Time,
                    Source::Ingress,
                    Source::Lease(key),
                ],
            )
        };
        let (leak, when) = (self.leak(), self.when());
        self.blocks.push(Block { when, source, leak });
    }
}
