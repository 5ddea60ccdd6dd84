//! Each rule on the smallest program that keeps it, next to the one that just breaks it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

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
fn packet_bounds_are_exact_in_every_form_of_the_comparison() {
    // (condition with r3 = data + 14, what the fall-through way proves)
    let forms = [
        ("if r3 > r2 goto out", 14),
        ("if r3 >= r2 goto out", 15),
        ("if r2 < r3 goto out", 14),
        ("if r2 <= r3 goto out", 15),
    ];
    for (form, proven) in forms {
        let with = |last: i32| {
            packet(&format!(
                "r3 = r1\nr3 += 14\n{form}\nr4 = *(u8 *)(r1 + {last})"
            ))
        };
        accepts(&with(proven - 1));
        refuses("packet-bounds", &with(proven));
    }
    let taken = [("<", 15), ("<=", 14)];
    for (op, proven) in taken {
        let with = |last: i32| {
            packet(&format!(
                "r3 = r1\nr3 += 14\nif r3 {op} r2 goto in\ngoto out\nin:\nr4 = *(u8 *)(r1 + {last})"
            ))
        };
        accepts(&with(proven - 1));
        refuses("packet-bounds", &with(proven));
    }
}

#[test]
fn variable_offsets_into_the_packet() {
    let with = |mask: &str, last: i32| {
        packet(&format!(
            "r3 = r1\nr3 += 14\nif r3 > r2 goto out\nr4 = *(u8 *)(r1 + 0)\n{mask}\nr1 += r4\nr5 = r1\nr5 += 20\nif r5 > r2 goto out\nr0 = *(u32 *)(r1 + {last})"
        ))
    };
    accepts(&with("r4 &= 60", 16));
    refuses("packet-bounds", &with("r4 &= 60", 17));
    accepts(&with("r4 <<= 6", 16));
    accepts(&with("r4 <<= 9", 16));
    refuses("pointer-reach", &with("r4 <<= 22", 16));
    refuses(
        "pointer-reach",
        &packet("r4 = *(u32 *)(r6 + 12)\nr4 <<= 32\nr1 += r4"),
    );
    // A bounded index into what has been proved already needs no comparison of its own.
    let table = |mask: i32| {
        packet(&format!(
            "r3 = r1\nr3 += 16\nif r3 > r2 goto out\nr4 = *(u8 *)(r1 + 0)\nr4 &= {mask}\nr1 += r4\nr0 = *(u8 *)(r1 + 0)"
        ))
    };
    accepts(&table(15));
    refuses("packet-bounds", &table(31));
}

#[test]
fn what_is_there_after_one_pointer_is_there_before_it() {
    // r5 is somewhere in the first 60 bytes and at most the end; r3 + 4 is at most r5.
    let with = |last: i32| {
        packet(&format!(
            "r4 = *(u32 *)(r6 + 12)\nr4 &= 60\nr5 = r1\nr5 += r4\nif r5 > r2 goto out\nr4 = *(u32 *)(r6 + 16)\nr4 &= 60\nr3 = r1\nr3 += r4\nr4 = r3\nr4 += 4\nif r4 > r5 goto out\nr0 = *(u8 *)(r3 + {last})"
        ))
    };
    accepts(&with(3));
    refuses("packet-bounds", &with(4));
}

