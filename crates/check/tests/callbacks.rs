//! Functions that are called back: what is admitted, what is refused, and what it costs to see.

use millrace_assemble::assemble;
use millrace_check::{Options, check, check_with_statistics};

#[track_caller]
fn accepts(text: &str) -> u64 {
    let (result, statistics) = check_with_statistics(&assemble(text), &Options::default());
    if let Err(r) = result {
        panic!("refused: {r:#?}");
    }
    statistics.visits
}

#[track_caller]
fn refuses(rule: &str, text: &str) {
    let options = Options {
        max_visits: 50_000,
        ..Options::default()
    };
    match check(&assemble(text), &options) {
        Ok(_) => panic!("accepted"),
        Err(r) => assert_eq!(r[0].rule, rule, "{r:#?}"),
    }
}

/// A loop of `n` rounds (an instruction that sets r1) around `body`, with the address of 16 bytes of stack.
fn rounds(n: &str, body: &str) -> String {
    format!(
        "*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 16) = 0\nr6 = r1\n{n}\nr2 = function f\nr3 = r10\nr3 += -16\nr4 = 0\ncall loop\nr0 = *(u64 *)(r10 - 8)\nexit\nfn f\n{body}"
    )
}

const ADD: &str = "r3 = *(u64 *)(r2 + 8)\nr3 += r1\n*(u64 *)(r2 + 8) = r3\nr0 = 0\nexit";

#[test]
fn a_long_loop_is_one_round() {
    assert!(accepts(&rounds("r1 = 8388608", ADD)) < 300);
    // What is not known before is bounded by what the helper refuses.
    assert!(accepts(&rounds("r1 = *(u32 *)(r1 + 12)", ADD)) < 500);
}

#[test]
fn the_round_is_below_their_number() {
    let body = "r1 += r2\n*(u8 *)(r1 + 0) = 1\nr0 = 0\nexit";
    accepts(&rounds("r1 = 16", body));
    refuses("stack-bounds", &rounds("r1 = 17", body));
    // Sixteen rounds at most, however many there are.
    let until =
        "if r1 > 15 goto out\nr1 += r2\n*(u8 *)(r1 + 0) = 1\nr0 = 0\nexit\nout:\nr0 = 1\nexit";
    accepts(&rounds("r1 = *(u32 *)(r1 + 12)", until));
}

#[test]
fn all_rounds_count() {
    // The context becomes an offset into the caller's stack that grows by four in each round.
    let body = "r3 = *(u64 *)(r2 + 8)\nr4 = r2\nr4 += r3\n*(u8 *)(r4 + 0) = 0\nr3 += 4\n*(u64 *)(r2 + 8) = r3\nr0 = 0\nexit";
    accepts(&rounds("r1 = 2", body));
    refuses("stack-bounds", &rounds("r1 = 5", body));
    // A function that leaves a number where the next round finds a pointer.
    refuses(
        "not-a-pointer",
        &rounds(
            "r1 = 2\n*(u64 *)(r10 - 8) = r10",
            "r3 = *(u64 *)(r2 + 8)\n*(u8 *)(r3 - 1) = 0\n*(u64 *)(r2 + 8) = 7\nr0 = 0\nexit",
        ),
    );
}

#[test]
fn a_function_gets_no_more_than_it_is_called_with() {
    refuses("uninitialised-register", &rounds("r1 = 1", "r0 = r3\nexit"));
    refuses("uninitialised-register", &rounds("r1 = 1", "exit"));
}

#[test]
fn the_address_of_a_function_serves_for_nothing_else() {
    let with = |use_it: &str| {
        format!("object t global value=8\nr2 = function f\n{use_it}\nr0 = 0\nexit\nfn f\n{ADD}")
    };
    accepts(&with("r3 = r2\n*(u64 *)(r10 - 8) = r3"));
    refuses("opaque-pointer", &with("r0 = *(u64 *)(r2 + 0)"));
    refuses("opaque-pointer", &with("*(u64 *)(r2 + 0) = 0"));
    refuses("pointer-arithmetic", &with("r2 += 8"));
    refuses("pointer-leak", &with("r3 = value t\n*(u64 *)(r3 + 0) = r2"));
    refuses("pointer-comparison", &with("if r2 > 7 goto on\non:"));
    refuses("pointer-return", &with("r0 = r2\nexit"));
}

