//! Building expressions: every rule of simplification is here, and each keeps the value
//! (tests/simplify.rs holds them against plain arithmetic).

use super::eval::apply;
use super::{Arena, Bin, ExprId, Node, Rel, mask};

/// Most runs of equal bits for which a constant is laid out as pieces.
const RUNS: usize = 8;
/// Most terms of a sum that is kept in normal form.
const TERMS: usize = 12;
/// How deep an extract is pushed into what it is of.
const DEPTH: u32 = 24;

impl Arena {
    /// A number of so many bits.
    pub fn number(&mut self, value: u64, width: u32) -> ExprId {
        self.add(Node::Const(value & mask(width)), width)
    }

    /// A truth value.
    pub fn truth(&mut self, value: bool) -> ExprId {
        self.number(u64::from(value), 1)
    }

    /// A byte of the packet as it came in, at a 64-bit offset.
    pub fn byte(&mut self, offset: ExprId) -> ExprId {
        let (mut terms, at) = self.linear(offset);
        let base = if terms.is_empty() {
            None
        } else {
            Some(self.sum(&mut terms, 0, 64))
        };
        self.add(
            Node::Byte {
                base,
                at: at as i64,
            },
            8,
        )
    }

    /// Parts one after another, the highest bits first; together 64 bits at most.
    pub fn concat(&mut self, parts: &[ExprId]) -> ExprId {
        let mut flat: Vec<ExprId> = Vec::new();
        for p in parts {
            match self.node(*p).clone() {
                Node::Concat(inner) => inner.iter().for_each(|i| self.append(&mut flat, *i)),
                _ => self.append(&mut flat, *p),
            }
        }
        let width = flat.iter().map(|p| self.width(*p)).sum();
        match flat.as_slice() {
            [] => self.number(0, 1),
            [only] => *only,
            _ => self.add(Node::Concat(flat.into()), width),
        }
    }

    fn append(&mut self, flat: &mut Vec<ExprId>, next: ExprId) {
        let joined = flat.last().and_then(|last| {
            let (a, b) = (self.width(*last), self.width(next));
            match (self.node(*last), self.node(next)) {
                (Node::Const(x), Node::Const(y)) => Some((Node::Const(x << b | y), a + b)),
                (Node::Extract { of: x, low: high }, Node::Extract { of: y, low })
                    if x == y && *high == low + b =>
                {
                    Some((Node::Extract { of: *x, low: *low }, a + b))
                }
                _ => None,
            }
        });
        let choices = flat
            .last()
            .and_then(|last| match (self.node(*last), self.node(next)) {
                (Node::Ite(c, a, b), Node::Ite(d, x, y)) if c == d => {
                    Some((*c, [*a, *x], [*b, *y]))
                }
                _ => None,
            });
        if let Some((c, yes, no)) = choices {
            flat.pop();
            let (yes, no) = (self.concat(&yes), self.concat(&no));
            let whole = self.ite(c, yes, no);
            flat.push(whole);
            return;
        }
        match joined {
            Some((node, width)) => {
                flat.pop();
                let whole = match node {
                    Node::Extract { of, low } => self.extract(of, low, width),
                    other => self.add(other, width),
                };
                flat.push(whole);
            }
            None => flat.push(next),
        }
    }

    /// As many bits from bit `low` on.
    pub fn extract(&mut self, e: ExprId, low: u32, width: u32) -> ExprId {
        self.part(e, low, width, DEPTH)
    }