#[test]
fn metadata_ends_at_the_packet() {
    let with = |n: i32| {
        packet(&format!(
            "r3 = *(u32 *)(r6 + 8)\nr4 = r3\nr4 += 4\nif r4 > r1 goto out\nr0 = *(u32 *)(r3 + {n})"
        ))
    };
    accepts(&with(0));
    refuses("packet-bounds", &with(1));
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
fn globals() {
    let object = "object table global value=16\n";
    accepts(&format!(
        "{object}r1 = value table + 8\nr0 = *(u64 *)(r1 + 0)\nexit"
    ));
    refuses(
        "value-bounds",
        &format!("{object}r1 = value table + 9\nr0 = *(u64 *)(r1 + 0)\nexit"),
    );
    let indexed = |mask: i32| {
        format!(
            "{object}r2 = *(u32 *)(r1 + 16)\nr2 &= {mask}\nr1 = value table\nr1 += r2\nr0 = *(u8 *)(r1 + 0)\nexit"
        )
    };
    accepts(&indexed(15));
    refuses("value-bounds", &indexed(31));
    let constant = |flags: &str, n: &str| {
        format!(
            "object limit global value=4 {flags} init={n}000000\n{object}r3 = value limit\nr2 = *(u32 *)(r3 + 0)\nr1 = value table\nr1 += r2\nr0 = *(u8 *)(r1 + 0)\nexit"
        )
    };
    accepts(&constant("ro", "0f"));
    refuses("value-bounds", &constant("ro", "10"));
    refuses("pointer-reach", &constant("ro settable", "0f"));
    refuses(
        "constant-write",
        "object limit global value=4 ro init=00000000\nr1 = value limit\n*(u32 *)(r1 + 0) = 1\nr0 = 0\nexit",
    );
    refuses(
        "pointer-leak",
        &format!("{object}r2 = value table\n*(u64 *)(r2 + 0) = r1\nr0 = 0\nexit"),
    );
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
fn packet_bytes_with_a_sign_are_bounded_by_their_width() {
    let with = |least: i32| {
        packet(&format!(
            "r3 = r1\nr3 += 14\nif r3 > r2 goto out\nr4 = *(s8 *)(r1 + 0)\nif r4 s< {least} goto out\n\
             r5 = r1\nr5 += 14\nr5 += r4\nr3 = r5\nr3 += 4\nif r3 > r2 goto out\nr0 = *(u32 *)(r5 + 0)"
        ))
    };
    accepts(&with(0));
    accepts(&with(-14));
    refuses("packet-bounds", &with(-15));
}

#[test]
fn a_comparison_with_null_in_a_register_is_a_null_check() {
    let with =
        |end: &str| format!("{TABLE}r7 = 0\nif r0 == r7 goto out\n{end}\nexit\nout:\nr0 = 1\nexit");
    accepts(&with("r0 = *(u64 *)(r0 + 8)"));
    refuses("value-bounds", &with("r0 = *(u64 *)(r0 + 9)"));
}

#[test]
fn lookups() {
    accepts(&format!(
        "{TABLE}if r0 == 0 goto out\nr0 = *(u64 *)(r0 + 8)\nexit\nout:\nr0 = 1\nexit"
    ));
    refuses(
        "value-bounds",
        &format!("{TABLE}if r0 == 0 goto out\nr0 = *(u64 *)(r0 + 9)\nexit\nout:\nr0 = 1\nexit"),
    );
    refuses(
        "unchecked-null",
        &format!("{TABLE}r0 = *(u64 *)(r0 + 8)\nexit"),
    );
    refuses(
        "unchecked-null",
        &format!("{TABLE}r0 += 8\nif r0 == 0 goto out\nout:\nr0 = 1\nexit"),
    );
    // A check of one copy is a check of all, spilled ones too.
    accepts(&format!(
        "{TABLE}r7 = r0\n*(u64 *)(r10 - 16) = r0\nif r7 == 0 goto out\nr1 = *(u64 *)(r10 - 16)\nr0 = *(u64 *)(r1 + 8)\nexit\nout:\nr0 = 1\nexit"
    ));
    refuses(
        "not-a-pointer",
        &format!("{TABLE}if r0 != 0 goto out\nr0 = *(u64 *)(r0 + 8)\nexit\nout:\nr0 = 1\nexit"),
    );
    refuses("uninitialised-register", &format!("{TABLE}r0 = r2\nexit"));
    refuses(
        "helper-argument",
        "object ring ringbuf\nr1 = object ring\nr2 = r10\ncall map_lookup_elem\nr0 = 1\nexit",
    );
    refuses(
        "partial-pointer",
        "object table hash key=8 value=16\n*(u64 *)(r10 - 8) = r1\nr2 = r10\nr2 += -8\nr1 = object table\ncall map_lookup_elem\nr0 = 1\nexit",
    );
}

/// `calls` with r6 = the context and r7 a byte count that nothing is known of, a key or value of 8 bytes
/// written, and r1 the first object or the second.
fn either(objects: &str, before: &str, calls: &str) -> String {
    format!(
        "{objects}\nr6 = r1\nr7 = *(u32 *)(r1 + 12)\n*(u64 *)(r10 - 8) = 1\n*(u64 *)(r10 - 16) = 1\nr1 = object a\nif r7 == 0 goto on\nr1 = object b\non:\nr2 = r10\nr2 += -8\n{before}\n{calls}\nr0 = 1\nexit\nout:\nr0 = 2\nexit"
    )
}

#[test]
fn one_call_for_several_objects() {
    let alike = "object a hash key=4 value=16\nobject b lru_hash key=4 value=16";
    let lookup = "call map_lookup_elem\nif r0 == 0 goto out";
    accepts(&either(alike, "", lookup));
    accepts(&either(
        alike,
        "",
        &format!("{lookup}\nr3 = *(u64 *)(r0 + 8)"),
    ));
    refuses(
        "value-bounds",
        &either(alike, "", &format!("{lookup}\nr3 = *(u64 *)(r0 + 9)")),
    );
    refuses(
        "unchecked-null",
        &either(alike, "", "call map_lookup_elem\nr3 = *(u64 *)(r0 + 8)"),
    );
    accepts(&either(alike, "", "call map_delete_elem"));
    accepts(&either(
        alike,
        "r3 = r10\nr3 += -16\nr4 = 0",
        "call map_update_elem",
    ));
    // Each object's own sizes count, for keys and for values.
    let longer = "object a hash key=4 value=16\nobject b hash key=8 value=24";
    accepts(&either(longer, "", lookup));
    let longest = "object a hash key=4 value=16\nobject b hash key=9 value=24";
    refuses("stack-bounds", &either(longest, "", lookup));
    refuses(
        "value-bounds",
        &either(longer, "", &format!("{lookup}\nr3 = *(u64 *)(r0 + 16)")),
    );
    accepts(&either(
        longer,
        "",
        &format!("{lookup}\nif r7 == 0 goto out\nr3 = *(u64 *)(r0 + 16)"),
    ));
    // 24 bytes of a value from 16 below the frame's end are not there.
    refuses(
        "stack-bounds",
        &either(
            longer,
            "r3 = r10\nr3 += -16\nr4 = 0",
            "call map_update_elem",
        ),
    );
    // And what the helper works on.
    refuses(
        "helper-argument",
        &either("object a hash\nobject b devmap", "", "call map_delete_elem"),
    );
    accepts(&either(
        "object a devmap\nobject b devmap_hash",
        "r2 = r7\nr3 = 0",
        "call redirect_map",
    ));
    accepts(&either(
        "object a prog_array\nobject b prog_array",
        "r2 = r1\nr1 = r6\nr3 = r7",
        "call tail_call",
    ));
    accepts(&either(
        "object a ringbuf capacity=4096\nobject b ringbuf capacity=4096",
        "r2 = 8\nr3 = 0",
        "call ringbuf_reserve\nif r0 == 0 goto out\n*(u64 *)(r0 + 0) = r7\nr1 = r0\nr2 = 0\ncall ringbuf_submit",
    ));
    // Round by round another one, by way of the stack and of a function.
    accepts(
        "object a hash key=4 value=16\nobject b hash key=4 value=16\nr1 = object a\nr2 = object b\n*(u64 *)(r10 - 16) = r1\n*(u64 *)(r10 - 24) = r2\nr6 = 0\nagain:\nr1 = *(u64 *)(r10 - 16)\nr2 = *(u64 *)(r10 - 24)\n*(u64 *)(r10 - 16) = r2\n*(u64 *)(r10 - 24) = r1\ncall fn find\nr6 += 1\nif r6 < 9 goto again\nr0 = 1\nexit\nfn find\n*(u32 *)(r10 - 4) = 1\nr2 = r10\nr2 += -4\ncall map_lookup_elem\nif r0 == 0 goto none\nr0 = 1\nnone:\nexit",
    );
    // Where the ways have met before the call.
    accepts(&either(alike, "if r7 > 9 goto call\nr8 = 1\ncall:", lookup));
    // A number is none of them.
    refuses(
        "helper-argument",
        &either(alike, "if r7 != 5 goto call\nr1 = 7\ncall:", lookup),
    );
    refuses(
        "helper-argument",
        &either(alike, "if r7 != 5 goto call\nr1 = 0\ncall:", lookup),
    );
}

#[test]
fn addresses_of_objects_compared() {
    let alike = "object a hash key=4 value=16\nobject b hash key=4 value=16";
    let with = |test: &str| {
        either(
            alike,
            "r3 = object a",
            &format!("{test}\nif r7 == 0 goto out\nr3 = *(u8 *)(r7 + 0)"),
        )
    };
    // Where the first was chosen, r7 is 0: only the second comes to the load that is refused.
    accepts(&with("if r1 != r3 goto out"));
    refuses("not-a-pointer", &with("if r1 == r3 goto out"));
    refuses("pointer-comparison", &with("if r1 > r3 goto out"));
    refuses("pointer-comparison", &with("if r1 != r2 goto out"));
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
fn places_in_values_related() {
    let with = |body: &str| {
        format!(
            "object v hash key=4 value=32\nobject g global value=32\nr6 = *(u32 *)(r1 + 12)\n*(u32 *)(r10 - 4) = 1\nr1 = object v\nr2 = r10\nr2 += -4\ncall map_lookup_elem\nif r0 == 0 goto out\nr7 = r0\nr1 = object v\nr2 = r10\nr2 += -4\ncall map_lookup_elem\nif r0 == 0 goto out\nr6 &= 15\nr3 = r7\nr3 += r6\n{body}\nout:\nr0 = 1\nexit"
        )
    };
    // By one lookup.
    accepts(&with("r3 -= r7\nr7 += r3\nr4 = *(u8 *)(r7 + 16)"));
    accepts(&with("if r3 > r7 goto out"));
    // By two, even with the same key.
    refuses("pointer-arithmetic", &with("r3 -= r0"));
    refuses("pointer-comparison", &with("if r7 == r0 goto out"));
    refuses("pointer-comparison", &with("if r7 < r0 goto out"));
    refuses("pointer-comparison", &with("r4 = r10\nif r7 < r4 goto out"));
}

#[test]
fn records() {
    let with = |body: &str| {
        format!(
            "object ring ringbuf capacity=4096\nr6 = *(u32 *)(r1 + 12)\nr1 = object ring\nr2 = 12\nr3 = 0\ncall ringbuf_reserve\nif r0 == 0 goto out\n{body}\nout:\nr0 = 1\nexit"
        )
    };
    let submit = "r1 = r0\nr2 = 0\ncall ringbuf_submit";
    accepts(&with(&format!("*(u32 *)(r0 + 8) = 1\n{submit}")));
    refuses(
        "record-bounds",
        &with(&format!("*(u32 *)(r0 + 9) = 1\n{submit}")),
    );
    refuses("record-leak", &with("*(u32 *)(r0 + 8) = 1"));
    refuses(
        "record-leak",
        &with(&format!("if r6 == 5 goto out\n{submit}")),
    );
    refuses(
        "record-used-after",
        &with(&format!("r7 = r0\n{submit}\n*(u32 *)(r7 + 0) = 1")),
    );
    refuses("helper-argument", &with(&format!("r0 += 4\n{submit}")));
    refuses(
        "record-used-after",
        &with(&format!(
            "r7 = r0\n{submit}\nr1 = r7\nr2 = 0\ncall ringbuf_submit"
        )),
    );
}

#[test]
fn a_moved_packet() {
    let with = |reload: &str| {
        packet(&format!(
            "r3 = r1\nr3 += 14\nif r3 > r2 goto out\nr7 = r1\nr1 = r6\nr2 = 0\ncall xdp_adjust_tail\n{reload}r0 = *(u8 *)(r7 + 0)"
        ))
    };
    refuses("stale-packet-pointer", &with(""));
    refuses("packet-bounds", &with("r7 = *(u32 *)(r6 + 0)\n"));
    accepts(&with(
        "r7 = *(u32 *)(r6 + 0)\nr2 = *(u32 *)(r6 + 4)\nr3 = r7\nr3 += 1\nif r3 > r2 goto out\n",
    ));
}

#[test]
fn how_long_a_packet_was_that_has_moved() {
    // r7 = data and r8 = data_end of before the calls.
    let with = |calls: usize, body: &str| {
        let call = "r1 = r6\nr2 = 0\ncall xdp_adjust_tail\n".repeat(calls);
        packet(&format!("r7 = r1\nr8 = r2\n{call}{body}"))
    };
    accepts(&with(1, "r8 -= r7"));
    accepts(&with(
        1,
        "*(u64 *)(r10 - 8) = r8\nr3 = *(u64 *)(r10 - 8)\nr3 += 4\nr3 -= r7",
    ));
    accepts(&with(1, "w8 -= w7"));
    accepts(&with(1, "w3 = w8\nw3 -= w7"));
    // Nothing is known of it but that it is a number.
    refuses(
        "stack-bounds",
        &with(
            1,
            "r8 -= r7\nr8 &= 511\nr3 = r10\nr3 -= 500\nr3 += r8\n*(u8 *)(r3 + 0) = 1",
        ),
    );
    for body in [
        "r3 = *(u8 *)(r7 + 0)",
        "*(u8 *)(r7 + 0) = 1",
        "r3 = r7\nr3 += 14\nif r3 > r8 goto out",
        "if r7 == r8 goto out",
        // One of them is of the packet as it is now.
        "r3 = *(u32 *)(r6 + 4)\nr3 -= r7",
        "r3 = *(u32 *)(r6 + 4)\nif r7 > r3 goto out",
    ] {
        refuses("stale-packet-pointer", &with(1, body));
    }
    // Which of two moves they are of before is forgotten.
    refuses("stale-packet-pointer", &with(2, "r8 -= r7"));
}

#[test]
fn an_array_has_all_of_its_values() {
    let with = |kind: &str, key: &str, body: &str| {
        let object = format!("object table {kind} key=4 value=16 capacity=4");
        let call = "r2 = r10\nr2 += -4\nr1 = object table\ncall map_lookup_elem";
        format!("{object}\n{key}\n{call}\n{body}\nr0 = 1\nexit")
    };
    let (constant, load) = ("*(u32 *)(r10 - 4) = 3", "r1 = *(u64 *)(r0 + 8)");
    accepts(&with("array", constant, load));
    accepts(&with("array", constant, "r0 += 8\n*(u64 *)(r0 + 0) = 1"));
    accepts(&with(
        "array",
        constant,
        &format!("if r0 == 0 goto on\n{load}\non:"),
    ));
    refuses(
        "value-bounds",
        &with("array", constant, "r1 = *(u64 *)(r0 + 9)"),
    );
    let beyond = "*(u32 *)(r10 - 4) = 4";
    let varies = "r1 = *(u32 *)(r1 + 12)\nr1 &= 3\n*(u32 *)(r10 - 4) = r1";
    for (kind, key) in [("array", beyond), ("array", varies), ("hash", constant)] {
        refuses("unchecked-null", &with(kind, key, load));
    }
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
fn the_length_of_the_packet() {
    // 32-bit copies of the ends, as compilers write `(__u32)(data_end - data)`.
    accepts(&packet("w4 = w2\nw4 -= w1\nr0 = r4"));
    refuses("pointer-arithmetic", &packet("w4 = w2\nr4 &= 7"));
    // data_end - data is at most 65535.
    accepts(&format!(
        "object t global value=65536\n{}",
        packet("r2 -= r1\nr4 = value t\nr4 += r2\nr0 = *(u8 *)(r4 + 0)")
    ));
    refuses(
        "value-bounds",
        &format!(
            "object t global value=65535\n{}",
            packet("r2 -= r1\nr4 = value t\nr4 += r2\nr0 = *(u8 *)(r4 + 0)")
        ),
    );
}

/// Fields of 32 bits hold the addresses of a packet, so 32 bits of a pointer into it are all of it.
#[test]
fn addresses_of_a_packet_have_32_bits() {
    let after = |check: &str, then: &str| packet(&format!("{check}\nif r3 > r2 goto out\n{then}"));
    let four = |then: &str| after("r3 = r1\nr3 += 4", then);
    // A copy, and one that was kept in 4 bytes.
    accepts(&four("w4 = w1\nr0 = *(u32 *)(r4 + 0)"));
    accepts(&four(
        "*(u32 *)(r10 - 4) = r1\nr4 = *(u32 *)(r10 - 4)\nr0 = *(u32 *)(r4 + 0)",
    ));
    // Sums, as signed numbers of 32 bits, and comparisons.
    accepts(&four("w4 = w1\nw4 += 4\nw4 += -3\nr0 = *(u8 *)(r4 + 0)"));
    accepts(&packet(
        "w4 = w1\nw4 += 4\nif w4 > w2 goto out\nr0 = *(u32 *)(r1 + 0)",
    ));
    refuses("packet-bounds", &four("w4 = w1\nr0 = *(u32 *)(r4 + 1)"));
    refuses(
        "packet-bounds",
        &packet("w4 = w1\nw4 += 4\nif w4 > w2 goto out\nr0 = *(u8 *)(r1 + 4)"),
    );
    refuses(
        "pointer-reach",
        &four("r5 = *(u32 *)(r1 + 0)\nw4 = w1\nw4 += w5\nr0 = 0"),
    );
    refuses(
        "pointer-comparison",
        &packet("if w1 s> w2 goto out\nr0 = 0"),
    );
    // Neither in parts nor with a sign, and no number.
    for load in [
        "r4 = *(u16 *)(r10 - 4)",
        "r4 = *(s32 *)(r10 - 4)",
        "r4 = *(u32 *)(r10 - 6)",
        "r4 = *(u64 *)(r10 - 8)",
    ] {
        refuses(
            "partial-pointer",
            &four(&format!(
                "r5 = 0\n*(u64 *)(r10 - 8) = r5\n*(u32 *)(r10 - 4) = r1\n{load}\nr0 = 0"
            )),
        );
    }
    // Other memory has addresses of more bits.
    refuses(
        "not-a-pointer",
        "r4 = r10\nw4 = w4\nr0 = *(u8 *)(r4 - 8)\nexit",
    );
    refuses("pointer-leak", "*(u32 *)(r10 - 4) = r10\nr0 = 0\nexit");
    // What the code does to a pointer it cannot do to a number that has more bits.
    let either = |number: &str| {
        packet(&format!(
            "r5 = *(u32 *)(r6 + 12)\n{number}\nr4 = r1\nif w5 == 0 goto on\nr4 = r5\non:\nw4 = w4\nr0 = 0"
        ))
    };
    accepts(&either("r5 &= 255"));
    refuses("pointer-arithmetic", &either("r5 <<= 8"));
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
fn a_map_that_programs_only_read_is_written_by_no_call_and_no_store() {
    let verdict = |body: &str, read_only: bool| {
        let mut program = assemble(&format!(
            "object m hash key=4 value=8 capacity=4\n*(u64 *)(r10 - 8) = 7\nr1 = object m\nr2 = r10\nr2 += -8\n{body}\nout:\nr0 = 0\nexit"
        ));
        program.objects[0].read_only = read_only;
        check(&program, &Options::default()).map_err(|r| r[0].rule)
    };
    let look = "call map_lookup_elem\nif r0 == 0 goto out";
    for writes in [
        "r3 = r2\nr4 = 0\ncall map_update_elem".to_owned(),
        "call map_delete_elem".to_owned(),
        format!("{look}\n*(u32 *)(r0 + 0) = 1"),
    ] {
        assert!(verdict(&writes, false).is_ok(), "{writes}");
        assert_eq!(
            verdict(&writes, true).unwrap_err(),
            "constant-write",
            "{writes}"
        );
    }
    assert!(verdict(&format!("{look}\nr1 = *(u32 *)(r0 + 0)"), true).is_ok());
}

#[test]
fn a_map_that_programs_only_write_is_read_by_no_load_and_no_call() {
    let verdict = |body: &str, flags: u32| {
        let mut program = assemble(&format!(
            "object m hash key=4 value=8 capacity=4\n*(u64 *)(r10 - 8) = 7\nr1 = object m\nr2 = r10\nr2 += -8\n\
             call map_lookup_elem\nif r0 == 0 goto out\n{body}\nout:\nr0 = 0\nexit"
        ));
        program.objects[0].flags = flags;
        check(&program, &Options::default()).map_err(|r| r[0].rule)
    };
    let copied = "r3 = r0\nr1 = object m\nr2 = r10\nr2 += -8\nr4 = 0\ncall map_update_elem";
    for reads in ["r1 = *(u32 *)(r0 + 0)", copied] {
        assert!(verdict(reads, 0).is_ok(), "{reads}");
        assert_eq!(
            verdict(reads, 1 << 8).unwrap_err(),
            "value-bounds",
            "{reads}"
        );
    }
    assert!(verdict("*(u32 *)(r0 + 0) = 1", 1 << 8).is_ok());
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
