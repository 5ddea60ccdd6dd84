//! The context: which fields it has. One table for both dialects, see docs/dialect.md.

use millrace_object::insn::Size;
use millrace_object::program::Dialect;

use crate::domain::{Pointer, Region, Scalar, Value};
use crate::facts::Access;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::{META_START, PACKET_START};

struct Field {
    offset: i64,
    size: Size,
    xdp: Option<&'static str>,
    handlers: Option<&'static str>,
    what: What,
}

enum What {
    Data,
    End,
    Meta,
    Number,
}

const FIELDS: &[Field] = &[
    Field {
        offset: 0,
        size: Size::B4,
        xdp: Some("data"),
        handlers: Some("data"),
        what: What::Data,
    },
    Field {
        offset: 4,
        size: Size::B4,
        xdp: Some("data_end"),
        handlers: Some("data_end"),
        what: What::End,
    },
    Field {
        offset: 8,
        size: Size::B4,
        xdp: Some("data_meta"),
        handlers: Some("data_meta"),
        what: What::Meta,
    },
    Field {
        offset: 12,
        size: Size::B4,
        xdp: Some("ingress_ifindex"),
        handlers: Some("port"),
        what: What::Number,
    },
    Field {
        offset: 16,
        size: Size::B4,
        xdp: Some("rx_queue_index"),
        handlers: Some("queue"),
        what: What::Number,
    },
    Field {
        offset: 24,
        size: Size::B8,
        xdp: None,
        handlers: Some("time"),
        what: What::Number,
    },
    Field {
        offset: 32,
        size: Size::B4,
        xdp: None,
        handlers: Some("ports"),
        what: What::Number,
    },
];

/// What a load from the context finds.
///
/// # Errors
/// `context-field`.
pub fn load(
    m: &Machine<'_>,
    p: &Pointer,
    off: i64,
    size: Size,
    signed: bool,
) -> Verdict<(Access, Value)> {
    let name = |f: &Field| match m.program.dialect {
        Dialect::Xdp => f.xdp,
        Dialect::Handlers => f.handlers,
    };
    let at = p.fixed().map(|fixed| fixed + off);
    let field = FIELDS
        .iter()
        .find(|f| Some(f.offset) == at && f.size == size && name(f).is_some());
    let Some(field) = field.filter(|_| !signed) else {
        let known: Vec<String> = FIELDS
            .iter()
            .filter_map(|f| {
                name(f).map(|n| format!("{n} (offset {}, {} bytes)", f.offset, f.size.bytes()))
            })
            .collect();
        let at = at.map_or("an offset that varies".to_owned(), |o| {
            format!("offset {o}")
        });
        let fault = Fault::new(
            Rule::ContextField,
            format!(
                "this load reads {} bytes at {at} of the context, where no field is",
                size.bytes()
            ),
            format!(
                "Load one of the fields there are, whole: {}.",
                known.join(", ")
            ),
        );
        return m.or(Err(fault), || {
            let offset = p.least().saturating_add(off).clamp(0, 64) as u32;
            let number = Value::number(Scalar::of_bits(size.bytes() * 8));
            (Access::Context { offset }, number)
        });
    };
    let value = match field.what {
        What::Data => Value::Pointer(Pointer::to(Region::Packet(PACKET_START))),
        What::End => Value::Pointer(Pointer::to(Region::PacketEnd)),
        What::Meta => Value::Pointer(Pointer::to(Region::Meta(META_START))),
        What::Number => Value::number(Scalar::of_bits(size.bytes() * 8)),
    };
    Ok((
        Access::Context {
            offset: field.offset as u32,
        },
        value,
    ))
}

/// A store to the context.
#[must_use]
pub fn write_fault() -> Fault {
    Fault::new(
        Rule::ContextWrite,
        "this instruction writes to the context, which is read-only",
        "Change the packet's bytes, or move its ends with `bpf_xdp_adjust_head` or `bpf_xdp_adjust_tail`.",
    )
}