#[test]
fn what_is_called_back_is_known() {
    refuses(
        "callback",
        "r1 = 4\nr2 = 7\nr3 = 0\nr4 = 0\ncall loop\nr0 = 0\nexit",
    );
    // By way of the stack, and perhaps overwritten there by another name.
    let with = |other: &str| {
        format!(
            "r1 = function f\n*(u64 *)(r10 - 8) = r1\n{other}\nr1 = 4\nr2 = *(u64 *)(r10 - 8)\nr3 = r10\nr3 += -16\nr4 = 0\ncall loop\nr0 = 0\nexit\nfn f\nr0 = 0\nexit"
        )
    };
    accepts(&with(""));
    refuses(
        "callback",
        &with("r5 = r10\nr5 += -8\n*(u64 *)(r5 + 0) = 7"),
    );
    // As an argument of a function that makes the call.
    accepts(
        "r1 = function f\ncall fn g\nexit\nfn g\nr2 = r1\nr1 = 4\nr3 = 0\nr4 = 0\ncall loop\nexit\nfn f\nr0 = 0\nexit",
    );
    refuses(
        "callback",
        "r6 = *(u32 *)(r1 + 12)\nr2 = function f\nif r6 == 0 goto on\nr2 = function g\non:\nr1 = 4\nr3 = 0\nr4 = 0\ncall loop\nr0 = 0\nexit\nfn f\nr0 = 0\nexit\nfn g\nr0 = 1\nexit",
    );
}

#[test]
fn rounds_within_rounds() {
    let nested = |outer: &str, inner: &str| {
        format!(
            "r6 = *(u32 *)(r1 + 12)\n{outer}\nr2 = function f\nr3 = 0\nr4 = 0\ncall loop\nr0 = 0\nexit\nfn f\n{inner}\nr2 = function g\nr3 = 0\nr4 = 0\ncall loop\nr0 = 0\nexit\nfn g\nr0 = 0\nexit"
        )
    };
    accepts(&nested("r1 = 1000", "r1 = 1000000"));
    accepts(&nested("r1 = r6\nr1 &= 31", "r1 = 8000000"));
    // 2^32 rounds and no more, but each is some instructions.
    refuses(
        "too-many-rounds",
        &nested("r1 = r6\nr1 &= 511", "r1 = 8000000"),
    );
    refuses("too-many-rounds", &nested("r1 = r6", "r1 = 1000"));
    refuses("too-many-rounds", &nested("r1 = 8000000", "r1 = 8000000"));
}

#[test]
fn recursion_and_depth() {
    refuses(
        "recursion",
        &rounds(
            "r1 = 1",
            "r1 = 1\nr2 = function f\nr3 = 0\nr4 = 0\ncall loop\nr0 = 0\nexit",
        ),
    );
    // Each function calls the next one back; the kernel admits eight frames.
    let chain = |n: usize| {
        let mut text = String::new();
        for i in 0..n {
            if i > 0 {
                text.push_str(&format!("fn f{i}\n"));
            }
            if i + 1 < n {
                text.push_str(&format!(
                    "r1 = 2\nr2 = function f{}\nr3 = 0\nr4 = 0\ncall loop\n",
                    i + 1
                ));
            }
            text.push_str("r0 = 0\nexit\n");
        }
        text
    };
    accepts(&chain(8));
    refuses("call-depth", &chain(9));
}

#[test]
fn calls_that_multiply_are_too_large() {
    // Every function has two calls that call the next one back: 2^7 paths, and 2^20 with the steps.
    let mut text = String::new();
    for i in 0..8 {
        if i > 0 {
            text.push_str(&format!("fn f{i}\n"));
        }
        for _ in 0..if i < 7 { 20 } else { 0 } {
            text.push_str(&format!(
                "r1 = 2\nr2 = function f{}\nr3 = 0\nr4 = 0\ncall loop\n",
                i + 1
            ));
        }
        text.push_str("r0 = 0\nexit\n");
    }
    refuses("too-large", &text);
}

#[test]
fn held_records_and_locks() {
    refuses(
        "record-leak",
        &format!(
            "object r ringbuf\n{}",
            rounds(
                "r1 = 1",
                "r1 = object r\nr2 = 8\nr3 = 0\ncall ringbuf_reserve\nr0 = 0\nexit"
            )
        ),
    );
    // No helper is called under a lock, this one included.
    refuses(
        "lock-pairing",
        "object m array key=4 value=16\n*(u32 *)(r10 - 4) = 0\nr1 = object m\nr2 = r10\nr2 += -4\ncall map_lookup_elem\nif r0 == 0 goto out\nr1 = r0\ncall spin_lock\nr1 = 2\nr2 = function f\nr3 = 0\nr4 = 0\ncall loop\nout:\nr0 = 0\nexit\nfn f\nr0 = 0\nexit",
    );
}

/// A visit of every entry of a map around `body`.
fn visit(map: &str, body: &str) -> String {
    format!(
        "object m {map}\n*(u64 *)(r10 - 8) = 0\nr1 = object m\nr2 = function f\nr3 = r10\nr3 += -8\nr4 = 0\ncall for_each_map_elem\nr0 = 0\nexit\nfn f\n{body}"
    )
}

