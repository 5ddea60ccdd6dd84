//! Each rule on the smallest program that keeps it, next to the one that just breaks it.

mod objects;
mod packet;

use millrace_assemble::assemble;
use millrace_check::{Options, check};
use millrace_object::insn::{Insn, Reg, Width};
use millrace_object::program::{Entry, FunctionId, ObjectId, Param, Role};

/// The rule that the program breaks, or "ok".
fn verdict(text: &str) -> String {
    match check(&assemble(text), &Options::default()) {
        Ok(_) => "ok".to_owned(),
        Err(r) => r[0].rule.to_string(),
    }
}

#[track_caller]
fn accepts(text: &str) {
    if let Err(r) = check(&assemble(text), &Options::default()) {
        panic!("refused: {r:#?}");
    }
}

#[track_caller]
fn refuses(rule: &str, text: &str) {
    assert_eq!(verdict(text), rule, "{text}");
}

/// `BODY` runs with r1 = data, r2 = data_end, r6 = context.
fn packet(body: &str) -> String {
    format!(
        "r6 = r1\nr2 = *(u32 *)(r6 + 4)\nr1 = *(u32 *)(r6 + 0)\n{body}\nr0 = 2\nexit\nout:\nr0 = 1\nexit"
    )
}

#[test]
fn stack() {
    accepts("r1 = 7\n*(u64 *)(r10 - 8) = r1\nr0 = *(u64 *)(r10 - 8)\nexit");
    // What is left of an address that is partly overwritten is no number, wherever it is read.
    for read in [
        "r0 = *(u32 *)(r10 - 4)",
        "r0 = *(u64 *)(r10 - 8)",
        "r2 = r10\nr2 += -8\nr1 = object table\ncall map_lookup_elem\nr0 = 1",
    ] {
        let object = "object table hash key=8 value=16";
        refuses(
            "uninitialised-stack",
            &format!("{object}\n*(u64 *)(r10 - 8) = r1\n*(u32 *)(r10 - 8) = 1\n{read}\nexit"),
        );
    }
    accepts("*(u32 *)(r10 - 8) = 1\n*(u32 *)(r10 - 4) = 2\nr0 = *(u64 *)(r10 - 8)\nexit");
    accepts("*(u64 *)(r10 - 512) = 1\nr0 = 0\nexit");
    refuses("stack-bounds", "*(u64 *)(r10 - 513) = 1\nr0 = 0\nexit");
    refuses("stack-bounds", "*(u64 *)(r10 - 7) = 1\nr0 = 0\nexit");
    // A spilled pointer comes back as a pointer, a part of it does not come back at all.
    accepts("*(u64 *)(r10 - 8) = r1\nr1 = *(u64 *)(r10 - 8)\nr0 = *(u32 *)(r1 + 12)\nexit");
    refuses(
        "partial-pointer",
        "*(u64 *)(r10 - 8) = r1\nr0 = *(u32 *)(r10 - 8)\nexit",
    );
    refuses("pointer-leak", "*(u64 *)(r10 - 12) = r1\nr0 = 0\nexit");
    // Constants survive being stored in parts.
    let parts = |n: i32| {
        packet(&format!(
            "*(u8 *)(r10 - 8) = {n}\n*(u8 *)(r10 - 7) = 0\nr4 = *(u16 *)(r10 - 8)\nr3 = r1\nr3 += 14\nif r3 > r2 goto out\nr1 += r4\nr0 = *(u8 *)(r1 + 0)"
        ))
    };
    accepts(&parts(13));
    refuses("packet-bounds", &parts(14));
}

#[test]
fn atomics() {
    let with = |s: &str| {
        format!("object table global value=16\nr2 = 1\nr1 = value table\n{s}\nr0 = 0\nexit")
    };
    accepts(&with("lock *(u64 *)(r1 + 8) += r2"));
    refuses("atomic", &with("lock *(u64 *)(r1 + 4) += r2"));
    refuses("value-bounds", &with("lock *(u64 *)(r1 + 16) += r2"));
    refuses(
        "atomic",
        &packet("r3 = r1\nr3 += 8\nif r3 > r2 goto out\nr4 = 1\nlock *(u64 *)(r1 + 0) += r4"),
    );
}

