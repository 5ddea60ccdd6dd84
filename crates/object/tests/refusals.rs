//! What is refused, and that the error names the place, the problem and what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{CLANGS, compile_text};
use millrace_object::{LoadError, load};

const XDP: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n";

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

/// Compiles with every compiler here and gives the refusal, which must be of that rule.
fn refused(prelude: &str, text: &str, rule: &str) -> Vec<LoadError> {
    let text = format!("{prelude}{text}");
    let mut errors = Vec::new();
    for clang in CLANGS {
        let Some(bytes) = compile_text(clang, &text, &["-Wno-all"]) else {
            continue;
        };
        let error = match load(&bytes, "program") {
            Ok(program) => panic!("{clang}: not refused:\n{program}"),
            Err(error) => error,
        };
        assert_eq!(error.rule, rule, "{clang}: {error}");
        assert!(!error.remedy.is_empty(), "{clang}: {error}");
        errors.push(error);
    }
    errors
}

/// That every error says all of these.
fn say(errors: &[LoadError], words: &[&str]) {
    for error in errors {
        for word in words {
            assert!(
                error.to_string().contains(word),
                "`{word}` is missing: {error}"
            );
        }
    }
}

#[test]
fn undefined_functions_by_name_and_line() {
    let errors = refused(
        XDP,
        "int missing(int x);\nSEC(\"xdp\") int f(struct xdp_md *c) {\n return missing(c->data); }\n",
        "undefined-symbol",
    );
    say(&errors, &["missing", "program.c:5", "section xdp"]);
}

#[test]
fn undefined_variables_by_name() {
    let errors = refused(
        XDP,
        "extern int missing; SEC(\"xdp\") int f(struct xdp_md *c) { return missing; }\n",
        "undefined-symbol",
    );
    say(&errors, &["missing"]);
}

#[test]
fn unknown_map_types_with_those_that_exist() {
    let errors = refused(
        XDP,
        "struct { __uint(type, BPF_MAP_TYPE_DEVMAP); __uint(max_entries, 4); __type(key, int); \
         __type(value, int); } ports SEC(\".maps\");\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return bpf_redirect_map(&ports, 0, 0); }\n",
        "unknown-map-type",
    );
    say(&errors, &["DEVMAP", "ports", "lru_hash", "ringbuf"]);
    let errors = refused(
        XDP,
        "struct { __uint(max_entries, 4); } odd SEC(\".maps\");\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return 0; }\n",
        "unknown-map-type",
    );
    say(&errors, &["odd", "__uint(type"]);
}

#[test]
fn maps_in_maps() {
    let errors = refused(
        XDP,
        "struct inner { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 4); __type(key, int); \
         __type(value, int); } one SEC(\".maps\");\n\
         struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 4); __type(key, int); \
         __array(values, struct inner); } outer SEC(\".maps\") = { .values = { &one } };\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return 0; }\n",
        "map-in-map",
    );
    say(&errors, &["outer"]);
}

#[test]
fn legacy_maps() {
    let errors = refused(
        XDP,
        "struct { int type, key, value, entries, flags; } old SEC(\"maps\") = { 1, 4, 4, 8 };\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return !bpf_map_lookup_elem(&old, c); }\n",
        "legacy-map",
    );
    say(&errors, &["bpf_map_def", ".maps"]);
}

#[test]
fn absurd_sizes_with_what_would_be_sane() {
    let map = |fields: &str| {
        format!(
            "struct {{ {fields} }} big SEC(\".maps\");\nSEC(\"xdp\") int f(struct xdp_md *c) {{ return 0; }}\n"
        )
    };
    let cases = [
        (
            "__uint(type, 1); __uint(max_entries, 0); __type(key, int); __type(value, int);",
            "1 to 67108864",
        ),
        (
            "__uint(type, 1); __uint(max_entries, 0x7fffffff); __type(key, int); __type(value, int);",
            "1 to 67108864",
        ),
        (
            "__uint(type, 1); __uint(max_entries, 8); __uint(key_size, 513); __type(value, int);",
            "1 to 512",
        ),
        (
            "__uint(type, 1); __uint(max_entries, 8); __type(key, int); __uint(value_size, 0x7fffffff);",
            "1 to 1048576",
        ),
        (
            "__uint(type, 1); __uint(max_entries, 67108864); __type(key, int); __uint(value_size, 1048576);",
            "64 GiB",
        ),
        (
            "__uint(type, 1); __uint(max_entries, 8); __type(key, int);",
            "value of 0 bytes",
        ),
        (
            "__uint(type, 2); __uint(max_entries, 8); __type(key, __u64); __type(value, int);",
            "4 bytes",
        ),
        (
            "__uint(type, 27); __uint(max_entries, 5000);",
            "power of two",
        ),
        (
            "__uint(type, 11); __uint(max_entries, 8); __type(key, __u64); __type(value, int);",
            "BPF_F_NO_PREALLOC",
        ),
        (
            "__uint(type, 1); __uint(max_entries, 8); __uint(map_flags, 0x80); __type(key, int); __type(value, int);",
            "0x80",
        ),
    ];
    for (fields, word) in cases {
        say(&refused(XDP, &map(fields), "absurd-size"), &["big", word]);
    }
}

