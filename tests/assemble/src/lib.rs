//! Small programs for tests: a text assembler, so that each rule can be tested on the few instructions that matter, and
//! programs of arbitrary bytes ([`generate`]). A mistake in the text is a panic that names its line.
//!
//! One statement a line, `;` begins a comment. Instructions are written as disassemblers print them:
//! `r1 += r2`, `w1 s>>= 3`, `r2 = *(u32 *)(r1 + 4)`, `*(u8 *)(r10 - 1) = 5`, `if r1 > r2 goto out`,
//! `lock *(u64 *)(r0 + 0) += r1`, `call map_lookup_elem`, `call fn helper_of_ours`, `r1 = object NAME`,
//! `r1 = value NAME + 4`, `r1 = function NAME`, `r1 = be16 r1`, `r1 = (s8)r2`, `r1 = -r1`, `label:`. `fn NAME` begins a
//! function, the first one is the entry. `object NAME KIND key=4 value=8 capacity=16 timer=8 ro init=00ff`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod generate;
pub mod oracle;

use std::collections::HashMap;

use millrace_object::helper::HELPERS;
use millrace_object::insn::{
    AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width,
};
use millrace_object::program::{
    Dialect, Entry, Function, FunctionId, ObjectId, Program, Role, StateObject,
};
use millrace_object::state;

/// A plain state object.
fn object(name: &str, kind: &str, key_bytes: u32, value_bytes: u32) -> StateObject {
    StateObject::new(
        name,
        state::by_name(kind).unwrap_or_else(|| panic!("no kind {kind}")),
        key_bytes,
        value_bytes,
        4096,
    )
}

/// Assembles a program.
///
/// # Panics
/// At a mistake in the text.
#[must_use]
pub fn assemble(text: &str) -> Program {
    Assembler::default().run(text)
}

#[derive(Default)]
struct Assembler {
    objects: Vec<StateObject>,
    functions: Vec<(String, Vec<(usize, String)>)>,
    dialect: Option<Dialect>,
}

impl Assembler {
    fn run(mut self, text: &str) -> Program {
        for (n, line) in text.lines().enumerate() {
            let line = line.split(';').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix("object ") {
                self.object(rest);
            } else if line == "handlers" {
                self.dialect = Some(Dialect::Handlers);
            } else if let Some(name) = line.strip_prefix("fn ") {
                self.functions.push((name.trim().to_owned(), Vec::new()));
            } else {
                if self.functions.is_empty() {
                    self.functions.push(("main".to_owned(), Vec::new()));
                }
                self.functions
                    .last_mut()
                    .unwrap()
                    .1
                    .push((n + 1, line.to_owned()));
            }
        }
        let names: Vec<String> = self.functions.iter().map(|f| f.0.clone()).collect();
        let functions = self
            .functions
            .iter()
            .map(|(name, lines)| self.function(name, lines, &names))
            .collect();
        let dialect = self.dialect.unwrap_or(Dialect::Xdp);
        let role = if dialect == Dialect::Xdp {
            Role::Xdp
        } else {
            Role::OnPacket
        };
        Program {
            name: "test".to_owned(),
            dialect,
            functions,
            entries: vec![Entry {
                role,
                function: FunctionId(0),
            }],
            objects: self.objects,
            ports: Vec::new(),
            params: Vec::new(),
            reasons: vec!["dropped".to_owned()],
            license: String::new(),
        }
    }

    fn object(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap().to_owned();
        let kind = words.next().unwrap();
        let mut o = object(&name, kind, 4, 8);
        o.capacity = 16;
        for w in words {
            match w.split_once('=') {
                Some(("key", v)) => o.key_bytes = v.parse().unwrap(),
                Some(("value", v)) => o.value_bytes = v.parse().unwrap(),
                Some(("capacity", v)) => o.capacity = v.parse().unwrap(),
                Some(("timer", v)) => o.timer = Some(v.parse().unwrap()),
                Some(("init", v)) => {
                    o.initial = Some(
                        (0..v.len() / 2)
                            .map(|i| u8::from_str_radix(&v[2 * i..2 * i + 2], 16).unwrap())
                            .collect(),
                    );
                }
                None if w == "ro" => o.read_only = true,
                None if w == "settable" => o.settable = true,
                _ => panic!("object: {w}"),
            }
        }
        self.objects.push(o);
    }

