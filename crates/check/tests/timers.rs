//! Timers in the values of maps: what helpers take, what a program may not touch, what is called.

use millrace_assemble::assemble;
use millrace_check::{Options, check};
use millrace_object::program::{FunctionId, ObjectId};

/// The rule that the program breaks, or "ok".
fn verdict(text: &str) -> &'static str {
    match check(&assemble(text), &Options::default()) {
        Ok(_) => "ok",
        Err(r) => r[0].rule,
    }
}

/// `body` runs with r6 = context, r7 = a value of `m`, r8 = one of `n`; timers are at byte 8 and 0.
fn with_values(body: &str) -> String {
    let lookup = |map: &str, to: u8| {
        format!(
            "r2 = r10\nr2 += -4\nr1 = object {map}\ncall map_lookup_elem\nif r0 == 0 goto out\nr{to} = r0\n"
        )
    };
    format!(
        "object m hash value=32 timer=8\nobject n array value=16 timer=0\nobject plain hash value=32\nr6 = r1\n*(u32 *)(r10 - 4) = 1\n{}{}{body}\nout:\nr0 = 1\nexit\nfn f\nr0 = *(u32 *)(r2 + 0)\nr0 += *(u64 *)(r3 + 0)\nexit",
        lookup("m", 7),
        lookup("n", 8)
    )
    .replace("r0 += *(u64 *)(r3 + 0)", "r4 = *(u64 *)(r3 + 0)\nr0 += r4")
}

const INIT: &str = "r1 = r7\nr1 += 8\nr2 = object m\nr3 = 1\ncall timer_init";
const SET: &str = "r1 = r7\nr1 += 8\nr2 = function f\ncall timer_set_callback";
const START: &str = "r1 = r7\nr1 += 8\nr2 = 1000\nr3 = 0\ncall timer_start";
const CANCEL: &str = "r1 = r7\nr1 += 8\ncall timer_cancel";

#[test]
fn arguments() {
    let cases = [
        ("ok", format!("{INIT}\n{SET}\n{START}\n{CANCEL}")),
        ("helper-argument", INIT.replace("+= 8", "+= 0")),
        ("helper-argument", CANCEL.replace("+= 8", "+= 16")),
        // Another map's, a map without, no value at all, a number.
        ("helper-argument", INIT.replace("object m", "object n")),
        ("helper-argument", INIT.replace("object m", "object plain")),
        ("helper-argument", START.replace("r1 = r7", "r1 = r10")),
        ("helper-argument", CANCEL.replace("r1 = r7", "r1 = 0")),
        ("helper-argument", SET.replace("function f", "object m")),
        ("helper-argument", SET.replace("r2 = function f", "r2 = 8")),
        ("uninitialised-register", START.replace("r3 = 0\n", "")),
        // An offset that is not known.
        (
            "helper-argument",
            "r2 = *(u32 *)(r6 + 12)\nr2 &= 8\nr1 = r7\nr1 += r2\ncall timer_cancel".to_owned(),
        ),
    ];
    for (rule, body) in cases {
        assert_eq!(verdict(&with_values(&body)), rule, "{body}");
    }
}

#[test]
fn a_lookup_may_fail() {
    let text = "object m hash value=32 timer=8\n*(u32 *)(r10 - 4) = 1\nr2 = r10\nr2 += -4\nr1 = object m\ncall map_lookup_elem\nr1 = r0\nr1 += 8\ncall timer_cancel\nr0 = 1\nexit";
    assert!(
        matches!(verdict(text), "unchecked-null" | "pointer-arithmetic"),
        "{}",
        verdict(text)
    );
}