#[test]
fn context() {
    accepts("r0 = *(u32 *)(r1 + 16)\nexit");
    refuses("context-field", "r0 = *(u32 *)(r1 + 20)\nexit");
    refuses("context-field", "r0 = *(u8 *)(r1 + 16)\nexit");
    refuses("context-field", "r0 = *(u64 *)(r1 + 24)\nexit");
    accepts("handlers\nr0 = *(u64 *)(r1 + 24)\nexit");
    refuses("context-write", "*(u32 *)(r1 + 16) = 1\nr0 = 0\nexit");
}

#[test]
fn registers_and_control() {
    refuses("uninitialised-register", "exit");
    refuses("uninitialised-register", "r0 = r3\nexit");
    refuses("pointer-return", "r0 = r1\nexit");
    refuses("falls-off", "r0 = 1");
    refuses("frame-pointer", "r10 = 1\nr0 = 0\nexit");
    refuses("not-a-pointer", "r1 = 4096\nr0 = *(u32 *)(r1 + 0)\nexit");
    refuses("pointer-arithmetic", "r1 &= -8\nr0 = 0\nexit");
    refuses("pointer-arithmetic", "w1 = w1\nr0 = 0\nexit");
    refuses("unknown-helper", "call 4000\nr0 = 0\nexit");
    refuses("call-register", "call r1\nr0 = 0\nexit");
    refuses("legacy-packet-load", "legacy\nr0 = 0\nexit");
    refuses(
        "pointer-comparison",
        "if r1 > 5 goto out\nout:\nr0 = 0\nexit",
    );
    refuses(
        "pointer-comparison",
        "if r1 == r10 goto out\nout:\nr0 = 0\nexit",
    );
}

#[test]
fn local_calls() {
    accepts("r1 = 3\ncall fn twice\nexit\nfn twice\nr0 = r1\nr0 += r1\nexit");
    refuses(
        "uninitialised-register",
        "r1 = 3\ncall fn twice\nr0 = r1\nexit\nfn twice\nr0 = r1\nexit",
    );
    refuses(
        "recursion",
        "call fn a\nexit\nfn a\ncall fn b\nexit\nfn b\ncall fn a\nexit",
    );
    refuses(
        "pointer-return",
        "call fn a\nr0 = 0\nexit\nfn a\nr0 = r10\nexit",
    );
    // The callee writes through a pointer to its caller's stack.
    accepts(
        "r1 = r10\nr1 += -8\ncall fn fill\nr0 = *(u64 *)(r10 - 8)\nexit\nfn fill\n*(u64 *)(r1 + 0) = 5\nr0 = 0\nexit",
    );
    refuses(
        "pointer-leak",
        "r1 = r10\nr1 += -8\ncall fn fill\nr0 = 0\nexit\nfn fill\n*(u64 *)(r1 + 0) = r10\nr0 = 0\nexit",
    );
    let chain = |n: usize| {
        let mut text = "call fn f1\nexit\n".to_owned();
        for i in 1..n {
            text += &format!("fn f{i}\ncall fn f{}\nexit\n", i + 1);
        }
        text + &format!("fn f{n}\nr0 = 0\nexit\n")
    };
    accepts(&chain(7));
    refuses("call-depth", &chain(8));
}

const TABLE: &str = "object table hash key=4 value=16\n*(u32 *)(r10 - 4) = 1\nr6 = r1\nr2 = r10\nr2 += -4\nr1 = object table\ncall map_lookup_elem\n";

#[test]
fn a_comparison_bounds_what_was_spilled_before_it() {
    let with = |most: i32| {
        format!(
            "object f global value=16\nr3 = *(u32 *)(r1 + 12)\n*(u64 *)(r10 - 8) = r3\nif r3 > {most} goto out\n\
             r4 = *(u64 *)(r10 - 8)\nr5 = value f + 0\nr5 += r4\nr0 = *(u8 *)(r5 + 0)\nexit\nout:\nr0 = 1\nexit"
        )
    };
    accepts(&with(15));
    refuses("value-bounds", &with(16));
}

