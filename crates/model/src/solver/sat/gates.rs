//! Gates of one bit, hash-consed and simplified as they are made: what a question about bit-vectors is for a
//! solver of propositional formulas. Besides and and exclusive or there are the choice and the two halves of
//! a full adder, because clauses of their own make the solver propagate more than those of their parts would.

use std::collections::HashMap;
use std::ops::Not;

/// A gate's output or its negation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Bit(u32);

impl Bit {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const ONE: Self = Self(1);

    /// The gate's number; 0 is the constant.
    pub(super) fn gate(self) -> usize {
        self.0 as usize >> 1
    }

    pub(super) fn negated(self) -> bool {
        self.0 & 1 == 1
    }

    pub(super) fn constant(self) -> Option<bool> {
        (self.0 < 2).then_some(self.0 == 1)
    }

    pub(super) fn of(truth: bool) -> Self {
        if truth { Self::ONE } else { Self::ZERO }
    }

    fn plain(self) -> Self {
        Self(self.0 & !1)
    }

    /// The same, negated if so.
    fn turned(self, by: bool) -> Self {
        Self(self.0 ^ u32::from(by))
    }
}

impl Not for Bit {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// Function of a gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Gate {
    /// anything
    Input,
    And(Bit, Bit),
    Xor(Bit, Bit),
    /// the second if the first, else the third
    Choice(Bit, Bit, Bit),
    /// whether an odd number of three is one
    Sum(Bit, Bit, Bit),
    /// whether two of three are one
    Carry(Bit, Bit, Bit),
}

impl Gate {
    pub(super) fn operands(self) -> [Option<Bit>; 3] {
        match self {
            Gate::Input => [None; 3],
            Gate::And(a, b) | Gate::Xor(a, b) => [Some(a), Some(b), None],
            Gate::Choice(a, b, c) | Gate::Sum(a, b, c) | Gate::Carry(a, b, c) => {
                [Some(a), Some(b), Some(c)]
            }
        }
    }
}

/// All gates made so far. Operands have smaller numbers than what is made of them.
pub(super) struct Gates {
    gates: Vec<Gate>,
    known: HashMap<Gate, Bit>,
    /// what holds of an input whenever it is spoken of
    bound: HashMap<usize, Vec<Bit>>,
}

impl Gates {
    pub(super) fn new() -> Self {
        // The first stands for the constant.
        Self {
            gates: vec![Gate::Input],
            known: HashMap::new(),
            bound: HashMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.gates.len()
    }

    pub(super) fn gate(&self, n: usize) -> Gate {
        self.gates.get(n).copied().unwrap_or(Gate::Input)
    }

    pub(super) fn bound(&self, n: usize) -> &[Bit] {
        self.bound.get(&n).map_or(&[], Vec::as_slice)
    }

    /// Says that this holds whatever the other inputs are, if these inputs are chosen well.
    pub(super) fn bind(&mut self, inputs: &[Bit], holds: Bit) {
        for i in inputs {
            self.bound.entry(i.gate()).or_default().push(holds);
        }
    }

    pub(super) fn input(&mut self) -> Bit {
        self.gates.push(Gate::Input);
        Bit((self.gates.len() as u32 - 1) << 1)
    }

    fn made(&mut self, gate: Gate) -> Bit {
        if let Some(bit) = self.known.get(&gate) {
            return *bit;
        }
        self.gates.push(gate);
        let bit = Bit((self.gates.len() as u32 - 1) << 1);
        self.known.insert(gate, bit);
        bit
    }

    pub(super) fn and(&mut self, a: Bit, b: Bit) -> Bit {
        let (a, b) = (a.min(b), a.max(b));
        match a.constant() {
            Some(false) => return Bit::ZERO,
            Some(true) => return b,
            None => {}
        }
        if a == b {
            return a;
        }
        if a == !b {
            return Bit::ZERO;
        }
        // One of them is part of the other.
        for (x, y) in [(a, b), (b, a)] {
            if let Gate::And(p, q) = self.gate(y.gate()) {
                let inside = p == x || q == x;
                let denied = p == !x || q == !x;
                match (y.negated(), inside, denied) {
                    (false, true, _) => return y,
                    (false, _, true) => return Bit::ZERO,
                    (true, _, true) => return x,
                    (true, true, _) => {
                        let rest = if p == x { q } else { p };
                        return self.and(x, !rest);
                    }
                    _ => {}
                }
            }
        }
        self.made(Gate::And(a, b))
    }

    pub(super) fn or(&mut self, a: Bit, b: Bit) -> Bit {
        !self.and(!a, !b)
    }

    pub(super) fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        let turned = a.negated() ^ b.negated();
        let (a, b) = (a.plain().min(b.plain()), a.plain().max(b.plain()));
        if a == b {
            return Bit::ZERO.turned(turned);
        }
        if a == Bit::ZERO {
            return b.turned(turned);
        }
        self.made(Gate::Xor(a, b)).turned(turned)
    }

    pub(super) fn choice(&mut self, c: Bit, yes: Bit, no: Bit) -> Bit {
        if let Some(c) = c.constant() {
            return if c { yes } else { no };
        }
        let (c, yes, no) = if c.negated() {
            (!c, no, yes)
        } else {
            (c, yes, no)
        };
        if yes == no {
            return yes;
        }
        if yes == !no {
            return !self.xor(c, yes);
        }
        match (yes.constant(), no.constant()) {
            (Some(true), _) => return self.or(c, no),
            (Some(false), _) => return self.and(!c, no),
            (_, Some(true)) => return self.or(!c, yes),
            (_, Some(false)) => return self.and(c, yes),
            _ => {}
        }
        if yes.plain() == c {
            return if yes == c {
                self.or(c, no)
            } else {
                self.and(!c, no)
            };
        }
        if no.plain() == c {
            return if no == c {
                self.and(c, yes)
            } else {
                self.or(!c, yes)
            };
        }
        let turned = yes.negated();
        self.made(Gate::Choice(c, yes.turned(turned), no.turned(turned)))
            .turned(turned)
    }

    /// The sum of three bits, and what is carried.
    pub(super) fn full_adder(&mut self, a: Bit, b: Bit, c: Bit) -> (Bit, Bit) {
        let mut three = [a, b, c];
        three.sort_unstable();
        let [a, b, c] = three;
        // The constant, if there is one, comes first; equal gates are neighbours.
        match a.constant() {
            Some(false) => return (self.xor(b, c), self.and(b, c)),
            Some(true) => return (!self.xor(b, c), self.or(b, c)),
            None => {}
        }
        for (x, y, z) in [(a, b, c), (b, c, a)] {
            if x == y {
                return (z, x);
            }
            if x == !y {
                return (!z, z);
            }
        }
        let turned = a.negated() ^ b.negated() ^ c.negated();
        let sum = self
            .made(Gate::Sum(a.plain(), b.plain(), c.plain()))
            .turned(turned);
        // The majority of the negated is the negated majority.
        let most = [a, b, c].iter().filter(|x| x.negated()).count() >= 2;
        let [a, b, c] = [a, b, c].map(|x| x.turned(most));
        let carry = self.made(Gate::Carry(a, b, c)).turned(most);
        (sum, carry)
    }
}
