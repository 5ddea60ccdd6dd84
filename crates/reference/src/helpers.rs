//! Helper calls, by their contracts: arguments are checked, results drawn.

use millrace_object::helper::{self, Arg, Helper, Return};
use millrace_object::program::StateObject;

use super::{APART, Call, Machine, Violation, violation};

impl Machine<'_> {
    pub(super) fn help(&mut self, c: &mut Call, h: &Helper) -> Result<(), Violation> {
        self.mind_the_lock(h.number, c.regs[1])?;
        let arg = |i: usize| c.regs.get(i + 1).copied().flatten();
        let object = h.object_argument().and_then(arg).and_then(|n| {
            let id = Self::named(n);
            self.declaration(id).map(|o| (id, o))
        });
        let given = [arg(0), arg(1), arg(2), arg(3), arg(4)].map(Option::unwrap_or_default);
        let touch = self.before_call(h, given)?;
        for (i, a) in h.args.iter().enumerate() {
            let Some(v) = arg(i) else {
                return violation(format!("argument {} of {} is unset", i + 1, h.name));
            };
            let size = |i: usize| match arg(i + 1) {
                Some(n) if n <= helper::MAX_BYTES => Ok(n as usize),
                _ => violation("a size that is unset or too large"),
            };
            match *a {
                Arg::ValueOut if !object.is_some_and(|(_, o)| o.kind.membership()) => {
                    self.fill(v, object.map_or(0, |(_, o)| o.value_bytes as usize))?;
                }
                Arg::Key | Arg::Value | Arg::ValueOut => {
                    let Some((_, o)) = object else {
                        return violation("not an object");
                    };
                    let len = if matches!(a, Arg::Key) {
                        o.key_bytes
                    } else {
                        o.value_bytes
                    };
                    self.readable(v, len as usize)?;
                }
                Arg::Read { nullable: true } | Arg::Write { nullable: true }
                    if v == 0 && size(i)? == 0 => {}
                Arg::Read { .. } => self.readable(v, size(i)?)?,
                Arg::Timer => self.is_timer(v)?,
                Arg::Callback if !self.is_function(v) => return violation("not a function"),
                Arg::In(n) => self.readable(v, n as usize)?,
                Arg::Text => {
                    self.text(v)?;
                }
                Arg::Update => {
                    self.readable(v, size(i)?)?;
                    if self.exact.is_none() {
                        self.fill(v, size(i)?)?;
                    }
                }
                Arg::InOut(n) => {
                    self.readable(v, n as usize)?;
                    if self.exact.is_none() {
                        self.fill(v, n as usize)?;
                    }
                }
                // It may leave bytes as they are.
                Arg::Write { .. } if self.exact.is_some() && h.name == "snprintf" => {}
                // It writes all of them itself, and may read some of them before.
                Arg::Write { .. } if self.exact.is_some() => self.touch(v, size(i)?)?,
                Arg::Write { .. } => self.fill(v, size(i)?)?,
                // What such a helper leaves as it is stays; it writes the rest itself.
                Arg::Out(n) if self.exact.is_some() => self.touch(v, n as usize)?,
                Arg::Out(n) => self.fill(v, n as usize)?,
                Arg::Iterator => return self.iterate(c, h),
                Arg::KeyOut | Arg::Function | Arg::Any => {
                    return violation(format!("{} is not to be called like this", h.name));
                }
                Arg::Bytes { zero } if v == 0 && !zero => {
                    return violation("a size of zero");
                }
                Arg::Record => {
                    let Some(at) = self.records.iter().position(|&r| r == v) else {
                        return violation("a record that is not held");
                    };
                    self.records.remove(at);
                    self.give_back(v);
                    self.memory.remove(&(v / APART));
                }
                Arg::Context if v != self.context => return violation("not the context"),
                Arg::Object if object.is_none() => return violation("not an object"),
                _ => {}
            }
        }
        if self.exact.is_some() {
            let result = self.exactly(h, given)?;
            self.after_call(h, touch, result);
            c.regs[1..=5].fill(None);
            c.regs[0] = Some(result);
            return Ok(());
        }
        if h.effects.moves_packet {
            self.move_packet();
        }
        let null =
            self.draw().is_multiple_of(3) && !self.has_all(h, object.map(|(_, o)| o), given[1])?;
        let object = object.map(|(id, o)| (id, o.shape()));
        let result = match h.returns {
            Return::Scalar { min, max } => {
                let span = (i128::from(max) - i128::from(min) + 1) as u128;
                (i128::from(min) + (u128::from(self.draw()) % span) as i128) as u64
            }
            _ if null => 0,
            Return::ValueOrNull => match object {
                Some((_, Some(shape))) => Self::pointer(shape),
                Some((id, None)) => self.values.get(&id).copied().unwrap_or(0),
                None => 0,
            },
            Return::RecordOrNull => {
                let len = arg(1).unwrap_or(0).min(1 << 20) as usize;
                let at = self.map(vec![0; len], true, true);
                self.records.push(at);
                at
            }
        };
        c.regs[1..=5].fill(None);
        c.regs[0] = Some(result);
        Ok(())
    }

    /// Whether a lookup is in an array, by an index that it has.
    fn has_all(
        &mut self,
        h: &Helper,
        object: Option<&StateObject>,
        key: u64,
    ) -> Result<bool, Violation> {
        let Some(o) = object.filter(|o| o.kind.has_all()) else {
            return Ok(false);
        };
        if h.name != "map_lookup_elem" || o.shape().is_some() {
            return Ok(false);
        }
        Ok(self.read(key, 4)?.is_some_and(|index| index < o.capacity))
    }

    /// Another packet in place of this one.
    pub(super) fn move_packet(&mut self) {
        let len = self.draw() % 100;
        let bytes = (0..len).map(|_| self.draw() as u8).collect();
        self.place_packet(bytes);
    }

    fn readable(&mut self, at: u64, len: usize) -> Result<(), Violation> {
        if len > 0 && self.read(at, len)?.is_none() {
            return violation("a helper reads bytes never written");
        }
        Ok(())
    }

    /// The bytes of a string before its zero byte.
    pub(super) fn text(&mut self, at: u64) -> Result<Vec<u8>, Violation> {
        let mut text = Vec::new();
        loop {
            match self.read(at.wrapping_add(text.len() as u64), 1)? {
                Some(0) => return Ok(text),
                Some(byte) => text.push(byte as u8),
                None => return violation("a helper reads bytes never written"),
            }
        }
    }

    /// Bytes that a helper may write, whatever they are.
    fn touch(&mut self, at: u64, len: usize) -> Result<(), Violation> {
        let (memory, from) = self.place(at, len)?;
        if !memory.writable {
            return violation(format!("{at:#x} is read-only"));
        }
        memory.written[from..from + len].fill(true);
        Ok(())
    }

    fn fill(&mut self, at: u64, len: usize) -> Result<(), Violation> {
        for i in 0..len {
            let byte = self.draw();
            self.write(at.wrapping_add(i as u64), 1, Some(byte))?;
        }
        Ok(())
    }
}
