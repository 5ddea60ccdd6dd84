//! The network functions of the repository, with every supported compiler.

use crate::common;

use std::path::Path;

use millrace_object::insn::{Imm64, Insn};
use millrace_object::{helper, load};

#[test]
fn every_function_loads_from_every_compiler() {
    let nfs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nfs");
    let mut names: Vec<String> = std::fs::read_dir(nfs.clone())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| nfs.join(name).join(format!("{name}.c")).exists())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    for name in names {
        let source = nfs.join(&name).join(format!("{name}.c"));
        for clang in common::CLANGS {
            let Some(bytes) = common::compile(clang, &source, &[]) else {
                continue;
            };
            let program = load(&bytes, &name).unwrap_or_else(|e| panic!("{clang}: {e}"));
            assert!(!program.entries.is_empty(), "{clang} {name}");
            for function in &program.functions {
                assert_eq!(function.insns.len(), function.slots.len());
                assert_eq!(function.insns.len(), function.lines.len());
                assert!(function.lines.iter().any(Option::is_some), "{clang} {name}");
                for insn in &function.insns {
                    check(&program, function, insn);
                }
            }
        }
    }
}

/// Every number inside an instruction names something.
fn check(
    program: &millrace_object::Program,
    function: &millrace_object::program::Function,
    insn: &Insn,
) {
    match *insn {
        Insn::Jump { target } | Insn::Branch { target, .. } => {
            assert!(target < function.insns.len());
        }
        Insn::Call { helper } => assert!(helper::by_number(helper).is_some(), "{helper:#x}"),
        Insn::CallLocal { function: id } => assert!(id.0 < program.functions.len()),
        Insn::LoadImm {
            value: Imm64::Object(id),
            ..
        } => assert!(id.0 < program.objects.len()),
        Insn::LoadImm {
            value: Imm64::ObjectValue { object, offset },
            ..
        } => {
            assert!(offset <= program.objects[object.0].value_bytes);
        }
        _ => {}
    }
}
