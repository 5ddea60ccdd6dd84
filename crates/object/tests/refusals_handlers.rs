//! Refusals of handler programs: the error names the place, the problem and what to do.

use crate::common;

use common::refusal::{refused, say};
use common::{CLANGS, compile_text};
use millrace_object::load;

const HANDLER: &str = r#"
#include <linux/types.h>
#include <millrace/object.h>
#define SEC(name) __attribute__((section(name), used))
struct packet { __u32 data, data_end, data_meta, port, queue, reserved; __u64 time; __u32 ports; };
static void *(*map_get)(void *, const void *) = (void *)0x10000;
#define STATE(n, ...) static struct { __u32 *key; __u64 *value; struct millrace_object object; } n \
    SEC("millrace/state") = { .object = { .key_bytes = 4, .value_bytes = 8, __VA_ARGS__ } }
#define ON_PACKET(p) SEC("millrace/on_packet") int millrace_on_packet(struct packet *p)
"#;

#[test]
fn handlers_of_the_wrong_signature() {
    let errors = refused(
        HANDLER,
        "SEC(\"millrace/on_packet\") int millrace_on_packet(int x) {\n return x; }\n",
        "wrong-signature",
    );
    say(
        &errors,
        &[
            "millrace_on_packet",
            "int (*)(int)",
            "struct packet *",
            "program.c:10",
        ],
    );
    let errors = refused(
        HANDLER,
        "SEC(\"millrace/on_packet\") long millrace_on_packet(struct packet *p) { return 0; }\n",
        "wrong-signature",
    );
    say(&errors, &["long"]);
    let errors = refused(
        HANDLER,
        "ON_PACKET(p) { return 0; }\nstruct other { int x; };\n\
         SEC(\"millrace/every\") static void tick(struct other *o) { o->x = 1; }\n\
         static const struct { __u64 n; void (*f)(struct other *); } t SEC(\"millrace/timers\") = { 5, tick };\n",
        "wrong-signature",
    );
    say(&errors, &["tick", "struct other *"]);
}

#[test]
fn two_handlers_and_none() {
    let errors = refused(
        HANDLER,
        "ON_PACKET(p) { return 0; }\nSEC(\"millrace/on_packet\") int another(struct packet *p) { return 1; }\n",
        "two-handlers",
    );
    say(&errors, &["on_packet", "another", "program.c:11"]);
    let errors = refused(
        HANDLER,
        "SEC(\"millrace/on_start\") void f(struct packet *p) { }\n",
        "no-entry",
    );
    say(&errors, &["ON_PACKET"]);
    let errors = refused(
        HANDLER,
        "ON_PACKET(p) { return 0; }\nSEC(\"millrace/on_expiry\") void f(struct packet *p) { }\n",
        "unknown-handler",
    );
    say(&errors, &["on_expiry"]);
}

#[test]
fn state_of_unknown_kind_and_out_of_range() {
    let errors = refused(
        HANDLER,
        "STATE(odd, .kind = 77); ON_PACKET(p) { return !map_get(&odd, p); }\n",
        "unknown-state-kind",
    );
    say(&errors, &["odd", "77", "sketch"]);
    let errors = refused(
        HANDLER,
        "static long raw SEC(\"millrace/state\"); ON_PACKET(p) { return !map_get(&raw, p); }\n",
        "state-declaration",
    );
    say(&errors, &["raw", "8 bytes"]);
}

/// Compilers fold only what is inside the record, so the reference is patched.
#[test]
fn references_between_records() {
    let text = format!(
        "{HANDLER}STATE(one, .kind = MILLRACE_MAP, .options = {{ .capacity = 8 }});\n\
         ON_PACKET(p) {{ __u32 key = p->port; return !map_get(&one, &key); }}\n"
    );
    for clang in CLANGS {
        let Some(mut bytes) = compile_text(clang, &text, &[]) else {
            continue;
        };
        let load_of_r1 = [0x18, 1, 0, 0, 0, 0, 0, 0];
        let at = bytes.windows(8).position(|w| w == load_of_r1).unwrap();
        for (addend, rule) in [
            (0, None),
            (71, None),
            (72, Some(())),
            (-1, Some(())),
            (i32::MAX, Some(())),
        ] {
            bytes[at + 4..at + 8].copy_from_slice(&i32::to_le_bytes(addend));
            let error = load(&bytes, "x").err();
            assert_eq!(error.as_ref().map(|_| ()), rule, "{clang} {addend}");
            if let Some(error) = error {
                assert_eq!(error.rule, "record-out-of-range");
                say(&[error], &[&addend.to_string(), "program.c:11"]);
            }
        }
    }
}

#[test]
fn absurd_handler_state() {
    let state = |fields: &str| {
        format!("STATE(big, {fields}); ON_PACKET(p) {{ return !map_get(&big, p); }}\n")
    };
    let cases = [
        (".kind = 1", "1 to 67108864"),
        (
            ".kind = 1, .options = { .capacity = ~0ull }",
            "1 to 67108864",
        ),
        (
            ".kind = 1, .options = { .capacity = 8, .rows = 2 }",
            ".rows",
        ),
        (
            ".kind = 2, .options = { .capacity = 8, .expire_after = 2 }",
            ".expire_after",
        ),
        (
            ".kind = 3, .options = { .capacity = 8, .first = ~0ull }",
            "2^63",
        ),
        (
            ".kind = 4, .value_bytes = 4, .options = { .capacity = 8, .rows = 9 }",
            "1 to 8",
        ),
        (
            ".kind = 5, .key_bytes = 17, .options = { .capacity = 8 }",
            "address",
        ),
    ];
    for (fields, word) in cases {
        say(
            &refused(HANDLER, &state(fields), "absurd-size"),
            &["big", word],
        );
    }
}

#[test]
fn timers_without_a_period() {
    let errors = refused(
        HANDLER,
        "ON_PACKET(p) { return 0; }\nSEC(\"millrace/every\") static void tick(struct packet *p) { }\n\
         static const struct { __u64 n; void (*f)(struct packet *); } t SEC(\"millrace/timers\") = { 0, tick };\n",
        "timer-period",
    );
    say(&errors, &["EVERY"]);
}

#[test]
fn parameters_that_are_not_numbers() {
    let errors = refused(
        HANDLER,
        "struct pair { int a, b; }; volatile const struct pair both SEC(\".rodata.params\") = { 1, 2 };\n\
         ON_PACKET(p) { return both.a; }\n",
        "parameter-type",
    );
    say(&errors, &["both", "struct pair"]);
}

#[test]
fn both_dialects_in_one_object() {
    let errors = refused(
        HANDLER,
        "ON_PACKET(p) { return 0; }\nstruct xdp_md { __u32 data; };\n\
         SEC(\"xdp\") int other(struct xdp_md *c) { return 2; }\n",
        "mixed-dialects",
    );
    say(&errors, &["other", "program.c:12"]);
}