    fn part(&mut self, e: ExprId, low: u32, width: u32, depth: u32) -> ExprId {
        let whole = self.width(e);
        if low == 0 && width == whole {
            return e;
        }
        let plain = Node::Extract { of: e, low };
        if depth == 0 {
            return self.add(plain, width);
        }
        let deeper = depth - 1;
        match self.node(e).clone() {
            Node::Const(c) => self.number(c >> low, width),
            Node::Extract { of, low: inner } => self.part(of, inner + low, width, deeper),
            Node::Concat(parts) => {
                let mut pieces = Vec::new();
                let mut top = whole;
                for p in &parts {
                    let w = self.width(*p);
                    let bottom = top - w;
                    let (from, to) = (bottom.max(low), top.min(low + width));
                    if from < to {
                        pieces.push(self.part(*p, from - bottom, to - from, deeper));
                    }
                    top = bottom;
                }
                self.concat(&pieces)
            }
            Node::Ite(c, a, b) => {
                let a = self.part(a, low, width, deeper);
                let b = self.part(b, low, width, deeper);
                self.ite(c, a, b)
            }
            Node::SignExtend(a) if low + width <= self.width(a) => self.part(a, low, width, deeper),
            Node::Bin(op @ (Bin::And | Bin::Or | Bin::Xor), a, b) => {
                let a = self.part(a, low, width, deeper);
                let b = self.part(b, low, width, deeper);
                self.bitwise(op, a, b)
            }
            Node::Bin(Bin::Add, a, b) if low == 0 => {
                let a = self.part(a, 0, width, deeper);
                let b = self.part(b, 0, width, deeper);
                self.plus(a, b)
            }
            _ => self.add(plain, width),
        }
    }

    /// Zero-extended or truncated.
    pub fn resize(&mut self, e: ExprId, width: u32) -> ExprId {
        let now = self.width(e);
        if width <= now {
            return self.extract(e, 0, width);
        }
        // A sum that cannot wrap is the sum of what is extended.
        if let Node::Bin(Bin::Add, a, b) = *self.node(e) {
            let most = u128::from(self.bounds(a).1) + u128::from(self.bounds(b).1);
            if most <= u128::from(mask(now)) {
                let (a, b) = (self.resize(a, width), self.resize(b, width));
                return self.plus(a, b);
            }
        }
        let zeros = self.number(0, width - now);
        self.concat(&[zeros, e])
    }

    /// Sign-extended.
    pub fn sign_extend(&mut self, e: ExprId, width: u32) -> ExprId {
        let now = self.width(e);
        if width <= now {
            return self.extract(e, 0, width);
        }
        let sign = 1 << (now - 1);
        let bits = self.bits(e);
        if bits.mask & sign == 0 && bits.value & sign == 0 {
            return self.resize(e, width);
        }
        self.add(Node::SignExtend(e), width)
    }

    /// The lowest `width` bits with their bytes in the other order.
    pub fn swap(&mut self, e: ExprId, width: u32) -> ExprId {
        let bytes: Vec<ExprId> = (0..width / 8).map(|i| self.extract(e, 8 * i, 8)).collect();
        self.concat(&bytes)
    }

