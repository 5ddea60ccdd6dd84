//! Maps that are found in other maps, and values without keys: what a program may do with them.

use millrace_assemble::assemble;
use millrace_check::facts::{ArgFact, Kind};
use millrace_check::{Options, check};
use millrace_object::program::{Nesting, ObjectId, Program};
use millrace_object::state;

/// `outer` holds maps like `shape`, as does `other` those like `shape2`; `q` is a queue, `b` a Bloom filter.
fn program(body: &str) -> Program {
    let mut program = assemble(&format!(
        "object outer hash\nobject shape hash value=16\nobject other hash\nobject shape2 hash value=16\n\
         object q hash key=0 value=12\nobject b hash key=0 value=12\nobject h hash\nobject h2 hash\n{body}"
    ));
    for (holder, shape) in [(0, 1), (2, 3)] {
        program.objects[holder].kind = state::by_name("hash_of_maps").unwrap();
        program.objects[holder].value_bytes = 4;
        let (shape, values) = (ObjectId(shape), Vec::new());
        program.objects[holder].nesting = Some(Nesting::Holds { shape, values });
        program.objects[shape.0].nesting = Some(Nesting::Shape(ObjectId(holder)));
        program.objects[shape.0].kind = state::by_name("hash").unwrap();
    }
    program.objects[4].kind = state::by_name("queue").unwrap();
    program.objects[5].kind = state::by_name("bloom_filter").unwrap();
    program
}

fn verdict(body: &str) -> String {
    match check(&program(body), &Options::default()) {
        Ok(_) => "ok".to_owned(),
        Err(r) => r[0].rule.to_owned(),
    }
}

/// r0 is the map that was found in `outer`, or null; r10 - 4 is a key.
const FOUND: &str =
    "*(u32 *)(r10 - 4) = 1\nr1 = object outer\nr2 = r10\nr2 += -4\ncall map_lookup_elem\n";
const NULL: &str = "if r0 == 0 goto out\n";
const OUT: &str = "\nout:\nr0 = 2\nexit";
const LOOKUP: &str = "r1 = r0\nr2 = r10\nr2 += -4\ncall map_lookup_elem\n";

#[test]
fn a_map_that_was_found_is_used_like_one_of_its_shape() {
    let used = format!(
        "{FOUND}{NULL}*(u64 *)(r10 - 16) = r0\n{LOOKUP}{NULL}r3 = *(u64 *)(r0 + 8)\n\
         r1 = *(u64 *)(r10 - 16)\nr2 = r10\nr2 += -4\ncall map_delete_elem{OUT}"
    );
    let program = program(&used);
    let checked = check(&program, &Options::default()).unwrap();
    let steps = &checked.flows[0].steps;
    let calls: Vec<_> = steps.iter().filter(|s| !s.args.is_empty()).collect();
    assert_eq!(calls[0].after, Kind::Inner(ObjectId(1)));
    assert_eq!(calls[1].args[0], ArgFact::Object(ObjectId(1)));
    assert_eq!(calls[1].after, Kind::Value(ObjectId(1)));
    assert_eq!(calls[2].args[0], ArgFact::Object(ObjectId(1)));
}

/// Looks up in a map of one map of maps or of another; `before` stands where the ways have met.
fn of_either(before: &str) -> String {
    format!(
        "r7 = *(u32 *)(r1 + 12)\nr6 = *(u32 *)(r1 + 16)\n*(u32 *)(r10 - 4) = 1\nif r6 == 0 goto second\n\
         r1 = object outer\nr2 = r10\nr2 += -4\ncall map_lookup_elem\n{NULL}goto both\n\
         second:\nr1 = object other\nr2 = r10\nr2 += -4\ncall map_lookup_elem\n{NULL}\
         both:\n{before}{LOOKUP}{OUT}"
    )
}

#[test]
fn one_call_on_maps_of_either_map_of_maps() {
    assert_eq!(verdict(&of_either("")), "ok");
}

/// Looks up in a map that was found or in one of the program's, where the ways have met before the call;
/// `after` sees the value.
fn of_found_or_declared(after: &str) -> String {
    format!(
        "r7 = *(u32 *)(r1 + 12)\nr6 = *(u32 *)(r1 + 16)\n{FOUND}if r0 != 0 goto both\nr0 = object h\n\
         if r6 == 0 goto both\nr0 = object h2\nboth:\nif r7 == 0 goto met\nr7 = 1\nmet:\n\
         {LOOKUP}{NULL}{after}{OUT}"
    )
}

#[test]
fn one_call_on_a_map_that_was_found_or_a_declared_one() {
    let body = of_found_or_declared("r3 = *(u64 *)(r0 + 0)");
    assert_eq!(verdict(&body), "ok");
    let program = program(&body);
    let checked = check(&program, &Options::default()).unwrap();
    let steps = checked.flows[0].steps.iter().filter(|s| s.reached);
    let works_on = |s: &millrace_check::facts::Step| match s.args.first() {
        Some(ArgFact::Object(o)) => Some(program.objects[o.0].name.clone()),
        _ => None,
    };
    let mut objects: Vec<String> = steps.filter_map(works_on).collect();
    objects.sort();
    assert_eq!(objects, ["h", "h2", "outer", "shape"]);
}

