//! What a row is filled with, over gates.

use crate::expr::Expr;
use crate::{History, Site};

use super::gate::Wire;
use super::walk::{BASE, State, Value, Walk, of_kept};

impl Walk<'_> {
    /// The bytes of a site's row.
    pub(super) fn fill(
        &mut self,
        history: &History,
        number: usize,
        site: &Site,
        state: &State,
    ) -> Vec<Wire> {
        let zero = self.gates.number(0);
        // The time is the sequencer's to set.
        let mut parts: Vec<(Wire, u32)> = vec![(zero, history.time_bits)];
        let which = self.gates.number(number as u64);
        parts.push((which, history.selector_bits()));
        for field in &site.fields {
            let value = self.expression(&field.from, state);
            let mut at = 0;
            while at < 64 {
                let bits = (field.mask >> at).trailing_ones();
                if bits > 0 {
                    parts.push((self.gates.bits(value, at, bits), bits));
                }
                at += bits.max(1);
            }
        }
        (0..history.bytes)
            .map(|byte| {
                let (from, mut at, mut inside) = (8 * byte, 0, Vec::new());
                for &(wire, bits) in &parts {
                    let (first, last) = (from.max(at), (from + 8).min(at + bits));
                    if first < last {
                        let part = self.gates.bits(wire, first - at, last - first);
                        inside.push((part, last - first));
                    }
                    at += bits;
                }
                self.gates.concat(inside)
            })
            .collect()
    }

    pub(super) fn expression(&mut self, expr: &Expr, state: &State) -> Wire {
        match expr {
            Expr::Number(n) => self.gates.number(*n),
            Expr::Time => self.gates.time(),
            Expr::Register(frame, reg) | Expr::Pointer(frame, reg) => {
                self.register(state, *frame, *reg)
            }
            Expr::Stack(frame, at) => match self.stack(state, *frame, *at, 1) {
                Value::Number(n) => n,
                _ => self.obstacle("an address in a row"),
            },
            Expr::Kept(step) => {
                let zero = self.gates.number(0);
                of_kept(&state.kept, *step, zero)
            }
            Expr::Context(offset, size) => self.context(i64::from(*offset), *size),
            Expr::Packet(address, size, signed) => {
                let address = self.expression(address, state);
                let bytes = size.bytes();
                let by = self.gates.number(BASE.wrapping_neg());
                let at = self.gates.add(address, by);
                let loaded = self.packet(state, at, bytes);
                // Zero where they are not all there.
                let n = self.gates.number(u64::from(bytes));
                let (end, length) = (self.gates.add(at, n), self.gates.length());
                let (short, zero) = (self.gates.less(length, end), self.gates.number(0));
                let loaded = match signed {
                    true => self.gates.extended(8 * bytes, loaded),
                    false => loaded,
                };
                self.gates.select(short, zero, loaded)
            }
            Expr::Constant(address, size, signed) => {
                let Expr::Address(object, offset) = **address else {
                    return self.obstacle("a constant at a computed place");
                };
                let loaded = self.global(object, u64::from(offset), size.bytes());
                match signed {
                    true => self.gates.extended(8 * size.bytes(), loaded),
                    false => loaded,
                }
            }
            Expr::Byte(of, index) => {
                let of = self.expression(of, state);
                self.gates.bits(of, 8 * u32::from(*index), 8)
            }
            Expr::Bytes(all) => {
                let mut parts = Vec::new();
                for e in all {
                    let byte = self.expression(e, state);
                    parts.push((self.gates.bits(byte, 0, 8), 8));
                }
                self.gates.concat(parts)
            }
            Expr::Alu(op, width, a, b) => {
                let (a, b) = (self.expression(a, state), self.expression(b, state));
                self.arithmetic(*op, *width, a, b)
            }
            Expr::Neg(width, e) => {
                let (e, zero) = (self.expression(e, state), self.gates.number(0));
                let e = self.narrow(*width, e);
                let out = self.gates.sub(zero, e);
                self.narrow(*width, out)
            }
            Expr::Extend(width, size, e) => {
                let e = self.expression(e, state);
                let out = self.gates.extended(8 * size.bytes(), e);
                self.narrow(*width, out)
            }
            Expr::Order(order, bits, e) => {
                let e = self.expression(e, state);
                self.order(*order, *bits, e)
            }
            Expr::Compare(condition, width, a, b) => {
                let (a, b) = (self.expression(a, state), self.expression(b, state));
                self.compare(*condition, *width, a, b)
            }
            Expr::Select(c, a, b) => {
                let c = self.expression(c, state);
                let (a, b) = (self.expression(a, state), self.expression(b, state));
                let none = self.gates.not(c);
                self.gates.select(none, b, a)
            }
            Expr::Index(e, list) => {
                let e = self.expression(e, state);
                let last = list.len().saturating_sub(1);
                let mut out = self.gates.number(last as u64);
                for (place, n) in list.iter().enumerate().take(last).rev() {
                    let (n, place) = (self.gates.number(*n), self.gates.number(place as u64));
                    let same = self.gates.equal(e, n);
                    out = self.gates.select(same, place, out);
                }
                out
            }
            Expr::Pick(e, list) => {
                let e = self.expression(e, state);
                let last = list.len().saturating_sub(1);
                let mut out = self.gates.number(list.last().copied().unwrap_or(0));
                for (place, n) in list.iter().enumerate().take(last).rev() {
                    let (n, place) = (self.gates.number(*n), self.gates.number(place as u64));
                    let same = self.gates.equal(e, place);
                    out = self.gates.select(same, n, out);
                }
                out
            }
            Expr::Address(..) => self.obstacle("an address in a row"),
            Expr::Field(_) => self.obstacle("a field in a field"),
        }
    }
}