#[test]
fn visits_of_maps() {
    let body = "r5 = *(u32 *)(r2 + 0)\nr0 = *(u64 *)(r3 + 8)\nr0 += r5\n*(u64 *)(r4 + 0) = r0\nr0 = 0\nexit";
    let visits = accepts(&visit("hash key=4 value=16 capacity=1000000", body));
    assert!(visits < 500, "{visits}");
    accepts(&visit("array key=4 value=16", body));
    // Beyond the value, beyond the key, beyond the context.
    refuses(
        "value-bounds",
        &visit("hash key=4 value=16", "r0 = *(u64 *)(r3 + 9)\nr0 = 0\nexit"),
    );
    refuses(
        "stack-bounds",
        &visit("hash key=4 value=16", "r0 = *(u64 *)(r2 + 4)\nr0 = 0\nexit"),
    );
    refuses(
        "stack-bounds",
        &visit("hash key=4 value=16", "*(u64 *)(r4 + 4) = 0\nr0 = 0\nexit"),
    );
    // The entry may be deleted, by its key.
    accepts(&visit(
        "hash key=4 value=16",
        "call map_delete_elem\nr0 = 0\nexit",
    ));
    refuses("callback", &visit("ringbuf", "r0 = 0\nexit"));
    refuses(
        "unbounded-loop",
        &visit("hash key=4 value=16 capacity=16777216", body),
    );
}

/// `BODY` with an iterator of eight bytes at r7, its end in r8.
fn walk(body: &str) -> String {
    format!("r8 = *(u32 *)(r1 + 12)\nr7 = r10\nr7 += -8\n{body}\nr0 = 0\nexit")
}

const NEW: &str = "r1 = r7\nr2 = 0\nr3 = r8\ncall iter_num_new";
const NEXT: &str = "r1 = r7\ncall iter_num_next";
const END: &str = "r1 = r7\ncall iter_num_destroy";

#[test]
fn walks_over_numbers() {
    let all = format!(
        "{NEW}\nr6 = 0\nagain:\n{NEXT}\nif r0 == 0 goto out\nr0 = *(u32 *)(r0 + 0)\nr6 += r0\ngoto again\nout:\n{END}"
    );
    let visits = accepts(&walk(&all));
    assert!(visits < 500, "{visits}");
    // What is not null is a number; what may be is not read.
    refuses(
        "not-a-pointer",
        &walk(&format!("{NEW}\n{NEXT}\nr0 = *(u32 *)(r0 + 0)\n{END}")),
    );
    // Begun, once, and ended, on every way.
    refuses("iterator", &walk(NEXT));
    refuses("iterator", &walk(END));
    refuses("iterator", &walk(NEW));
    refuses("iterator", &walk(&format!("{NEW}\n{NEW}\n{END}")));
    refuses("iterator", &walk(&format!("{NEW}\n{END}\n{NEXT}")));
    refuses(
        "iterator",
        &walk(&format!("{NEW}\nif r8 == 3 goto out\n{END}\nout:")),
    );
    accepts(&walk(&format!("{NEW}\n{END}\n{NEW}\n{NEXT}\n{END}")));
    // In the stack, aligned, all of it.
    refuses("iterator", &walk(&format!("r7 += -4\n{NEW}\n{END}")));
    refuses("iterator", &walk(&format!("r7 += 8\n{NEW}\n{END}")));
    refuses("iterator", &walk(&format!("r7 = 0\n{NEW}\n{END}")));
    // Nothing is left in it.
    refuses(
        "uninitialised-stack",
        &walk(&format!("{NEW}\n{END}\nr0 = *(u32 *)(r10 - 8)\nr0 += 1")),
    );
}

#[test]
fn what_an_iterator_holds_is_its_own() {
    let with = |body: &str| {
        walk(&format!(
            "{NEW}\nagain:\n{NEXT}\nif r0 == 0 goto out\n{body}\ngoto again\nout:\n{END}"
        ))
    };
    // A walk that is put back would not end.
    refuses("iterator", &with("*(u32 *)(r10 - 4) = 9"));
    refuses("iterator", &with("*(u8 *)(r10 - 8) = 9"));
    refuses("iterator", &with("r3 = *(u32 *)(r10 - 8)"));
    refuses("iterator", &with("r3 = *(u64 *)(r10 - 12)"));
    refuses("iterator", &with("*(u32 *)(r0 + 0) = 9"));
    refuses("iterator", &with("r3 = *(u32 *)(r0 + 4)"));
    refuses("iterator", &with("r3 = *(u8 *)(r0 - 1)"));
    accepts(&with("r3 = *(u8 *)(r0 + 3)"));
    accepts(&with("*(u64 *)(r10 - 16) = 9\nr3 = *(u64 *)(r10 - 16)"));
    // Nor is the address of the number one of the iterator.
    refuses("iterator", &with("r1 = r0\ncall iter_num_next"));
    // It ends with the function whose stack it is in.
    refuses(
        "iterator",
        "call fn begin\nr0 = 1\nexit\nfn begin\nr1 = r10\nr1 += -8\nr2 = 0\nr3 = 4\ncall iter_num_new\nr0 = 0\nexit",
    );
}

#[test]
fn what_calls_stand_for_is_not_called() {
    for helper in ["map_slot", "tail_away"] {
        refuses(
            "unknown-helper",
            &format!("object m array\nr2 = object m\nr3 = 0\ncall {helper}\nr0 = 0\nexit"),
        );
    }
}
