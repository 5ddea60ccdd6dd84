//! XDP objects of every supported compiler.

use crate::common;

use common::{each_clang, program};
use millrace_object::insn::{AtomicOp, Imm64, Insn};
use millrace_object::program::{Dialect, Role};
use millrace_object::state::{hash, ringbuf};
use millrace_object::{ParamError, load};

#[test]
fn reads_maps_globals_settings_and_calls() {
    each_clang(&program("counter.c"), |clang, bytes| {
        let program = load(bytes, "counter").unwrap_or_else(|e| panic!("{clang}: {e}"));
        assert_eq!(program.dialect, Dialect::Xdp, "{clang}");
        assert_eq!(program.license, "GPL");
        let entries: Vec<_> = program
            .entries
            .iter()
            .map(|e| (e.role, program.functions[e.function.0].name.as_str()))
            .collect();
        assert_eq!(
            entries,
            [(Role::Xdp, "count"), (Role::Xdp, "second")],
            "{clang}"
        );
        let names: Vec<_> = program.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(
            names,
            ["count", "second", "class_of"],
            "{clang}: only what is reached"
        );

        let object = |name: &str| program.objects.iter().find(|o| o.name == name).unwrap();
        let counts = object("counts");
        assert_eq!(counts.kind, &hash::KIND);
        assert_eq!(
            (counts.key_bytes, counts.value_bytes, counts.capacity),
            (4, 8, 1024)
        );
        assert_eq!(
            (object("events").kind, object("events").capacity),
            (&ringbuf::KIND, 4096)
        );
        assert_eq!(object(".bss").initial.as_deref(), Some(&[0; 8][..]));
        let data = object(".data").initial.clone().unwrap();
        let mut words: Vec<_> = data
            .chunks(4)
            .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
            .collect();
        words.sort();
        assert_eq!(words, [3, 5], "{clang}");
        assert!(object(".rodata").read_only && object(".rodata").settable);
    });
}

#[test]
fn resolves_references_and_lines() {
    each_clang(&program("counter.c"), |clang, bytes| {
        let program = load(bytes, "counter").unwrap();
        let count = &program.functions[0];
        let mut objects = std::collections::BTreeSet::new();
        for insn in &count.insns {
            match insn {
                Insn::LoadImm {
                    value: Imm64::Object(id),
                    ..
                }
                | Insn::LoadImm {
                    value: Imm64::ObjectValue { object: id, .. },
                    ..
                } => {
                    objects.insert(program.objects[id.0].name.as_str());
                }
                _ => {}
            }
        }
        let expected = [".bss", ".data", ".rodata", "counts"];
        assert_eq!(objects.into_iter().collect::<Vec<_>>(), expected, "{clang}");
        let is_call = |i: &Insn| matches!(i, Insn::CallLocal { function } if program.functions[function.0].name == "class_of");
        assert!(count.insns.iter().any(is_call), "{clang}");
        let is_add = |i: &Insn| {
            matches!(
                i,
                Insn::Atomic {
                    op: AtomicOp::Add,
                    ..
                }
            )
        };
        let at = count.insns.iter().position(is_add).unwrap();
        let line = count.lines[at].as_ref().unwrap();
        assert_eq!(&*line.text, "__sync_fetch_and_add(seen, 1);", "{clang}");
        assert!(line.file.ends_with("counter.c"), "{clang}: {}", line.file);
        let source = std::fs::read_to_string(common::program("counter.c")).unwrap();
        let written = source.lines().nth(line.line as usize - 1).unwrap().trim();
        assert_eq!(written, &*line.text, "{clang}");
        assert!(
            count.lines.iter().all(Option::is_some),
            "{clang}: every instruction inherits a line"
        );
    });
}

#[test]
fn settings_change_the_initial_bytes() {
    each_clang(&program("counter.c"), |clang, bytes| {
        let mut program = load(bytes, "counter").unwrap();
        let value = |program: &millrace_object::Program, name: &str| {
            let p = program.params.iter().find(|p| p.name == name).unwrap();
            let initial = program.objects[p.object.0].initial.as_ref().unwrap();
            initial[p.offset as usize..(p.offset + p.bytes) as usize].to_vec()
        };
        let mut names: Vec<_> = program.params.iter().map(|p| p.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["limit", "shift", "strict"], "{clang}");
        assert_eq!(value(&program, "limit"), [100, 0, 0, 0], "{clang}");
        assert_eq!(value(&program, "shift"), [0xfe, 0xff], "{clang}");
        program.set_param("limit", "0xffffffff").unwrap();
        assert_eq!(value(&program, "limit"), [255; 4]);
        program.set_param("limit", "0").unwrap();
        assert_eq!(value(&program, "limit"), [0; 4]);
        program.set_param("shift", "-32768").unwrap();
        assert_eq!(value(&program, "shift"), [0, 0x80]);
        program.set_param("strict", "false").unwrap();
        assert_eq!(value(&program, "strict"), [0]);
        let range = |e| matches!(e, Err(ParamError::OutOfRange { .. }));
        assert!(range(program.set_param("limit", "4294967296")));
        assert!(range(program.set_param("limit", "-1")));
        assert!(range(program.set_param("shift", "32768")));
        assert!(range(program.set_param("strict", "2")));
        for text in [
            "",
            "-",
            "0x",
            "--1",
            "+-1",
            "1e3",
            "ten",
            "0x-1",
            "9".repeat(99).as_str(),
        ] {
            let error = program.set_param("limit", text);
            assert!(
                matches!(error, Err(ParamError::NotANumber { .. })),
                "{text:?}"
            );
        }
        let error = program.set_param("limits", "1").unwrap_err().to_string();
        assert!(
            error.contains("limits") && error.contains("strict"),
            "{error}"
        );
        assert_eq!(
            value(&program, "limit"),
            [0; 4],
            "a refused setting changes nothing"
        );
    });
}

