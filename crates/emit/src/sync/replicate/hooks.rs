//! What stands around the steps of the three bodies.

use std::collections::BTreeMap;

use millrace_check::facts::{FrameId, StepId};
use millrace_history::expr::Expr;
use millrace_history::{History, Part, Set, Site};
use millrace_object::insn::{Insn, Reg};
use millrace_object::program::ObjectId;

use super::expression::{code, gathered, scattered};
use crate::c;
use crate::codegen::{Body, Code, Cut, Forms, Live, Local, Slice, Statement, comment_text};
use crate::error::Error;
use crate::sync::Hooks;

/// What all rows of a program have in common.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// bytes of a row
    pub bytes: u32,
    /// bits of the time, at the row's start
    pub time: u32,
    /// bits of the packet's number, behind them
    pub number: u32,
    /// bits of the site, behind these
    pub site: u32,
}

impl Head {
    /// That of a history.
    pub fn of(history: &History) -> Self {
        Self {
            bytes: history.bytes.max(1),
            time: history.time_bits,
            number: history.number_bits,
            site: history.selector_bits(),
        }
    }
}

/// A packet program's part of the history.
pub struct Cell {
    /// what all rows have
    pub head: Head,
    /// the part
    pub part: Part,
    /// the number of its first site
    pub first: usize,
    /// sites that are keyed operations whose entries can be fetched ahead: their numbers from 1, and the objects
    pub keys: BTreeMap<StepId, (u32, ObjectId)>,
    /// the same without the objects
    pub numbers: BTreeMap<StepId, u32>,
}

impl Cell {
    fn site(&self, at: StepId) -> Option<(usize, &Site)> {
        let found = self.part.sites.iter().position(|s| s.step == at)?;
        Some((self.first + found, &self.part.sites[found]))
    }

    /// Statements that fill `row`, all zeros before, where the body is at a site.
    fn fill(&self, body: &Body, at: StepId) -> Result<Vec<Statement>, Error> {
        let Some((number, site)) = self.site(at) else {
            return Ok(Vec::new());
        };
        let mut out: Vec<Statement> = Vec::new();
        let mut place = 0;
        for (bits, value) in [
            (self.head.time, "pkt->time".to_owned()),
            (self.head.number, "pkt->number".to_owned()),
            (self.head.site, number.to_string()),
        ] {
            if bits > 0 {
                let value = gathered(&value.into(), u64::MAX >> (64 - bits));
                out.push(c!("row_put(row, {}, {}, {});", place, bits, value).into());
            }
            place += bits;
        }
        for field in &site.fields {
            let value = code(body, at, &field.from)?;
            let value = gathered(&value, field.mask);
            out.push(c!("row_put(row, {}, {}, {});", field.at, field.bits, value).into());
        }
        Ok(out)
    }

    /// What rows are filled from, as needs of the steps before.
    pub fn cut(&self, slice: &Slice) -> Cut {
        let mut cut = Cut {
            kept: self.part.kept.iter().copied().collect(),
            ..Cut::default()
        };
        for site in &self.part.sites {
            let mut row = vec![Live::default(); slice.levels()];
            let mut add = |frame: FrameId, reg: Reg, forms: Forms| {
                if let Some(level) = row.get_mut(slice.depth(frame)) {
                    level.add(reg, forms);
                }
            };
            for field in &site.fields {
                field.from.walk(&mut |e| match *e {
                    Expr::Register(frame, reg) => add(frame, reg, Forms::SCALAR),
                    Expr::Pointer(frame, reg) => add(frame, reg, Forms::POINTER),
                    _ => {}
                });
            }
            cut.ends.insert(site.step, row);
        }
        cut
    }

    fn kept(&self, step: StepId, insn: &Insn, body: &Body) -> Vec<Statement> {
        let here = self.part.kept.binary_search(&step).is_ok();
        let reg = millrace_check::facts::written(insn).filter(|_| here);
        let frame = body.slice.step(step).frame;
        reg.map(|reg| c!("kept{} = {};", step.0, Local::Number(frame, reg)).into())
            .into_iter()
            .collect()
    }

    fn kept_lines(&self) -> impl Iterator<Item = String> {
        self.part
            .kept
            .iter()
            .map(|k| format!("u64 kept{} = 0;", k.0))
    }
}

/// Fills a row up to the first access to state.
pub struct Extract<'a>(pub &'a Cell);

impl Hooks for Extract<'_> {
    fn declarations(&self, _: &Body) -> Result<Vec<String>, Error> {
        Ok(self.0.kept_lines().collect())
    }

    fn behind(&self, body: &Body, step: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
        Ok(self.0.kept(step, insn, body))
    }

    fn ends(&self, body: &Body, at: Option<StepId>) -> Result<Vec<Statement>, Error> {
        let Some(at) = at.filter(|at| self.0.site(*at).is_some()) else {
            return Ok(vec!["return 0;".into()]);
        };
        let mut out: Vec<Statement> = vec![c!("memset(row, 0, {});", self.0.head.bytes).into()];
        out.extend(self.0.fill(body, at)?);
        out.push("return 1;".into());
        Ok(out)
    }
}

/// The program on a packet whose row is at hand: it touches state only if it would fill the same row, and what it reads of
/// the packet for state from there on is the row's.
pub struct Process(pub Cell);

impl Process {
    /// Loads of the packet behind a site that are the row's; those that compute with addresses are what they were there.
    fn late(&self) -> BTreeMap<StepId, ()> {
        let all = self.0.part.sites.iter().flat_map(|s| s.late.keys());
        all.map(|s| (*s, ())).collect()
    }
}

fn reads(insn: &Insn) -> bool {
    matches!(insn, Insn::Load { .. })
}

