//! Locks and records must not be held at exits and tail calls.

use millrace_assemble::assemble;
use millrace_check::{Options, check};

/// The rule that the program breaks, or "ok".
fn verdict(text: &str) -> String {
    match check(&assemble(text), &Options::default()) {
        Ok(_) => "ok".to_owned(),
        Err(r) => r[0].rule.to_string(),
    }
}

/// `BODY` runs with r6 = context, r7 = a value of a map.
fn with_value(body: &str) -> String {
    format!(
        "object table hash\nr6 = r1\n*(u32 *)(r10 - 4) = 1\nr2 = r10\nr2 += -4\nr1 = object table\ncall map_lookup_elem\nif r0 == 0 goto out\nr7 = r0\n{body}\nout:\nr0 = 1\nexit"
    )
}

const LOCK: &str = "r1 = r7\ncall spin_lock";
const UNLOCK: &str = "r1 = r7\ncall spin_unlock";

#[test]
fn locks_are_given_back_on_every_way() {
    let cases = [
        ("ok", format!("{LOCK}\n{UNLOCK}")),
        (
            "ok",
            format!("{LOCK}\n*(u32 *)(r7 + 4) = 1\n{UNLOCK}\n{LOCK}\n{UNLOCK}"),
        ),
        ("lock-pairing", LOCK.to_owned()),
        ("lock-pairing", UNLOCK.to_owned()),
        ("lock-pairing", format!("{LOCK}\n{LOCK}\n{UNLOCK}")),
        ("lock-pairing", format!("{LOCK}\n{UNLOCK}\n{UNLOCK}")),
        (
            "lock-pairing",
            format!("r8 = *(u32 *)(r6 + 12)\n{LOCK}\nif r8 == 5 goto out\n{UNLOCK}"),
        ),
        (
            "lock-pairing",
            format!("r8 = *(u32 *)(r6 + 12)\nif r8 == 5 goto on\n{LOCK}\non:\n{UNLOCK}"),
        ),
        (
            "lock-pairing",
            format!("{LOCK}\ncall ktime_get_ns\n{UNLOCK}"),
        ),
        // The lock that is given back is the one that was taken.
        ("lock-pairing", format!("{LOCK}\nr7 += 4\n{UNLOCK}")),
        (
            "lock-pairing",
            format!(
                "r9 = r7\nr1 = object table\nr2 = r10\nr2 += -4\ncall map_lookup_elem\nif r0 == 0 goto out\nr7 = r0\n{LOCK}\nr7 = r9\n{UNLOCK}"
            ),
        ),
        (
            "lock-pairing",
            "r1 = r10\nr1 += -4\ncall spin_lock\nr1 = r10\nr1 += -4\ncall spin_unlock".to_owned(),
        ),
        // Not even within a loop, where the rounds are taken together.
        (
            "lock-pairing",
            format!("r9 = 0\nagain:\n{LOCK}\nr9 += 1\nif r9 < 9 goto again\n{UNLOCK}"),
        ),
        // The lock is where the map's value is.
        ("value-bounds", format!("r7 += 6\n{LOCK}\n{UNLOCK}")),
    ];
    for (rule, body) in cases {
        assert_eq!(verdict(&with_value(&body)), rule, "{body}");
    }
}

#[test]
fn a_record_and_a_lock_are_not_the_same() {
    let text = "object ring ringbuf capacity=4096\nobject table hash\nr6 = *(u32 *)(r1 + 12)\n\
        *(u32 *)(r10 - 4) = 1\nr2 = r10\nr2 += -4\nr1 = object table\ncall map_lookup_elem\n\
        if r0 == 0 goto out\nr7 = r0\nif r6 == 5 goto locked\n\
        r1 = object ring\nr2 = 12\nr3 = 0\ncall ringbuf_reserve\nif r0 == 0 goto out\nr8 = r0\ngoto both\n\
        locked:\nr1 = r7\ncall spin_lock\nr8 = 0\nboth:\nr1 = r7\ncall spin_unlock\nout:\nr0 = 1\nexit";
    assert_ne!(verdict(text), "ok");
}

#[test]
fn tail_calls_end_the_program() {
    let call = "r1 = r6\nr2 = object next\nr3 = 1\ncall tail_call";
    let program = |body: &str| format!("object next prog_array\nr6 = r1\n{body}\nr0 = 1\nexit");
    assert_eq!(verdict(&program(call)), "ok");
    // It falls through, and the registers of arguments are gone then.
    assert_eq!(
        verdict(&program(&format!("{call}\nr0 = r3"))),
        "uninitialised-register"
    );
    let held = format!(
        "object ring ringbuf capacity=4096\nr1 = object ring\nr2 = 12\nr3 = 0\ncall ringbuf_reserve\n\
         if r0 == 0 goto out\nr7 = r0\n{call}\nr1 = r7\nr2 = 0\ncall ringbuf_submit\nout:"
    );
    assert_eq!(verdict(&program(&held)), "record-leak");
    let locked = format!("{LOCK}\n{call}\n{UNLOCK}");
    let text = format!("object next prog_array\n{}", with_value(&locked));
    assert_eq!(verdict(&text), "lock-pairing");
    assert_eq!(
        verdict(&program("r1 = r6\nr2 = r6\nr3 = 1\ncall tail_call")),
        "helper-argument"
    );
}

/// `BODY` is a function that the program calls with the context; r0 is not used there afterwards.
fn in_function(body: &str) -> String {
    format!(
        "object next prog_array\nobject table hash\nr6 = r1\nr7 = *(u32 *)(r1 + 0)\nr8 = *(u32 *)(r1 + 4)\ncall fn f\nr9 = r0\nr0 = 1\nexit\nfn f\n{body}"
    )
}

#[test]
fn tail_calls_end_the_function_that_makes_them() {
    let call = "r2 = object next\nr3 = 1\ncall tail_call";
    let text = in_function(&format!("{call}\nr0 = 5\nexit"));
    assert_eq!(verdict(&text), "ok");
    // What it gives may be anything of 32 bits, or what the function itself gives.
    let range = |last: &str| {
        text.replace(
            "r9 = r0",
            &format!("r9 = r0\nr9 >>= {last}\nr1 = r10\nr1 -= r9\n*(u8 *)(r1 - 2) = 1"),
        )
    };
    assert_eq!(verdict(&range("32")), "ok");
    assert_eq!(verdict(&range("31")), "ok");
    assert_ne!(verdict(&range("8")), "ok");
    // The other program may have moved the packet, here and in the caller.
    let load = "r3 = r7\nr3 += 1\nif r3 > r8 goto out\nr0 = *(u8 *)(r7 + 0)\nout:";
    assert_eq!(
        verdict(&text.replace("r9 = r0", load)),
        "stale-packet-pointer"
    );
    assert_eq!(
        verdict(&in_function(&format!(
            "r6 = *(u32 *)(r1 + 0)\n{call}\nr0 = *(u8 *)(r6 + 0)\nexit"
        ))),
        "stale-packet-pointer"
    );
    // Whatever else the function does is done, or not.
    let text = in_function(&format!("{call}\nr0 = r3\nexit"));
    assert_eq!(verdict(&text), "uninitialised-register");
    // Not where a helper calls the function back.
    let text = "object next prog_array\nr3 = r1\nr1 = 3\nr2 = function f\nr4 = 0\ncall loop\nr0 = 1\nexit\nfn f\nr1 = r2\nr2 = object next\nr3 = 1\ncall tail_call\nr0 = 1\nexit";
    assert_eq!(verdict(text), "tail-call-in-function");
}