#[test]
fn every_compiler_and_option_gives_the_same_program_shape() {
    for cpu in ["-mcpu=v1", "-mcpu=v2", "-mcpu=v3"] {
        for clang in common::CLANGS {
            let Some(bytes) = common::compile(clang, &program("counter.c"), &[cpu]) else {
                continue;
            };
            let program = load(&bytes, "counter").unwrap_or_else(|e| panic!("{clang} {cpu}: {e}"));
            assert_eq!(program.functions.len(), 3, "{clang} {cpu}");
        }
    }
}

#[test]
fn type_information_may_be_absent() {
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nint seen = 7;\n\
                SEC(\"xdp\") int f(struct xdp_md *c) { return seen++ ? 2 : 1; }\n";
    let map = "struct { __uint(type, 1); __uint(max_entries, 1); __type(key, int); __type(value, int); } \
               m SEC(\".maps\");\n";
    for clang in common::CLANGS {
        let Some(bytes) = common::compile_text(clang, text, &["-g0"]) else {
            continue;
        };
        let program = load(&bytes, "x").unwrap_or_else(|e| panic!("{clang}: {e}"));
        assert!(
            program.functions[0].lines.iter().all(Option::is_none),
            "{clang}"
        );
        assert_eq!(
            program.objects[0].initial.as_deref(),
            Some(&[7, 0, 0, 0][..]),
            "{clang}"
        );
        let Some(bytes) = common::compile_text(clang, &format!("{text}{map}"), &["-g0"]) else {
            continue;
        };
        let error = load(&bytes, "x").unwrap_err();
        assert_eq!(error.rule, "no-btf", "{clang}: {error}");
        assert!(error.remedy.contains("-g"), "{error}");
    }
}

#[test]
fn functions_are_found_however_they_are_called() {
    let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
        static __noinline int unused_first(int x) { return x * 3; }\n\
        static __noinline int of_text(int x) { return x * 5; }\n\
        __weak int weak(int x) { return x * 7; }\n\
        __noinline __hidden int hidden(int x) { return x * 11; }\n\
        static __noinline SEC(\"xdp\") int beside(int x) { return x * 13; }\n\
        static long visit(__u32 i, void *c) { *(int *)c += i; return 0; }\n\
        SEC(\"xdp\") int f(struct xdp_md *c) {\n\
            int x = c->rx_queue_index, y = 0;\n\
            bpf_loop(3, visit, &y, 0);\n\
            return of_text(x) + weak(x) + hidden(x) + beside(x) + y; }\n\
        SEC(\"xdp.frags\") int g(struct xdp_md *c) { return of_text(c->rx_queue_index); }\n\
        SEC(\"xdp/other\") int h(struct xdp_md *c) { return unused_first(1); }\n";
    for clang in common::CLANGS {
        let Some(bytes) = common::compile_text(clang, text, &[]) else {
            continue;
        };
        let program = load(&bytes, "x").unwrap_or_else(|e| panic!("{clang}: {e}"));
        let name = |id: millrace_object::program::FunctionId| program.functions[id.0].name.as_str();
        let entries: Vec<_> = program.entries.iter().map(|e| name(e.function)).collect();
        assert_eq!(entries, ["f", "g", "h"], "{clang}");
        let mut called = Vec::new();
        for insn in &program.functions[0].insns {
            match insn {
                Insn::CallLocal { function } => called.push(name(*function)),
                Insn::LoadImm {
                    value: Imm64::Function(function),
                    ..
                } => called.push(name(*function)),
                _ => {}
            }
        }
        called.sort_unstable();
        assert_eq!(
            called,
            ["beside", "hidden", "of_text", "visit", "weak"],
            "{clang}"
        );
        let by_name: std::collections::HashSet<_> =
            program.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(
            by_name.len(),
            program.functions.len(),
            "{clang}: each function once"
        );
    }
}
