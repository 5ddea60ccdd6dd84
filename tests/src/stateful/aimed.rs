//! Programs drawn for one rule of the plan each: shapes by which a number of state shows through that rule's channel and
//! no other, so that nothing else of the plan notices where the rule is missing. Drawn evenly they would hardly come up.

use rand::Rng;

use super::case::{
    Action, Amount, Block, Dialect, Family, HeaderLength, Held, Key, Leak, Mismatch, Miss, Parse,
    Protocol, Source, When,
};
use super::grammar::{Drawing, chance, pick};

/// What a program is aimed at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// a verdict that is computed of state, without a branch
    Verdict,
    /// an interface that is
    Target,
    /// a mismatch that ends as a miss does but for the packet's end
    Cut,
    /// the position of a ring's writer
    Position,
    /// a key that another entry holds
    Through,
    /// packets that a NIC and the program read differently
    Odd,
}

/// All of them.
pub const AIMS: [Aim; 6] = [
    Aim::Verdict,
    Aim::Target,
    Aim::Cut,
    Aim::Position,
    Aim::Through,
    Aim::Odd,
];

impl Aim {
    /// The dialect that it takes; none: either.
    #[must_use]
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Cut => Some(Dialect::Handlers),
            Self::Target | Self::Position => Some(Dialect::Xdp),
            Self::Verdict | Self::Through | Self::Odd => None,
        }
    }

    /// Headers that it needs to be read.
    pub fn parse(self, random: &mut impl Rng, parse: &mut Parse) {
        match self {
            Self::Cut | Self::Through => {
                (parse.family, parse.protocol) = (Family::V4, Protocol::Both);
            }
            Self::Odd => {
                (parse.family, parse.version, parse.fragments) = (Family::V4, false, false);
                parse.length = pick(random, &[HeaderLength::Ignored, HeaderLength::Walked]);
                parse.protocol = pick(random, &[Protocol::Ignored, Protocol::Both]);
            }
            Self::Verdict | Self::Target | Self::Position => {}
        }
    }
}

impl<R: Rng> Drawing<'_, R> {
    /// The blocks of a program that is aimed at a rule.
    pub(super) fn aimed(&mut self, aim: Aim) {
        match aim {
            Aim::Verdict => self.counted(Leak::Verdict),
            Aim::Target => self.counted(Leak::Port),
            Aim::Cut => {
                let held = pick(self.random, &[Held::Address, Held::Both, Held::Port]);
                let mismatch = Mismatch::Cut;
                self.block(Source::Leased { held, mismatch }, Leak::None);
            }
            Aim::Position => {
                let leak = pick(
                    self.random,
                    &[Leak::Odd, Leak::Above(10), Leak::Port, Leak::Byte],
                );
                self.block(Source::RingQuery, leak);
            }
            Aim::Through => self.through(),
            Aim::Odd => {
                let key = pick(
                    self.random,
                    &[Key::Tuple, Key::Tuple, Key::Conversation, Key::Source],
                );
                self.keyed(key);
            }
        }
    }

    fn block(&mut self, source: Source, leak: Leak) {
        let when = When::Always;
        self.blocks.push(Block { when, source, leak });
    }

    /// A counter of which a number shows.
    fn counted(&mut self, leak: Leak) {
        let action = if self.xdp() {
            pick(self.random, &[Action::Count, Action::Fetch])
        } else {
            Action::Count
        };
        let key = match chance(self.random, 3) {
            true => self.field(),
            false => Key::Constant(0),
        };
        let object = self.object(key, false, action);
        let source = Source::Value {
            object,
            key,
            miss: Miss::Make,
            action,
            amount: Amount::One,
        };
        self.block(source, leak);
    }

    /// A counter under what an entry of another object holds.
    fn through(&mut self) {
        let key = pick(self.random, &[Key::Src, Key::Source, Key::Tuple]);
        let number = pick(self.random, &[Key::Dport, Key::Dst, Key::Src, Key::Low]);
        let together = chance(self.random, 3);
        let via = self.table(key);
        let object = self.table(number);
        let leak = pick(self.random, &[Leak::None, Leak::Odd, Leak::Above(3)]);
        let source = Source::Through {
            via,
            key,
            object,
            number,
            together,
        };
        self.block(source, leak);
    }
}
