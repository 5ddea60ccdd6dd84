//! Rules about objects and their values.

use millrace_assemble::assemble;
use millrace_check::{Options, check};

use super::{TABLE, accepts, refuses};

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
