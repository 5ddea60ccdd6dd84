//! CO-RE relocations: what a program learns of types, and what happens when its tables lie.

use crate::common;

use common::{CLANGS, compile_text};
use millrace_object::helper::ABSENT;
use millrace_object::insn::{AluOp, Imm64, Operand, Reg};
use millrace_object::{Insn, Program, load};

const HEAD: &str = "#include <linux/bpf.h>\n#include <linux/ip.h>\n#include <bpf/bpf_helpers.h>\n\
                    #include <bpf/bpf_core_read.h>\n";

/// A program whose result is this expression, as each compiler here has it.
fn results(declarations: &str, expression: &str) -> Vec<(&'static str, Program)> {
    let text = format!(
        "{HEAD}{declarations}\nSEC(\"xdp\") int f(struct xdp_md *c) {{ return {expression}; }}"
    );
    let found = CLANGS.iter().filter_map(|clang| {
        let bytes = compile_text(clang, &text, &["-Wno-all"])?;
        let program = load(&bytes, "program");
        Some((
            *clang,
            program.unwrap_or_else(|e| panic!("{clang}: {expression}: {e}")),
        ))
    });
    found.collect()
}

/// The number that r0 is last set to.
fn number(program: &Program) -> Option<i64> {
    let insns = &program.functions[0].insns;
    insns.iter().rev().find_map(|insn| match insn {
        Insn::Alu {
            op: AluOp::Mov,
            dst: Reg(0),
            src: Operand::Imm(n),
            ..
        } => Some(*n),
        Insn::LoadImm {
            dst: Reg(0),
            value: Imm64::Number(n),
        } => Some(*n as i64),
        _ => None,
    })
}

#[test]
fn questions_are_answered_of_the_user_api() {
    let sock = "struct sk_buff { int len; } __attribute__((preserve_access_index));
                struct xdp_md___other { unsigned data_end; unsigned absent; } __attribute__((preserve_access_index));
                enum unheard { NEVER = 5 };";
    for (expression, expected) in [
        ("bpf_core_field_exists(struct iphdr, ttl)", 1),
        ("bpf_core_field_exists(struct sk_buff, len)", 0),
        ("bpf_core_field_exists(struct xdp_md___other, data_end)", 1),
        ("bpf_core_field_exists(struct xdp_md___other, absent)", 0),
        ("bpf_core_type_exists(struct iphdr)", 1),
        ("bpf_core_type_exists(struct sk_buff)", 0),
        ("bpf_core_type_size(struct iphdr)", 20),
        ("bpf_core_type_size(struct sk_buff)", 0),
        ("bpf_core_field_size(struct iphdr, daddr)", 4),
        ("bpf_core_field_offset(struct iphdr, daddr)", 16),
        ("bpf_core_field_offset(struct xdp_md___other, data_end)", 4),
        (
            "bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_redirect)",
            1,
        ),
        (
            "bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_sk_fullsock)",
            0,
        ),
        ("bpf_core_enum_value_exists(enum unheard, NEVER)", 0),
        ("bpf_core_enum_value(enum unheard, NEVER)", 5),
        ("bpf_core_enum_value(enum xdp_action, XDP_TX)", 3),
    ] {
        for (clang, program) in results(sock, expression) {
            // Without a plain `struct xdp_md` among the types there is nothing to find a flavour in.
            assert_eq!(number(&program), Some(expected), "{clang}: {expression}");
        }
    }
}

#[test]
fn a_flavor_reads_where_the_target_has_the_field() {
    // The target is one that the object itself uses.
    let types = "struct deep { int a; union { struct { unsigned long long b; unsigned c:5, d:7; }; int e[4]; }; };
                 struct deep___mine { int unused; struct { unsigned d:7; }; int e[2]; int gone; } __attribute__((preserve_access_index));
                 struct deep keep;";
    for (expression, expected) in [
        (
            "keep.a + bpf_core_field_offset(struct deep___mine, e[1])",
            12,
        ),
        ("bpf_core_field_offset(struct deep___mine, d)", 16),
    ] {
        for (clang, program) in results(types, expression) {
            let insns = &program.functions[0].insns;
            let found = insns.iter().any(|insn| {
                matches!(insn, Insn::Alu { src: Operand::Imm(n), .. } if *n == expected)
                    || matches!(insn, Insn::LoadImm { value: Imm64::Number(n), .. } if *n as i64 == expected)
            });
            assert!(found, "{clang}: {expression}: {program}");
        }
    }
    for (clang, program) in results(
        types,
        "keep.a + bpf_core_field_offset(struct deep___mine, gone)",
    ) {
        let insns = &program.functions[0].insns;
        let absent = |i: &Insn| matches!(i, Insn::Call { helper } if *helper == ABSENT);
        assert!(insns.iter().any(absent), "{clang}: {program}");
    }
}

/// The section's place in the file: offset and length.
fn section(object: &[u8], name: &str) -> (usize, usize) {
    let number = |at: usize, width: usize| {
        object[at..at + width]
            .iter()
            .rev()
            .fold(0, |n, b| n << 8 | usize::from(*b))
    };
    let (headers, count, names) = (number(0x28, 8), number(0x3c, 2), number(0x3e, 2));
    let strings = number(headers + 64 * names + 24, 8);
    let wanted = [name.as_bytes(), b"\0"].concat();
    (0..count)
        .map(|i| headers + 64 * i)
        .find(|h| object[strings + number(*h, 4)..].starts_with(&wanted))
        .map(|h| (number(h + 24, 8), number(h + 32, 8)))
        .unwrap()
}

#[test]
fn tables_that_lie_are_refused_or_change_nothing_else() {
    let text = format!(
        "{HEAD}SEC(\"xdp\") int f(struct xdp_md *c) {{ return bpf_core_field_exists(struct iphdr, ttl)
             + bpf_core_type_size(struct iphdr) + bpf_core_enum_value(enum xdp_action, XDP_TX); }}"
    );
    for clang in CLANGS {
        let Some(bytes) = compile_text(clang, &text, &["-Wno-all"]) else {
            continue;
        };
        let (start, _) = section(&bytes, ".BTF.ext");
        let word = |at: usize| {
            u32::from_le_bytes(bytes[start + at..start + at + 4].try_into().unwrap()) as usize
        };
        // The first record: after the record size, the section's name and count.
        let records = start + word(4) + word(24);
        let first = records + 12;
        assert_eq!(word(28), 12 + 3 * 16, "{clang}");
        let mut refused = 0;
        for at in first..first + 48 {
            for value in [0, 1, 2, 3, 7, 13, 0x7f, 0x80, 0xff] {
                let mut object = bytes.clone();
                object[at] = value;
                if let Err(error) = load(&object, "program") {
                    refused += 1;
                    assert!(
                        ["core-relocation", "malformed"].contains(&error.rule),
                        "{clang}: {error}"
                    );
                }
            }
        }
        assert!(refused > 100, "{clang}: {refused}");
        for (at, value) in [
            (records, 15),
            (records, 0),
            (records + 8, 4),
            (start + 28, 59),
        ] {
            let mut object = bytes.clone();
            object[at] = value;
            let error = load(&object, "program").unwrap_err();
            assert_eq!(
                error.section.as_deref(),
                Some(".BTF.ext"),
                "{clang}: {error}"
            );
        }
    }
}
