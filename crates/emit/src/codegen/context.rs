//! Loads from the context: fields of `struct mr_packet`, laid out for programs as docs/dialect.md says.

use millrace_check::facts::StepId;
use millrace_object::insn::Size;
use millrace_object::program::Dialect;

use super::body::Body;
use super::c::Code;
use super::forms::Forms;
use crate::c;
use crate::error::Error;

/// A field of the context.
struct Field {
    /// where programs see it
    offset: u32,
    /// how long they see it
    bytes: u32,
    /// what it is here
    c: &'static str,
    pointer: bool,
}

const fn field(offset: u32, bytes: u32, c: &'static str, pointer: bool) -> Field {
    Field {
        offset,
        bytes,
        c,
        pointer,
    }
}

/// XDP programs count interfaces from 1.
const XDP: &[Field] = &[
    field(0, 4, "pkt->data", true),
    field(4, 4, "pkt->end", true),
    field(8, 4, "pkt->meta", true),
    field(12, 4, "(pkt->port + 1)", false),
    field(16, 4, "pkt->queue", false),
];

const HANDLERS: &[Field] = &[
    field(0, 4, "pkt->data", true),
    field(4, 4, "pkt->end", true),
    field(8, 4, "pkt->meta", true),
    field(12, 4, "pkt->port", false),
    field(16, 4, "pkt->queue", false),
    field(24, 8, "pkt->time", false),
    field(32, 4, "pkt->ports", false),
];

/// A field of the context as a number, addresses included; none for bytes that are no whole field.
pub fn number(dialect: Dialect, offset: u32, size: Size) -> Option<Code> {
    let fields = match dialect {
        Dialect::Xdp => XDP,
        Dialect::Handlers => HANDLERS,
    };
    let whole = |f: &&Field| f.offset == offset && f.bytes == size.bytes();
    let field = fields.iter().find(whole)?;
    Some(match field.pointer {
        true => c!("(u64)(uintptr_t){}", field.c),
        false => c!("(u64){}", field.c),
    })
}

/// The expression for a load of the context in the given form.
pub fn load(
    body: &Body,
    id: StepId,
    offset: u32,
    size: Size,
    signed: bool,
    form: Forms,
) -> Result<Code, Error> {
    let step = body.slice.step(id);
    let fields = match body.slice.program.dialect {
        Dialect::Xdp => XDP,
        Dialect::Handlers => HANDLERS,
    };
    let end = offset.saturating_add(size.bytes());
    let Some(field) = fields
        .iter()
        .find(|f| f.offset <= offset && end <= f.offset + f.bytes)
    else {
        return Err(body
            .slice
            .unsupported(step, format!("a load of context bytes {offset}..{end}")));
    };
    if field.pointer {
        if form != Forms::POINTER || size != Size::B4 {
            return Err(body
                .slice
                .contradiction(step, "a packet pointer read as a number"));
        }
        return Ok(field.c.into());
    }
    let whole = field.offset == offset && field.bytes == size.bytes();
    let bits = size.bytes() * 8;
    let shifted = match 8 * (offset - field.offset) {
        0 => Code::from(field.c),
        by => c!("({} >> {})", field.c, by),
    };
    Ok(match (signed, whole) {
        (true, _) => c!("(u64)(s{}){}", bits, shifted),
        (false, true) => shifted,
        (false, false) => c!("(u{}){}", bits, shifted),
    })
}
