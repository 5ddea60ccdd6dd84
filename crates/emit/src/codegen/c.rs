//! Pieces of C that know which locals they name.
//!
//! A function's declarations come before its statements and depend on them: of the two forms of each register and the
//! objects of each stack only those are declared that a statement names. So expressions and statements are values
//! until the function is printed; [`c!`](crate::c) makes them, as `format!` makes text.

use std::collections::BTreeSet;
use std::fmt::Write;

use millrace_check::facts::FrameId;
use millrace_object::insn::Reg;

use super::forms::Forms;
use super::stack::StackObject;

/// A local of an emitted function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Local {
    /// a register as a number
    Number(FrameId, Reg),
    /// a register as a pointer
    Pointer(FrameId, Reg),
    /// a part of a frame's stack
    Stack(StackObject),
    /// what is known of some bytes of the packet (`known`)
    Known(u32),
    /// a sum without folds in between (`known::merged`)
    Sum(u32),
}

impl Local {
    /// A form of a register.
    pub fn register(frame: FrameId, reg: Reg, form: Forms) -> Self {
        match form.pointer {
            true => Self::Pointer(frame, reg),
            false => Self::Number(frame, reg),
        }
    }

    /// Its name in C.
    pub fn name(self) -> String {
        match self {
            Self::Number(frame, reg) => format!("r{}_{}", reg.0, frame.0),
            Self::Pointer(frame, reg) => format!("p{}_{}", reg.0, frame.0),
            Self::Stack(object) => object.name(),
            Self::Known(variable) => format!("k{variable}"),
            Self::Sum(variable) => format!("sum{variable}"),
        }
    }
}

/// An expression or a statement.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Code {
    text: String,
    locals: BTreeSet<Local>,
    operation: Option<Operation>,
}

/// The operands of an expression that is one operation.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Operation {
    left: String,
    operator: &'static str,
    right: String,
}

impl Code {
    /// A text in which each `{}` is a part, and `{{` and `}}` are braces; see [`c!`](crate::c).
    pub fn made(format: &str, parts: &[&dyn Part]) -> Self {
        let (mut code, mut parts) = (Code::default(), parts.iter());
        let mut characters = format.chars();
        while let Some(c) = characters.next() {
            match (c, c == '{' || c == '}') {
                (_, true) if characters.next() == Some(c) => code.text.push(c),
                (_, true) => match parts.next() {
                    Some(part) => part.add(&mut code),
                    None => debug_assert!(false, "{format}: a part is missing"),
                },
                _ => code.text.push(c),
            }
        }
        debug_assert!(parts.next().is_none(), "{format}: a part too many");
        code
    }