    fn function(&self, name: &str, lines: &[(usize, String)], names: &[String]) -> Function {
        let mut labels = HashMap::new();
        let mut body = Vec::new();
        for (n, line) in lines {
            match line.strip_suffix(':') {
                Some(label) => {
                    labels.insert(label.to_owned(), body.len());
                }
                None => body.push((*n, line.clone())),
            }
        }
        let insns: Vec<Insn> = body
            .iter()
            .map(|(n, line)| {
                self.insn(line, &labels, names)
                    .unwrap_or_else(|| panic!("line {n}: cannot assemble `{line}`"))
            })
            .collect();
        Function {
            name: name.to_owned(),
            section: "xdp".to_owned(),
            slots: (0..insns.len() as u32).collect(),
            lines: vec![None; insns.len()],
            insns,
        }
    }

    fn insn(&self, line: &str, labels: &HashMap<String, usize>, names: &[String]) -> Option<Insn> {
        let target = |l: &str| labels.get(l.trim()).copied();
        if line == "exit" {
            return Some(Insn::Exit);
        }
        if line == "legacy" {
            return Some(Insn::LegacyPacketLoad);
        }
        if let Some(l) = line.strip_prefix("goto ") {
            return Some(Insn::Jump { target: target(l)? });
        }
        if let Some(rest) = line.strip_prefix("call ") {
            if let Some(f) = rest.strip_prefix("fn ") {
                return Some(Insn::CallLocal {
                    function: FunctionId(names.iter().position(|n| n == f.trim())?),
                });
            }
            if let Some(r) = reg(rest) {
                return Some(Insn::CallRegister { target: r.0 });
            }
            let helper = match rest.parse() {
                Ok(n) => n,
                Err(_) => HELPERS.iter().find(|h| h.name == rest)?.number,
            };
            return Some(Insn::Call { helper });
        }
        if let Some(rest) = line.strip_prefix("if ") {
            let (cond, label) = rest.split_once(" goto ")?;
            let mut w = cond.split_whitespace();
            let (left, op, right) = (reg(w.next()?)?, w.next()?, operand(w.next()?)?);
            return Some(Insn::Branch {
                condition: condition(op)?,
                width: left.1,
                left: left.0,
                right,
                target: target(label)?,
            });
        }
        if let Some(rest) = line.strip_prefix("lock ") {
            return atomic(rest);
        }
        if line.starts_with("*(") {
            let (mem, src) = line.split_once(" = ")?;
            let (size, _, base, offset) = memory(mem)?;
            return Some(Insn::Store {
                size,
                base,
                offset,
                src: operand(src)?,
            });
        }
        let (dst, rest) = line.split_once(' ')?;
        let (dst, width) = reg(dst)?;
        let (op, src) = rest.split_once(' ')?;
        let src = src.trim();
        if op == "=" {
            return self.assign(dst, width, src, names);
        }
        Some(Insn::Alu {
            op: alu(op.strip_suffix('=')?)?,
            width,
            dst,
            src: operand(src)?,
        })
    }

    fn assign(&self, dst: Reg, width: Width, src: &str, names: &[String]) -> Option<Insn> {
        let object = |n: &str| {
            self.objects
                .iter()
                .position(|o| o.name == n.trim())
                .map(ObjectId)
        };
        if src.starts_with("*(") {
            let (size, signed, base, offset) = memory(src)?;
            return Some(Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            });
        }
        if let Some(name) = src.strip_prefix("object ") {
            return Some(Insn::LoadImm {
                dst,
                value: Imm64::Object(object(name)?),
            });
        }
        if let Some(name) = src.strip_prefix("function ") {
            let at = names.iter().position(|f| f == name.trim())?;
            return Some(Insn::LoadImm {
                dst,
                value: Imm64::Function(FunctionId(at)),
            });
        }
        if let Some(rest) = src.strip_prefix("value ") {
            let (name, offset) = rest.split_once('+').unwrap_or((rest, "0"));
            return Some(Insn::LoadImm {
                dst,
                value: Imm64::ObjectValue {
                    object: object(name)?,
                    offset: offset.trim().parse().ok()?,
                },
            });
        }
        if let Some(n) = src.strip_suffix(" ll") {
            return Some(Insn::LoadImm {
                dst,
                value: Imm64::Number(n.parse().ok()?),
            });
        }
        for (word, order) in [
            ("be", ByteOrder::ToBig),
            ("le", ByteOrder::ToLittle),
            ("bswap", ByteOrder::Swap),
        ] {
            if let Some(rest) = src.strip_prefix(word)
                && let Some((bits, _)) = rest.split_once(' ')
            {
                return Some(Insn::ByteOrder {
                    order,
                    bits: bits.parse().ok()?,
                    dst,
                });
            }
        }
        if let Some(rest) = src.strip_prefix("(s") {
            let (bits, r) = rest.split_once(')')?;
            let from = match bits {
                "8" => Size::B1,
                "16" => Size::B2,
                "32" => Size::B4,
                _ => return None,
            };
            return Some(Insn::SignExtend {
                width,
                from,
                dst,
                src: reg(r.trim())?.0,
            });
        }
        if src.starts_with("-r") || src.starts_with("-w") {
            return Some(Insn::Neg { width, dst });
        }
        Some(Insn::Alu {
            op: AluOp::Mov,
            width,
            dst,
            src: operand(src)?,
        })
    }
}

