//! Where an XDP program begins.

use crate::btf::Btf;
use crate::btf::ext::Ext;
use crate::elf::Elf;
use crate::error::{LoadError, printable};
use crate::functions::{Functions, Signature, Span};
use crate::maps::slots::Slots;

/// Whether a section is for XDP by its name, as libbpf has it.
pub(crate) fn is_xdp(section: &str) -> bool {
    ["xdp", "xdp.frags"].iter().any(|name| {
        section
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The sections of programs of other types, as libbpf has them (`section_defs`): what an object
/// without type information has there is not for packets.
const OTHERS: &[&str] = &[
    "action",
    "cgroup",
    "classifier",
    "connect",
    "dev",
    "fentry",
    "fexit",
    "flow_dissector",
    "fmod_ret",
    "freplace",
    "iter",
    "kprobe",
    "kretprobe",
    "ksyscall",
    "kretsyscall",
    "license",
    "lirc_mode2",
    "lsm",
    "lwt",
    "netfilter",
    "netkit",
    "perf_event",
    "raw_tp",
    "raw_tracepoint",
    "sk_",
    "sockops",
    "socket",
    "struct_ops",
    "syscall",
    "tc",
    "tp",
    "tracepoint",
    "uprobe",
    "uretprobe",
    "usdt",
    "version",
];

/// Sections of second programs, which a device map or a CPU map runs on what was redirected through it;
/// nothing here runs them, and the host cannot enter one into a map.
const SECOND: &[&str] = &[
    "xdp/devmap",
    "xdp/cpumap",
    "xdp.frags/devmap",
    "xdp.frags/cpumap",
    "xdp_devmap",
    "xdp_cpumap",
];

/// Properties given by a function's section and type.
#[derive(PartialEq, Eq)]
enum Says {
    Packet,
    Other,
    Nothing,
}

fn says(section: &str, signature: Option<&Signature<'_>>) -> Says {
    if SECOND.iter().any(|second| section.starts_with(second)) {
        return Says::Other;
    }
    if is_xdp(section) {
        return match signature {
            // A program that looks at no packet may leave out its parameter.
            Some(s) if !s.params.is_empty() && !s.takes_pointer(None) => Says::Other,
            _ => Says::Packet,
        };
    }
    match signature {
        Some(s) if s.takes_pointer(Some("xdp_md")) => Says::Packet,
        Some(_) => Says::Other,
        None if OTHERS.iter().any(|other| section.starts_with(other)) => Says::Other,
        // Names like `xdp1` and `xdp_fw` are customary where the loader is the author's own.
        None if section.starts_with("xdp") => Says::Packet,
        None => Says::Nothing,
    }
}

/// Indices of the functions that are programs, in file order. A program is a global function of a
/// section for XDP, or of any section but `.text` if it takes a `struct xdp_md *`: names of sections
/// are free to those who bring their own loader. If nothing says so of any function, all those are
/// programs of which nothing says otherwise: an object without type information, its section called
/// `prog` or `2/7`. The proof then refuses what uses its context in another way.
pub(crate) fn find(
    elf: &Elf<'_>,
    functions: &Functions<'_>,
    btf: Option<&Btf>,
    ext: &Ext,
    slots: &Slots,
) -> Result<Vec<usize>, LoadError> {
    let that_say = |wanted: &[Says]| -> Vec<usize> {
        let spans = functions.spans.iter().enumerate();
        spans
            .filter(|(_, span)| span.global && span.section_name != ".text")
            .filter(|(_, span)| {
                let signature = Signature::of(btf, ext, span);
                let said = says(span.section_name, signature.as_ref());
                // What a packet program may tail-call is one too, if nothing says otherwise.
                let called = said == Says::Nothing && slots.has(span.section_name);
                called || wanted.contains(&said)
            })
            .map(|(index, _)| index)
            .collect()
    };
    let mut entries = that_say(&[Says::Packet]);
    let begins = |index: &usize| {
        let span = functions.spans.get(*index);
        span.is_some_and(|span| !slots.has(span.section_name))
    };
    if !entries.iter().any(begins) {
        entries = that_say(&[Says::Packet, Says::Nothing]);
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

/// Indices of the functions of these names, or in sections of these names: objects of old compilers name
/// programs by their sections.
pub(crate) fn named(functions: &Functions<'_>, names: &[&str]) -> Result<Vec<usize>, LoadError> {
    let find = |name: &&str| {
        let position = |what: &dyn Fn(&Span<'_>) -> bool| functions.spans.iter().position(what);
        let found = position(&|span| span.name == *name);
        let found = found.or_else(|| position(&|span| span.section_name == *name));
        found.ok_or_else(|| {
            LoadError::new(
                "no-entry",
                format!("there is no function `{}`", printable(name)),
                "name a function of the object",
            )
        })
    };
    names.iter().map(find).collect()
}