#[test]
fn places_of_the_stack_related() {
    let with = |body: &str| {
        format!("object v array key=4 value=32\nr6 = *(u32 *)(r1 + 12)\n{body}\nr0 = 1\nexit")
    };
    let two = "r2 = r10\nr2 += -8\nr3 = r10\nr3 += -24";
    // The distance is known in full: a wrong branch is no way.
    let wrong = "r4 = *(u8 *)(r6 + 0)";
    accepts(&with(&format!(
        "{two}\nr2 -= r3\nif r2 == 16 goto on\n{wrong}\non:"
    )));
    refuses(
        "not-a-pointer",
        &with(&format!(
            "{two}\nr2 -= r3\nif r2 != 16 goto on\n{wrong}\non:"
        )),
    );
    // So is the order, and whether they are the same place.
    accepts(&with(&format!("{two}\nif r2 > r3 goto on\n{wrong}\non:")));
    accepts(&with(&format!("{two}\nif r2 != r3 goto on\n{wrong}\non:")));
    refuses(
        "not-a-pointer",
        &with(&format!("{two}\nif r2 < r3 goto on\n{wrong}\non:")),
    );
    // A variable one is as near as its number, and a comparison brings it nearer.
    let some = "r6 &= 15\nr2 = r10\nr2 += -16\nr2 += r6\nr3 = r10\nr3 += -8";
    refuses(
        "stack-bounds",
        &with(&format!("{some}\n*(u64 *)(r2 + 0) = 1")),
    );
    accepts(&with(&format!(
        "{some}\nif r2 > r3 goto on\n*(u64 *)(r2 + 0) = 1\non:"
    )));
    refuses(
        "stack-bounds",
        &with(&format!(
            "{some}\nif r2 < r3 goto on\n*(u64 *)(r2 + 0) = 1\non:"
        )),
    );
    // Addresses have no bits, and no halves but in a difference.
    refuses(
        "pointer-comparison",
        &with(&format!("{two}\nif r2 & r3 goto on\non:")),
    );
    refuses(
        "pointer-comparison",
        &with(&format!("{two}\nif w2 == w3 goto on\non:")),
    );
    accepts(&with(&format!("{two}\nw2 = w2\nw3 = w3\nw2 -= w3")));
    refuses(
        "pointer-arithmetic",
        &with(&format!("{two}\nw2 = w2\nr2 -= r3")),
    );
}

#[test]
fn sizes_for_helpers() {
    let with = |bound: &str| {
        format!(
            "object ring ringbuf\nr6 = *(u32 *)(r1 + 12)\n*(u64 *)(r10 - 16) = 0\n*(u64 *)(r10 - 8) = 0\n{bound}\nr1 = object ring\nr2 = r10\nr2 += -16\nr3 = r6\nr4 = 0\ncall ringbuf_output\nout:\nr0 = 1\nexit"
        )
    };
    accepts(&with("if r6 > 16 goto out"));
    refuses("stack-bounds", &with("if r6 > 17 goto out"));
    refuses("stack-bounds", &with("r6 &= 31"));
    refuses("helper-argument", &with("r6 <<= 30"));
}

#[test]
fn what_two_tests_of_one_number_show() {
    // The second test can go only the way of the first, so the pointer is set where it is used.
    accepts(
        "r6 = r1\nr9 = *(u32 *)(r6 + 12)\nr7 = 0\nif r9 == 0 goto a\nr7 = r10\nr7 += -8\n*(u64 *)(r10 - 8) = 3\na:\nr1 = 0\nr2 = 0\nr3 = 0\nr4 = 0\nr5 = 0\nr1 = 1\nr2 = 1\nr0 = 0\nif r9 == 0 goto out\nr0 = *(u64 *)(r7 + 0)\nout:\nexit",
    );
    refuses(
        "not-a-pointer",
        "r6 = r1\nr9 = *(u32 *)(r6 + 12)\nr7 = 0\nif r9 == 0 goto a\nr7 = r10\nr7 += -8\n*(u64 *)(r10 - 8) = 3\na:\nr1 = 0\nr2 = 0\nr3 = 0\nr4 = 0\nr5 = 0\nr1 = 1\nr2 = 1\nr0 = 0\nif r9 == 1 goto out\nr0 = *(u64 *)(r7 + 0)\nout:\nexit",
    );
}

#[test]
fn only_packet_entries_need_a_verdict() {
    let mut program = assemble("handlers\nr3 = *(u64 *)(r1 + 24)\nexit");
    assert_eq!(
        check(&program, &Options::default()).unwrap_err()[0].rule,
        "uninitialised-register"
    );
    for role in [Role::OnStart, Role::OnStop, Role::Every { period: 1 }] {
        program.entries[0].role = role;
        assert!(check(&program, &Options::default()).is_ok());
    }
}