    /// Arithmetic on operands of one width.
    pub fn binary(&mut self, op: Bin, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            return self.number(apply(op, width, x, y), width);
        }
        match op {
            Bin::Add => self.plus(a, b),
            Bin::And | Bin::Or | Bin::Xor => self.bitwise(op, a, b),
            Bin::Mul => self.times(a, b),
            Bin::Shl | Bin::Shr | Bin::Sar if self.constant(b).is_some() => {
                let by = self.constant(b).unwrap_or(0) as u32;
                self.shift(op, a, by)
            }
            Bin::Div if self.constant(b).is_some_and(u64::is_power_of_two) => {
                let by = self.constant(b).unwrap_or(1).trailing_zeros();
                self.shift(Bin::Shr, a, by)
            }
            Bin::Rem => self.remainder(a, b),
            _ => self.add(Node::Bin(op, a, b), width),
        }
    }

    fn shift(&mut self, op: Bin, a: ExprId, by: u32) -> ExprId {
        let width = self.width(a);
        if by == 0 || by >= width {
            return a;
        }
        let zeros = self.number(0, by);
        match op {
            Bin::Shl => {
                let kept = self.extract(a, 0, width - by);
                self.concat(&[kept, zeros])
            }
            Bin::Shr => {
                let kept = self.extract(a, by, width - by);
                self.concat(&[zeros, kept])
            }
            _ => {
                let kept = self.extract(a, by, width - by);
                self.sign_extend(kept, width)
            }
        }
    }

    fn times(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (a, b) = if self.constant(a).is_some() {
            (b, a)
        } else {
            (a, b)
        };
        match self.constant(b) {
            Some(0) => b,
            Some(c) if c.is_power_of_two() => self.shift(Bin::Shl, a, c.trailing_zeros()),
            _ => self.add(Node::Bin(Bin::Mul, a, b), width),
        }
    }

    /// A remainder by 2^k - 1 is found by adding the digits of k bits, as the Internet checksum does:
    /// a solver divides by trying, and adds at once.
    fn remainder(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let plain = Node::Bin(Bin::Rem, a, b);
        let Some(m) = self.constant(b) else {
            return self.add(plain, width);
        };
        if m.is_power_of_two() {
            let mask = self.number(m - 1, width);
            return self.bitwise(Bin::And, a, mask);
        }
        let k = m.count_ones();
        if m == 0 || m != mask(k) || k < 8 || k > width / 2 {
            return self.add(plain, width);
        }
        let mut sum = a;
        for _ in 0..4 {
            if self.bounds(sum).1 < 2 * m {
                break;
            }
            let mut total = self.number(0, width);
            let mut low = 0;
            while low < width {
                let digit = self.extract(sum, low, k.min(width - low));
                let digit = self.resize(digit, width);
                total = self.plus(total, digit);
                low += k;
            }
            sum = total;
        }
        if self.bounds(sum).1 >= 2 * m {
            return self.add(plain, width);
        }
        let small = self.compare(Rel::Less, sum, b);
        let less = self.number(m.wrapping_neg(), width);
        let less = self.plus(sum, less);
        self.ite(small, sum, less)
    }

    /// The places where the parts of an expression begin, from the lowest bit.
    fn seams(&self, e: ExprId, seams: &mut Vec<u32>) {
        match self.node(e) {
            Node::Concat(parts) => {
                let mut at = 0;
                for p in parts.iter().rev() {
                    if let Node::Const(c) = self.node(*p) {
                        Self::runs(*c, at, self.width(*p), seams);
                    }
                    at += self.width(*p);
                    seams.push(at);
                }
            }
            Node::Const(c) => Self::runs(*c, 0, self.width(e), seams),
            _ => {}
        }
    }

    fn runs(c: u64, at: u32, width: u32, seams: &mut Vec<u32>) {
        seams.extend(
            (1..width)
                .filter(|i| (c >> i & 1) != (c >> (i - 1) & 1))
                .map(|i| at + i),
        );
    }

    fn bitwise(&mut self, op: Bin, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (a, b) = if a > b { (b, a) } else { (a, b) };
        if let Some(done) = self.trivial(op, a, b) {
            return done;
        }
        let mut seams = Vec::new();
        self.seams(a, &mut seams);
        self.seams(b, &mut seams);
        seams.sort_unstable();
        seams.dedup();
        seams.retain(|s| *s > 0 && *s < width);
        if !seams.is_empty() && seams.len() < RUNS {
            seams.push(width);
            let mut from = 0;
            let mut pieces = Vec::new();
            for to in seams {
                let x = self.extract(a, from, to - from);
                let y = self.extract(b, from, to - from);
                let (x, y) = if x > y { (y, x) } else { (x, y) };
                let piece = match self.trivial(op, x, y) {
                    Some(done) => done,
                    None => self.add(Node::Bin(op, x, y), to - from),
                };
                pieces.push(piece);
                from = to;
            }
            pieces.reverse();
            return self.concat(&pieces);
        }
        self.add(Node::Bin(op, a, b), width)
    }

    fn trivial(&mut self, op: Bin, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        let (x, y) = (self.constant(a), self.constant(b));
        if let (Some(x), Some(y)) = (x, y) {
            return Some(self.number(apply(op, width, x, y), width));
        }
        let ones = mask(width);
        let other = if x.is_some() { b } else { a };
        if x.or(y) == Some(0) {
            return Some(if op == Bin::And {
                self.number(0, width)
            } else {
                other
            });
        }
        match (op, x.or(y)) {
            (Bin::And, Some(c)) if c == ones => Some(other),
            (Bin::Or, Some(c)) if c == ones => Some(self.number(ones, width)),
            // Twice negated.
            (Bin::Xor, Some(c)) => match *self.node(other) {
                Node::Bin(Bin::Xor, p, q) => {
                    let inner = self.constant(p).map(|k| (k, q));
                    let (k, e) = inner.or_else(|| self.constant(q).map(|k| (k, p)))?;
                    if k == c { Some(e) } else { None }
                }
                _ => None,
            },
            (Bin::And | Bin::Or, None) if a == b => Some(a),
            (Bin::Xor, None) if a == b => Some(self.number(0, width)),
            // x and not x, x or not x.
            (Bin::And | Bin::Or, None) if width == 1 => {
                let not = self.not(a);
                let value = u64::from(op == Bin::Or);
                (not == b).then(|| self.number(value, 1))
            }
            _ => None,
        }
    }

    /// The terms of a sum with their factors, and its constant.
    #[must_use]
    pub fn linear(&self, e: ExprId) -> (Vec<(ExprId, u64)>, u64) {
        let width = self.width(e);
        let (mut terms, mut constant) = (Vec::<(ExprId, u64)>::new(), 0_u64);
        let mut todo = vec![(e, 1_u64)];
        while let Some((e, factor)) = todo.pop() {
            match *self.node(e) {
                Node::Const(c) => constant = constant.wrapping_add(c.wrapping_mul(factor)),
                Node::Bin(Bin::Add, a, b) => todo.extend([(a, factor), (b, factor)]),
                Node::Bin(Bin::Mul, a, b) if self.constant(b).is_some() => {
                    let c = self.constant(b).unwrap_or(1);
                    todo.push((a, factor.wrapping_mul(c)));
                }
                _ => match terms.iter_mut().find(|t| t.0 == e) {
                    Some(t) => t.1 = t.1.wrapping_add(factor),
                    None => terms.push((e, factor)),
                },
            }
        }
        terms.retain(|t| t.1 & mask(width) != 0);
        (terms, constant & mask(width))
    }

    fn sum(&mut self, terms: &mut [(ExprId, u64)], constant: u64, width: u32) -> ExprId {
        terms.sort_unstable();
        let mut total: Option<ExprId> = None;
        for (e, factor) in terms.iter() {
            let factor = factor & mask(width);
            let term = if factor == 1 {
                *e
            } else {
                let c = self.number(factor, width);
                self.add(Node::Bin(Bin::Mul, *e, c), width)
            };
            total = Some(match total {
                None => term,
                Some(t) => self.add(Node::Bin(Bin::Add, t, term), width),
            });
        }
        let constant = self.number(constant, width);
        match total {
            None => constant,
            Some(t) if self.constant(constant) == Some(0) => t,
            Some(t) => self.add(Node::Bin(Bin::Add, t, constant), width),
        }
    }

    fn plus(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (x, y) = (self.bits(a), self.bits(b));
        let apart = (x.value | x.mask) & (y.value | y.mask) == 0;
        if apart && self.constant(a).is_none() && self.constant(b).is_none() {
            return self.bitwise(Bin::Or, a, b);
        }
        let (mut terms, c) = self.linear(a);
        let (more, d) = self.linear(b);
        for (e, factor) in more {
            match terms.iter_mut().find(|t| t.0 == e) {
                Some(t) => t.1 = t.1.wrapping_add(factor),
                None => terms.push((e, factor)),
            }
        }
        terms.retain(|t| t.1 & mask(width) != 0);
        if terms.len() > TERMS {
            let (a, b) = if a > b { (b, a) } else { (a, b) };
            return self.add(Node::Bin(Bin::Add, a, b), width);
        }
        self.sum(&mut terms, c.wrapping_add(d), width)
    }

    /// `a - b`
    pub fn minus(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (terms, c) = self.linear(b);
        let mut negated: Vec<_> = terms.iter().map(|t| (t.0, t.1.wrapping_neg())).collect();
        let negated = self.sum(&mut negated, c.wrapping_neg(), width);
        self.plus(a, negated)
    }

    /// A truth value negated.
    pub fn not(&mut self, e: ExprId) -> ExprId {
        let one = self.number(1, 1);
        if let Node::Bin(Bin::Xor, a, b) = *self.node(e) {
            if a == one {
                return b;
            }
            if b == one {
                return a;
            }
        }
        if let Some(c) = self.constant(e) {
            return self.number(c ^ 1, 1);
        }
        let (a, b) = if e > one { (one, e) } else { (e, one) };
        self.add(Node::Bin(Bin::Xor, a, b), 1)
    }

    /// All of them hold.
    pub fn all(&mut self, of: &[ExprId]) -> ExprId {
        let start = self.truth(true);
        of.iter().fold(start, |a, b| self.bitwise(Bin::And, a, *b))
    }

    /// Either holds.
    pub fn either(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.bitwise(Bin::Or, a, b)
    }

    /// One or the other.
    pub fn ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        if a == b {
            return a;
        }
        match self.constant(c) {
            Some(1) => a,
            Some(_) => b,
            None if self.width(a) == 1
                && self.constant(a) == Some(1)
                && self.constant(b) == Some(0) =>
            {
                c
            }
            None => {
                let width = self.width(a);
                self.add(Node::Ite(c, a, b), width)
            }
        }
    }

    /// A comparison.
    pub fn compare(&mut self, rel: Rel, a: ExprId, b: ExprId) -> ExprId {
        if a == b {
            return self.truth(rel == Rel::Eq && a == b);
        }
        let width = self.width(a);
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            return self.truth(super::eval::relation(rel, width, x, y));
        }
        let ((amin, amax), (bmin, bmax)) = (self.bounds(a), self.bounds(b));
        match rel {
            Rel::Less if amax < bmin => return self.truth(true),
            Rel::Less if amin >= bmax => return self.truth(false),
            Rel::Eq => return self.equal(a, b),
            // Of numbers that are not negative the signs do not matter.
            Rel::SignedLess if (amax | bmax) >> (width - 1) & 1 == 0 => {
                return self.compare(Rel::Less, a, b);
            }
            _ => {}
        }
        self.add(Node::Cmp(rel, a, b), 1)
    }

    fn equal(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = if self.constant(a).is_some() {
            (b, a)
        } else {
            (a, b)
        };
        let (x, y) = (self.bits(a), self.bits(b));
        if (x.value ^ y.value) & !x.mask & !y.mask != 0 {
            return self.truth(false);
        }
        let width = self.width(a);
        if let Some(c) = self.constant(b) {
            match self.node(a).clone() {
                _ if width == 1 => return if c == 1 { a } else { self.not(a) },
                Node::Ite(cond, p, q) => {
                    if let (Some(p), Some(q)) = (self.constant(p), self.constant(q)) {
                        return match (p == c, q == c) {
                            (true, false) => cond,
                            (false, true) => self.not(cond),
                            (both, _) => self.truth(both),
                        };
                    }
                }
                Node::Concat(parts) => {
                    // The known bits have compared what is constant above.
                    let top = parts.first().copied().unwrap_or(a);
                    if self.constant(top).is_some() {
                        let rest = width - self.width(top);
                        let a = self.extract(a, 0, rest);
                        let c = self.number(c, rest);
                        return self.equal(a, c);
                    }
                    // Constant parts agree, as the known bits say.
                    let mut open = Vec::new();
                    let mut top = width;
                    for p in &parts {
                        top -= self.width(*p);
                        if self.constant(*p).is_none() {
                            open.push((*p, c >> top));
                        }
                    }
                    if let [(only, value)] = open.as_slice() {
                        let value = self.number(*value, self.width(*only));
                        return self.equal(*only, value);
                    }
                }
                Node::Bin(Bin::Add, p, q) => {
                    if let Some(k) = self.constant(q) {
                        let rest = self.number(c.wrapping_sub(k), width);
                        return self.equal(p, rest);
                    }
                }
                _ => {}
            }
        }
        let (a, b) = if a > b && self.constant(b).is_none() {
            (b, a)
        } else {
            (a, b)
        };
        self.add(Node::Cmp(Rel::Eq, a, b), 1)
    }
}
