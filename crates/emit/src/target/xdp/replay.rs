//! What a packet of another core does to state, from its row, in C: the steps behind the first access to state that the
//! history keeps, each one statement.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use millrace_check::facts::{Access, ArgFact, Flow, FrameId, Kind, Op, Step, StepId};
use millrace_history::expr::Expr;
use millrace_history::{History, Part, Set, Site};
use millrace_object::helper;
use millrace_object::insn::{AtomicOp, Imm64, Insn, Operand, Reg, Size};
use millrace_object::program::{ObjectId, Program};

use super::code::{bits, chosen, narrow, scattered};
use super::{Input, object_name};
use crate::codegen::comment_text;
use crate::codegen::operators::{arithmetic, compare, ordered};
use crate::error::Error;
use crate::target::unsupported;

/// The address of a table as a number. The compiler would make an `or` of a sum with the address of an aligned table, which the
/// kernel's verifier refuses for a pointer.
const ADDRESS: &str = "
INLINE u64 address_of(const volatile void *table)
{
	u64 address = (u64)(long)table;

	asm volatile(\"\" : \"+r\"(address));
	return address;
}
";

/// Most bytes of stack: the kernel's limit is 512, and other things need some.
const MOST_STACK: u32 = 400;

struct Printer<'a> {
    program: &'a Program,
    flow: &'a Flow,
    part: &'a Part,
    site: &'a Site,
}

/// The functions that replay each site, and the one that chooses.
pub fn functions(
    input: &Input,
    entry: usize,
    part: &Part,
    history: &History,
) -> Result<String, Error> {
    let Some(flow) = input.checked.flows.get(entry) else {
        return Ok(String::new());
    };
    let mut out = String::from(
        "\ntypedef u8 __attribute__((may_alias)) m8;\ntypedef u16 __attribute__((may_alias)) m16;\ntypedef u32 __attribute__((may_alias)) m32;\ntypedef u64 __attribute__((may_alias)) m64;\n",
    );
    let begin = out.len();
    for (number, site) in part.sites.iter().enumerate() {
        let printer = Printer {
            program: input.program,
            flow,
            part,
            site,
        };
        let body = printer.site(number).map_err(|(at, what)| {
            let line = flow.steps.get(at).and_then(|s| s.line.as_ref());
            let what = format!("{what} in the replay of a row in the kernel");
            unsupported(input.program, line, what)
        })?;
        out.push_str(&body);
    }
    if out.contains("address_of(") {
        out.insert_str(begin, ADDRESS);
    }
    let which = bits(
        "row->bytes",
        history.time_bits + history.number_bits,
        history.selector_bits(),
    );
    out.push_str("\n/* What a row does to state. */\n__attribute__((noinline, weak)) int replay(struct row *row)\n{\n\tif (!row)\n\t\treturn 0;\n");
    let _ = writeln!(out, "\tswitch ({which}) {{");
    for number in 0..part.sites.len() {
        let _ = writeln!(
            out,
            "\tcase {number}:\n\t\treplay_{number}(row->bytes);\n\t\tbreak;"
        );
    }
    out.push_str("\t}\n\treturn 0;\n}\n");
    Ok(out)
}

type Wrong = (usize, String);