#[test]
fn contradictory_declarations() {
    let errors = refused(
        XDP,
        "struct { __uint(type, 1); __uint(max_entries, 8); __type(key, int); __uint(key_size, 8); \
         __type(value, int); } two SEC(\".maps\");\nSEC(\"xdp\") int f(struct xdp_md *c) { return 0; }\n",
        "map-declaration",
    );
    say(&errors, &["two", "4", "8"]);
    let errors = refused(
        XDP,
        "struct { __uint(type, 1); __uint(max_entries, 8); __type(key, struct nowhere); \
         __type(value, int); } two SEC(\".maps\");\nSEC(\"xdp\") int f(struct xdp_md *c) { return 0; }\n",
        "map-declaration",
    );
    say(&errors, &["key"]);
}

#[test]
fn objects_without_a_program() {
    let errors = refused(
        XDP,
        "SEC(\"tc\") int f(void *c) { return 0; }\n",
        "no-entry",
    );
    say(&errors, &["tc", "SEC(\"xdp\")"]);
    refused(XDP, "int x = 1;\n", "no-entry");
}

#[test]
fn pointers_in_initial_values() {
    let errors = refused(
        XDP,
        "static int a, b; static int *volatile const table[2] = { &a, &b };\n\
         SEC(\"xdp\") int f(struct xdp_md *c) { return *table[c->rx_queue_index & 1]; }\n",
        "pointer-in-data",
    );
    say(&errors, &["program.c"]);
}

#[test]
fn variables_in_unknown_sections() {
    let errors = refused(
        XDP,
        "static volatile int x SEC(\"mine\"); SEC(\"xdp\") int f(struct xdp_md *c) { return x; }\n",
        "unknown-section",
    );
    say(&errors, &["mine"]);
}

#[test]
fn functions_without_an_end() {
    let errors = refused(
        XDP,
        "SEC(\"xdp\") int f(struct xdp_md *c) { if (c->data) return 1; __builtin_unreachable(); }\n\
         SEC(\"xdp\") __attribute__((naked)) int g(struct xdp_md *c) { asm volatile(\"r0 = 0\"); }\n",
        "runs-past-end",
    );
    say(&errors, &["g"]);
}

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
fn what_is_no_bpf_object() {
    let rule = |bytes: &[u8]| load(bytes, "x").unwrap_err().rule;
    assert_eq!(rule(b""), "not-elf");
    assert_eq!(rule(b"hello, world"), "not-elf");
    assert_eq!(rule(b"\x7fELF"), "not-bpf");
    let own = std::fs::read(std::env::current_exe().unwrap());
    // A test binary may be larger than what is read at all.
    assert!(matches!(rule(&own.unwrap()), "not-bpf" | "file-size"));
    let huge = vec![0; (64 << 20) + 1];
    assert_eq!(rule(&huge), "file-size");
    let missing = millrace_object::load_file(std::path::Path::new("/nowhere/x.o")).unwrap_err();
    assert_eq!(missing.rule, "unreadable");
    assert!(missing.to_string().contains("/nowhere/x.o"));
}

#[test]
fn big_endian_objects() {
    for clang in CLANGS {
        let text = format!("{XDP}SEC(\"xdp\") int f(struct xdp_md *c) {{ return 0; }}\n");
        let Some(bytes) = compile_text(clang, &text, &["-target", "bpfeb"]) else {
            continue;
        };
        assert_eq!(load(&bytes, "x").unwrap_err().rule, "big-endian", "{clang}");
    }
}
