//! The gates of a circuit, each once, and the rules by which they are made smaller.

use std::collections::{BTreeSet, HashMap};

use super::gate::{Gate, Wire};

/// The longest packet, bytes.
pub const LONGEST: u64 = 0xffff;
/// How many values a gate may have for them to be listed.
const LISTED: usize = 64;

/// What is known of a gate's number.
#[derive(Clone, Debug)]
struct Known {
    least: u64,
    most: u64,
    /// all that it can be, where these are few
    values: Option<BTreeSet<u64>>,
}

/// Gates, each one once.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    all: Vec<Gate>,
    known: Vec<Known>,
    found: HashMap<Gate, Wire>,
}

/// The lowest bits of a number that are set where it is at most this.
fn filled(most: u64) -> u64 {
    u64::MAX.checked_shr(most.leading_zeros()).unwrap_or(0)
}

/// The lowest so many bits, set.
pub(super) fn low(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits.min(64)).unwrap_or(0)
}

impl Gates {
    /// The gate of a wire.
    #[must_use]
    pub fn gate(&self, wire: Wire) -> &Gate {
        const ZERO: &Gate = &Gate::Number(0);
        self.all.get(wire.0 as usize).unwrap_or(ZERO)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The largest number that it can be.
    #[must_use]
    pub fn most(&self, wire: Wire) -> u64 {
        self.known.get(wire.0 as usize).map_or(u64::MAX, |k| k.most)
    }

    fn least(&self, wire: Wire) -> u64 {
        self.known.get(wire.0 as usize).map_or(0, |k| k.least)
    }

    /// Bits of it that may be set, at least 1.
    #[must_use]
    pub fn width(&self, wire: Wire) -> u32 {
        (64 - self.most(wire).leading_zeros()).max(1)
    }

    /// All that it can be, where these are few.
    #[must_use]
    pub fn values(&self, wire: Wire) -> Option<&BTreeSet<u64>> {
        self.known.get(wire.0 as usize)?.values.as_ref()
    }

    /// The constant that it is.
    #[must_use]
    pub fn constant(&self, wire: Wire) -> Option<u64> {
        match self.gate(wire) {
            Gate::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// The operands of what is the same in either order, a constant behind.
    fn constant_last(&self, a: Wire, b: Wire) -> (Wire, Wire) {
        match self.constant(a) {
            Some(_) => (b, a),
            None => (a, b),
        }
    }

    fn put(
        &mut self,
        gate: Gate,
        (least, most): (u64, u64),
        values: Option<BTreeSet<u64>>,
    ) -> Wire {
        if least == most && !matches!(gate, Gate::Number(_)) {
            return self.number(least);
        }
        if let Some(wire) = self.found.get(&gate) {
            return *wire;
        }
        let wire = Wire(self.all.len() as u32);
        self.all.push(gate.clone());
        self.known.push(Known {
            least,
            most,
            values,
        });
        self.found.insert(gate, wire);
        wire
    }

    fn range(&mut self, gate: Gate, least: u64, most: u64) -> Wire {
        self.put(gate, (least, most), None)
    }

    /// With the values that follow from those of the operands, if these are few.
    fn made(
        &mut self,
        gate: Gate,
        (a, b): (Wire, Wire),
        (least, most): (u64, u64),
        f: impl Fn(u64, u64) -> u64,
    ) -> Wire {
        let mut values = None;
        if let (Some(a), Some(b)) = (self.values(a), self.values(b))
            && a.len() * b.len() <= LISTED
        {
            let each = a.iter().flat_map(|a| b.iter().map(|b| f(*a, *b)));
            values = Some(each.collect::<BTreeSet<u64>>());
        }
        let (mut least, mut most) = (least, most);
        if let Some((first, last)) = values.as_ref().and_then(|v| v.first().zip(v.last())) {
            (least, most) = (least.max(*first), most.min(*last));
        }
        self.put(gate, (least, most), values)
    }

    /// A constant.
    pub fn number(&mut self, n: u64) -> Wire {
        self.put(Gate::Number(n), (n, n), Some(BTreeSet::from([n])))
    }

    /// The packet's length.
    pub fn length(&mut self) -> Wire {
        self.range(Gate::Length, 0, LONGEST)
    }

    /// The port.
    pub fn port(&mut self) -> Wire {
        self.range(Gate::Port, 0, 0xffff)
    }

    /// The time.
    pub fn time(&mut self) -> Wire {
        self.range(Gate::Time, 0, u64::MAX)
    }

    /// A byte of the packet.
    pub fn byte(&mut self, offset: Wire) -> Wire {
        self.range(Gate::Byte(offset), 0, 0xff)
    }

    /// `a + b`.
    pub fn add(&mut self, a: Wire, b: Wire) -> Wire {
        let (a, b) = self.constant_last(a, b);
        match (self.constant(a), self.constant(b)) {
            (Some(a), Some(b)) => return self.number(a.wrapping_add(b)),
            (_, Some(0)) => return a,
            (_, Some(n)) => {
                if let Gate::Add(x, y) = *self.gate(a)
                    && let Some(m) = self.constant(y)
                {
                    let sum = self.number(m.wrapping_add(n));
                    return self.add(x, sum);
                }
            }
            _ => {}
        }
        let most = self.most(a).checked_add(self.most(b));
        let mut range = most.map_or((0, u64::MAX), |most| (self.least(a) + self.least(b), most));
        // Of a subtraction that goes below 0 nowhere.
        if let Some(n) = self.constant(b).map(u64::wrapping_neg)
            && most.is_none()
            && self.least(a) >= n
        {
            range = (self.least(a) - n, self.most(a) - n);
        }
        self.made(Gate::Add(a, b), (a, b), range, u64::wrapping_add)
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Wire, b: Wire) -> Wire {
        if let Some(n) = self.constant(b) {
            let n = self.number(n.wrapping_neg());
            return self.add(a, n);
        }
        // Two pointers into the packet: their base falls out.
        if let (Some((x, m)), Some((y, n))) = (self.shifted(a), self.shifted(b))
            && m == n
            && m != 0
        {
            return self.sub(x, y);
        }
        let fits = self.least(a) >= self.most(b);
        let range = match fits {
            true => (self.least(a) - self.most(b), self.most(a) - self.least(b)),
            false => (0, u64::MAX),
        };
        self.made(Gate::Sub(a, b), (a, b), range, u64::wrapping_sub)
    }

    /// `x` and `n` where it is `x + n` and does not wrap.
    fn shifted(&self, a: Wire) -> Option<(Wire, u64)> {
        match *self.gate(a) {
            Gate::Add(x, y) => {
                let n = self.constant(y)?;
                self.most(x).checked_add(n).map(|_| (x, n))
            }
            _ => Some((a, 0)),
        }
    }

    /// `a * b`.
    pub fn mul(&mut self, a: Wire, b: Wire) -> Wire {
        let (a, b) = self.constant_last(a, b);
        if let Some(n) = self.constant(b).filter(|n| n.is_power_of_two()) {
            let by = self.number(u64::from(n.trailing_zeros()));
            return self.shl(a, by);
        }
        let most = self.most(a).checked_mul(self.most(b));
        let range = most.map_or((0, u64::MAX), |most| (self.least(a) * self.least(b), most));
        self.made(Gate::Mul(a, b), (a, b), range, u64::wrapping_mul)
    }

    /// `a & b`.
    pub fn and(&mut self, a: Wire, b: Wire) -> Wire {
        let (a, b) = self.constant_last(a, b);
        if a == b {
            return a;
        }
        if let Some(mask) = self.constant(b) {
            if filled(self.most(a)) & !mask == 0 {
                return a;
            }
            // A run of bits: what is not in it need not be there.
            let from = mask.trailing_zeros();
            let bits = (mask >> from.min(63)).trailing_ones();
            if mask != 0 && mask == low(bits) << from {
                let part = self.bits(a, from, bits);
                let by = self.number(u64::from(from));
                return self.shl(part, by);
            }
        }
        let most = self.most(a).min(self.most(b));
        self.made(Gate::And(a, b), (a, b), (0, most), |a, b| a & b)
    }

    /// `a | b`.
    pub fn or(&mut self, a: Wire, b: Wire) -> Wire {
        let (a, b) = self.constant_last(a, b);
        if a == b || self.constant(b) == Some(0) {
            return a;
        }
        if self.most(a) == 1 && self.constant(b) == Some(1) {
            return b;
        }
        // g & c | g & !c
        if let (Gate::And(g, c), Gate::And(h, d)) = (self.gate(a).clone(), self.gate(b).clone())
            && self.most(a) == 1
            && self.most(b) == 1
            && g == h
            && (self.is_not(c, d) || self.is_not(d, c))
        {
            return g;
        }
        if self.is_not(a, b) || self.is_not(b, a) {
            return self.number(1);
        }
        let (x, y) = (filled(self.most(a)), filled(self.most(b)));
        let least = self.least(a).max(self.least(b));
        self.made(Gate::Or(a, b), (a, b), (least, x | y), |a, b| a | b)
    }

    fn is_not(&self, a: Wire, of: Wire) -> bool {
        match *self.gate(a) {
            Gate::Equal(x, zero) => x == of && self.constant(zero) == Some(0) && self.most(of) <= 1,
            _ => false,
        }
    }

    /// `a ^ b`.
    pub fn xor(&mut self, a: Wire, b: Wire) -> Wire {
        let (a, b) = self.constant_last(a, b);
        if self.constant(b) == Some(0) {
            return a;
        }
        if a == b {
            return self.number(0);
        }
        let most = filled(self.most(a)) | filled(self.most(b));
        self.made(Gate::Xor(a, b), (a, b), (0, most), |a, b| a ^ b)
    }

    /// `a << b`, the second modulo 64.
    pub fn shl(&mut self, a: Wire, b: Wire) -> Wire {
        let b = self.bits(b, 0, 6);
        match (self.constant(a), self.constant(b)) {
            (_, Some(0)) => return a,
            (Some(n), Some(by)) => return self.number(n << by),
            _ => {}
        }
        let by = self.most(b) as u32;
        let range = match self.most(a).leading_zeros() >= by {
            true => (self.least(a) << self.least(b), self.most(a) << by),
            false => (0, u64::MAX),
        };
        self.made(Gate::Shl(a, b), (a, b), range, |a, b| a << (b & 63))
    }

    /// `a >> b`, the second modulo 64.
    pub fn shr(&mut self, a: Wire, b: Wire) -> Wire {
        let b = self.bits(b, 0, 6);
        if let Some(by) = self.constant(b) {
            return self.bits(a, by as u32, 64 - by as u32);
        }
        let most = self.most(a) >> self.least(b);
        self.made(Gate::Shr(a, b), (a, b), (0, most), |a, b| a >> (b & 63))
    }

    /// So many bits of a number.
    pub fn bits(&mut self, a: Wire, from: u32, bits: u32) -> Wire {
        let bits = bits.min(64 - from.min(64));
        if let Some(n) = self.constant(a) {
            return self.number(n.checked_shr(from).unwrap_or(0) & low(bits));
        }
        if from == 0 && self.most(a) <= low(bits) {
            return a;
        }
        if bits == 0 || self.most(a).checked_shr(from).unwrap_or(0) == 0 {
            return self.number(0);
        }
        match self.gate(a).clone() {
            Gate::Bits(of, at, have) => {
                let bits = bits.min(have.saturating_sub(from));
                return self.bits(of, at + from, bits);
            }
            Gate::Concat(parts) => return self.part(&parts, from, bits),
            Gate::Shl(of, by) => {
                let by = self.constant(by).map_or(64, |n| n as u32);
                if by <= from {
                    return self.bits(of, from - by, bits);
                }
                if by < 64 && by < from + bits {
                    let zero = self.number(0);
                    let rest = self.bits(of, 0, from + bits - by);
                    return self.concat(vec![(zero, by - from), (rest, from + bits - by)]);
                }
            }
            Gate::Select(c, x, y) => {
                let (x, y) = (self.bits(x, from, bits), self.bits(y, from, bits));
                return self.select(c, x, y);
            }
            _ => {}
        }
        let most = low(bits).min(self.most(a) >> from);
        let mut values: Option<BTreeSet<u64>> = None;
        if let Some(of) = self.values(a) {
            values = Some(of.iter().map(|v| v >> from & low(bits)).collect());
        } else if most < LISTED as u64 {
            values = Some((0..=most).collect());
        }
        let gate = Gate::Bits(a, from, (64 - most.leading_zeros()).max(1));
        self.put(gate, (0, most), values)
    }

    /// Bits of numbers that are side by side.
    fn part(&mut self, parts: &[(Wire, u32)], from: u32, bits: u32) -> Wire {
        let (mut at, mut all) = (0, Vec::new());
        for &(wire, wide) in parts {
            let (first, last) = (from.max(at), (from + bits).min(at + wide));
            if first < last {
                all.push((self.bits(wire, first - at, last - first), last - first));
            }
            at += wide;
        }
        self.concat(all)
    }

    /// Numbers side by side, the lowest first; of each so many bits.
    pub fn concat(&mut self, parts: Vec<(Wire, u32)>) -> Wire {
        let mut all: Vec<(Wire, u32)> = Vec::new();
        for (wire, bits) in parts {
            let wire = self.bits(wire, 0, bits);
            let inner = match self.gate(wire).clone() {
                Gate::Concat(inner) => {
                    let have: u32 = inner.iter().map(|(_, b)| b).sum();
                    let zero = self.number(0);
                    let rest = bits.saturating_sub(have);
                    let rest = Some((zero, rest)).filter(|r| r.1 > 0);
                    inner.into_iter().chain(rest).collect()
                }
                _ => vec![(wire, bits)],
            };
            for (wire, bits) in inner {
                match all
                    .last_mut()
                    .and_then(|l| Some((l.1, self.joined(*l, (wire, bits))?)))
                {
                    Some((had, joined)) => {
                        all.pop();
                        let made = match joined {
                            Joined::Bits(of, from) => self.bits(of, from, had + bits),
                            Joined::Number(n) => self.number(n),
                        };
                        all.push((made, had + bits));
                    }
                    None => all.push((wire, bits)),
                }
            }
        }
        // Zeros at the upper end say nothing.
        while all.len() > 1 && all.last().is_some_and(|l| self.constant(l.0) == Some(0)) {
            all.pop();
        }
        match all[..] {
            [] => self.number(0),
            [(wire, _)] => wire,
            _ => {
                let (mut most, mut at) = (0, 0);
                for &(wire, bits) in &all {
                    most |= self.most(wire).checked_shl(at).unwrap_or(0);
                    at += bits;
                }
                self.range(Gate::Concat(all), 0, most)
            }
        }
    }

    /// What two neighbours are together, where that is one thing.
    fn joined(&self, low: (Wire, u32), high: (Wire, u32)) -> Option<Joined> {
        if let (Some(a), Some(b)) = (self.constant(low.0), self.constant(high.0)) {
            return (low.1 + high.1 <= 64).then_some(Joined::Number(a | b << low.1));
        }
        let Gate::Bits(of, from, _) = *self.gate(high.0) else {
            return None;
        };
        match *self.gate(low.0) {
            Gate::Bits(same, at, _) if same == of && at + low.1 == from => {
                Some(Joined::Bits(of, at))
            }
            _ => None,
        }
    }

    /// 1 where both are equal.
    pub fn equal(&mut self, a: Wire, b: Wire) -> Wire {
        let (a, b) = self.constant_last(a, b);
        if a == b {
            return self.number(1);
        }
        if self.most(a) < self.least(b) || self.most(b) < self.least(a) {
            return self.number(0);
        }
        if let Some(n) = self.constant(b) {
            if self.most(a) <= 1 && n == 1 {
                return a;
            }
            // !!x
            if let Gate::Equal(x, zero) = *self.gate(a)
                && n == 0
                && self.constant(zero) == Some(0)
                && self.most(x) <= 1
            {
                return x;
            }
            if let Gate::Select(c, x, y) = *self.gate(a) {
                // A pointer that is null on one side.
                let (x, y) = (self.equal(x, b), self.equal(y, b));
                if self.constant(x).is_some() || self.constant(y).is_some() {
                    return self.select(c, x, y);
                }
            }
        }
        if let (Some((x, m)), Some((y, n))) = (self.shifted(a), self.shifted(b)) {
            if (m, n) != (0, 0) && m == n {
                return self.equal(x, y);
            }
            if let Some(k) = self.constant(b).filter(|k| m > 0 && *k >= m) {
                let k = self.number(k - m);
                return self.equal(x, k);
            }
        }
        self.range(Gate::Equal(a, b), 0, 1)
    }

    /// 1 where `a < b`.
    pub fn less(&mut self, a: Wire, b: Wire) -> Wire {
        if a == b || self.least(a) >= self.most(b) {
            return self.number(0);
        }
        if self.most(a) < self.least(b) {
            return self.number(1);
        }
        // What is added on both sides, as the packet's base is, falls out.
        let split = |all: &Self, w: Wire| match all.constant(w) {
            Some(n) => (None, n),
            None => {
                let (x, n) = all.shifted(w).unwrap_or((w, 0));
                (Some(x), n)
            }
        };
        let ((x, m), (y, n)) = (split(self, a), split(self, b));
        let common = m.min(n);
        if common > 0 {
            let (m, n) = (self.number(m - common), self.number(n - common));
            let x = x.map_or(m, |x| self.add(x, m));
            let y = y.map_or(n, |y| self.add(y, n));
            return self.less(x, y);
        }
        self.range(Gate::Less(a, b), 0, 1)
    }

    /// 1 where `a < b` as numbers with a sign, of so many bits.
    pub fn less_signed(&mut self, bits: u32, a: Wire, b: Wire) -> Wire {
        let sign = 1 << (bits - 1);
        if self.most(a) < sign && self.most(b) < sign {
            return self.less(a, b);
        }
        let sign = self.number(sign);
        let (a, b) = (self.xor(a, sign), self.xor(b, sign));
        self.less(a, b)
    }

    /// `a` where `c` is 1, else `b`.
    pub fn select(&mut self, c: Wire, a: Wire, b: Wire) -> Wire {
        match self.constant(c) {
            Some(0) => return b,
            Some(_) => return a,
            None => {}
        }
        if a == b {
            return a;
        }
        if let Gate::Equal(x, zero) = *self.gate(c)
            && self.constant(zero) == Some(0)
            && self.most(x) <= 1
        {
            return self.select(x, b, a);
        }
        match (self.constant(a), self.constant(b)) {
            (Some(1), Some(0)) => return c,
            (Some(0), Some(1)) => return self.not(c),
            _ => {}
        }
        let least = self.least(a).min(self.least(b));
        let most = self.most(a).max(self.most(b));
        let mut values = None;
        if let (Some(a), Some(b)) = (self.values(a), self.values(b)) {
            values = Some(a | b).filter(|v| v.len() <= LISTED);
        }
        self.put(Gate::Select(c, a, b), (least, most), values)
    }

    /// 1 where it is 0, else 0.
    pub fn not(&mut self, a: Wire) -> Wire {
        let zero = self.number(0);
        self.equal(a, zero)
    }

    /// The value of `bits` bits with its sign in all of 64.
    pub fn extended(&mut self, bits: u32, a: Wire) -> Wire {
        let a = self.bits(a, 0, bits);
        if bits == 64 || self.most(a) < 1 << (bits - 1) {
            return a;
        }
        let sign = self.number(1 << (bits - 1));
        let flipped = self.xor(a, sign);
        self.sub(flipped, sign)
    }
}

enum Joined {
    Bits(Wire, u32),
    Number(u64),
}