#[test]
fn a_program_leaves_the_timer_alone() {
    let cases = [
        ("ok", "r0 = *(u64 *)(r7 + 0)\n*(u64 *)(r7 + 24) = 1"),
        ("timer-field", "r0 = *(u64 *)(r7 + 8)"),
        ("timer-field", "r0 = *(u8 *)(r7 + 23)"),
        ("timer-field", "*(u32 *)(r7 + 20) = 0"),
        ("timer-field", "r1 = 1\nlock *(u64 *)(r7 + 16) += r1"),
        ("timer-field", "r0 = *(u64 *)(r8 + 0)"),
        // As a whole, by a helper.
        (
            "timer-field",
            "r1 = object m\nr2 = r10\nr2 += -4\nr3 = r7\nr4 = 0\ncall map_update_elem",
        ),
        (
            "timer-field",
            "r1 = r7\ncall spin_lock\nr1 = r7\ncall spin_unlock\nr1 = r8\nr1 += 4\ncall spin_lock",
        ),
        // Where the index may reach it.
        (
            "timer-field",
            "r2 = *(u32 *)(r6 + 12)\nr2 &= 15\nr7 += r2\nr0 = *(u8 *)(r7 + 0)",
        ),
        (
            "ok",
            "r2 = *(u32 *)(r6 + 12)\nr2 &= 7\nr7 += r2\nr0 = *(u8 *)(r7 + 24)",
        ),
    ];
    for (rule, body) in cases {
        assert_eq!(verdict(&with_values(body)), rule, "{body}");
    }
}

#[test]
fn what_timers_call_is_proved_for_each_map() {
    let other = "r1 = r8\nr2 = function f\ncall timer_set_callback";
    let program = assemble(&with_values(&format!("{SET}\n{other}")));
    let checked = check(&program, &Options::default());
    // The second map's timer is where the function reads.
    assert_eq!(checked.unwrap_err()[0].rule, "timer-field");
    let program = assemble(&with_values(SET));
    let checked = check(&program, &Options::default()).unwrap();
    let timers: Vec<_> = checked
        .timers
        .iter()
        .map(|t| (t.object, t.function))
        .collect();
    assert_eq!(timers, [(ObjectId(0), FunctionId(1))]);
    assert_eq!(checked.flows[0].callbacks, timers);

    // Its key is of the map's size, its value, too; it gets no fourth argument.
    for (rule, load) in [
        ("ok", "r0 = *(u32 *)(r2 + 0)"),
        ("stack-bounds", "r0 = *(u32 *)(r2 + 8)"),
        ("value-bounds", "r0 = *(u64 *)(r3 + 32)"),
        ("uninitialised-register", "r0 = r4"),
        ("timer-field", "r0 = *(u64 *)(r3 + 8)"),
        ("ok", "r3 += 8\nr1 = r3\nr2 = 5\nr3 = 0\ncall timer_start"),
        ("ok", "call map_delete_elem"),
        ("unbounded-loop", "again:\ngoto again"),
        ("recursion", "call fn f"),
    ] {
        let text = with_values(SET).replace("r0 = *(u32 *)(r2 + 0)\n", &format!("{load}\n"));
        let text = text.replace("r4 = *(u64 *)(r3 + 0)\nr0 += r4\n", "");
        assert_eq!(verdict(&text), rule, "{load}");
    }
}

#[test]
fn a_function_that_timers_call_may_set_another_and_itself() {
    let text = "object m hash value=32 timer=8\n*(u32 *)(r10 - 4) = 1\nr2 = r10\nr2 += -4\nr1 = object m\ncall map_lookup_elem\nif r0 == 0 goto out\nr1 = r0\nr1 += 8\nr2 = function f\ncall timer_set_callback\nout:\nr0 = 1\nexit\nfn f\nr1 = r3\nr1 += 8\nr2 = function g\ncall timer_set_callback\nr0 = 0\nexit\nfn g\nr1 = r3\nr1 += 8\nr2 = function f\ncall timer_set_callback\nr0 = 0\nexit";
    let checked = check(&assemble(text), &Options::default()).unwrap();
    let functions: Vec<_> = checked.timers.iter().map(|t| t.function.0).collect();
    assert_eq!(functions, [1, 2]);
}