impl Hooks for Process {
    fn cut(&self, slice: &Slice) -> Option<Cut> {
        Some(self.0.cut(slice))
    }

    fn declarations(&self, body: &Body) -> Result<Vec<String>, Error> {
        let mut lines: Vec<String> = self.0.kept_lines().collect();
        lines.push(
            "u32 entered = 0; /* the row is this packet's, and state has been touched */".into(),
        );
        let loads = self.late().into_keys().filter(|s| {
            matches!(body.slice.step(*s).op, millrace_check::facts::Op::Plain(insn) if reads(&insn))
        });
        lines.extend(loads.map(|s| format!("u64 late{} = 0;", s.0)));
        Ok(lines)
    }

    fn before(&self, body: &Body, step: StepId, _: &Insn) -> Result<Vec<Statement>, Error> {
        let Some((_, site)) = self.0.site(step) else {
            return Ok(Vec::new());
        };
        let bytes = self.0.head.bytes;
        let mut inside: Vec<Code> = vec![c!("u8 row[{}] = {{ 0 }};", bytes)];
        for statement in self.0.fill(body, step)? {
            if let Statement::Line(line) = statement {
                inside.push(line);
            }
        }
        inside.push(c!(
            "if (!self->row || memcmp(row, self->row, {})) {{ pkt->fate = MR_ABORTED; pkt->out = 0; return; }}",
            bytes
        ));
        inside.push("self->row = NULL;".into());
        inside.push("entered = 1;".into());
        for (late, field) in &site.late {
            let Expr::Field(f) = field else { continue };
            let loads = matches!(body.slice.step(*late).op, millrace_check::facts::Op::Plain(insn) if reads(&insn));
            if let (true, Some(field)) = (loads, site.fields.get(*f)) {
                let taken = format!("row_take(row, {}, {})", field.at, field.bits);
                inside.push(c!("late{} = {};", late.0, scattered(&taken, field.mask)));
            }
        }
        Ok(vec![
            c!("if (!entered) {{ {} }}", Code::join(&inside, " ")).into(),
        ])
    }

    fn behind(&self, body: &Body, step: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
        let mut out = self.0.kept(step, insn, body);
        let late = self.0.part.sites.iter().any(|s| s.late.contains_key(&step));
        let reg = millrace_check::facts::written(insn).filter(|_| late && reads(insn));
        if let Some(reg) = reg {
            let forms = body.demand.after(body.slice, step, reg);
            let frame = body.slice.step(step).frame;
            if forms.scalar {
                let to = Local::Number(frame, reg);
                out.push(c!("if (entered) {} = late{};", to, step.0).into());
            }
        }
        Ok(out)
    }
}

/// What state depends on behind one site, over a row.
pub struct Replay<'a> {
    /// the site
    pub site: &'a Site,
    /// its number from 1, if it is a keyed operation whose entry can be fetched ahead
    pub key: Option<u32>,
    /// control comes back to it, maybe with another key
    pub again: bool,
}

impl Hooks for Replay<'_> {
    fn declarations(&self, _: &Body) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        for (number, field) in self.site.fields.iter().enumerate() {
            let taken = format!("t{number}");
            lines.push(format!(
                "const u64 t{number} = row_take(row, {}, {}); /* {} */",
                field.at,
                field.bits,
                comment_text(&field.name)
            ));
            let value = scattered(&taken, field.mask);
            lines.push(format!("const u64 f{number} = {};", value.text()));
            lines.push(format!("(void)f{number};"));
        }
        if self.site.fields.is_empty() {
            lines.push("(void)row;".into());
        }
        Ok(lines)
    }

    fn token(&self, _: &Body, step: StepId, own: Code) -> Code {
        match self.key.filter(|_| step == self.site.step) {
            None => own,
            Some(_) if !self.again => c!("(slot ? slot->token : {})", own),
            Some(number) => c!(
                "(slot_holds(slot, {}, key, sizeof(key) / 8) ? slot->token : {})",
                number,
                own
            ),
        }
    }

    fn given(&self, step: StepId) -> Option<Code> {
        match self.site.late.get(&step)? {
            Expr::Field(f) => Some(c!("f{}", f)),
            _ => None,
        }
    }

    fn entry(&self, body: &Body) -> Result<Vec<Statement>, Error> {
        let mut out = Vec::new();
        let at = self.site.step;
        for (set, expr) in &self.site.sets {
            let value = code(body, at, expr)?;
            match *set {
                Set::Register(frame, reg) => {
                    let forms = body.demand.before(body.slice, at, frame, reg);
                    if forms.scalar {
                        out.push(c!("{} = {};", Local::Number(frame, reg), value).into());
                    }
                    if forms.pointer {
                        let to = Local::Pointer(frame, reg);
                        out.push(c!("{} = (u8 *)(uintptr_t)({});", to, value).into());
                    }
                }
                Set::Stack(frame, from, bytes) => {
                    // Parts of it may lie in different objects of C, and what none of them has nothing reads.
                    let mut done = 0;
                    while done < bytes {
                        let place = from + done as i32;
                        let object = body.stack.find(frame, place);
                        let inside = object.filter(|o| o.from <= place && place < o.to);
                        let Some(object) = inside else {
                            done += 1;
                            continue;
                        };
                        let here = (bytes - done).min((object.to - place) as u32);
                        let to = body.stack_at(at, frame, place)?;
                        let part = match done {
                            0 => value.clone(),
                            done => c!("(u64){} >> {}", value, 8 * done),
                        };
                        out.push(c!("row_store({}, {}, {});", to, part, here).into());
                        done += here;
                    }
                }
            }
        }
        Ok(out)
    }
}
