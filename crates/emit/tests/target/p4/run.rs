//! Runs a program of the subset on packets. Bits that a value has and should not have, names that are not there and widths that
//! differ are panics: P4's compiler would not take them.

use std::collections::BTreeMap;

use super::syntax::{Expr, Program, Statement};

/// Bits, the lowest first; a bool is none of them.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Bits(Vec<bool>),
    /// a number that has no width of its own
    Free(u128),
    Bool(bool),
}

use Value::{Bits, Bool, Free};

pub struct Switch<'p> {
    program: &'p Program,
    pub registers: BTreeMap<String, Vec<bool>>,
}

struct Packet<'f> {
    frame: &'f [u8],
    names: BTreeMap<String, Value>,
    valid: bool,
    dropped: bool,
    truncated: Option<usize>,
}

pub fn bits(n: u128, count: usize) -> Vec<bool> {
    (0..count).map(|b| b < 128 && n >> b & 1 == 1).collect()
}

fn number(all: &[bool]) -> u128 {
    assert!(all.len() <= 64, "arithmetic of {} bits", all.len());
    all.iter().rev().fold(0, |n, b| n << 1 | u128::from(*b))
}

impl<'p> Switch<'p> {
    pub fn new(program: &'p Program) -> Self {
        let registers = program.registers.iter();
        let registers = registers.map(|(name, n)| (name.clone(), vec![false; *n]));
        Switch {
            program,
            registers: registers.collect(),
        }
    }

    /// One packet: where it goes and its bytes; none where it is dropped.
    pub fn packet(&mut self, port: u16, clock: u64, frame: &[u8]) -> Option<(u16, Vec<u8>)> {
        let mut p = Packet {
            frame,
            names: BTreeMap::new(),
            valid: false,
            dropped: false,
            truncated: None,
        };
        for (name, count, value) in &self.program.constants {
            let value = p.value(value).sized(*count);
            p.names.insert(name.clone(), Bits(value));
        }
        for (name, count) in &self.program.metadata {
            p.names
                .insert(format!("meta.{name}"), Bits(vec![false; *count]));
        }
        for (name, count) in &self.program.carrier {
            p.names
                .insert(format!("hdr.carrier.{name}"), Bits(vec![false; *count]));
        }
        for (name, value, count) in [
            ("ingress_port", u128::from(port), 9),
            ("packet_length", frame.len() as u128, 32),
            ("ingress_global_timestamp", u128::from(clock), 48),
            ("egress_spec", 0, 9),
        ] {
            p.names
                .insert(format!("standard.{name}"), Bits(bits(value, count)));
        }
        let mut state = "start".to_owned();
        while state != "accept" {
            let at = &self.program.states[&state];
            self.block(&at.body, &mut p);
            state = at.default.clone();
            if let Some(select) = &at.select {
                let value = number(&p.value(select).sized(16));
                let case = at
                    .cases
                    .iter()
                    .find(|(from, to, _)| (*from..=*to).contains(&value));
                state = case.map_or(state, |(_, _, to)| to.clone());
            }
        }
        self.block(&self.program.apply, &mut p);
        if p.dropped {
            return None;
        }
        let mut out: Vec<bool> = Vec::new();
        if p.valid {
            for (name, _) in &self.program.carrier {
                let Bits(field) = &p.names[&format!("hdr.carrier.{name}")] else {
                    panic!("{name} is no number");
                };
                out.extend(field.iter().rev());
            }
        }
        assert_eq!(out.len() % 8, 0);
        let byte = |b: &[bool]| b.iter().fold(0, |n, b| n << 1 | u8::from(*b));
        let mut bytes: Vec<u8> = out.chunks(8).map(byte).collect();
        bytes.extend(frame);
        bytes.truncate(p.truncated.unwrap_or(usize::MAX));
        let Bits(to) = &p.names["standard.egress_spec"] else {
            panic!("no port");
        };
        Some((number(to) as u16, bytes))
    }

    fn block(&mut self, all: &[Statement], p: &mut Packet) {
        for statement in all {
            match statement {
                Statement::Declare(name, count, value) => {
                    let value = match (*count, p.value(value)) {
                        (0, Bool(b)) => Bool(b),
                        (0, v) => panic!("bool {name} = {v:?}"),
                        (count, v) => Bits(v.sized(count)),
                    };
                    let had = p.names.insert(name.clone(), value);
                    assert!(had.is_none(), "{name} twice");
                }
                Statement::Assign(name, part, value) => {
                    let value = p.value(value);
                    let to = p.names.get_mut(name).unwrap_or_else(|| panic!("no {name}"));
                    match (to, part) {
                        (Bits(to), None) => *to = value.sized(to.len()),
                        (Bits(to), Some((high, low))) => {
                            let from = value.sized(high + 1 - low);
                            to[*low..=*high].copy_from_slice(&from);
                        }
                        (to @ Bool(_), None) => *to = value,
                        _ => panic!("a part of {name}"),
                    }
                }
                Statement::If(condition, then, other) => match p.value(condition) {
                    Bool(true) => self.block(then, p),
                    Bool(false) => self.block(other, p),
                    v => panic!("if {v:?}"),
                },
                Statement::Call(method, args) => self.call(method, args, p),
            }
        }
    }

