//! Sets of registers and stack bytes of the active frames.

/// Registers and stack bytes of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Level {
    /// one bit a register
    pub regs: u16,
    /// one bit a byte of stack, lowest first
    pub bytes: [u64; 8],
}

impl Level {
    /// Whether a register is in the set.
    #[must_use]
    pub fn has_reg(&self, reg: u8) -> bool {
        self.regs >> reg & 1 == 1
    }

    /// Whether any of these bytes is in the set.
    #[must_use]
    pub fn has_any(&self, at: u16, len: u16) -> bool {
        (at..at.saturating_add(len)).any(|b| {
            self.bytes
                .get(usize::from(b / 64))
                .is_some_and(|w| w >> (b % 64) & 1 == 1)
        })
    }

    /// Adds stack bytes.
    pub fn add_bytes(&mut self, at: u16, len: u16) {
        self.set_bytes(at, len, true);
    }

    fn set_bytes(&mut self, at: u16, len: u16, to: bool) {
        for b in at..at.saturating_add(len).min(512) {
            let w = &mut self.bytes[usize::from(b / 64)];
            if to {
                *w |= 1 << (b % 64);
            } else {
                *w &= !(1 << (b % 64));
            }
        }
    }

    /// Whether any byte is in the set.
    #[must_use]
    pub fn any_bytes(&self) -> bool {
        self.bytes.iter().any(|&w| w != 0)
    }
}

/// A set of places, by how deep the frame is in the active calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Places {
    /// the entry's frame first
    pub levels: Vec<Level>,
}

/// Stack memory that an instruction may touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// none
    None,
    /// exactly these bytes of the frame at this depth
    Exact(u8, u16, u16),
    /// anything in the frame at this depth
    Frame(u8),
    /// anything
    All,
}

impl Places {
    /// The empty set over so many frames.
    #[must_use]
    pub fn empty(depth: usize) -> Self {
        Places {
            levels: vec![Level::default(); depth],
        }
    }

    /// Makes it the set of all places.
    pub fn fill(&mut self) {
        self.levels.fill(Level {
            regs: u16::MAX,
            bytes: [u64::MAX; 8],
        });
    }

    /// Adds another set's members; whether that changed anything.
    pub fn absorb(&mut self, other: &Places) -> bool {
        let mut changed = false;
        for (a, b) in self.levels.iter_mut().zip(&other.levels) {
            let before = *a;
            a.regs |= b.regs;
            for (x, y) in a.bytes.iter_mut().zip(&b.bytes) {
                *x |= y;
            }
            changed |= *a != before;
        }
        changed
    }

    /// The innermost frame's part.
    #[must_use]
    pub fn top(&self) -> Level {
        self.levels.last().copied().unwrap_or_default()
    }

    /// Adds registers of the innermost frame.
    pub fn add_regs(&mut self, regs: u16) {
        if let Some(l) = self.levels.last_mut() {
            l.regs |= regs;
        }
    }

    /// Removes registers of the innermost frame.
    pub fn remove_regs(&mut self, regs: u16) {
        if let Some(l) = self.levels.last_mut() {
            l.regs &= !regs;
        }
    }

    /// Adds stack bytes.
    pub fn add_span(&mut self, span: Span) {
        match span {
            Span::None => {}
            Span::Exact(d, at, len) => {
                if let Some(l) = self.levels.get_mut(usize::from(d)) {
                    l.set_bytes(at, len, true);
                }
            }
            Span::Frame(d) => {
                if let Some(l) = self.levels.get_mut(usize::from(d)) {
                    l.bytes = [u64::MAX; 8];
                }
            }
            Span::All => self.levels.iter_mut().for_each(|l| l.bytes = [u64::MAX; 8]),
        }
    }

    /// Removes stack bytes that are certainly meant.
    pub fn remove_span(&mut self, span: Span) {
        if let Span::Exact(d, at, len) = span
            && let Some(l) = self.levels.get_mut(usize::from(d))
        {
            l.set_bytes(at, len, false);
        }
    }

    /// Whether any of these bytes is in the set.
    #[must_use]
    pub fn touches(&self, span: Span) -> bool {
        match span {
            Span::None => false,
            Span::Exact(d, at, len) => self
                .levels
                .get(usize::from(d))
                .is_some_and(|l| l.has_any(at, len)),
            Span::Frame(d) => self
                .levels
                .get(usize::from(d))
                .is_some_and(Level::any_bytes),
            Span::All => self.levels.iter().any(Level::any_bytes),
        }
    }
}
