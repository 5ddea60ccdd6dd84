//! Where an XDP program begins.

use crate::btf::Btf;
use crate::btf::ext::Ext;
use crate::elf::Elf;
use crate::error::{LoadError, printable};
use crate::functions::{Functions, Signature};

/// Whether a section is for XDP by its name, as libbpf has it.
pub(crate) fn is_xdp(section: &str) -> bool {
    ["xdp", "xdp.frags"].iter().any(|name| {
        section
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Indices of the functions that are programs, in file order. A program is a global function of a
/// section for XDP, or of any section but `.text` if it takes a `struct xdp_md *`: names of sections
/// are free to those who bring their own loader.
pub(crate) fn find(
    elf: &Elf<'_>,
    functions: &Functions<'_>,
    btf: Option<&Btf>,
    ext: &Ext,
) -> Result<Vec<usize>, LoadError> {
    let mut entries = Vec::new();
    for (index, span) in functions.spans.iter().enumerate() {
        if !span.global || span.section_name == ".text" {
            continue;
        }
        let signature = Signature::of(btf, ext, span);
        let is_program = if is_xdp(span.section_name) {
            signature.is_none_or(|s| s.takes_pointer(None))
        } else {
            signature.is_some_and(|s| s.takes_pointer(Some("xdp_md")))
        };
        if is_program {
            entries.push(index);
        }
    }
    if entries.is_empty() {
        let code = elf.sections.iter().filter(|s| s.executable && s.size > 0);
        let names: Vec<String> = code.take(8).map(|s| printable(s.name)).collect();
        let found = if names.is_empty() {
            "the object has no code".to_owned()
        } else {
            format!("no packet program among the sections {}", names.join(", "))
        };
        return Err(LoadError::new(
            "no-entry",
            found,
            "write `SEC(\"xdp\") int name(struct xdp_md *ctx)`, or ON_PACKET of nf.h",
        ));
    }
    Ok(entries)
}