    fn call(&mut self, method: &str, args: &[Expr], p: &mut Packet) {
        if let Some((register, what)) = method.split_once('.')
            && let Some(held) = self.registers.get_mut(register)
        {
            match (what, args) {
                ("read", [Expr::Name(to), Expr::Number(0, None)]) => {
                    let to = p.names.get_mut(to).unwrap_or_else(|| panic!("no {to}"));
                    assert!(matches!(to, Bits(b) if b.len() == held.len()), "{method}");
                    *to = Bits(held.clone());
                }
                ("write", [Expr::Number(0, None), value]) => {
                    *held = p.value(value).sized(held.len());
                }
                _ => panic!("{method}"),
            }
            return;
        }
        match (method, args) {
            ("hdr.carrier.setValid", []) => p.valid = true,
            ("mark_to_drop", [Expr::Name(_)]) => p.dropped = true,
            ("truncate", [length]) => {
                p.truncated = Some(number(&p.value(length).sized(32)) as usize);
            }
            _ => panic!("{method}"),
        }
    }
}

impl Value {
    /// As so many bits; it has these, or none of its own.
    fn sized(self, count: usize) -> Vec<bool> {
        match self {
            Bits(all) => {
                assert_eq!(all.len(), count, "widths");
                all
            }
            Free(n) => {
                assert!(count >= 128 || n >> count == 0, "{n} in {count} bits");
                bits(n, count)
            }
            Bool(_) => panic!("a bool as a number"),
        }
    }

    fn width(&self) -> Option<usize> {
        match self {
            Bits(all) => Some(all.len()),
            _ => None,
        }
    }
}

impl Packet<'_> {
    fn value(&self, e: &Expr) -> Value {
        match e {
            Expr::Number(n, None) => Free(*n),
            Expr::Number(n, Some(count)) => {
                assert!(*count >= 128 || n >> count == 0, "{n} in {count} bits");
                Bits(bits(*n, *count))
            }
            Expr::Bool(b) => Bool(*b),
            Expr::Name(name) => self
                .names
                .get(name)
                .unwrap_or_else(|| panic!("no {name}"))
                .clone(),
            Expr::Slice(of, high, low) => match self.value(of) {
                Bits(all) => Bits(all[*low..=*high].to_vec()),
                v => panic!("a part of {v:?}"),
            },
            Expr::Cast(count, of) => match self.value(of) {
                Bits(mut all) => {
                    all.resize(*count, false);
                    Bits(all)
                }
                Free(n) => Bits(bits(n, *count)),
                Bool(_) => panic!("a bool as a number"),
            },
            Expr::Not(of) => match self.value(of) {
                Bool(b) => Bool(!b),
                v => panic!("!{v:?}"),
            },
            Expr::Choice(c, a, b) => match self.value(c) {
                Bool(true) => self.value(a),
                Bool(false) => self.value(b),
                v => panic!("{v:?} ? :"),
            },
            Expr::Ahead(count) => {
                // As the parser would end with an error.
                assert!(
                    self.frame.len() * 8 >= *count,
                    "looks behind the packet's end"
                );
                let all = self.frame[..count / 8].iter().rev();
                Bits(all.flat_map(|byte| bits(u128::from(*byte), 8)).collect())
            }
            Expr::Two(sign, a, b) => self.two(sign, a, b),
        }
    }

    fn two(&self, sign: &str, a: &Expr, b: &Expr) -> Value {
        let a = self.value(a);
        match (sign, &a) {
            ("&&", Bool(false)) => return Bool(false),
            ("||", Bool(true)) => return Bool(true),
            ("&&" | "||", Bool(_)) => return self.value(b),
            _ => {}
        }
        let b = self.value(b);
        match sign {
            "++" => match (a, b) {
                (Bits(high), Bits(low)) => return Bits(low.into_iter().chain(high).collect()),
                v => panic!("++ of {v:?}"),
            },
            "<<" | ">>" => {
                let by = match &b {
                    Bits(by) => number(by),
                    Free(by) => *by,
                    Bool(_) => panic!("shift"),
                };
                let Bits(all) = a else { panic!("shift") };
                let (count, n) = (all.len(), number(&all));
                let n = match sign {
                    "<<" => n << by.min(63),
                    _ => n >> by.min(127),
                };
                return Bits(bits(n, count));
            }
            _ => {}
        }
        let count = a.width().or(b.width()).expect("a width");
        let (a, b) = (number(&a.sized(count)), number(&b.sized(count)));
        let n = match sign {
            "==" => return Bool(a == b),
            "!=" => return Bool(a != b),
            "<" => return Bool(a < b),
            "<=" => return Bool(a <= b),
            ">" => return Bool(a > b),
            ">=" => return Bool(a >= b),
            "+" => a + b,
            "-" => a.wrapping_sub(b),
            "*" => a * b,
            "&" => a & b,
            "|" => a | b,
            "^" => a ^ b,
            _ => panic!("{sign}"),
        };
        Bits(bits(n, count))
    }
}