#[test]
fn every_entry_that_breaks_a_rule_is_named() {
    let mut program = assemble("r0 = r5\nexit\nfn second\nr0 = r1\nexit\nfn third\nr0 = 0\nexit");
    program.entries = (0..3)
        .map(|f| Entry {
            role: Role::Xdp,
            function: FunctionId(f),
        })
        .collect();
    let refusals = check(&program, &Options::default()).unwrap_err();
    let found: Vec<_> = refusals
        .iter()
        .map(|r| (r.function.as_str(), r.rule))
        .collect();
    assert_eq!(
        found,
        [
            ("main", "uninitialised-register"),
            ("second", "pointer-return")
        ]
    );
}

#[test]
fn instructions_that_no_compiler_writes() {
    let mut program = assemble("r0 = 0\nexit");
    program.functions[0].insns[0] = Insn::Neg {
        width: Width::W64,
        dst: Reg(11),
    };
    assert_eq!(
        check(&program, &Options::default()).unwrap_err()[0].rule,
        "bad-instruction"
    );
    // The budget of may_goto is counted down by one, behind its comparison, and by nothing else.
    for by in [1, -1, 5] {
        program.functions[0].insns[0] = Insn::Alu {
            op: millrace_object::insn::AluOp::Sub,
            width: Width::W64,
            dst: Reg(11),
            src: millrace_object::insn::Operand::Imm(by),
        };
        let refusals = check(&program, &Options::default()).unwrap_err();
        assert_eq!(refusals[0].rule, "bad-instruction", "{by}");
    }
    program.functions[0].insns[0] = Insn::Jump { target: 99 };
    assert_eq!(
        check(&program, &Options::default()).unwrap_err()[0].rule,
        "jump-outside"
    );
    program.functions[0].insns[0] = Insn::CallLocal {
        function: FunctionId(7),
    };
    assert_eq!(
        check(&program, &Options::default()).unwrap_err()[0].rule,
        "unknown-function"
    );
    program.entries[0].function = FunctionId(7);
    assert_eq!(
        check(&program, &Options::default()).unwrap_err()[0].rule,
        "unknown-function"
    );
}

#[test]
fn formats_that_read_memory() {
    let with = |format: &str| {
        let bytes: String = format.bytes().map(|b| format!("{b:02x}")).collect();
        format!(
            "object f global value={} ro init={bytes}00\n*(u64 *)(r10 - 8) = 7\nr1 = r10\nr1 += -24\nr2 = 16\nr3 = value f + 0\nr4 = r10\nr4 += -8\nr5 = 8\ncall snprintf\nr0 = *(u8 *)(r10 - 24)\nexit",
            format.len() + 1
        )
    };
    for format in ["%d", "%%s", "%-08llx", "%c", "% ", "%q"] {
        accepts(&with(format));
    }
    for format in ["%s", "%5d %p", "%pI4", "%-10s"] {
        refuses("format", &with(format));
    }
}

#[test]
fn a_format_beside_a_parameter_is_constant_and_one_within_is_not() {
    let verdict = |offset: u32| {
        let mut program = assemble(
            "object f global value=8 ro init=2564000000000000\n*(u64 *)(r10 - 8) = 7\nr1 = r10\nr1 += -24\nr2 = 16\n\
             r3 = value f + 0\nr4 = r10\nr4 += -8\nr5 = 8\ncall snprintf\nr0 = 0\nexit",
        );
        program.objects[0].settable = true;
        program.params.push(Param {
            name: "p".into(),
            object: ObjectId(0),
            offset,
            bytes: 4,
            signed: false,
            type_name: "int".into(),
        });
        check(&program, &Options::default()).map_err(|r| r[0].rule)
    };
    assert!(verdict(4).is_ok());
    assert_eq!(verdict(0).unwrap_err(), "helper-argument");
}

#[test]
fn what_is_absent() {
    use millrace_object::helper::ABSENT;
    let call = Insn::Call { helper: ABSENT };
    // Where it can be executed.
    let mut program = assemble("r0 = 0\nexit");
    program.functions[0].insns[0] = call;
    let refusals = check(&program, &Options::default()).unwrap_err();
    assert_eq!(refusals[0].rule, "absent-field");
    // Where it cannot.
    let mut program = assemble("r0 = 0\nif r0 == 0 goto out\nr0 = 1\nout:\nexit");
    program.functions[0].insns[2] = call;
    check(&program, &Options::default()).unwrap();
}

#[test]
fn the_readme_has_every_rule() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(file).unwrap();
    for rule in millrace_check::Rule::ALL {
        let name = format!("`{}`", rule.name());
        assert!(text.contains(&name), "{name} is not in the table of rules");
    }
}
