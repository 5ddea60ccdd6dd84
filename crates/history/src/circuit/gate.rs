//! A gate: one operation on numbers.

/// The number that a gate gives; an index into the circuit's gates, behind those of its operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wire(pub u32);

/// A number of 64 bits, without a sign.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Gate {
    /// a constant
    Number(u64),
    /// bytes of the packet, at most [`LONGEST`](super::LONGEST)
    Length,
    /// the port by which it came, 16 bits
    Port,
    /// its time, ns
    Time,
    /// the packet's byte at this offset; 0 behind its end
    Byte(Wire),
    /// sum modulo 2^64
    Add(Wire, Wire),
    /// difference modulo 2^64
    Sub(Wire, Wire),
    /// product modulo 2^64
    Mul(Wire, Wire),
    /// bitwise and
    And(Wire, Wire),
    /// bitwise or
    Or(Wire, Wire),
    /// bitwise exclusive or
    Xor(Wire, Wire),
    /// shift left; the second is below 64
    Shl(Wire, Wire),
    /// shift right; the second is below 64
    Shr(Wire, Wire),
    /// so many bits of it from this one on
    Bits(Wire, u32, u32),
    /// numbers side by side, the lowest first, each of so many bits and not larger
    Concat(Vec<(Wire, u32)>),
    /// 1 where both are equal, else 0
    Equal(Wire, Wire),
    /// 1 where the first is less, else 0
    Less(Wire, Wire),
    /// the second where the first is 1, the third where it is 0
    Select(Wire, Wire, Wire),
}

impl Gate {
    /// The gates that it takes from.
    #[must_use]
    pub fn operands(&self) -> Vec<Wire> {
        match self {
            Gate::Number(_) | Gate::Length | Gate::Port | Gate::Time => Vec::new(),
            Gate::Byte(a) | Gate::Bits(a, ..) => vec![*a],
            Gate::Concat(parts) => parts.iter().map(|(w, _)| *w).collect(),
            Gate::Select(c, a, b) => vec![*c, *a, *b],
            _ => self.infix().map_or(Vec::new(), |(_, a, b)| vec![a, b]),
        }
    }

    /// The sign that C, Verilog and P4 write between the operands of a gate that has two, and these; none of any other.
    #[must_use]
    pub fn infix(&self) -> Option<(&'static str, Wire, Wire)> {
        let (sign, a, b) = match self {
            Gate::Add(a, b) => ("+", a, b),
            Gate::Sub(a, b) => ("-", a, b),
            Gate::Mul(a, b) => ("*", a, b),
            Gate::And(a, b) => ("&", a, b),
            Gate::Or(a, b) => ("|", a, b),
            Gate::Xor(a, b) => ("^", a, b),
            Gate::Shl(a, b) => ("<<", a, b),
            Gate::Shr(a, b) => (">>", a, b),
            Gate::Equal(a, b) => ("==", a, b),
            Gate::Less(a, b) => ("<", a, b),
            _ => return None,
        };
        Some((sign, *a, *b))
    }
}
