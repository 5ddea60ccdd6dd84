//! The grammar: programs drawn from a seed.
//!
//! A program has an [`Intent`], which weights what is drawn, so that every treatment of the plan has its share: programs
//! drawn evenly would nearly all be locked.

mod blocks;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::aimed::{AIMS, Aim};
use super::case::{
    Action, Amount, Block, Case, Dialect, Family, HeaderLength, Held, Key, Kind, Leak, Mismatch,
    Miss, Object, Otherwise, Parse, Program, Protocol, Shape, Source, Value, When,
};
use super::render::{atomic, shape_of};
use super::traffic::{self, Traffic};

/// What a program is drawn for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// counters that nobody looks at
    Statistics,
    /// state under one key that packets can be separated by
    PerKey,
    /// the same, reached by several keys, or several objects
    SeveralKeys,
    /// state under keys that packets cannot be separated by
    Shared,
    /// per-CPU state
    PerCpu,
    /// statistics of which something is observed after all
    Observed,
    /// numbers that flows lease and packets carry
    Leases,
    /// numbers that come from elsewhere than state
    Other,
    /// one rule of the plan
    Aimed(Aim),
}

/// One in so many runs of seeds is of programs that are aimed at a rule.
const RUNS: u64 = 5;

/// All of them, as often as they are drawn.
const INTENTS: [Intent; 13] = [
    Intent::Statistics,
    Intent::PerKey,
    Intent::SeveralKeys,
    Intent::PerKey,
    Intent::Observed,
    Intent::Shared,
    Intent::PerKey,
    Intent::PerCpu,
    Intent::SeveralKeys,
    Intent::Observed,
    Intent::Statistics,
    Intent::Other,
    Intent::Leases,
];

/// The case of a seed.
#[must_use]
pub fn case(seed: u64) -> Case {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let intents = INTENTS.len() as u64;
    let intent = match seed / intents % RUNS {
        4 => Intent::Aimed(AIMS[(seed % AIMS.len() as u64) as usize]),
        _ => INTENTS[(seed % intents) as usize],
    };
    let program = program(&mut random, intent);
    let kind = match intent {
        // Which number a flow leases may differ, so what comes back must not depend on it.
        Intent::Leases | Intent::Aimed(Aim::Cut) => Traffic::Strangers,
        Intent::Aimed(Aim::Odd) => Traffic::Odd,
        _ => Traffic::Mixed,
    };
    let packets = traffic::packets(&mut random, kind);
    Case {
        seed,
        program,
        packets,
    }
}

pub(super) fn pick<T: Copy>(random: &mut impl Rng, of: &[T]) -> T {
    of[random.random_range(0..of.len())]
}

pub(super) fn chance(random: &mut impl Rng, one_in: u32) -> bool {
    random.random_range(0..one_in) == 0
}

/// A program that is being drawn.
pub(super) struct Drawing<'a, R> {
    pub(super) random: &'a mut R,
    intent: Intent,
    dialect: Dialect,
    parse: Parse,
    objects: Vec<Object>,
    pub(super) blocks: Vec<Block>,
}

/// A program of an intent.
pub fn program(random: &mut impl Rng, intent: Intent) -> Program {
    let aim = match intent {
        Intent::Aimed(aim) => Some(aim),
        _ => None,
    };
    let dialect = match aim.and_then(Aim::dialect) {
        Some(dialect) => dialect,
        None if intent == Intent::Leases || chance(random, 4) => Dialect::Handlers,
        None => Dialect::Xdp,
    };
    let mut parse = parse(random, dialect);
    if let Some(aim) = aim {
        aim.parse(random, &mut parse);
    }
    if intent == Intent::Leases {
        (parse.family, parse.protocol) = (Family::V4, Protocol::Both);
    }
    let clock = chance(random, 3);
    let verdict = pick(random, &[Otherwise::Back, Otherwise::Pass, Otherwise::Peer]);
    let mut drawing = Drawing {
        random,
        intent,
        dialect,
        parse,
        objects: Vec::new(),
        blocks: Vec::new(),
    };
    drawing.draw();
    let Drawing {
        parse,
        objects,
        blocks,
        ..
    } = drawing;
    Program {
        dialect,
        parse,
        objects,
        blocks,
        clock,
        verdict,
        sets: None,
    }
}