    /// `left operator right`, which an assignment to `left` shortens.
    pub fn operation(left: &Code, operator: &'static str, right: &Code) -> Self {
        Code {
            operation: Some(Operation {
                left: left.text.clone(),
                operator,
                right: right.text.clone(),
            }),
            ..crate::c!("{} {} {}", left, operator, right)
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The locals that it names.
    pub fn locals(&self) -> impl Iterator<Item = Local> {
        self.locals.iter().copied()
    }

    /// Whether nothing stands there.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether it is a name or a number.
    pub fn is_word(&self) -> bool {
        let of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.text.chars().all(of_word)
    }

    /// The same, binding as tightly as a cast.
    pub fn tight(self) -> Self {
        match self.text.contains(' ') {
            true => crate::c!("({})", self),
            false => self,
        }
    }

    /// Expressions joined by a text.
    pub fn join(parts: &[Code], by: &str) -> Self {
        let text: Vec<&str> = parts.iter().map(Code::text).collect();
        let locals = parts.iter().flat_map(Code::locals);
        Code {
            text: text.join(by),
            locals: locals.collect(),
            operation: None,
        }
    }

    /// `place = self;`; none where that changes nothing.
    pub fn assigned(&self, place: Local) -> Option<Code> {
        let name = place.name();
        if name == self.text {
            return None;
        }
        if let Some(Operation {
            left,
            operator,
            right,
        }) = &self.operation
            && *left == name
            // Operands in parentheses are hard enough to read; `a &= a` looks like a slip to clang.
            && !right.contains(' ')
            && *right != name
        {
            let text = format!("{name} {operator}= {right};");
            return Some(Code {
                text,
                ..crate::c!("{} {}", place, self)
            });
        }
        Some(crate::c!("{} = {};", place, self))
    }
}

impl From<&str> for Code {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Code {
    fn from(text: String) -> Self {
        Code {
            text,
            ..Code::default()
        }
    }
}

impl From<Local> for Code {
    fn from(local: Local) -> Self {
        crate::c!("{}", local)
    }
}

/// What can stand in a piece of C.
pub trait Part {
    /// Adds it to the end of another piece.
    fn add(&self, to: &mut Code);
}

impl<P: Part + ?Sized> Part for &P {
    fn add(&self, to: &mut Code) {
        P::add(self, to);
    }
}

impl Part for Code {
    fn add(&self, to: &mut Code) {
        to.text.push_str(&self.text);
        to.locals.extend(&self.locals);
    }
}

impl Part for Local {
    fn add(&self, to: &mut Code) {
        to.text.push_str(&self.name());
        to.locals.insert(*self);
    }
}

macro_rules! plain {
    ($($kind:ty)*) => { $(
        impl Part for $kind {
            fn add(&self, to: &mut Code) {
                let _ = write!(to.text, "{self}");
            }
        }
    )* };
}

plain!(str String u8 u32 u64 i16 i32 i64 usize);

/// A piece of C, as `format!` makes text: each `{}` of the format is a part.
#[macro_export]
macro_rules! c {
    ($format:literal $(, $part:expr)* $(,)?) => {
        $crate::codegen::Code::made($format, &[$(&$part as &dyn $crate::codegen::Part),*])
    };
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// on one line
    Line(Code),
    /// several in braces, behind what they depend on, if on anything
    Block(Code, Vec<Statement>),
    /// by the value of an expression; a case is `case N` or `default`
    Switch(Code, Vec<(Code, Vec<Statement>)>),
}

impl Statement {
    /// Adds the locals that it names.
    pub fn locals(&self, to: &mut BTreeSet<Local>) {
        match self {
            Self::Line(code) => to.extend(code.locals()),
            Self::Block(head, inside) => {
                to.extend(head.locals());
                inside.iter().for_each(|s| s.locals(to));
            }
            Self::Switch(by, cases) => {
                to.extend(by.locals());
                let inside = cases.iter().flat_map(|(_, inside)| inside);
                inside.for_each(|s| s.locals(to));
            }
        }
    }

    /// Its lines with how deep they stand, from `depth` on.
    pub fn lines(&self, depth: usize, line: &mut impl FnMut(usize, &str)) {
        match self {
            Self::Line(code) => line(depth, code.text()),
            Self::Block(head, inside) => {
                match head.is_empty() {
                    true => line(depth, "{"),
                    false => line(depth, &format!("{} {{", head.text())),
                }
                inside.iter().for_each(|s| s.lines(depth + 1, line));
                line(depth, "}");
            }
            Self::Switch(by, cases) => {
                line(depth, &format!("switch ({}) {{", by.text()));
                for (case, inside) in cases {
                    line(depth, &format!("{}:", case.text()));
                    inside.iter().for_each(|s| s.lines(depth + 1, line));
                }
                line(depth, "}");
            }
        }
    }
}

impl<C: Into<Code>> From<C> for Statement {
    fn from(code: C) -> Self {
        Self::Line(code.into())
    }
}

/// Statements, in a block of their own when some before the last ones declare something.
pub fn block(declarations: Vec<Statement>, rest: Vec<Statement>) -> Vec<Statement> {
    if declarations.is_empty() {
        return rest;
    }
    let all = declarations.into_iter().chain(rest);
    vec![Statement::Block(Code::default(), all.collect())]
}
