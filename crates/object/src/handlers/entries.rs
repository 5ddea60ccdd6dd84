//! Where a handler program begins: `on_packet`, `on_start`, `on_stop`, timers.

use super::{expiry, timers};
use crate::btf::Btf;
use crate::btf::ext::{Ext, Lines};
use crate::elf::Elf;
use crate::error::LoadError;
use crate::functions::{Functions, Signature, Span};
use crate::program::Role;
use crate::xdp::is_xdp;

const SECTIONS: &[(&str, Role)] = &[
    ("millrace/on_packet", Role::OnPacket),
    ("millrace/on_start", Role::OnStart),
    ("millrace/on_stop", Role::OnStop),
];

/// Roles and the functions that have them, `on_packet` first, timers in the order of the file.
pub(crate) fn find(
    elf: &Elf<'_>,
    functions: &Functions<'_>,
    btf: Option<&Btf>,
    ext: &Ext,
) -> Result<Vec<(Role, usize)>, LoadError> {
    let mut lines = Lines::new(btf, ext);
    unknown_handlers(elf)?;
    let mut entries: Vec<(Role, usize)> = Vec::new();
    for (index, span) in functions.spans.iter().enumerate() {
        if span.global && is_xdp(span.section_name) {
            let line = lines.first(span.section_name, span.start, span.end);
            return Err(LoadError::new(
                "mixed-dialects",
                "an XDP program beside handlers",
                "put it into a file of its own",
            )
            .in_section(span.section_name)
            .at_symbol(span.name)
            .at_line(line));
        }
        let Some((_, role)) = SECTIONS.iter().find(|(name, _)| *name == span.section_name) else {
            continue;
        };
        if !span.global {
            continue;
        }
        let mut place = |e: LoadError| {
            let line = lines.first(span.section_name, span.start, span.end);
            e.in_section(span.section_name)
                .at_symbol(span.name)
                .at_line(line)
        };
        if entries.iter().any(|(other, _)| other == role) {
            return Err(place(LoadError::new(
                "two-handlers",
                format!("a second handler `{}`", handler_name(span.section_name)),
                "keep one; a handler may call as many functions as you like",
            )));
        }
        signature(*role, span, btf, ext).map_err(&mut place)?;
        entries.push((*role, index));
    }
    entries.sort_by_key(|(role, _)| SECTIONS.iter().position(|(_, r)| r == role));
    if entries
        .first()
        .is_none_or(|(role, _)| *role != Role::OnPacket)
    {
        return Err(LoadError::new(
            "no-entry",
            "no handler `on_packet`",
            "write `ON_PACKET(p) { … }`: it decides what becomes of each packet",
        ));
    }
    for timer in timers::read(elf)? {
        let index = functions
            .at(elf, timer.section, timer.offset)
            .map_err(|e| e.in_section(timers::SECTION))?;
        let role = Role::Every {
            period: timer.period,
        };
        if let Some(span) = functions.spans.get(index) {
            signature(role, span, btf, ext).map_err(|e| {
                let line = lines.first(span.section_name, span.start, span.end);
                e.in_section(span.section_name)
                    .at_symbol(span.name)
                    .at_line(line)
            })?;
        }
        entries.push((role, index));
    }
    Ok(entries)
}

fn handler_name(section: &str) -> &str {
    section.strip_prefix("millrace/").unwrap_or(section)
}

fn unknown_handlers(elf: &Elf<'_>) -> Result<(), LoadError> {
    for section in &elf.sections {
        let is_handler = section.executable && section.name.starts_with("millrace/");
        let known = section.name == "millrace/every"
            || section.name == expiry::FUNCTION
            || SECTIONS.iter().any(|(name, _)| *name == section.name);
        if is_handler && !known && section.size > 0 {
            return Err(LoadError::new(
                "unknown-handler",
                format!(
                    "the handler `{}` does not exist",
                    handler_name(section.name)
                ),
                "there are ON_PACKET, ON_START, ON_STOP and EVERY; of a packet set ON_EXPIRY",
            )
            .in_section(section.name));
        }
    }
    Ok(())
}

fn signature(role: Role, span: &Span<'_>, btf: Option<&Btf>, ext: &Ext) -> Result<(), LoadError> {
    // Without type information `check` still proves what the function does with its argument.
    let Some(found) = Signature::of(btf, ext, span) else {
        return Ok(());
    };
    let returns = role != Role::OnPacket || found.returns_number(4);
    if returns && found.takes_pointer(Some("packet")) {
        return Ok(());
    }
    let result = if role == Role::OnPacket {
        "int"
    } else {
        "void"
    };
    Err(LoadError::new(
        "wrong-signature",
        format!(
            "`{}` is {}",
            crate::error::printable(span.name),
            found.text()
        ),
        format!(
            "a handler of this kind is `{result} (*)(struct packet *)`; use the macros of nf.h"
        ),
    ))
}