fn parse(random: &mut impl Rng, dialect: Dialect) -> Parse {
    use Family::{Ethernet, Flow, V4, V6};
    let family = match dialect {
        Dialect::Xdp => pick(random, &[V4, V4, V4, V4, V4, V4, V6, Ethernet]),
        Dialect::Handlers => pick(random, &[V4, V4, Flow, Flow, V6]),
    };
    Parse {
        family,
        version: random.random(),
        length: pick(
            random,
            &[
                HeaderLength::Ignored,
                HeaderLength::Fixed,
                HeaderLength::Fixed,
                HeaderLength::Walked,
            ],
        ),
        fragments: random.random(),
        protocol: match family {
            Ethernet => Protocol::NoPorts,
            _ => pick(
                random,
                &[
                    Protocol::Both,
                    Protocol::Udp,
                    Protocol::Both,
                    Protocol::Ignored,
                    Protocol::NoPorts,
                ],
            ),
        },
        gathered: dialect == Dialect::Xdp && family == V4 && chance(random, 3),
    }
}

impl<R: Rng> Drawing<'_, R> {
    fn draw(&mut self) {
        match self.intent {
            Intent::Statistics => {
                for _ in 0..self.random.random_range(1..=3) {
                    self.statistics(Leak::None);
                }
            }
            Intent::Observed => {
                self.statistics(Leak::None);
                // Seen at once, or by what is done with the number next.
                match self.random.random_range(0..6) {
                    0 => {
                        self.observed(Leak::None);
                        let key = Key::Of(self.blocks.len() - 1);
                        self.keyed(key);
                    }
                    1 => {
                        self.observed(Leak::None);
                        let amount = Amount::Of(self.blocks.len() - 1);
                        self.statistics(Leak::None);
                        if let Some(Block {
                            source: Source::Value { amount: last, .. },
                            ..
                        }) = self.blocks.last_mut()
                        {
                            *last = amount;
                        }
                    }
                    _ => {
                        let leak = self.leak();
                        self.observed(leak);
                    }
                }
            }
            Intent::PerKey => {
                let key = self.field();
                self.keyed(key);
                if chance(self.random, 5) {
                    let key = Key::Of(self.blocks.len() - 1);
                    self.keyed(key);
                } else if chance(self.random, 3) {
                    self.again(key);
                }
                if chance(self.random, 3) {
                    self.statistics(Leak::None);
                }
            }
            Intent::SeveralKeys => {
                for _ in 0..2 {
                    let key = self.field();
                    self.keyed(key);
                    if chance(self.random, 2) {
                        self.other_way(key);
                    }
                }
            }
            Intent::Shared => {
                let key = self.shared();
                self.keyed(key);
                if self.random.random() {
                    let key = self.field();
                    self.keyed(key);
                }
            }
            Intent::PerCpu => {
                self.percpu();
                if self.random.random() {
                    let key = self.field();
                    self.keyed(key);
                }
            }
            Intent::Leases => {
                let held = pick(
                    self.random,
                    &[Held::Address, Held::Both, Held::Both, Held::Port],
                );
                let mismatch = pick(
                    self.random,
                    &[
                        Mismatch::AsMiss,
                        Mismatch::AsMiss,
                        Mismatch::Reason,
                        Mismatch::Forward,
                        Mismatch::Counted,
                    ],
                );
                self.blocks.push(Block {
                    when: When::Always,
                    source: Source::Leased { held, mismatch },
                    leak: Leak::None,
                });
                if chance(self.random, 3) {
                    self.statistics(Leak::None);
                }
            }
            Intent::Aimed(aim) => self.aimed(aim),
            Intent::Other => {
                self.elsewhere();
                if self.random.random() {
                    let key = match self.blocks.len() {
                        0 => self.field(),
                        n => Key::Of(n - 1),
                    };
                    self.keyed(key);
                }
            }
        }
    }

    pub(super) fn xdp(&self) -> bool {
        self.dialect == Dialect::Xdp
    }

    /// A key that packets can be separated by, mostly.
    pub(super) fn field(&mut self) -> Key {
        use Key::{
            ByProto, Conversation, Destination, Dport, Dst, Hash, Low, Ordered, Pair, Peers,
            Prefix, Reversed, Side, SixDst, SixNet, SixSrc, Source, Src, Sum, Tuple, Xor,
        };
        let ports = self.parse.protocol != Protocol::NoPorts;
        let all: &[Key] = match self.parse.family {
            Family::Ethernet => &[Key::MacSrc, Key::MacDst, Key::Src],
            Family::V6 => &[SixSrc, SixDst, SixNet, SixSrc, Src],
            Family::Flow => &[
                Tuple,
                Conversation,
                Conversation,
                Src,
                Side,
                Reversed,
                Peers,
            ],
            Family::V4 if ports => &[
                Src,
                Dst,
                Tuple,
                Side,
                Conversation,
                Pair,
                Peers,
                Ordered,
                Source,
                Destination,
                Dport,
                Prefix(2),
                Prefix(3),
                Low,
                Xor,
                Sum,
                Hash,
                ByProto,
                Reversed,
            ],
            Family::V4 => &[
                Src,
                Dst,
                Side,
                Pair,
                Peers,
                Ordered,
                Prefix(1),
                Low,
                Xor,
                Hash,
                ByProto,
            ],
        };
        pick(self.random, all)
    }

    /// A key that they cannot be separated by.
    fn shared(&mut self) -> Key {
        pick(
            self.random,
            &[
                Key::Constant(0),
                Key::Constant(3),
                Key::Proto,
                Key::Len,
                Key::Ttl,
                Key::Time,
                Key::MacSrc,
            ],
        )
    }

    fn value(&mut self) -> Value {
        let a = pick(self.random, &[8, 8, 4, 4, 2, 1]);
        let b = pick(self.random, &[8, 4, 4]).min(a);
        Value {
            a,
            // The pair fills words: no padding.
            b: if a == 8 { 8 } else { b },
            packed: chance(self.random, 5),
        }
    }

    /// An object for a key, with a value fit for what is done with it.
    pub(super) fn object(&mut self, key: Key, percpu: bool, action: Action) -> usize {
        let natural = match (self.parse.family, key) {
            (Family::Flow, Key::Tuple | Key::Reversed | Key::Conversation) => Shape::Flow,
            _ => shape_of(key),
        };
        let word = natural == Shape::Word;
        let kind = match (self.dialect, percpu, word) {
            (Dialect::Xdp, true, true) => pick(
                self.random,
                &[
                    Kind::PercpuArray,
                    Kind::PercpuArray,
                    Kind::PercpuHash,
                    Kind::PercpuLru,
                ],
            ),
            (Dialect::Xdp, true, false) => pick(self.random, &[Kind::PercpuHash, Kind::PercpuLru]),
            (Dialect::Xdp, false, true) => pick(
                self.random,
                &[
                    Kind::Hash,
                    Kind::Hash,
                    Kind::Array,
                    Kind::Array,
                    Kind::Lru,
                    Kind::Global,
                    Kind::Nested,
                ],
            ),
            (Dialect::Xdp, false, false) => pick(self.random, &[Kind::Hash, Kind::Hash, Kind::Lru]),
            (Dialect::Handlers, _, true) => {
                pick(self.random, &[Kind::Hash, Kind::Hash, Kind::Array])
            }
            (Dialect::Handlers, ..) => Kind::Hash,
        };
        let mut value = self.value();
        if atomic(action) {
            value.packed = false;
        }
        let capacity = match kind {
            Kind::Hash | Kind::Lru | Kind::PercpuHash | Kind::PercpuLru => 4096,
            _ => pick(self.random, &[1, 4, 16, 256]),
        };
        let expires = match kind {
            Kind::Hash if !self.xdp() && chance(self.random, 3) => 2000,
            _ => 0,
        };
        self.objects.push(Object {
            kind,
            shape: natural,
            value,
            capacity,
            expires,
        });
        self.objects.len() - 1
    }

    /// A hash table for a key, with values that hold a word.
    pub(super) fn table(&mut self, key: Key) -> usize {
        self.objects.push(Object {
            kind: Kind::Hash,
            shape: shape_of(key),
            value: Value {
                a: 4,
                b: 4,
                packed: false,
            },
            capacity: 4096,
            expires: 0,
        });
        self.objects.len() - 1
    }

    fn when(&mut self) -> When {
        let ports = self.parse.protocol != Protocol::NoPorts;
        match self.random.random_range(0..9) {
            0 => When::Port(self.random.random_range(0..2)),
            1 => When::Udp,
            2 if ports => When::To(pick(self.random, &[53, 80, 443])),
            3 if !self.blocks.is_empty() && self.intent != Intent::Statistics => {
                When::Odd(self.random.random_range(0..self.blocks.len()))
            }
            _ => When::Always,
        }
    }

    fn amount(&mut self) -> Amount {
        pick(
            self.random,
            &[Amount::One, Amount::One, Amount::Len, Amount::Dport],
        )
    }

    fn miss(&mut self) -> Miss {
        pick(self.random, &[Miss::Insert, Miss::Insert, Miss::Make])
    }
}

fn pick_of(random: &mut impl Rng, of: &[Source]) -> Source {
    of[random.random_range(0..of.len())].clone()
}