impl Printer<'_> {
    fn site(&self, number: usize) -> Result<String, Wrong> {
        let first = self.site.step.0;
        let live = self.reached(first);
        let frames: BTreeSet<usize> = live.iter().map(|at| self.step(*at).frame.0).collect();
        let stack = |f: &usize| {
            self.flow
                .frames
                .get(*f)
                .map_or(0, |f| f.stack_bytes.div_ceil(8) * 8)
        };
        let mut used: BTreeSet<usize> = frames.clone();
        for (set, _) in &self.site.sets {
            match set {
                Set::Register(f, _) | Set::Stack(f, ..) => used.insert(f.0),
            };
        }
        // A frame's stack may be its caller's to fill.
        for frame in frames {
            let mut caller = self.flow.frames.get(frame).and_then(|f| f.caller);
            while let Some(at) = caller {
                used.insert(at.0);
                caller = self.flow.frames.get(at.0).and_then(|f| f.caller);
            }
        }
        if used.iter().map(stack).sum::<u32>() > MOST_STACK {
            return Err((first, format!("more than {MOST_STACK} bytes of stack")));
        }
        let mut out = format!(
            "\n/* The first access to state at line {}. */\nstatic __attribute__((noinline)) int replay_{number}(const u8 *row)\n{{\n",
            self.step(first).line.as_ref().map_or(0, |l| l.line)
        );
        for frame in &used {
            let all: Vec<String> = (0..10).map(|r| format!("r{frame}_{r} = 0")).collect();
            let _ = writeln!(out, "\tu64 __attribute__((unused)) {};", all.join(", "));
            if stack(frame) > 0 {
                let _ = writeln!(
                    out,
                    "\tu64 __attribute__((unused)) s{frame}[{}] = {{}};",
                    stack(frame) / 8
                );
            }
        }
        for (n, field) in self.site.fields.iter().enumerate() {
            let name = comment_text(&field.name);
            let _ = writeln!(
                out,
                "\tconst u64 __attribute__((unused)) t{n} = {}; /* {name} */",
                bits("row", field.at, field.bits)
            );
            let _ = writeln!(
                out,
                "\tconst u64 __attribute__((unused)) f{n} = {};",
                scattered(&format!("t{n}"), field.mask)
            );
        }
        out.push('\n');
        let mut stores: BTreeMap<FrameId, Vec<(i32, u32, String)>> = BTreeMap::new();
        for (set, expr) in &self.site.sets {
            let value = self.expression(expr, first)?;
            match set {
                Set::Register(frame, reg) => {
                    let _ = writeln!(out, "\tr{}_{} = {value};", frame.0, reg.0);
                }
                Set::Stack(frame, from, count) => {
                    stores
                        .entry(*frame)
                        .or_default()
                        .push((*from, *count, value));
                }
            }
        }
        for (frame, stores) in &stores {
            out.push_str(&self.stored(*frame, stores));
        }
        let mut targets = self.targets(&live);
        if live.first() != Some(&first) {
            targets.insert(first);
            let _ = writeln!(out, "\tgoto L{first};");
        }
        let mut line = None;
        for &at in &live {
            let step = self.step(at);
            let from = step.line.as_ref().map(|l| l.line);
            if targets.contains(&at) {
                let _ = writeln!(out, "L{at}:;");
            }
            let text = self.statement(at, step)?;
            if from != line && !text.is_empty() {
                line = from;
                let words = step.line.as_ref().map_or("", |l| &l.text);
                let words = comment_text(words);
                let _ = writeln!(out, "\t/* {}: {words} */", from.unwrap_or(0));
            }
            out.push_str(&text);
            // Where the next step printed is not the next that runs.
            match self.next(at) {
                None => out.push_str("\treturn 0;\n"),
                Some(to) if live.range(at + 1..).next() != Some(&to) => {
                    let _ = writeln!(out, "\tgoto L{to};");
                }
                Some(_) => {}
            }
        }
        out.push_str("}\n");
        Ok(out)
    }

    /// Stores to a stack, as whole words where they fill one: of a word that is stored in parts the verifier knows no bounds.
    fn stored(&self, frame: FrameId, stores: &[(i32, u32, String)]) -> String {
        let mut words: BTreeMap<i32, (u32, Vec<String>)> = BTreeMap::new();
        for (from, count, value) in stores {
            let mut done = 0;
            while done < *count {
                let place = from + done as i32;
                let word = place.div_euclid(8);
                let inside = place.rem_euclid(8) as u32;
                let now = (8 - inside).min(count - done);
                let low = u64::MAX >> (64 - 8 * now);
                let (have, parts) = words.entry(word).or_default();
                *have |= ((1 << now) - 1) << inside;
                parts.push(format!(
                    "((u64){value} >> {} & {low:#x}ull) << {}",
                    8 * done,
                    8 * inside
                ));
                done += now;
            }
        }
        let mut out = String::new();
        for (word, (have, parts)) in words {
            let value = parts.join(" | ");
            let to = |inside: u32| self.stack(frame, 8 * word + inside as i32);
            if have == 0xff {
                let _ = writeln!(out, "\t*(m64 *)(long){} = {value};", to(0));
                continue;
            }
            let _ = writeln!(out, "\t{{\n\t\tu64 v = {value};\n");
            let mut at = 0;
            while at < 8 {
                let run = (have >> at).trailing_ones();
                if run > 0 {
                    let _ = writeln!(out, "\t\t*(m8 *)(long){} = v >> {};", to(at), 8 * at);
                }
                at += 1;
            }
            out.push_str("\t}\n");
        }
        out
    }

    fn step(&self, at: usize) -> &Step {
        &self.flow.steps[at]
    }

    /// Where control goes on if no branch is taken; none: it ends.
    fn next(&self, at: usize) -> Option<usize> {
        let step = self.step(at);
        match step.op {
            Op::Exit => None,
            Op::Jump { target } | Op::Enter { target, .. } | Op::Leave { target } => Some(target.0),
            Op::Branch { target, .. } => match self.part.replay.jumps.get(&StepId(at)) {
                Some(to) => to.map(|to| to.0),
                None if !step.outcomes.fails => Some(target.0),
                None => Some(at + 1),
            },
            Op::Plain(_) => Some(at + 1),
        }
    }

    /// The step that a branch leads to.
    fn taken(&self, at: usize) -> Option<usize> {
        let step = self.step(at);
        match step.op {
            Op::Branch { target, .. }
                if step.outcomes.holds
                    && step.outcomes.fails
                    && !self.part.replay.jumps.contains_key(&StepId(at)) =>
            {
                Some(target.0)
            }
            _ => None,
        }
    }

    fn reached(&self, first: usize) -> BTreeSet<usize> {
        let (mut all, mut pending) = (BTreeSet::new(), vec![first]);
        while let Some(at) = pending.pop() {
            if at < self.flow.steps.len() && all.insert(at) {
                pending.extend(self.next(at));
                pending.extend(self.taken(at));
            }
        }
        all
    }

    fn targets(&self, live: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for &at in live {
            all.extend(self.taken(at));
            all.extend(
                self.next(at)
                    .filter(|to| live.range(at + 1..).next() != Some(to)),
            );
        }
        all
    }

    fn statement(&self, at: usize, step: &Step) -> Result<String, Wrong> {
        let frame = step.frame.0;
        Ok(match step.op {
            Op::Exit | Op::Jump { .. } => String::new(),
            Op::Enter { frame: to, .. } => {
                let copy = |r: u32| format!("\tr{}_{r} = r{frame}_{r};\n", to.0);
                (1..=5).map(copy).collect()
            }
            Op::Leave { .. } => {
                let caller = self.flow.frames.get(frame).and_then(|f| f.caller);
                caller.map_or_else(String::new, |c| format!("\tr{}_0 = r{frame}_0;\n", c.0))
            }
            Op::Branch { insn, .. } => match (self.taken(at), insn) {
                (
                    Some(to),
                    Insn::Branch {
                        condition,
                        width,
                        left,
                        right,
                        ..
                    },
                ) => {
                    let (a, b) = (self.register(step, left), self.operand(step, right));
                    format!(
                        "\tif ({})\n\t\tgoto L{to};\n",
                        compare(condition, width, &a, &b).text()
                    )
                }
                _ => String::new(),
            },
            Op::Plain(insn) => {
                if let Some(expr) = self.site.late.get(&StepId(at)) {
                    let value = self.expression(expr, at)?;
                    let Some(reg) = millrace_check::facts::written(&insn) else {
                        return Err((at, "this read of the packet".into()));
                    };
                    return Ok(format!("\tr{frame}_{} = {value};\n", reg.0));
                }
                match self.part.replay.runs.get(at) {
                    Some(true) => self.plain(at, step, &insn)?,
                    _ => String::new(),
                }
            }
        })
    }

    fn plain(&self, at: usize, step: &Step, insn: &Insn) -> Result<String, Wrong> {
        let frame = step.frame.0;
        let set = |reg: Reg, value: String| format!("\tr{frame}_{} = {value};\n", reg.0);
        Ok(match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let (a, b) = (self.register(step, dst), self.operand(step, src));
                set(
                    dst,
                    arithmetic(op, width, &a, &b)
                        .ok_or_else(|| (at, "a signed division".into()))?
                        .text()
                        .to_owned(),
                )
            }
            Insn::Neg { width, dst } => {
                let a = self.register(step, dst);
                set(dst, narrow(width, &format!("(0 - {a})")))
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let a = self.register(step, src);
                set(
                    dst,
                    narrow(width, &format!("(u64)(s64)(s{}){a}", 8 * from.bytes())),
                )
            }
            Insn::ByteOrder { order, bits, dst } => {
                let a = self.register(step, dst);
                set(dst, ordered(order, bits, &a).text().to_owned())
            }
            Insn::LoadImm { dst, value } => match value {
                Imm64::Number(n) => set(dst, format!("{n:#x}ull")),
                Imm64::Object(o) => set(dst, self.object(o, 0)),
                Imm64::ObjectValue { object, offset } => set(dst, self.object(object, offset)),
                Imm64::Function(_) => return Err((at, "an address of a function".into())),
            },
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                if matches!(step.access, Some(Access::Context { .. } | Access::Packet)) {
                    return Err((at, "a read of the packet".into()));
                }
                let load = format!("*{}", self.memory(step, base, offset, size));
                set(
                    dst,
                    match signed {
                        true => format!("(u64)(s64)(s{}){load}", 8 * size.bytes()),
                        false => load,
                    },
                )
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                if matches!(step.access, Some(Access::Packet)) {
                    return Err((at, "a write to the packet".into()));
                }
                let value = self.operand(step, src);
                format!("\t*{} = {value};\n", self.memory(step, base, offset, size))
            }
            Insn::Atomic {
                op,
                fetch,
                size,
                base,
                offset,
                src,
            } => {
                let (to, value) = (
                    self.memory(step, base, offset, size),
                    self.register(step, src),
                );
                let kind = format!("u{}", 8 * size.bytes());
                let next = match op {
                    AtomicOp::Add => format!("old + ({kind}){value}"),
                    AtomicOp::Or => format!("old | ({kind}){value}"),
                    AtomicOp::And => format!("old & ({kind}){value}"),
                    AtomicOp::Xor => format!("old ^ ({kind}){value}"),
                    AtomicOp::Exchange => format!("({kind}){value}"),
                    AtomicOp::CompareExchange => {
                        format!("old == ({kind})r{frame}_0 ? ({kind}){value} : old")
                    }
                };
                let kept = match op {
                    AtomicOp::CompareExchange => format!("\t\tr{frame}_0 = old;\n"),
                    AtomicOp::Exchange => format!("\t\tr{frame}_{} = old;\n", src.0),
                    _ if fetch => format!("\t\tr{frame}_{} = old;\n", src.0),
                    _ => String::new(),
                };
                // A replica's packets come one after the other.
                format!("\t{{\n\t\t{kind} old = *{to};\n\n\t\t*{to} = {next};\n{kept}\t}}\n")
            }
            Insn::Call { helper } => {
                let known = helper::by_number(helper).filter(|h| h.number < 0x10000);
                let known = known.ok_or_else(|| (at, format!("a call of helper {helper}")))?;
                if known.effects.time && known.args.is_empty() {
                    return Ok(set(Reg(0), "replica_time()".into()));
                }
                if known.args.contains(&helper::Arg::Context) {
                    return Err((at, format!("a call of {}", known.name)));
                }
                let mut all = Vec::new();
                for (fact, reg) in step
                    .args
                    .iter()
                    .zip((1..=5).map(Reg))
                    .take(known.args.len())
                {
                    all.push(match fact {
                        ArgFact::Scalar(Some(n)) => format!("{n:#x}ull"),
                        ArgFact::Object(o) => self.object(*o, 0),
                        ArgFact::Null => "0".into(),
                        ArgFact::Scalar(None) | ArgFact::Memory { .. } => self.register(step, reg),
                        _ => return Err((at, format!("a call of {}", known.name))),
                    });
                }
                let types = vec!["u64"; all.len()].join(", ");
                let call = format!("((u64 (*)({types})){}L)({})", known.number, all.join(", "));
                format!("{}\t(void)r{frame}_0;\n", set(Reg(0), call))
            }
            _ => return Err((at, "this instruction".into())),
        })
    }

    fn object(&self, object: ObjectId, offset: u32) -> String {
        let Some(found) = self.program.objects.get(object.0) else {
            return "0".into();
        };
        let name = object_name(object.0, found);
        match found.kind.is_global() {
            true => format!("address_of(&{name}[{offset}])"),
            false => format!("(u64)(long)&{name}"),
        }
    }

    fn stack(&self, frame: FrameId, at: i32) -> String {
        let bytes = self
            .flow
            .frames
            .get(frame.0)
            .map_or(0, |f| f.stack_bytes.div_ceil(8) * 8);
        format!("((u64)(long)s{} + {})", frame.0, bytes as i32 + at)
    }

    /// A register; an address that the proof knows is written out, since nothing computes it in the slice.
    fn register(&self, step: &Step, reg: Reg) -> String {
        match step.before.get(usize::from(reg.0)) {
            Some(Kind::Stack {
                frame,
                offset: Some(at),
            }) => self.stack(*frame, *at),
            Some(Kind::Object(o)) => self.object(*o, 0),
            _ if reg == Reg(10) => self.stack(step.frame, 0),
            _ => format!("r{}_{}", step.frame.0, reg.0),
        }
    }

    fn operand(&self, step: &Step, operand: Operand) -> String {
        match operand {
            Operand::Reg(reg) => self.register(step, reg),
            Operand::Imm(n) => format!("{:#x}ull", n as u64),
        }
    }

    /// A pointer to memory.
    fn memory(&self, step: &Step, base: Reg, offset: i16, size: Size) -> String {
        let base = self.register(step, base);
        format!("(m{} *)(long)({base} + {offset})", 8 * size.bytes())
    }

    fn expression(&self, expr: &Expr, at: usize) -> Result<String, Wrong> {
        let go = |e: &Expr| self.expression(e, at);
        Ok(match expr {
            Expr::Field(f) => format!("f{f}"),
            Expr::Number(n) => format!("{n:#x}ull"),
            Expr::Time => "replica_time()".into(),
            Expr::Address(object, offset) => self.object(*object, *offset),
            Expr::Byte(of, index) => {
                format!("((u64){} >> {} & 0xff)", go(of)?, 8 * u32::from(*index))
            }
            Expr::Bytes(all) => {
                let mut parts = Vec::new();
                for (i, e) in all.iter().enumerate() {
                    if *e != Expr::Number(0) {
                        parts.push(format!("(u64)({} & 0xff) << {}", go(e)?, 8 * i));
                    }
                }
                match parts.is_empty() {
                    true => "0".into(),
                    false => format!("({})", parts.join(" | ")),
                }
            }
            Expr::Alu(op, width, a, b) => {
                let code = arithmetic(*op, *width, &go(a)?, &go(b)?);
                let code = code.ok_or_else(|| (at, "a signed division".into()))?;
                code.text().to_owned()
            }
            Expr::Neg(width, e) => narrow(*width, &format!("(0 - {})", go(e)?)),
            Expr::Extend(width, size, e) => narrow(
                *width,
                &format!("(u64)(s64)(s{}){}", 8 * size.bytes(), go(e)?),
            ),
            Expr::Order(order, bits, e) => ordered(*order, *bits, &go(e)?).text().to_owned(),
            Expr::Compare(condition, width, a, b) => {
                format!(
                    "(u64)({})",
                    compare(*condition, *width, &go(a)?, &go(b)?).text()
                )
            }
            Expr::Select(c, a, b) => format!("({} ? {} : {})", go(c)?, go(a)?, go(b)?),
            Expr::Constant(address, size, signed) => {
                let load = format!("*(m{} *)(long)({})", 8 * size.bytes(), go(address)?);
                match signed {
                    true => format!("(u64)(s64)(s{}){load}", 8 * size.bytes()),
                    false => format!("(u64){load}"),
                }
            }
            Expr::Index(e, list) => chosen(
                &go(e)?,
                list.iter().enumerate().map(|(p, n)| (*n, p as u64)),
            ),
            Expr::Pick(e, list) => chosen(
                &go(e)?,
                list.iter().enumerate().map(|(p, n)| (p as u64, *n)),
            ),
            Expr::Register(..)
            | Expr::Pointer(..)
            | Expr::Stack(..)
            | Expr::Kept(_)
            | Expr::Context(..)
            | Expr::Packet(..) => return Err((at, "something of the packet".into())),
        })
    }
}