fn reg(s: &str) -> Option<(Reg, Width)> {
    let s = s.trim();
    let width = match s.get(..1)? {
        "r" => Width::W64,
        "w" => Width::W32,
        _ => return None,
    };
    Some((Reg(s.get(1..)?.parse().ok()?), width))
}

fn operand(s: &str) -> Option<Operand> {
    match reg(s) {
        Some((r, _)) => Some(Operand::Reg(r)),
        None => Some(Operand::Imm(number(s)?)),
    }
}

fn number(s: &str) -> Option<i64> {
    let s = s.trim();
    let (minus, s) = s.strip_prefix('-').map_or((false, s), |s| (true, s));
    let n = match s.strip_prefix("0x") {
        Some(h) => i64::from_str_radix(h, 16).ok()?,
        None => s.parse().ok()?,
    };
    Some(if minus { -n } else { n })
}

fn condition(op: &str) -> Option<Condition> {
    Some(match op {
        "==" => Condition::Eq,
        "!=" => Condition::Ne,
        ">" => Condition::Gt,
        ">=" => Condition::Ge,
        "<" => Condition::Lt,
        "<=" => Condition::Le,
        "s>" => Condition::SignedGt,
        "s>=" => Condition::SignedGe,
        "s<" => Condition::SignedLt,
        "s<=" => Condition::SignedLe,
        "&" => Condition::Test,
        _ => return None,
    })
}

fn alu(op: &str) -> Option<AluOp> {
    Some(match op {
        "+" => AluOp::Add,
        "-" => AluOp::Sub,
        "*" => AluOp::Mul,
        "/" => AluOp::Div,
        "s/" => AluOp::SignedDiv,
        "%" => AluOp::Mod,
        "s%" => AluOp::SignedMod,
        "|" => AluOp::Or,
        "&" => AluOp::And,
        "^" => AluOp::Xor,
        "<<" => AluOp::Lsh,
        ">>" => AluOp::Rsh,
        "s>>" => AluOp::Arsh,
        _ => return None,
    })
}

/// `*(u32 *)(r1 + 4)`
fn memory(s: &str) -> Option<(Size, bool, Reg, i16)> {
    let s = s.trim().strip_prefix("*(")?.strip_suffix(')')?;
    let (kind, address) = s.split_once("*)(")?;
    let (signed, bits) = kind.trim().split_at_checked(1)?;
    let size = match bits {
        "8" => Size::B1,
        "16" => Size::B2,
        "32" => Size::B4,
        "64" => Size::B8,
        _ => return None,
    };
    let mut w = address.split_whitespace();
    let (base, _) = reg(w.next()?)?;
    let offset = match (w.next(), w.next()) {
        (Some("+"), Some(n)) => number(n)?,
        (Some("-"), Some(n)) => -number(n)?,
        (None, None) => 0,
        _ => return None,
    };
    Some((size, signed == "s", base, i16::try_from(offset).ok()?))
}

/// `*(u64 *)(r0 + 0) += r1 [fetch]`, `… xchg r1`, `… cmpxchg r1`
fn atomic(s: &str) -> Option<Insn> {
    let end = s
        .find(") ")
        .map(|i| s[i + 1..].find(") ").map_or(i, |j| i + 1 + j))?;
    let (mem, rest) = s.split_at(end + 1);
    let (size, _, base, offset) = memory(mem)?;
    let mut w = rest.split_whitespace();
    let (op, src) = (w.next()?, reg(w.next()?)?.0);
    let fetch = w.next() == Some("fetch");
    let (op, fetch) = match op {
        "+=" => (AtomicOp::Add, fetch),
        "|=" => (AtomicOp::Or, fetch),
        "&=" => (AtomicOp::And, fetch),
        "^=" => (AtomicOp::Xor, fetch),
        "xchg" => (AtomicOp::Exchange, true),
        "cmpxchg" => (AtomicOp::CompareExchange, true),
        _ => return None,
    };
    Some(Insn::Atomic {
        op,
        fetch,
        size,
        base,
        offset,
        src,
    })
}