#[test]
fn what_must_not_be_done_with_a_map_that_was_found() {
    let cases = [
        ("unchecked-null", format!("{FOUND}{LOOKUP}{OUT}")),
        (
            "opaque-pointer",
            format!("{FOUND}{NULL}r3 = *(u64 *)(r0 + 0){OUT}"),
        ),
        (
            "opaque-pointer",
            format!("{FOUND}{NULL}*(u64 *)(r0 + 0) = 1{OUT}"),
        ),
        (
            "pointer-arithmetic",
            format!("{FOUND}{NULL}r0 += 8\n{LOOKUP}{OUT}"),
        ),
        // The maps' values are 16 bytes.
        (
            "value-bounds",
            format!("{FOUND}{NULL}{LOOKUP}{NULL}r3 = *(u64 *)(r0 + 9){OUT}"),
        ),
        // A program cannot change which maps there are.
        (
            "helper-argument",
            format!(
                "{FOUND}r1 = object outer\nr2 = r10\nr2 += -4\nr3 = r10\nr3 += -4\nr4 = 0\ncall map_update_elem{OUT}"
            ),
        ),
        (
            "helper-argument",
            format!("{FOUND}r1 = object outer\nr2 = r10\nr2 += -4\ncall map_delete_elem{OUT}"),
        ),
        // Of two maps of maps at one call it is not known what the maps in them are like, where the ways
        // have met before it.
        (
            "several-objects",
            of_either("if r7 == 0 goto met\nr7 = 1\nmet:\n"),
        ),
        // Whether a map that was found is one of the program's is not for the program to ask: the kernel
        // would answer, but the address here is of the place where it was found.
        (
            "pointer-comparison",
            format!("{FOUND}{NULL}r1 = object h\nif r0 == r1 goto out\n{OUT}"),
        ),
        (
            "value-bounds",
            of_found_or_declared("r3 = *(u64 *)(r0 + 9)"),
        ),
        (
            "pointer-return",
            format!("{FOUND}{NULL}exit\nout:\nr0 = 2\nexit"),
        ),
    ];
    for (rule, body) in cases {
        assert_eq!(verdict(&body), rule, "{body}");
    }
}

#[test]
fn values_without_a_key() {
    let call = |object: &str, helper: &str, before: &str, after: &str| {
        format!(
            "{before}r1 = object {object}\nr2 = r10\nr2 += -12\nr3 = 0\ncall {helper}\n{after}r0 = 2\nexit"
        )
    };
    const WRITTEN: &str = "*(u32 *)(r10 - 12) = 1\n*(u64 *)(r10 - 8) = 1\n";
    // Half of an address is left.
    const SPOILT: &str = "*(u64 *)(r10 - 8) = r10\n*(u32 *)(r10 - 8) = 1\n";
    const READ: &str = "r3 = *(u64 *)(r10 - 8)\n";
    for (rule, object, helper, before, after) in [
        ("ok", "q", "map_push_elem", WRITTEN, ""),
        ("uninitialised-stack", "q", "map_push_elem", SPOILT, ""),
        // What is taken out need not have been written, and is afterwards.
        ("ok", "q", "map_pop_elem", "", READ),
        ("ok", "q", "map_peek_elem", "", READ),
        // A filter is asked, so the value is read.
        ("ok", "b", "map_push_elem", WRITTEN, ""),
        ("ok", "b", "map_peek_elem", WRITTEN, ""),
        ("uninitialised-stack", "b", "map_peek_elem", SPOILT, ""),
        ("helper-argument", "b", "map_pop_elem", WRITTEN, ""),
        ("helper-argument", "q", "map_lookup_elem", WRITTEN, ""),
        ("helper-argument", "q", "map_delete_elem", WRITTEN, ""),
        ("helper-argument", "b", "map_lookup_elem", WRITTEN, ""),
        ("helper-argument", "h", "map_push_elem", WRITTEN, ""),
    ] {
        let body = call(object, helper, before, after);
        assert_eq!(verdict(&body), rule, "{body}");
    }
    // Twelve bytes do not fit here.
    let short = "r1 = object q\nr2 = r10\nr2 += -8\ncall map_pop_elem\nr0 = 2\nexit";
    assert_eq!(verdict(short), "stack-bounds");
}

/// The first element of a map like `shape`, an array, is written without a look at whether it is there.
fn first_element(kind: &str, flags: u32) -> Result<(), String> {
    let mut program = program(&format!(
        "{FOUND}{NULL}*(u32 *)(r10 - 4) = 0\n{LOOKUP}*(u64 *)(r0 + 0) = 1{OUT}"
    ));
    program.objects[1].kind = state::by_name(kind).unwrap();
    program.objects[1].flags = flags;
    let rule = |r: Vec<millrace_check::Refusal>| r[0].rule.to_owned();
    check(&program, &Options::default()).map_err(rule)?;
    Ok(())
}

#[test]
fn an_element_of_arrays_of_any_size_may_be_missing() {
    const INNER_MAP: u32 = 1 << 12;
    assert_eq!(first_element("array", 0), Ok(()));
    assert_eq!(first_element("percpu_array", 0), Ok(()));
    let missing = Err("unchecked-null".to_owned());
    assert_eq!(first_element("array", INNER_MAP), missing);
}
